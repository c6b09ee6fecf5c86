//! `create_directory`: makes a directory and those above it that are missing.

use std::time::Duration;

use provider_core::ensure_as_previewed;
use provider_core::jail::{FileKind, JailPath, PathError};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::change::since_preview;
use crate::directories::Made;
use crate::entries;
use crate::journal::Transaction;
use crate::provider::Located;

/// Makes a directory, with those above it that are missing. A directory that is there already is left as it is.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The directory, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["directory", "dir", "folder"]))]
    path: String,
}

/// What is there now.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The directory, relative to the working directory if beneath it, else absolute.
    path: String,
    /// Whether it was made; false if it was there already.
    created: bool,
    /// What undo_change takes this change back by. Absent when there was none, or it cannot be taken back.
    change_id: Option<String>,
}

pub(crate) struct CreateDirectory;

impl Resource for CreateDirectory {
    const NAME: &'static str = "create_directory";
    const RISK: Risk = Risk::Low;
    const IDEMPOTENT: bool = true;
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
        cx.blocking(move || create(&filesystem, &path, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let text = if output.created { "created" } else { "was there already:" };
        Some(Node::text(format!("{text} {}", output.path)))
    }
}

impl Preview for CreateDirectory {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let path = match filesystem.locate_entry_in_preview(&args.path, cx)? {
            Located::At(path) => path,
            Located::Undecided => {
                return Ok(entries::undecided(&format!("create the directory {}", args.path)));
            }
        };
        let (node, fingerprint) = cx
            .blocking(move || {
                let headline = format!("create the directory {}", path.absolute().display());
                let missing = missing(&path)?;
                let mut notes: Vec<String> = missing
                    .iter()
                    .filter(|directory| **directory != path)
                    .map(|directory| format!("creates the directory {directory}"))
                    .collect();
                if missing.is_empty() {
                    notes.push("it is there already: nothing will be done".to_owned());
                }
                Ok((entries::shown(headline, &notes, Vec::new()), fingerprint(&path, &missing)))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

/// The directories that are missing, the outermost first.
fn missing(path: &JailPath) -> Result<Vec<JailPath>, ToolError> {
    let mut missing = Vec::new();
    if is_there(path)? {
        return Ok(missing);
    }
    let mut next = Some(path.clone());
    while let Some(directory) = next.filter(|directory| matches!(directory.exists(), Ok(false))) {
        next = directory.parent();
        missing.insert(0, directory);
    }
    Ok(missing)
}

/// What identifies what is made.
fn fingerprint(path: &JailPath, missing: &[JailPath]) -> String {
    let names = missing.iter().map(|directory| directory.absolute().display().to_string());
    format!("{}\0{}", path.absolute().display(), names.collect::<Vec<_>>().join("\0"))
}

fn create(filesystem: &Filesystem, path: &JailPath, cx: &Cx<Events>) -> Result<Output, ToolError> {
    let shown = path.to_string();
    let missing = missing(path).map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &fingerprint(path, &missing))?;
    if missing.is_empty() {
        return Ok(Output { path: shown, created: false, change_id: None });
    }
    cx.check_cancelled()?;
    let mut made = Made::new(&filesystem.journal);
    made.make(path)?;
    if made.list().is_empty() {
        // Somebody else was faster.
        return Ok(Output { path: shown, created: false, change_id: None });
    }
    let mut transaction = Transaction::default();
    made.list().iter().for_each(|directory| transaction.make_directory(directory, true));
    path.settle();
    let change_id = transaction.run(filesystem, CreateDirectory::NAME, cx)?.change_id;
    made.stay();
    Ok(Output { path: shown, created: true, change_id })
}

/// Whether there is such a directory, also behind a symbolic link. Anything else there is an error.
fn is_there(path: &JailPath) -> Result<bool, ToolError> {
    let exists = |kind: FileKind| {
        let text = format!("`{path}` exists already and is a {kind}, not a directory; nothing was changed");
        ToolError::new(Code::Exists, text)
    };
    match path.metadata() {
        Ok(found) if found.kind == FileKind::Directory => Ok(true),
        Ok(found) => Err(exists(found.kind)),
        // A link that leads nowhere, or what another call has made since.
        Err(PathError::NotFound { .. }) => match path.symlink_metadata() {
            Ok(found) if found.kind == FileKind::Directory => Ok(true),
            Ok(found) => Err(exists(found.kind)),
            Err(PathError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}
