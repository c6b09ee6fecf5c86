//! `add_note`: writes one note.

use provider_core::prelude::*;
use provider_core::{DiffHunk, DiffLine, LineChange, ensure_as_previewed};

use crate::Notes;

/// Adds a note at the end.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The note, in one line.
    #[schemars(extend("x-aliases" = ["note", "content"]))]
    text: String,
}

/// The note as added.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// Its number, from 1.
    added: usize,
}

pub(crate) struct AddNote;

impl Resource for AddNote {
    const NAME: &'static str = "add_note";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    type Provider = Notes;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(notes: Arc<Notes>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let context = cx.clone();
        cx.blocking(move || {
            let as_shown = |number: usize| ensure_as_previewed(&context, &number.to_string());
            let added = notes.append(&args.text, as_shown)?;
            context.effects().record(format!("added note {added}"));
            Ok(Output { added })
        })
        .await
    }

    fn render(output: &Output) -> Option<Node> {
        Some(Node::text(format!("added note {}", output.added)))
    }
}

impl Preview for AddNote {
    async fn preview(notes: Arc<Notes>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let target = notes.file.absolute();
        let text = args.text.clone();
        let before = cx
            .blocking(move || {
                let before = notes.read()?;
                notes.check(&text, before.len())?;
                Ok(before)
            })
            .await?;
        cx.remember((before.len() + 1).to_string());
        let headline = Node::text(format!("add to {}", target.display()));
        Ok(Node::Group(vec![headline, Node::Diff(vec![hunk(&before, args.text)])]))
    }
}

/// The new line behind the last few.
fn hunk(before: &[String], text: String) -> DiffHunk {
    let context = &before[before.len().saturating_sub(3)..];
    let line = |change, text: String| DiffLine { change, text };
    let mut lines: Vec<_> = context.iter().map(|text| line(LineChange::Context, text.clone())).collect();
    lines.push(line(LineChange::Add, text));
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    // In a unified diff an empty side starts at line 0.
    let old_start = if context.is_empty() { 0 } else { count(before.len() - context.len() + 1) };
    DiffHunk {
        old_start,
        old_lines: count(context.len()),
        new_start: old_start.max(1),
        new_lines: count(context.len() + 1),
        lines,
    }
}
