//! A notebook as text to read.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Notebook, joined};

/// More of one output is not shown, in characters.
const LONGEST_OUTPUT: usize = 4_000;

/// All cells with their ids, and what they put out. Images and long outputs are named, not shown.
#[must_use]
pub fn show(notebook: &Notebook<'_>) -> String {
    let mut text = String::new();
    let ids = notebook.ids();
    for (index, (cell, id)) in notebook.cells().iter().zip(&ids).enumerate() {
        let value = cell.value(notebook.text).unwrap_or_default();
        let kind = value["cell_type"].as_str().unwrap_or("unknown");
        let run = value["execution_count"].as_u64().map(|count| format!(", run as [{count}]"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "=== cell {} of {}: {kind}, cell_id {id}{}",
            index + 1,
            ids.len(),
            run.unwrap_or_default()
        );
        push_block(&mut text, &joined(&value["source"]));
        for output in value["outputs"].as_array().into_iter().flatten() {
            push_output(&mut text, output);
        }
    }
    text
}

fn push_output(text: &mut String, output: &Value) {
    match output["output_type"].as_str() {
        Some("stream") => {
            let _ = writeln!(text, "--- {}", output["name"].as_str().unwrap_or("output"));
            push_cut(text, &joined(&output["text"]));
        }
        Some("error") => {
            let part = |name: &str| output[name].as_str().unwrap_or_default().to_owned();
            let _ = writeln!(text, "--- error");
            push_cut(text, &format!("{}: {}", part("ename"), part("evalue")));
        }
        _ => {
            let _ = writeln!(text, "--- result");
            for (mime_type, data) in output["data"].as_object().into_iter().flatten() {
                match mime_type.as_str() {
                    "text/plain" => push_cut(text, &joined(data)),
                    other => {
                        let _ = writeln!(
                            text,
                            "[{other}, {} characters, not shown]",
                            joined(data).chars().count()
                        );
                    }
                }
            }
        }
    }
}

fn push_cut(text: &mut String, output: &str) {
    let Some((end, _)) = output.char_indices().nth(LONGEST_OUTPUT) else {
        return push_block(text, output);
    };
    push_block(text, output.get(..end).unwrap_or_default());
    let more = output.get(end..).unwrap_or_default().chars().count();
    let _ = writeln!(text, "[{more} more characters of this output are not shown]");
}

/// A text of whole lines.
fn push_block(text: &mut String, block: &str) {
    text.push_str(block);
    if !block.is_empty() && !block.ends_with('\n') {
        text.push('\n');
    }
}
