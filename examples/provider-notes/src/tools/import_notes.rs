//! `import_notes`: writes many notes, one after another.

use provider_core::prelude::*;

use crate::Notes;

/// Adds several notes in order. Those added before an error or a cancellation stay.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The notes, each in one line.
    #[schemars(length(min = 1, max = 1_000))]
    texts: Vec<String>,
}

/// What was added.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// Number of the first note, from 1.
    first: usize,
    /// Number of the last note.
    last: usize,
}

pub(crate) struct ImportNotes;

impl Resource for ImportNotes {
    const NAME: &'static str = "import_notes";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    type Provider = Notes;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(notes: Arc<Notes>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let total = args.texts.len();
        let mut numbers = Vec::with_capacity(total);
        for text in args.texts {
            cx.check_cancelled()?;
            let notes = notes.clone();
            let number = cx.blocking(move || notes.append(&text, |_| Ok(()))).await?;
            cx.effects().record(format!("added note {number}"));
            numbers.push(number);
            let done = numbers.len() as f64 / total as f64;
            cx.progress(format!("added note {number}"), Some(done)).await;
        }
        let first = numbers.first().copied().unwrap_or_default();
        Ok(Output { first, last: numbers.last().copied().unwrap_or_default() })
    }
}
