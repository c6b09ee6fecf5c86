//! `undo_change`: takes back an earlier change, in one piece.

use std::path::{Path, PathBuf};
use std::time::Duration;

use provider_core::ensure_as_previewed;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::cancellable::patient;
use crate::change::since_preview;
use crate::journal::reverse::{Action, Planner};
use crate::shown;

/// Takes back an earlier change made here, whole: contents, names and modes are as before it. Refused when anything it
/// changed was changed again since. Called again without change_id it takes back the change before that one; an undo
/// is itself taken back by giving its change_id.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The change_id that a change answered. Default: the latest change that is not undone.
    change_id: Option<String>,
}

/// One file of the change.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Undone {
    /// The path, relative to the working directory if beneath it, else absolute.
    path: String,
    /// What happened to it now.
    action: Action,
    /// SHA-256 of the file now, in hex. Absent for what is no file, or gone.
    sha256: Option<String>,
}

/// What was taken back.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The change that was undone.
    undone: String,
    /// What undo_change takes this undo back by. Absent when it cannot be taken back.
    change_id: Option<String>,
    /// What happened to each file.
    files: Vec<Undone>,
    /// The change as a unified diff.
    diff: String,
}

pub(crate) struct UndoChange;

impl Resource for UndoChange {
    const NAME: &'static str = "undo_change";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        filesystem.ensure_writable()?;
        patient(&cx, move |cx| undo(&filesystem, &args, cx)).await
    }

    fn render(output: &Output) -> Option<Node> {
        Some(shown::stored_all(&format!("undid the change {}", output.undone), &output.diff))
    }
}

impl Preview for UndoChange {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        filesystem.ensure_writable()?;
        let session = cx.session_id().to_owned();
        let (node, fingerprint) = cx
            .blocking(move || {
                let found = filesystem.find_change(args.change_id.as_deref(), &session)?;
                let reversal = Planner::plan(&filesystem, &found.entry, Path::new(""))?;
                let header = &found.entry.header;
                let headline =
                    format!("undo {} {} ({})", header.tool, header.id, crate::journal::ago(header.at_ms));
                let notes: Vec<String> = found.note.iter().chain(&reversal.notes).cloned().collect();
                Ok((shown::changes(&headline, &reversal.diffs, &notes), reversal.fingerprint()))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

fn undo(filesystem: &Filesystem, args: &Args, cx: &Cx<Events>) -> Result<Output, ToolError> {
    filesystem.recover_pending().into_iter().for_each(|note| cx.note(note));
    let found = filesystem.find_change(args.change_id.as_deref(), cx.session_id())?;
    let base: PathBuf = filesystem
        .locate_directory(None, cx.working_directory())
        .map(|directory| directory.absolute())
        .unwrap_or_default();
    let reversal =
        Planner::plan(filesystem, &found.entry, &base).map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &reversal.fingerprint())?;
    cx.check_cancelled()?;
    found.note.iter().chain(&reversal.notes).for_each(|note| cx.note(note.clone()));
    let files = reversal.files.iter().map(|file| Undone {
        path: file.path.to_string(),
        action: file.action,
        sha256: file.sha256.clone(),
    });
    let files = files.collect();
    let diff = shown::unified_all(&reversal.diffs);
    let change_id = reversal.run(filesystem, UndoChange::NAME, cx)?;
    Ok(Output { undone: found.entry.header.id.clone(), change_id, files, diff })
}
