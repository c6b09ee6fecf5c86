//! `apply_patch`: a unified diff, or the Begin/End Patch envelope, on any number of files, all or none.

use std::time::Duration;

use provider_core::ensure_as_previewed;
use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::Filesystem;
use crate::batch::{self, Member, Outcome};
use crate::cancellable::patient;
use crate::change::since_preview;
use crate::directories::Made;
use crate::engine::patch::{FilePatch, Operation, ParsedPatch, Place, Status, parse};
use crate::entries;
use crate::provider::Located;
use crate::shown;
use crate::staleness::sha256;
use crate::verify::{FileReport, Verified, verify};

/// Applies a patch: a unified diff (with or without git's headers), or `*** Begin Patch` … `*** End Patch` with
/// `*** Add File:`, `*** Update File:`, `*** Delete File:`, `*** Move to:`, `@@` lines and `*** End of File`. A change
/// goes where its old lines stand exactly; line numbers only choose between several such places. Either everything is
/// applied or nothing, unless partial is true.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The patch. Paths are absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["diff", "input", "content"]))]
    patch: String,
    /// Whether what applies is applied although something else does not. Default false.
    partial: Option<bool>,
    /// Whether to patch although a file changed since it was read.
    force: Option<bool>,
}

/// What became of one file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PatchedFile {
    /// The file, under its new name if it was moved; relative to the working directory if beneath it, else absolute.
    path: String,
    /// What the patch does with it.
    action: Action,
    /// What became of each change in it.
    hunks: Vec<HunkResult>,
    /// SHA-256 of the file now, in hex. Absent when it is gone.
    sha256: Option<String>,
}

/// What a patch does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// It is created.
    Add,
    /// Its content changes.
    Update,
    /// It is removed.
    Delete,
    /// It gets another name, and perhaps another content.
    Move,
}

/// What became of one change.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct HunkResult {
    /// Its number in the file's patch, from 1.
    index: u64,
    /// What became of it.
    status: HunkStatus,
    /// Where its new lines stand now; where it could be meant, if it is ambiguous.
    lines: Vec<LineSpan>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HunkStatus {
    /// It was made.
    Applied,
    /// Several places could be meant.
    Ambiguous,
    /// Its old lines are nowhere.
    NotFound,
    /// Its new lines were there already.
    AlreadyApplied,
}

/// Lines from the first to the last, both included.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct LineSpan {
    /// The first line, from 1.
    start_line: u64,
    /// The last line.
    end_line: u64,
}

/// What became of the patch.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// Whether all of it holds now. False only with partial: then files says what was left out.
    applied: bool,
    /// Each file of the patch.
    files: Vec<PatchedFile>,
    /// The change as a unified diff.
    diff: String,
    /// What undo_change takes this change back by. Absent when there was none, or it cannot be taken back.
    change_id: Option<String>,
}

impl From<Status> for HunkStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Applied => Self::Applied,
            Status::AlreadyApplied => Self::AlreadyApplied,
            Status::Ambiguous => Self::Ambiguous,
            Status::NotFound => Self::NotFound,
        }
    }
}

impl From<Place> for LineSpan {
    fn from(place: Place) -> Self {
        Self { start_line: place.start_line as u64, end_line: place.end_line as u64 }
    }
}

impl From<&Operation> for Action {
    fn from(operation: &Operation) -> Self {
        match operation {
            Operation::Add => Self::Add,
            Operation::Delete => Self::Delete,
            Operation::Update => Self::Update,
            Operation::Move(_) => Self::Move,
        }
    }
}

pub(crate) struct ApplyPatch;

impl Resource for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let patch = parsed(&args)?;
        let mut targets = Vec::new();
        for file in &patch.files {
            let locate = |path: &str| filesystem.locate_to_change(path, cx.working_directory());
            let to = match &file.operation {
                Operation::Move(to) => Some(locate(to)?),
                _ => None,
            };
            targets.push((locate(&file.path)?, to));
        }
        let paths = targets.iter().flat_map(|(path, to)| [Some(path), to.as_ref()]).flatten();
        paths.filter_map(JailPath::note).for_each(|note| cx.note(note));
        patient(&cx, move |cx| apply(&filesystem, &patch, targets, &args, cx)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let headline = match output.applied {
            true => format!("patched {}", entries::of_files(output.files.len() as u64)),
            false => format!("patched {} in part", entries::of_files(output.files.len() as u64)),
        };
        Some(shown::stored_all(&headline, &output.diff))
    }
}

