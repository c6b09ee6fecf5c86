//! `multi_edit`: several replacements in one or more files, all or none.

use std::time::Duration;

use provider_core::jail::JailPath;
use provider_core::prelude::*;
use provider_core::{Category, ensure_as_previewed};

use crate::Filesystem;
use crate::batch::{self, Fate, Member, Outcome};
use crate::cancellable::patient;
use crate::change::since_preview;
use crate::engine::edit::{LineRange, Replacement, Select, plan};
use crate::engine::find::MatchKind;
use crate::engine::text::Text;
use crate::entries;
use crate::provider::Located;
use crate::shown;
use crate::staleness::{self, Claim, EditCondition, Target, check_edit, sha256};
use crate::tools::edit_file::{Lines, refused};

/// Replaces text in one or more files. The edits are made in order, each on what the ones before it left; either all
/// are made or none. Each works as edit_file does: its old_str must be there exactly once, unless replace_all,
/// expected_count or near_line say otherwise.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The edits, in the order in which they are made.
    #[schemars(length(min = 1))]
    edits: Vec<EditArgs>,
    /// Whether to edit although a file changed since it was read.
    force: Option<bool>,
}

/// One edit.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EditArgs {
    /// The file, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["file_path", "filename", "file"]))]
    path: String,
    /// The text to replace, as it stands in the file by then, without line numbers.
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
    /// Replaces the one occurrence nearest to this line, counted from 1, in the file as it is by then.
    #[schemars(range(min = 1))]
    near_line: Option<u64>,
}

/// What was replaced in one file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct EditedFile {
    /// The file, relative to the working directory if beneath it, else absolute.
    path: String,
    /// Where the new texts stand now.
    replacements: Vec<Lines>,
    /// SHA-256 of the file now, in hex.
    sha256: String,
}

/// What was replaced.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// Each file once, in the order of the edits.
    files: Vec<EditedFile>,
    /// The change as a unified diff.
    diff: String,
    /// What undo_change takes this change back by. Absent when there was none, or it cannot be taken back.
    change_id: Option<String>,
}

pub(crate) struct MultiEdit;

impl Resource for MultiEdit {
    const NAME: &'static str = "multi_edit";
    const RISK: Risk = Risk::Moderate;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Exclusive;
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let located = args.edits.iter().enumerate().map(|(index, edit)| {
            let path = filesystem.locate_to_change(&edit.path, cx.working_directory());
            path.map_err(|error| in_edit(index, error))
        });
        let paths = located.collect::<Result<Vec<_>, _>>()?;
        paths.iter().filter_map(JailPath::note).for_each(|note| cx.note(note));
        patient(&cx, move |cx| edit(&filesystem, paths, &args, cx)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let files = entries::of_files(output.files.len() as u64);
        Some(shown::stored_all(&format!("edited {files}"), &output.diff))
    }
}

impl Preview for MultiEdit {
    async fn preview(filesystem: Arc<Filesystem>, args: Args, cx: &PreviewCx) -> Result<Node, ToolError> {
        let mut paths = Vec::new();
        for (index, edit) in args.edits.iter().enumerate() {
            match filesystem.locate_in_preview(&edit.path, cx).map_err(|error| in_edit(index, error))? {
                Located::At(path) => paths.push(path),
                Located::Undecided => {
                    return Ok(entries::undecided(&format!("edit {} places", args.edits.len())));
                }
            }
        }
        let session = cx.session_id().to_owned();
        let (node, fingerprint) = cx
            .blocking(move || {
                let (paths, indices) = batch::distinct(paths)?;
                let planned = planned(&filesystem, batch::peek_all(&paths)?, &indices, &args, &session)?;
                let diffs: Vec<_> = planned.outcomes.iter().map(Outcome::diff).collect();
                let names: Vec<_> = planned
                    .outcomes
                    .iter()
                    .map(|outcome| outcome.member.real.display().to_string())
                    .collect();
                let headline = format!("edit {}", names.join(", "));
                Ok((shown::changes(&headline, &diffs, &planned.notes), batch::fingerprint(&planned.outcomes)))
            })
            .await?;
        cx.remember(fingerprint);
        Ok(node)
    }
}

fn edit(
    filesystem: &Filesystem,
    paths: Vec<JailPath>,
    args: &Args,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    let (paths, indices) = batch::distinct(paths)?;
    let planned = batch::lock_members(&paths)
        .and_then(|members| planned(filesystem, members, &indices, args, cx.session_id()));
    let Planned { outcomes, replacements, notes } = planned.map_err(|error| since_preview(cx, error))?;
    ensure_as_previewed(cx, &batch::fingerprint(&outcomes))?;
    notes.into_iter().for_each(|note| cx.note(note));
    let diffs: Vec<_> = outcomes.iter().map(Outcome::diff).collect();
    let files = outcomes.iter().zip(replacements).map(|(outcome, ranges)| EditedFile {
        path: outcome.member.path.to_string(),
        replacements: ranges.iter().map(Lines::from).collect(),
        sha256: outcome.after().map(sha256).unwrap_or_default(),
    });
    let files = files.collect();
    let change_id = batch::commit(filesystem, MultiEdit::NAME, outcomes, &[], cx)?;
    Ok(Output { files, diff: shown::unified_all(&diffs), change_id })
}

