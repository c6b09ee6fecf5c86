//! `edit_file`: replaces a piece of text, and not one byte more.

use std::path::Path;
use std::time::Duration;

use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::cancellable::{Cancellable, patient};
use crate::change::{Applied, Call, Locked, Plan, peek, since_preview};
use crate::engine::edit::{Edit, EditError, LineRange, Replacement, Select, plan as plan_edit};
use crate::engine::find::MatchKind;
use crate::engine::notebook::{CellAction, CellChange, CellError, CellType, Notebook, change as change_cell};
use crate::engine::text::Text;
use crate::large::{self, Asked};
use crate::provider::Located;
use crate::shown;
use crate::staleness::{self, Claim, EditCondition, Target, changed_unseen, check_edit};

/// Replaces text in a file. old_str must be in the file exactly (line endings aside) and only once, unless
/// replace_all, expected_count or near_line say otherwise; give a few lines around the place to make it unique.
/// Everything else in the file stays byte for byte: line endings, encoding, mode. When old_str is not there, the
/// error shows the nearest text and how it differs. In a notebook, cell_id names the cell that is changed.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["file_path", "filename", "file"]))]
    path: String,
    /// The text to replace, as it stands in the file, without line numbers. With cell_id: in the cell's source; empty
    /// for all of it.
    #[schemars(extend("x-aliases" = ["old_string", "old_text", "old", "search"]))]
    old_str: String,
    /// The text to put in its place, literally. Line endings follow those of the place.
    #[schemars(extend("x-aliases" = ["new_string", "new_text", "new", "replace"]))]
    new_str: String,
    /// Whether all occurrences are replaced.
    replace_all: Option<bool>,
    /// Replaces all occurrences, and refuses when there are not exactly this many.
    #[schemars(range(min = 1))]
    expected_count: Option<u64>,
    /// Replaces the one occurrence nearest to this line, counted from 1.
    #[schemars(range(min = 1))]
    near_line: Option<u64>,
    /// The SHA-256 that the file must have, in hex.
    expected_sha256: Option<String>,
    /// Whether to edit although the file changed since it was read.
    force: Option<bool>,
    /// The cell of a notebook to change, by its id as read_file shows it. Empty with insert_after: before the first.
    cell_id: Option<String>,
    /// What to do with the cell. Default replace.
    cell_action: Option<Action>,
    /// What kind of cell it is to be. Default: as it is, and code for a new one.
    cell_type: Option<Kind>,
}

/// What to do with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Replace text in its source, or all of it.
    Replace,
    /// Put a new cell after it, with new_str as its source.
    InsertAfter,
    /// Take it away.
    Delete,
}

/// What kind a cell is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A program.
    Code,
    /// Prose.
    Markdown,
    /// Anything else.
    Raw,
}

/// Lines from the first to the last, both included.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Lines {
    /// The first line of the new text, from 1.
    start_line: u64,
    /// The last line of the new text.
    end_line: u64,
}

impl From<&LineRange> for Lines {
    fn from(range: &LineRange) -> Self {
        Self { start_line: range.start_line, end_line: range.end_line }
    }
}

/// What was replaced.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The file, relative to the working directory if beneath it, else absolute.
    path: String,
    /// Where the new text stands now; of a cell, in its source.
    replacements: Vec<Lines>,
    /// Whether the file is another than before.
    changed: bool,
    /// SHA-256 of the file now, in hex.
    sha256: String,
    /// The change as a unified diff.
    diff: String,
    /// What undo_change takes this change back by. Absent when there was none, or it cannot be taken back.
    change_id: Option<String>,
}

pub(crate) struct EditFile;

impl Resource for EditFile {
    const NAME: &'static str = "edit_file";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["path"]);
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let path = filesystem.locate_to_change(&args.path, cx.working_directory())?;
        path.note().into_iter().for_each(|note| cx.note(note));
        patient(&cx, move |cx| edit(&filesystem, &path, &args, cx)).await
    }

    fn render(output: &Output) -> Option<Node> {
        Some(shown::stored(&output.path, &output.diff))
    }
}

