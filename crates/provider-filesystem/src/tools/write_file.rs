//! `write_file`: gives a file its whole content.

use std::time::Duration;

use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::cancellable::patient;
use crate::change::{Applied, Call, Locked, Plan, peek, since_preview};
use crate::directories::Made;
use crate::engine::encoding::Encoding;
use crate::engine::text::{Eol, Text, count_lines};
use crate::provider::Located;
use crate::shown;
use crate::staleness::{Claim, Target, check_write};

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
    /// How the text is stored: utf-8, utf-16le, utf-16be (with -bom appended for a byte order mark), or the name of an
    /// older encoding such as windows-1252 or shift_jis. Default: as it was, and utf-8 for a new file.
    encoding: Option<String>,
    /// The line endings to write. Default exact.
    eol: Option<EolWanted>,
    /// Whether to write although the file changed since it was read, or was read only in part.
    force: Option<bool>,
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
    /// What undo_change takes this change back by. Absent when there was none, or it cannot be taken back.
    change_id: Option<String>,
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
        patient(&cx, move |cx| write(&filesystem, &path, &args, cx)).await
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
    let mut made = Made::new(&filesystem.journal);
    parent.map_or(Ok(()), |parent| made.make(&parent))?;
    let output = write_into(filesystem, path, args, made.list(), cx)?;
    made.stay();
    Ok(output)
}

fn write_into(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    made: &[JailPath],
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let (locked, plan) = lock_and_plan(filesystem, path, args, cx).map_err(|e| since_preview(cx, e))?;
    let call = Call { tool: WriteFile::NAME, whole: true, made };
    let Applied { sha256, change_id } = locked.apply(filesystem, path, &plan, &call, cx)?;
    let path = path.to_string();
    Ok(Output {
        created: plan.created(),
        changed: plan.changed(),
        bytes: plan.after.len() as u64,
        lines: Text::parse(&plan.after).map_or_else(|_| count_lines(&plan.after), |text| text.line_count()),
        sha256,
        diff: shown::unified(&plan.diff, &path, plan.created()),
        change_id,
        path,
    })
}

fn lock_and_plan(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<(Locked, Plan), ToolError> {
    let mut locked = lock(path)?;
    let before = locked.before.take();
    let plan = planned(filesystem, path, &locked.real(), args, cx.session_id(), before)?;
    Ok((locked, plan))
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
    let storage = Storage::of(args.encoding.as_deref(), before.as_deref())?;
    let (content, eol_note) = with_endings(args, storage.old.as_ref().map(Text::eol));
    let notes = eol_note.into_iter().chain(storage.note()).collect();
    let after = storage.bytes(&shown, &content)?;
    let mut plan = Plan::new(before, after, notes);
    if !plan.changed() {
        plan.notes.push("no change: the file already has this very content".to_owned());
    }
    Ok(plan)
}

/// The text to write with the line endings that were asked for, and what a caller should know about them.
fn with_endings(args: &Args, old: Option<Eol>) -> (String, Option<String>) {
    let content = match (args.eol.unwrap_or(EolWanted::Exact), old) {
        (EolWanted::Lf, _) | (EolWanted::Keep, Some(Eol::Lf)) => args.content.replace("\r\n", "\n"),
        (EolWanted::Crlf, _) | (EolWanted::Keep, Some(Eol::Crlf)) => {
            args.content.replace("\r\n", "\n").replace('\n', "\r\n")
        }
        (EolWanted::Exact | EolWanted::Keep, _) => args.content.clone(),
    };
    let new = Eol::of(content.as_bytes());
    let changed = old.filter(|&old| old != new && old != Eol::None && new != Eol::None);
    let note = changed.map(|old| match (args.eol, old) {
        (Some(EolWanted::Keep), _) => {
            format!(
                "eol changed {}→{}: a file of mixed line endings has none to keep",
                old.name(),
                new.name()
            )
        }
        _ => format!("eol changed {}→{}; pass eol: keep to keep the line endings", old.name(), new.name()),
    });
    (content, note)
}

/// How the characters of a file are to be stored.
struct Storage<'a> {
    old: Option<Text<'a>>,
    was_binary: bool,
    encoding: Encoding,
    bom: bool,
    is_asked_for: bool,
}

