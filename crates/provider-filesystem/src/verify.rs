//! From a parsed patch and the files it names to what it makes of them: all is decided here, and nothing written.

use provider_core::jail::{JailPath, PathError};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::batch::{Fate, Member, Outcome};
use crate::engine::patch::{
    Applied, FilePatch, HunkReport, Operation, ParsedPatch, Place, Status, added, apply,
};
use crate::engine::text::{SpliceError, Text};
use crate::staleness::{self, Claim, EditCondition, Target, check_edit};
use crate::tools::apply_patch::Action;

/// On what terms a patch is applied.
pub(crate) struct Terms<'a> {
    /// The session. Empty in a preview, which cannot know what was read.
    pub(crate) session: &'a str,
    /// Whether it does not matter what was read.
    pub(crate) force: bool,
    /// Whether what does not apply is left out.
    pub(crate) partial: bool,
}

/// A patch of which it is certain what it makes of each file.
pub(crate) struct Verified {
    /// What becomes of each file, in the order of the patch.
    pub(crate) outcomes: Vec<Outcome>,
    /// What became of the hunks of each.
    pub(crate) reports: Vec<FileReport>,
    pub(crate) notes: Vec<String>,
    /// Whether nothing had to be left out.
    pub(crate) complete: bool,
}

/// What became of the hunks of one file.
pub(crate) struct FileReport {
    pub(crate) action: Action,
    pub(crate) hunks: Vec<HunkReport>,
}

/// What a file's patch cannot do, one message each.
struct Failed {
    code: Code,
    message: String,
}

/// Holds a patch against the files it names.
///
/// # Errors
/// With all that does not apply, unless the terms are to leave that out.
pub(crate) fn verify(
    filesystem: &Filesystem,
    patch: &ParsedPatch,
    files: Vec<(Member, Option<JailPath>)>,
    terms: Terms<'_>,
) -> Result<Verified, ToolError> {
    let mut verified =
        Verified { outcomes: Vec::new(), reports: Vec::new(), notes: patch.notes.clone(), complete: true };
    let mut failed: Vec<Failed> = Vec::new();
    for (file, (member, to)) in patch.files.iter().zip(files) {
        let verifier =
            Verifier { filesystem, terms: &terms, file, notes: &mut verified.notes, failed: Vec::new() };
        let (outcome, report, failures) = verifier.file(member, to)?;
        verified.outcomes.push(outcome);
        verified.reports.push(report);
        failed.extend(failures);
    }
    if failed.is_empty() {
        return Ok(verified);
    }
    let any = verified.outcomes.iter().any(Outcome::is_change);
    if terms.partial && any {
        verified.complete = false;
        verified.notes.extend(failed.into_iter().map(|failed| format!("left out: {}", failed.message)));
        return Ok(verified);
    }
    Err(refused(&verified.reports, failed))
}

/// The error for a patch that does not apply: everything that is wrong with it, in one message.
fn refused(reports: &[FileReport], failed: Vec<Failed>) -> ToolError {
    let hunks = || reports.iter().flat_map(|report| &report.hunks);
    let applied = hunks().filter(|hunk| hunk.status == Status::Applied).count();
    let total = hunks().count();
    let messages: Vec<&str> = failed.iter().map(|failed| failed.message.as_str()).collect();
    let partly = match applied {
        0 => String::new(),
        _ => format!(" ({applied} of {total} changes would apply; partial: true makes those)"),
    };
    let text = format!("the patch does not apply, so nothing was changed{partly}.\n{}", messages.join("\n"));
    let ambiguous = failed.iter().any(|failed| failed.code == Code::Ambiguous);
    let code = match failed.first() {
        Some(first) if !ambiguous => first.code,
        _ => Code::Ambiguous,
    };
    ToolError::new(code, text)
}

struct Verifier<'a> {
    filesystem: &'a Filesystem,
    terms: &'a Terms<'a>,
    file: &'a FilePatch,
    notes: &'a mut Vec<String>,
    failed: Vec<Failed>,
}