impl Preview for EditFile {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let path = match filesystem.locate_in_preview(&args.path, cx)? {
            Located::At(path) => path,
            Located::Undecided => return Ok(undecided(&args)),
        };
        let session = cx.session_id().to_owned();
        let (node, fingerprint) = cx
            .blocking(move || {
                let real = path.resolved()?.absolute();
                if let Some(shown) = preview_large(&filesystem, &path, &real, &args, &session)? {
                    return Ok(shown);
                }
                let planned = planned(&filesystem, &path, &real, &args, &session, peek(&path)?)?;
                let headline = format!("edit {}", real.display());
                Ok((
                    shown::change(&headline, &planned.plan.diff, &planned.plan.notes),
                    planned.plan.fingerprint(&real),
                ))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

/// The arguments themselves, where it is not known which file they mean.
fn undecided(args: &Args) -> Node {
    let code = |content: &str| Node::Code { language: String::new(), content: content.to_owned() };
    Node::Group(vec![
        Node::text(format!(
            "edit {} — there are several allowed roots and no call has named a directory yet, so the file is not known",
            args.path
        )),
        Node::text("replace"),
        code(&args.old_str),
        Node::text("with"),
        code(&args.new_str),
    ])
}

/// The preview of an edit of a large file, where that is possible without having all of it in memory.
fn preview_large(
    filesystem: &Filesystem,
    path: &JailPath,
    real: &Path,
    args: &Args,
    session: &str,
) -> Result<Option<(Node, String)>, ToolError> {
    let Some(asked) = args.asked(session)? else { return Ok(None) };
    let Some((file, size)) = large::open(path)? else { return Ok(None) };
    let planned = large::planned(filesystem, &path.to_string(), real, &asked, &file, size)
        .map_err(|error| large::unreadable(path, &error))?;
    Ok(planned.map(|planned| {
        let headline = format!("edit {}", real.display());
        (shown::change(&headline, &planned.diff, &planned.notes), planned.fingerprint(real))
    }))
}

/// The edit of a large file, likewise.
fn edit_large(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<Option<Output>, ToolError> {
    let Some(asked) = args.asked(cx.session_id())? else { return Ok(None) };
    let Some((lock, file, size)) = large::lock(path)? else { return Ok(None) };
    let (shown, real) = (path.to_string(), lock.path().absolute());
    let source = Cancellable::new(&file, cx);
    let planned = large::planned(filesystem, &shown, &real, &asked, source, size);
    let planned = planned.map_err(|error| since_preview(cx, large::unreadable(path, &error)))?;
    let Some(planned) = planned else { return Ok(None) };
    if real != path.absolute() {
        cx.note(format!("{path} leads through a symbolic link; {} was changed", lock.path()));
    }
    let Applied { sha256, change_id } = planned.apply(filesystem, lock, &file, EditFile::NAME, cx)?;
    let LineRange { start_line, end_line } = planned.replacement;
    Ok(Some(Output {
        replacements: vec![Lines { start_line, end_line }],
        changed: planned.changed(),
        sha256,
        change_id,
        diff: shown::unified(&planned.diff, &shown, false),
        path: shown,
    }))
}

impl Args {
    fn select(&self) -> Result<Select, ToolError> {
        Select::from_arguments(self.replace_all.unwrap_or(false), self.expected_count, self.near_line)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))
    }

    fn claim<'a>(&'a self, session: &'a str) -> Claim<'a> {
        Claim {
            session,
            expected_sha256: self.expected_sha256.as_deref(),
            force: self.force.unwrap_or(false),
        }
    }

    /// The edit of one place in a text, if that is what is asked for.
    fn asked<'a>(&'a self, session: &'a str) -> Result<Option<Asked<'a>>, ToolError> {
        let is_text = self.cell_id.is_none() && self.cell_action.is_none() && self.cell_type.is_none();
        if !is_text || self.old_str.is_empty() {
            return Ok(None);
        }
        let replacement =
            Replacement { old_str: &self.old_str, new_str: &self.new_str, select: self.select()? };
        Ok(Some(Asked { replacement, claim: self.claim(session) }))
    }
}

fn edit(filesystem: &Filesystem, path: &JailPath, args: &Args, cx: &Cx<Events>) -> Result<Output, ToolError> {
    if let Some(output) = edit_large(filesystem, path, args, cx)? {
        return Ok(output);
    }
    let (locked, planned) = lock_and_plan(filesystem, path, args, cx).map_err(|e| since_preview(cx, e))?;
    let call = Call { tool: EditFile::NAME, whole: false, made: &[] };
    let Applied { sha256, change_id } = locked.apply(filesystem, path, &planned.plan, &call, cx)?;
    let path = path.to_string();
    Ok(Output {
        replacements: planned.replacements,
        changed: planned.plan.changed(),
        sha256,
        change_id,
        diff: shown::unified(&planned.plan.diff, &path, false),
        path,
    })
}

fn lock_and_plan(
    filesystem: &Filesystem,
    path: &JailPath,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<(Locked, Planned), ToolError> {
    let mut locked = Locked::lock(path)?;
    let before = locked.before.take();
    let planned = planned(filesystem, path, &locked.real(), args, cx.session_id(), before)?;
    Ok((locked, planned))
}

struct Planned {
    plan: Plan,
    replacements: Vec<Lines>,
}

/// What the edit does to `before`; the same for a preview and a call.
fn planned(
    filesystem: &Filesystem,
    path: &JailPath,
    real: &Path,
    args: &Args,
    session: &str,
    before: Option<Vec<u8>>,
) -> Result<Planned, ToolError> {
    let Some(before) = before else {
        // Opening it again tells what is missing, with the nearest names.
        return Err(path
            .open_read()
            .err()
            .map_or_else(|| ToolError::not_found(format!("{path} does not exist")), ToolError::from));
    };
    let shown = path.to_string();
    let target = Target { shown: &shown, real, content: Some(&before) };
    let condition = check_edit(filesystem, &target, &args.claim(session))?;
    let select = args.select()?;
    let text = Text::parse(&before).map_err(|binary| {
        ToolError::new(Code::Binary, format!("{shown}: {binary}; it cannot be edited as text"))
    })?;
    let edit = match &args.cell_id {
        Some(cell_id) => edit_cell(&shown, &text, cell_id, args, select),
        None => edit_text(&shown, &text, args, select),
    };
    let edit = edit.map_err(|error| condition.explain(&shown, &before, error))?;
    let mut notes = Vec::new();
    if let EditCondition::OnlyIfUnique(seen) = condition {
        if edit.replacements.len() != 1 || select != Select::Unique || args.old_str.is_empty() {
            return Err(staleness::changed(&shown, &seen, &before));
        }
        notes.push(changed_unseen(&shown));
    }
    if edit.matched == MatchKind::LineEndings {
        notes.push(shown::MATCHED_BUT_FOR_ENDINGS.to_owned());
    }
    if !edit.changed {
        notes.push("no change: the file already is what the edit makes of it".to_owned());
    }
    let replacements = edit.replacements.iter().map(Lines::from).collect();
    Ok(Planned { plan: Plan::new(Some(before), edit.bytes, notes), replacements })
}

fn edit_text(shown: &str, text: &Text<'_>, args: &Args, select: Select) -> Result<Edit, ToolError> {
    if args.cell_action.is_some() || args.cell_type.is_some() {
        let text = "cell_action and cell_type are about a cell: name it with cell_id, as read_file shows it";
        return Err(ToolError::invalid_arguments(text));
    }
    let replacement = Replacement { old_str: &args.old_str, new_str: &args.new_str, select };
    plan_edit(text, &replacement).map_err(|error| {
        let is_missing = matches!(error, EditError::NoMatch(_));
        let message = match Notebook::parse(text.body()).filter(|_| is_missing) {
            Some(notebook) => in_notebook(shown, &notebook, args, &error),
            None => format!("{shown}: {error}"),
        };
        refused(message, &error)
    })
}

/// What is said of a text that the JSON of a notebook has not: most likely a cell has it.
fn in_notebook(shown: &str, notebook: &Notebook<'_>, args: &Args, error: &EditError) -> String {
    let cells = notebook.cells_with(&args.old_str);
    if cells.is_empty() {
        return format!(
            "{shown}: {error}\nThe file is a notebook: to edit the source of a cell, pass cell_id"
        );
    }
    format!(
        "{shown}: the file is a notebook, whose JSON does not have old_str as it stands; nothing was changed. It is in \
         the source of the cell {}: pass that as cell_id",
        cells.join(", or of ")
    )
}

fn edit_cell(
    shown: &str,
    text: &Text<'_>,
    cell_id: &str,
    args: &Args,
    select: Select,
) -> Result<Edit, ToolError> {
    let action = match args.cell_action.unwrap_or(Action::Replace) {
        Action::Replace => CellAction::Replace,
        Action::InsertAfter => CellAction::InsertAfter,
        Action::Delete => CellAction::Delete,
    };
    let cell_type = args.cell_type.map(|kind| match kind {
        Kind::Code => CellType::Code,
        Kind::Markdown => CellType::Markdown,
        Kind::Raw => CellType::Raw,
    });
    if action != CellAction::Replace && !args.old_str.is_empty() {
        let text = "old_str: leave it empty when a cell is inserted or deleted";
        return Err(ToolError::invalid_arguments(text));
    }
    let (old_str, new_str) = (args.old_str.as_str(), args.new_str.as_str());
    let change = CellChange { cell_id, action, cell_type, old_str, new_str, select };
    let (bytes, replacements) = change_cell(text, &change).map_err(|error| {
        let message = format!("{shown}: {error}");
        match &error {
            CellError::NoNotebook => ToolError::invalid_arguments(message),
            CellError::NoCell { .. } => ToolError::not_found(message),
            CellError::Ambiguous { .. } => ToolError::new(Code::Ambiguous, message),
            CellError::Edit { error, .. } => refused(message, error),
            CellError::Encoding(_) => ToolError::new(Code::Unencodable, message),
        }
    })?;
    Ok(Edit { changed: bytes != text.bytes(), bytes, replacements, matched: MatchKind::Exact })
}

/// The error of an edit, with a message that names the file.
pub(crate) fn refused(message: String, error: &EditError) -> ToolError {
    match error {
        EditError::EmptyOldStr => ToolError::invalid_arguments(message),
        EditError::NoMatch(_) => ToolError::new(Code::NoMatch, message),
        EditError::Ambiguous(_) => ToolError::new(Code::Ambiguous, message),
        EditError::CountMismatch { .. } => ToolError::new(Code::CountMismatch, message),
        EditError::Encoding(_) => ToolError::new(Code::Unencodable, message),
    }
}
