//! `move_path`: gives a file or a directory another name or place.

use std::time::Duration;

use provider_core::ensure_as_previewed;
use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::change::since_preview;
use crate::entries::{self, Pair};
use crate::journal::{Transaction, ask};

/// Moves or renames a file, a symbolic link (not what it leads to) or a directory. to is the whole new name, not the
/// directory to put it into. Something that has that name is only replaced with overwrite.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What to move, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["source", "src", "old_path", "path"]))]
    from: String,
    /// Its whole new name.
    #[schemars(extend("x-aliases" = ["destination", "dest", "target", "new_path"]))]
    to: String,
    /// Whether a file that has the new name is replaced. Default false. A directory never is.
    overwrite: Option<bool>,
}

/// What was moved.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// Where it was.
    from: String,
    /// Where it is now.
    to: String,
    /// Bytes in the files moved.
    bytes: u64,
    /// Files moved, links and other entries that are no directories included.
    files: u64,
    /// Whether it was one step that nobody could see half done. Between two file systems it is not.
    atomic: bool,
    /// What undo_change takes this change back by. Absent when it cannot be taken back.
    change_id: Option<String>,
}

pub(crate) struct MovePath;

impl Resource for MovePath {
    const NAME: &'static str = "move_path";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["from", "to"]);
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let from = filesystem.locate_entry_to_change(&args.from, cx.working_directory())?;
        let to = filesystem.locate_entry_to_change(&args.to, cx.working_directory())?;
        [&from, &to].into_iter().filter_map(|path| path.note()).for_each(|note| cx.note(note));
        let context = cx.clone();
        let overwrite = args.overwrite.unwrap_or(false);
        cx.blocking(move || move_path(&filesystem, &from, &to, overwrite, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let Output { from, to, files, bytes, .. } = output;
        let (files, bytes) = (entries::of_files(*files), entries::of_bytes(*bytes));
        Some(Node::text(format!("moved {from} to {to}: {files}, {bytes}")))
    }
}

impl Preview for MovePath {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        entries::preview_pair(filesystem, "move", (&args.from, &args.to), args.overwrite.unwrap_or(false), cx)
            .await
    }
}

fn move_path(
    filesystem: &Filesystem,
    from: &JailPath,
    to: &JailPath,
    overwrite: bool,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let pair = Pair::look("move", from, to, overwrite).map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &pair.fingerprint())?;
    pair.notes().into_iter().for_each(|note| cx.note(note));
    cx.check_cancelled()?;
    let (files, bytes) = pair.from.mark.size();
    let moved = filesystem.memory.moving(&pair.from.path.absolute(), &pair.to.absolute());
    let atomic = pair.is_on_one_file_system()?;
    let change_id = match atomic {
        true => rename(filesystem, pair, cx)?,
        false => copy_and_remove(filesystem, pair, cx)?,
    };
    filesystem.memory.moved(moved);
    Ok(Output { from: from.to_string(), to: to.to_string(), bytes, files, atomic, change_id })
}

fn rename(filesystem: &Filesystem, pair: Pair, cx: &Cx<Events>) -> Result<Option<String>, ToolError> {
    let Pair { from, to, displaced } = pair;
    let mut transaction = Transaction::default();
    let id = from.metadata.id();
    match displaced {
        None => transaction.rename(&from.path, &to, from.mark, id),
        Some(displaced) => {
            let (mark, theirs) = (displaced.mark, displaced.metadata.id());
            transaction.exchange((&from.path, from.mark, id), (&to, mark.clone()));
            transaction.remove(&from.path, mark, theirs);
        }
    }
    Ok(transaction.run(filesystem, MovePath::NAME, cx)?.change_id)
}

fn copy_and_remove(
    filesystem: &Filesystem,
    pair: Pair,
    cx: &Cx<Events>,
) -> Result<Option<String>, ToolError> {
    cx.note("the two are on different file systems: it was copied, and the original removed then, which is not one step");
    let Pair { from, to, displaced } = pair;
    let staged = entries::stage_copy(filesystem, &from.path, &to, displaced.is_some(), true, cx)?;
    let mut transaction = Transaction::default();
    entries::put_copy(&mut transaction, staged, &to, displaced)?;
    transaction.remove(&from.path, from.mark, from.metadata.id());
    ask(cx)?;
    Ok(transaction.run(filesystem, MovePath::NAME, cx)?.change_id)
}