struct Planned {
    outcomes: Vec<Outcome>,
    /// Of each file, where the new texts stand in the end.
    replacements: Vec<Vec<LineRange>>,
    notes: Vec<String>,
}

/// A file in the middle of the edits.
struct Draft {
    content: Vec<u8>,
    replacements: Vec<LineRange>,
    condition: EditCondition,
}

/// What the edits make of the files; the same for a preview and a call.
fn planned(
    filesystem: &Filesystem,
    members: Vec<Member>,
    indices: &[usize],
    args: &Args,
    session: &str,
) -> Result<Planned, ToolError> {
    let begun = members.iter().enumerate().map(|(index, member)| {
        let first = indices.iter().position(|at| *at == index).unwrap_or_default();
        draft(filesystem, member, args, session).map_err(|error| in_edit(first, error))
    });
    let mut drafts = begun.collect::<Result<Vec<_>, _>>()?;
    let mut notes = Vec::new();
    for (number, (edit, index)) in args.edits.iter().zip(indices).enumerate() {
        let (member, draft) = (&members[*index], &mut drafts[*index]);
        one_edit(member, draft, edit, &mut notes).map_err(|error| in_edit(number, error))?;
    }
    let mut outcomes = Vec::new();
    let mut replacements = Vec::new();
    for (member, draft) in members.into_iter().zip(drafts) {
        if member.before.as_ref() == Some(&draft.content) {
            notes.push(format!("{}: no change: the file already is what the edits make of it", member.path));
        }
        let fate = Fate::Content { after: draft.content, executable: None, to: None };
        outcomes.push(Outcome { member, fate });
        replacements.push(draft.replacements);
    }
    Ok(Planned { outcomes, replacements, notes })
}

fn draft(filesystem: &Filesystem, member: &Member, args: &Args, session: &str) -> Result<Draft, ToolError> {
    let Some(before) = &member.before else {
        // Opening it again tells what is missing, with the nearest names.
        let missing = || ToolError::not_found(format!("{} does not exist", member.path));
        return Err(member.path.open_read().err().map_or_else(missing, ToolError::from));
    };
    let shown = member.path.to_string();
    let target = Target { shown: &shown, real: &member.real, content: Some(before) };
    let claim = Claim { session, expected_sha256: None, force: args.force.unwrap_or(false) };
    let condition = check_edit(filesystem, &target, &claim)?;
    Ok(Draft { content: before.clone(), replacements: Vec::new(), condition })
}

fn one_edit(
    member: &Member,
    draft: &mut Draft,
    edit: &EditArgs,
    notes: &mut Vec<String>,
) -> Result<(), ToolError> {
    let shown = member.path.to_string();
    let select =
        Select::from_arguments(edit.replace_all.unwrap_or(false), edit.expected_count, edit.near_line)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
    let text = Text::parse(&draft.content).map_err(|binary| {
        ToolError::new(Code::Binary, format!("{shown}: {binary}; it cannot be edited as text"))
    })?;
    let replacement = Replacement { old_str: &edit.old_str, new_str: &edit.new_str, select };
    let planned = plan(&text, &replacement).map_err(|error| {
        let is_changed = member.before.as_ref() != Some(&draft.content);
        let by_then =
            if is_changed { "\nThe edits before it in this call had changed the file by then." } else { "" };
        let error = refused(format!("{shown}: {error}{by_then}"), &error);
        draft.condition.explain(&shown, member.before.as_deref().unwrap_or_default(), error)
    })?;
    if let EditCondition::OnlyIfUnique(seen) = &draft.condition {
        if planned.replacements.len() != 1 || select != Select::Unique {
            return Err(staleness::changed(&shown, seen, member.before.as_deref().unwrap_or_default()));
        }
        let note = format!(
            "{shown} was changed by something else since it was read; each old_str still occurs exactly once"
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if planned.matched == MatchKind::LineEndings {
        notes.push(format!(
            "{shown}: an old_str matched but for its line endings; those of the file were kept"
        ));
    }
    shift(&mut draft.replacements, &planned.replacements, edit);
    draft.replacements.extend_from_slice(&planned.replacements);
    draft.content = planned.bytes;
    Ok(())
}

/// Moves the places of earlier edits to where a later one has put them.
fn shift(earlier: &mut [LineRange], later: &[LineRange], edit: &EditArgs) {
    let breaks = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    let (old, new) = (breaks(&edit.old_str), breaks(&edit.new_str));
    for range in later {
        for known in earlier.iter_mut().filter(|known| known.start_line >= range.start_line + old) {
            known.start_line = (known.start_line + new).saturating_sub(old).max(1);
            known.end_line = (known.end_line + new).saturating_sub(old).max(known.start_line);
        }
    }
}

/// The error of one edit, which says which.
fn in_edit(index: usize, error: ToolError) -> ToolError {
    let text = format!("edits[{index}]: {error}\nNone of the edits was made.");
    let same = match (error.code(), error.category()) {
        (Some(code), _) => ToolError::new(code, text),
        (None, Category::InvalidArguments) => ToolError::invalid_arguments(text),
        (None, Category::NotFound) => ToolError::not_found(text),
        (None, Category::PermissionDenied) => ToolError::permission_denied(text),
        (None, _) => ToolError::execution_failed(text),
    };
    let details = error.details().into_iter().filter(|(key, _)| key != "code");
    details.fold(same, |same, (key, value)| same.with_detail(&key, value)).with_detail("edit", index as u64)
}
