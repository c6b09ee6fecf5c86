//! The table of requirements in `docs/conformance.md`, written from their declarations.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

/// The page the table stands in.
pub(crate) const PAGE: &str = "docs/conformance.md";

const BEGIN: &str = "<!-- requirements -->\n";
const END: &str = "<!-- /requirements -->\n";

/// The page as it would be written: what people wrote around the table, and the table.
pub(crate) fn page(root: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let missing = || format!("{PAGE} has lost the lines {BEGIN:?} and {END:?}");
    let (before, rest) = text.split_once(BEGIN).with_context(missing)?;
    let (_, after) = rest.split_once(END).with_context(missing)?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table()))
}

fn table() -> String {
    let mut out = String::new();
    for (word, about, requirements) in conformance::topics() {
        let _ = write!(out, "\n### {word}: {about}\n\n| | | rule | expected |\n|---|---|---|---|\n");
        for it in requirements {
            let _ =
                writeln!(out, "| {} | {} | {} | {} |", it.id, it.level, cell(it.title), cell(it.expected));
        }
    }
    out.push('\n');
    out
}

/// A text that may stand in a table: a pipe would end the cell, and `<path>` is no element.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}
