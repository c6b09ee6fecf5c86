//! `write_file`: gives a file its whole content.

use std::time::Duration;

use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::change::{Locked, Plan, peek};
use crate::engine::text::{Eol, count_lines};
use crate::provider::Located;
use crate::shown;
use crate::staleness::{Claim, Target, check_write};

/// The UTF-8 byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What to do about a missing directory.
const CREATE_PARENTS: &str = "pass create_parents: true to create the directories on the way";

/// Writes a whole file, creating it or replacing its content. A file that changed since it was read, or was read
/// only in part, is not overwritten. Mode, owner and links of an existing file are kept.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["file_path", "filename", "file"]))]
    path: String,
    /// The whole content, literally.
    #[schemars(extend("x-aliases" = ["contents", "text"]))]
    content: String,
    /// Whether missing directories on the way are created.
    create_parents: Option<bool>,
    /// Whether an existing file may be replaced. Default true.
    overwrite: Option<bool>,
    /// The SHA-256 that the existing file must have, in hex.
    expected_sha256: Option<String>,
    /// How the text is stored. Default: as it was, and UTF-8 for a new file.
    encoding: Option<TextEncoding>,
    /// The line endings to write. Default exact.
    eol: Option<EolWanted>,
    /// Whether to write although the file changed since it was read, or was read only in part.
    force: Option<bool>,
}

/// How text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
enum TextEncoding {
    /// UTF-8 without a byte order mark.
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-8 with a byte order mark.
    #[serde(rename = "utf-8-bom")]
    Utf8Bom,
}

/// Which line endings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EolWanted {
    /// Those of the content.
    Exact,
    /// Those of the existing file, if it has one kind.
    Keep,
    /// Line feeds.
    Lf,
    /// Carriage returns and line feeds.
    Crlf,
}

/// What was written.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The file, relative to the working directory if beneath it, else absolute.
    path: String,
    /// Whether there was no such file before.
    created: bool,
    /// Whether the file is another than before.
    changed: bool,
    /// Bytes in the file.
    bytes: u64,
    /// Lines in the file.
    lines: u64,
    /// SHA-256 of the file, in hex.
    sha256: String,
    /// The change as a unified diff.
    diff: String,
}

pub(crate) struct WriteFile;

