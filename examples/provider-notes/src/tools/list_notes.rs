//! `list_notes`: reads the notes.

use provider_core::prelude::*;

use crate::Notes;

/// Lists the notes, oldest first.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Only notes with this text in them. Default: all.
    contains: Option<String>,
    /// How many notes are listed at most. Default 100.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<usize>,
}

/// The notes found.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The notes, oldest first.
    found: Vec<Note>,
    /// How many there are, listed or not.
    total: usize,
    /// Whether more were found than are listed.
    truncated: bool,
}

/// One note.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// Its number, from 1.
    number: usize,
    /// Its text.
    text: String,
}

pub(crate) struct ListNotes;

impl DataSource for ListNotes {
    const NAME: &'static str = "list_notes";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    type Provider = Notes;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(notes: Arc<Notes>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let all = cx.blocking(move || notes.read()).await?;
        let wanted = |text: &String| args.contains.as_ref().is_none_or(|part| text.contains(part));
        let numbered = all.into_iter().enumerate().filter(|(_, text)| wanted(text));
        let mut found: Vec<Note> = numbered.map(|(index, text)| Note { number: index + 1, text }).collect();
        let total = found.len();
        found.truncate(args.limit.unwrap_or(100));
        if found.len() < total {
            cx.note(format!("{} of {total} notes; pass a larger limit for more", found.len()));
        }
        Ok(Output { truncated: found.len() < total, total, found })
    }

    fn render(output: &Output) -> Option<Node> {
        let row = |note: &Note| vec![note.number.to_string(), note.text.clone()];
        let headers = vec!["#".to_owned(), "note".to_owned()];
        Some(Node::Table { headers, rows: output.found.iter().map(row).collect() })
    }
}
