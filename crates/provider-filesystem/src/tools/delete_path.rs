//! `delete_path`: takes a file or a directory away, so that it can be brought back.

use std::time::Duration;

use provider_core::ensure_as_previewed;
use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::change::since_preview;
use crate::entries::{self, Entry};
use crate::journal::Transaction;
use crate::provider::Located;

/// Removes a file, a symbolic link (not what it leads to) or a directory; one with something in it only with
/// recursive. What is removed is kept for a while, so that undo_change brings it back.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What to remove, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["file_path", "filename", "file", "directory"]))]
    path: String,
    /// Whether a directory is removed with everything in it.
    recursive: Option<bool>,
}

/// What was removed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The path, relative to the working directory if beneath it, else absolute.
    path: String,
    /// Files removed, links and other entries that are no directories included.
    files: u64,
    /// Bytes in them.
    bytes: u64,
    /// What undo_change brings it back by. Absent when it cannot be brought back.
    change_id: Option<String>,
}

pub(crate) struct DeletePath;

impl Resource for DeletePath {
    const NAME: &'static str = "delete_path";
    const RISK: Risk = Risk::High;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["path"]);
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let path = filesystem.locate_entry_to_change(&args.path, cx.working_directory())?;
        path.note().into_iter().for_each(|note| cx.note(note));
        let context = cx.clone();
        cx.blocking(move || delete(&filesystem, &path, &args, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let Output { path, files, bytes, .. } = output;
        let (files, bytes) = (entries::of_files(*files), entries::of_bytes(*bytes));
        Some(Node::text(format!("removed {path}: {files}, {bytes}")))
    }
}

impl Preview for DeletePath {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let path = match filesystem.locate_entry_in_preview(&args.path, cx)? {
            Located::At(path) => path,
            Located::Undecided => return Ok(entries::undecided(&format!("remove {}", args.path))),
        };
        let (node, fingerprint) = cx
            .blocking(move || {
                let entry = looked_at(&path, &args)?;
                let headline = format!("remove {}: {}", path.absolute().display(), entry.describe());
                let notes: Vec<String> = entry.unkept(&filesystem).into_iter().collect();
                Ok((entries::shown(headline, &notes, entry.lost()?), entry.fingerprint()))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

fn delete(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let entry = looked_at(path, args).map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &entry.fingerprint())?;
    cx.check_cancelled()?;
    let (files, bytes) = entry.mark.size();
    let mut transaction = Transaction::default();
    transaction.remove(&entry.path, entry.mark, entry.metadata.id());
    let change_id = transaction.run(filesystem, DeletePath::NAME, cx)?.change_id;
    Ok(Output { path: path.to_string(), files, bytes, change_id })
}

/// What is to be removed, if it may be.
fn looked_at(path: &JailPath, args: &Args) -> Result<Entry, ToolError> {
    if path.file_name().is_none() {
        let text = format!("`{path}` is an allowed root itself, which cannot be removed");
        return Err(ToolError::invalid_arguments(text));
    }
    path.symlink_metadata()?;
    let mut entries = 0_u64;
    path.with_real_parent()?.walk_to_remove(&mut |_| {
        entries += 1;
        Ok(())
    })?;
    let entry = Entry::at(path)?;
    if entry.is_directory() && entries > 1 && !args.recursive.unwrap_or(false) {
        let text = format!(
            "`{path}` is {} and so not empty; nothing was removed. Pass recursive: true to remove it with everything in it",
            entry.describe()
        );
        return Err(ToolError::new(Code::IsDirectory, text));
    }
    Ok(entry)
}