type Checked = (Outcome, FileReport, Vec<Failed>);

impl Verifier<'_> {
    fn file(mut self, member: Member, to: Option<JailPath>) -> Result<Checked, ToolError> {
        // What puts its lines where none are makes a file that is not there.
        let operation = match &self.file.operation {
            Operation::Update if member.before.is_none() && self.file.fills_nothing() => &Operation::Add,
            operation => operation,
        };
        let (fate, hunks) = match operation {
            Operation::Add => self.add(&member)?,
            Operation::Delete => self.delete(&member)?,
            Operation::Update => self.update(&member, None)?,
            Operation::Move(_) => self.update(&member, to)?,
        };
        let action = Action::from(operation);
        Ok((Outcome { member, fate }, FileReport { action, hunks }, self.failed))
    }

    fn fail(&mut self, code: Code, message: String) {
        self.failed.push(Failed { code, message });
    }

    fn all(&self, status: Status) -> Vec<HunkReport> {
        let report = |(index, hunk): (usize, &crate::engine::patch::Hunk)| HunkReport {
            index: index + 1,
            patch_line: hunk.patch_line,
            status,
            places: Vec::new(),
            explained: None,
        };
        self.file.hunks.iter().enumerate().map(report).collect()
    }

    fn add(&mut self, member: &Member) -> Result<(Fate, Vec<HunkReport>), ToolError> {
        let content = added(&self.file.hunks).into_bytes();
        let Some(before) = &member.before else {
            let mut hunks = self.all(Status::Applied);
            let lines = crate::engine::text::count_lines(&content);
            if let (Some(first), Ok(end_line)) = (hunks.first_mut(), usize::try_from(lines.max(1))) {
                first.places.push(Place { start_line: 1, end_line });
            }
            return Ok((Fate::Content { after: content, executable: self.file.executable, to: None }, hunks));
        };
        if *before == content {
            self.notes.push(format!("{} exists already with this very content", member.path));
            return Ok((Fate::Kept, self.all(Status::AlreadyApplied)));
        }
        let message = format!(
            "{}: the patch adds this file ({} bytes), but it exists already ({} bytes): update it instead, or remove it \
             first",
            member.path,
            content.len(),
            before.len()
        );
        self.fail(Code::Exists, message);
        Ok((Fate::Kept, self.all(Status::NotFound)))
    }

    fn delete(&mut self, member: &Member) -> Result<(Fate, Vec<HunkReport>), ToolError> {
        let Some(before) = &member.before else { return self.missing(member) };
        let condition = self.check(member, before, true)?;
        if self.file.hunks.is_empty() {
            return Ok((Fate::Removed, Vec::new()));
        }
        let applied = self.applied(member, before)?;
        let whole = applied.reports.iter().all(|report| report.status == Status::Applied);
        if whole && applied.bytes.len() <= bom_length(before) {
            return Ok((Fate::Removed, applied.reports));
        }
        if whole {
            let message = format!(
                "{}: the patch removes this file, but there is more in it than the lines the patch removes",
                member.path
            );
            self.fail(Code::NoMatch, message);
        }
        self.held_to(&condition, member, before)?;
        Ok((Fate::Kept, applied.reports))
    }

    /// Refuses what has no place in a file that changed since it was read, unless that is to be left out.
    fn held_to(&self, condition: &EditCondition, member: &Member, before: &[u8]) -> Result<(), ToolError> {
        match condition {
            EditCondition::OnlyIfUnique(seen) if !self.failed.is_empty() && !self.terms.partial => {
                let why: Vec<&str> = self.failed.iter().map(|failed| failed.message.as_str()).collect();
                Err(staleness::lost_place(&member.path.to_string(), seen, before, &why.join("\n")))
            }
            _ => Ok(()),
        }
    }

    fn update(
        &mut self,
        member: &Member,
        to: Option<JailPath>,
    ) -> Result<(Fate, Vec<HunkReport>), ToolError> {
        let Some(before) = &member.before else { return self.missing(member) };
        let to = to.filter(|to| *to != member.path);
        if let Some(to) = &to {
            match to.symlink_metadata() {
                Err(PathError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(there) => {
                    let message = format!(
                        "{}: the patch moves it ({} bytes) to {to}, but that exists already ({} bytes): remove it first, or \
                         choose another name",
                        member.path,
                        before.len(),
                        there.size
                    );
                    self.fail(Code::Exists, message);
                    return Ok((Fate::Kept, self.all(Status::NotFound)));
                }
            }
        }
        let condition = self.check(member, before, false)?;
        if self.file.hunks.is_empty() {
            let fate = Fate::Content { after: before.clone(), executable: self.file.executable, to };
            return Ok((fate, Vec::new()));
        }
        let applied = self.applied(member, before)?;
        self.held_to(&condition, member, before)?;
        if let EditCondition::OnlyIfUnique(seen) = condition {
            if !applied.unique {
                return Err(staleness::changed(&member.path.to_string(), &seen, before));
            }
            let rest = if self.failed.is_empty() { "every change still has" } else { "what was applied has" };
            self.notes.push(format!(
                "{} was changed by something else since it was read; {rest} one place only",
                member.path
            ));
        }
        let already = applied.reports.iter().filter(|report| report.status == Status::AlreadyApplied).count();
        if already > 0 {
            self.notes.push(format!("{}: {already} of the changes were there already", member.path));
        }
        let fate = Fate::Content { after: applied.bytes, executable: self.file.executable, to };
        Ok((fate, applied.reports))
    }

    /// Holds the hunks against the content, and takes down what does not apply.
    fn applied(&mut self, member: &Member, before: &[u8]) -> Result<Applied, ToolError> {
        let shown = member.path.to_string();
        let text = Text::parse(before).map_err(|binary| {
            ToolError::new(Code::Binary, format!("{shown}: {binary}; it cannot be patched as text"))
        })?;
        let applied = apply(&text, &self.file.hunks).map_err(|error| unsuited(&shown, &error))?;
        for report in &applied.reports {
            let Some(explained) = &report.explained else { continue };
            let code = if report.status == Status::Ambiguous { Code::Ambiguous } else { Code::NoMatch };
            let what = if report.status == Status::Ambiguous { "is ambiguous" } else { "does not apply" };
            let message = format!(
                "{shown}: change {} (line {} of the patch) {what}: {}",
                report.index, report.patch_line, explained.0
            );
            self.fail(code, message);
        }
        Ok(applied)
    }

    fn missing(&mut self, member: &Member) -> Result<(Fate, Vec<HunkReport>), ToolError> {
        let missing = || ToolError::not_found(format!("{} does not exist", member.path));
        let error = member.path.open_read().err().map_or_else(missing, ToolError::from);
        if !self.terms.partial {
            return Err(ToolError::not_found(format!(
                "{error}; the patch was not applied, nothing was changed"
            )));
        }
        self.fail(Code::NoMatch, error.to_string());
        Ok((Fate::Kept, self.all(Status::NotFound)))
    }

    /// Whether the session may change the file. `removes` is for what has no place to be unique at.
    fn check(&self, member: &Member, before: &[u8], removes: bool) -> Result<EditCondition, ToolError> {
        let shown = member.path.to_string();
        let target = Target { shown: &shown, real: &member.real, content: Some(before) };
        let claim = Claim { session: self.terms.session, expected_sha256: None, force: self.terms.force };
        match check_edit(self.filesystem, &target, &claim)? {
            EditCondition::OnlyIfUnique(seen) if removes && self.file.hunks.is_empty() => {
                Err(staleness::changed(&shown, &seen, before))
            }
            condition => Ok(condition),
        }
    }
}

fn bom_length(content: &[u8]) -> usize {
    Text::parse(content).map_or(0, |text| if text.has_bom() { text.encoding().bom().len() } else { 0 })
}

fn unsuited(shown: &str, error: &SpliceError) -> ToolError {
    ToolError::new(Code::Unencodable, format!("{shown}: {error}"))
}
