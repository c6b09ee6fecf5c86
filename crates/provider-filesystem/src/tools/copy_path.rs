//! `copy_path`: makes a second one of a file or a directory.

use std::time::Duration;

use provider_core::ensure_as_previewed;
use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::change::since_preview;
use crate::entries::{self, Pair};
use crate::journal::Transaction;

/// Copies a file, a symbolic link (not what it leads to) or a directory with everything in it. to is the whole name of
/// the copy, not the directory to put it into. Something that has that name is only replaced with overwrite. Modes,
/// owners, extended attributes and links are kept.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What to copy, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["source", "src", "path"]))]
    from: String,
    /// The whole name of the copy.
    #[schemars(extend("x-aliases" = ["destination", "dest", "target"]))]
    to: String,
    /// Whether a file that has that name is replaced. Default false. A directory never is.
    overwrite: Option<bool>,
}

/// What was copied.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The original.
    from: String,
    /// The copy.
    to: String,
    /// Bytes in the files copied.
    bytes: u64,
    /// Files copied, links included.
    files: u64,
    /// Files among them that share their storage with the original until one of the two is changed.
    cloned: u64,
    /// What undo_change takes this change back by. Absent when it cannot be taken back.
    change_id: Option<String>,
}

pub(crate) struct CopyPath;

impl Resource for CopyPath {
    const NAME: &'static str = "copy_path";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["from", "to"]);
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        filesystem.ensure_writable()?;
        let from = filesystem.locate(&args.from, cx.working_directory())?;
        let to = filesystem.locate_entry_to_change(&args.to, cx.working_directory())?;
        [&from, &to].into_iter().filter_map(|path| path.note()).for_each(|note| cx.note(note));
        let context = cx.clone();
        let overwrite = args.overwrite.unwrap_or(false);
        cx.blocking(move || copy(&filesystem, &from, &to, overwrite, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let Output { from, to, files, bytes, .. } = output;
        let (files, bytes) = (entries::of_files(*files), entries::of_bytes(*bytes));
        Some(Node::text(format!("copied {from} to {to}: {files}, {bytes}")))
    }
}

impl Preview for CopyPath {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        entries::preview_pair(filesystem, "copy", (&args.from, &args.to), args.overwrite.unwrap_or(false), cx)
            .await
    }
}

fn copy(
    filesystem: &Filesystem,
    from: &JailPath,
    to: &JailPath,
    overwrite: bool,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let pair = Pair::look("copy", from, to, overwrite).map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &pair.fingerprint())?;
    pair.notes().into_iter().for_each(|note| cx.note(note));
    let Pair { from: original, to: target, displaced } = pair;
    let staged = entries::stage_copy(filesystem, &original.path, &target, displaced.is_some(), false, cx)?;
    let copied = staged.copied().clone();
    let mut transaction = Transaction::default();
    entries::put_copy(&mut transaction, staged, &target, displaced)?;
    cx.check_cancelled()?;
    let change_id = transaction.run(filesystem, CopyPath::NAME, cx)?.change_id;
    Ok(Output {
        from: from.to_string(),
        to: to.to_string(),
        bytes: copied.bytes,
        files: copied.files,
        cloned: copied.cloned,
        change_id,
    })
}