impl Preview for ApplyPatch {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let patch = parsed(&args)?;
        let mut targets = Vec::new();
        for file in &patch.files {
            let Located::At(path) = filesystem.locate_in_preview(&file.path, cx)? else {
                return Ok(undecided(&args));
            };
            let to = match &file.operation {
                Operation::Move(to) => match filesystem.locate_in_preview(to, cx)? {
                    Located::At(to) => Some(to),
                    Located::Undecided => return Ok(undecided(&args)),
                },
                _ => None,
            };
            targets.push((path, to));
        }
        let session = cx.session_id().to_owned();
        let (node, fingerprint) = cx
            .blocking(move || {
                let paths: Vec<JailPath> = targets.iter().map(|(path, _)| path.clone()).collect();
                once(&patch, &paths)?;
                let members = batch::peek_all(&paths)?;
                let verified = verify(&filesystem, &patch, paired(members, targets), claim(&args, &session))?;
                let diffs: Vec<_> = verified
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.is_change())
                    .map(Outcome::diff)
                    .collect();
                let names: Vec<_> = verified
                    .outcomes
                    .iter()
                    .map(|outcome| outcome.member.real.display().to_string())
                    .collect();
                let mut notes = directory_notes(&verified.outcomes)?;
                notes.extend_from_slice(&verified.notes);
                let headline = format!("patch {}", names.join(", "));
                Ok((shown::changes(&headline, &diffs, &notes), batch::fingerprint(&verified.outcomes)))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

fn undecided(args: &Args) -> Node {
    Node::Group(vec![
        entries::undecided("apply a patch"),
        Node::Code { language: "diff".to_owned(), content: args.patch.clone() },
    ])
}

fn parsed(args: &Args) -> Result<ParsedPatch, ToolError> {
    parse(&args.patch)
        .map_err(|error| ToolError::invalid_arguments(format!("patch: {error}; nothing was changed")))
}

fn claim<'a>(args: &Args, session: &'a str) -> crate::verify::Terms<'a> {
    crate::verify::Terms {
        session,
        force: args.force.unwrap_or(false),
        partial: args.partial.unwrap_or(false),
    }
}

fn paired(
    members: Vec<Member>,
    targets: Vec<(JailPath, Option<JailPath>)>,
) -> Vec<(Member, Option<JailPath>)> {
    members.into_iter().zip(targets).map(|(member, (_, to))| (member, to)).collect()
}

/// Refuses a patch in which a file stands twice, other than with changes inside, which the parser has put together.
fn once(patch: &ParsedPatch, paths: &[JailPath]) -> Result<(), ToolError> {
    let (_, indices) = batch::distinct(paths.to_vec())?;
    let twice = |index: &usize| indices.iter().filter(|other| *other == index).count() > 1;
    match indices.iter().position(twice) {
        Some(position) => {
            let FilePatch { path, .. } = &patch.files[position];
            let text = format!(
                "patch: `{path}` stands in it more than once; put all changes of a file under one header. Nothing was changed"
            );
            Err(ToolError::invalid_arguments(text))
        }
        None => Ok(()),
    }
}

fn apply(
    filesystem: &Filesystem,
    patch: &ParsedPatch,
    targets: Vec<(JailPath, Option<JailPath>)>,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let paths: Vec<JailPath> = targets.iter().map(|(path, _)| path.clone()).collect();
    once(patch, &paths)?;
    // Looked at first without a lock: only a patch that applies has directories made for it.
    let terms = || claim(args, cx.session_id());
    let looked_at = batch::peek_all(&paths)
        .and_then(|members| verify(filesystem, patch, paired(members, targets.clone()), terms()))
        .map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &batch::fingerprint(&looked_at.outcomes))?;
    let mut made = Made::new(&filesystem.journal);
    make_directories(&looked_at.outcomes, &mut made)?;
    let members = batch::lock_members(&paths)?;
    let verified = verify(filesystem, patch, paired(members, targets), terms())?;
    ensure_as_previewed(cx, &batch::fingerprint(&verified.outcomes))?;
    let output = committed(filesystem, verified, made.list(), cx)?;
    made.stay();
    Ok(output)
}

/// Makes the directories of files that come or move.
fn make_directories(outcomes: &[Outcome], made: &mut Made<'_>) -> Result<(), ToolError> {
    for outcome in outcomes.iter().filter(|outcome| outcome.is_change() && outcome.after().is_some()) {
        if let Some(parent) = outcome.path().parent() {
            made.make(&parent)?;
        }
    }
    Ok(())
}

/// What a preview says of the directories that a call would create.
fn directory_notes(outcomes: &[Outcome]) -> Result<Vec<String>, ToolError> {
    let mut notes: Vec<String> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.after().is_some()) {
        let mut next = outcome.path().parent();
        while let Some(directory) = next {
            if directory.exists()? {
                break;
            }
            let note = format!("creates the directory {directory}");
            if !notes.contains(&note) {
                notes.push(note);
            }
            next = directory.parent();
        }
    }
    notes.sort();
    Ok(notes)
}

/// Carries out what was verified.
fn committed(
    filesystem: &Filesystem,
    verified: Verified,
    made: &[JailPath],
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let Verified { outcomes, reports, notes, complete } = verified;
    notes.into_iter().for_each(|note| cx.note(note));
    let diffs: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_change()).map(Outcome::diff).collect();
    if diffs.is_empty() {
        cx.note("no change: the files already are what the patch makes of them");
    }
    let files = outcomes.iter().zip(reports).map(|(outcome, report)| {
        let FileReport { action, hunks } = report;
        PatchedFile {
            path: outcome.path().to_string(),
            action,
            hunks: hunks
                .into_iter()
                .map(|hunk| HunkResult {
                    index: hunk.index as u64,
                    status: hunk.status.into(),
                    lines: hunk.places.into_iter().map(LineSpan::from).collect(),
                })
                .collect(),
            sha256: outcome.after().map(sha256),
        }
    });
    let files = files.collect();
    let change_id = batch::commit(filesystem, ApplyPatch::NAME, outcomes, made, cx)?;
    Ok(Output { applied: complete, files, diff: shown::unified_all(&diffs), change_id })
}