impl Resource for WriteFile {
    const NAME: &'static str = "write_file";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = true;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["path"]);
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let path = filesystem.locate_to_change(&args.path, cx.working_directory())?;
        path.note().into_iter().for_each(|note| cx.note(note));
        let context = cx.clone();
        cx.blocking(move || write(&filesystem, &path, &args, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        Some(shown::stored(&output.path, &output.diff))
    }
}

impl Preview for WriteFile {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let path = match filesystem.locate_in_preview(&args.path, cx)? {
            Located::At(path) => path,
            Located::Undecided => return Ok(undecided(&args)),
        };
        let session = cx.session_id().to_owned();
        let (node, fingerprint) = cx
            .blocking(move || {
                let real = path.resolved()?.absolute();
                let mut notes = directory_notes(&path, &args)?;
                let before = peek(&path)?;
                let plan = planned(&filesystem, &path, &real, &args, &session, before)?;
                notes.extend_from_slice(&plan.notes);
                let verb = if plan.created() { "create" } else { "overwrite" };
                let headline = format!("{verb} {}", real.display());
                Ok((shown::change(&headline, &plan.diff, &notes), plan.fingerprint(&real)))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

/// The arguments themselves, where it is not known which file they mean.
fn undecided(args: &Args) -> Node {
    let headline = format!(
        "write {} — there are several allowed roots and no call has named a directory yet, so the file is not known",
        args.path
    );
    Node::Group(vec![
        Node::text(headline),
        Node::Code { language: String::new(), content: args.content.clone() },
    ])
}

fn write(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let parent = path.parent().filter(|_| args.create_parents.unwrap_or(false));
    let created = parent.map_or(Ok(Vec::new()), |parent| parent.create_dir_all())?;
    match write_into(filesystem, path, args, cx) {
        Ok(output) => {
            created
                .iter()
                .for_each(|directory| cx.effects().record(format!("created directory {directory}")));
            Ok(output)
        }
        Err(error) => {
            // Only empty ones go: what somebody else put there meanwhile keeps its directory.
            created.iter().rev().for_each(|directory| drop(directory.remove_dir()));
            Err(error)
        }
    }
}

fn write_into(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let mut locked = lock(path)?;
    let before = locked.before.take();
    let plan = planned(filesystem, path, &locked.real(), args, cx.session_id(), before)?;
    let sha256 = locked.apply(filesystem, path, &plan, true, cx)?;
    let path = path.to_string();
    Ok(Output {
        created: plan.created(),
        changed: plan.changed(),
        bytes: plan.after.len() as u64,
        lines: count_lines(&plan.after),
        sha256,
        diff: shown::unified(&plan.diff, &path, plan.created()),
        path,
    })
}

/// What a preview says of the directories that a call would create.
fn directory_notes(path: &JailPath, args: &Args) -> Result<Vec<String>, ToolError> {
    let mut notes = Vec::new();
    let mut next = path.parent();
    while let Some(directory) = next {
        if directory.exists()? {
            break;
        }
        if !args.create_parents.unwrap_or(false) {
            let text = format!(
                "`{path}` cannot be created: its directory `{directory}` does not exist; {CREATE_PARENTS}"
            );
            return Err(ToolError::not_found(text));
        }
        notes.insert(0, format!("creates the directory {directory}"));
        next = directory.parent();
    }
    Ok(notes)
}

fn lock(path: &JailPath) -> Result<Locked, ToolError> {
    Locked::lock(path).map_err(|error| match error.category() {
        provider_core::Category::NotFound => ToolError::not_found(format!("{error}; {CREATE_PARENTS}")),
        _ => error,
    })
}

/// What the call writes; the same for a preview and a call.
fn planned(
    filesystem: &Filesystem,
    path: &JailPath,
    real: &std::path::Path,
    args: &Args,
    session: &str,
    before: Option<Vec<u8>>,
) -> Result<Plan, ToolError> {
    let shown = path.to_string();
    let target = Target { shown: &shown, real, content: before.as_deref() };
    if let Some(content) = target.content.filter(|_| args.overwrite == Some(false)) {
        let text = format!(
            "{shown} exists already ({} bytes) and overwrite is false; nothing was changed",
            content.len()
        );
        return Err(ToolError::new(Code::Exists, text));
    }
    let claim = Claim {
        session,
        expected_sha256: args.expected_sha256.as_deref(),
        force: args.force.unwrap_or(false),
    };
    check_write(filesystem, &target, &claim)?;
    let (after, notes) = encoded(args, before.as_deref());
    Ok(Plan::new(before, after, notes))
}

/// The bytes to write, with what a caller should know about them.
fn encoded(args: &Args, before: Option<&[u8]>) -> (Vec<u8>, Vec<String>) {
    let mut notes = Vec::new();
    let old_eol = before.map(Eol::of);
    let content = match (args.eol.unwrap_or(EolWanted::Exact), old_eol) {
        (EolWanted::Lf, _) | (EolWanted::Keep, Some(Eol::Lf)) => args.content.replace("\r\n", "\n"),
        (EolWanted::Crlf, _) | (EolWanted::Keep, Some(Eol::Crlf)) => {
            args.content.replace("\r\n", "\n").replace('\n', "\r\n")
        }
        (EolWanted::Exact | EolWanted::Keep, _) => args.content.clone(),
    };
    let had_bom = before.is_some_and(|before| before.starts_with(BOM));
    let with_bom = match args.encoding {
        Some(encoding) => encoding == TextEncoding::Utf8Bom,
        None => had_bom,
    };
    let mut bytes = Vec::with_capacity(BOM.len() + content.len());
    if with_bom && !content.as_bytes().starts_with(BOM) {
        bytes.extend_from_slice(BOM);
    }
    bytes.extend_from_slice(content.as_bytes());
    if let (Some(old), new) = (old_eol, Eol::of(&bytes))
        && old != new
        && old != Eol::None
        && new != Eol::None
    {
        notes.push(format!(
            "eol changed {}→{}; pass eol: keep to keep the line endings",
            old.name(),
            new.name()
        ));
    }
    if before.is_some_and(|before| std::str::from_utf8(before).is_err()) {
        notes.push("the file was not UTF-8 before; now it is".to_owned());
    }
    (bytes, notes)
}