impl<'a> Storage<'a> {
    /// As asked for, else as the file was before, else UTF-8.
    fn of(label: Option<&str>, before: Option<&'a [u8]>) -> Result<Self, ToolError> {
        let parsed = before.map(Text::parse);
        let was_binary = matches!(parsed, Some(Err(_)));
        let old = parsed.and_then(Result::ok);
        let was = old.as_ref().map(|text| (text.encoding(), text.has_bom()));
        let (encoding, bom) = match label {
            Some(label) => asked_for(label, was)?,
            None => was.unwrap_or((Encoding::Utf8, false)),
        };
        Ok(Self { old, was_binary, encoding, bom, is_asked_for: label.is_some() })
    }

    fn note(&self) -> Option<String> {
        if self.was_binary {
            return Some(format!("the file was not text before; now it is {}", self.encoding));
        }
        let old = self.old.as_ref().filter(|old| !old.body().is_ascii())?;
        (old.encoding() != self.encoding)
            .then(|| format!("encoding changed {}→{}", old.encoding(), self.encoding))
    }

    fn bytes(&self, shown: &str, content: &str) -> Result<Vec<u8>, ToolError> {
        let refused = |text: String| ToolError::new(Code::Unencodable, format!("{shown}: {text}"));
        let is_damaged = self.old.as_ref().is_some_and(Text::is_damaged);
        if is_damaged && !self.is_asked_for && content.contains(char::REPLACEMENT_CHARACTER) {
            return Err(refused(format!(
                "the file has bytes that are not valid {}, which are shown as U+FFFD (\u{fffd}), and the content has that \
                 character: writing it would lose those bytes; nothing was changed. Use edit_file, or pass encoding \
                 to write U+FFFD itself",
                self.encoding
            )));
        }
        // Content that begins with the mark itself has it already.
        let text = content.strip_prefix('\u{feff}').filter(|_| self.bom).unwrap_or(content);
        let stored = self.encoding.encode(text).map_err(|error| {
            refused(format!(
                "{error}; nothing was changed. Leave the character out, or pass encoding: \"utf-8\""
            ))
        })?;
        let mark = if self.bom { self.encoding.bom() } else { b"" };
        Ok([mark, &stored].concat())
    }
}

/// The encoding that a label means, and whether a byte order mark goes before the text.
fn asked_for(label: &str, was: Option<(Encoding, bool)>) -> Result<(Encoding, bool), ToolError> {
    let lower = label.trim().to_ascii_lowercase();
    let (name, marked) = match lower.strip_suffix("-bom").or_else(|| lower.strip_suffix("-sig")) {
        Some(name) => (name, true),
        None => (lower.as_str(), false),
    };
    let known = Encoding::from_label(name).filter(|encoding| !marked || !encoding.bom().is_empty());
    let Some(encoding) = known else {
        let text = format!(
            "encoding: `{label}` is no encoding known here; wanted utf-8, utf-8-bom, utf-16le, utf-16be, utf-16le-bom, \
             utf-16be-bom, or a name such as windows-1252, iso-8859-2, shift_jis, euc-jp, gbk, gb18030, big5, euc-kr"
        );
        return Err(ToolError::invalid_arguments(text));
    };
    // Without a word on which end comes first, the mark has to say it; and UTF-16 that had one needs it.
    let is_wide = encoding != Encoding::Utf8 && !encoding.bom().is_empty();
    let unsaid = is_wide && !name.ends_with("le") && !name.ends_with("be");
    Ok((encoding, marked || unsaid || (is_wide && was == Some((encoding, true)))))
}
