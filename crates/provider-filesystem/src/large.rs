//! Edits of files that are not held in memory: one place, found and written as the file passes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use provider_core::ensure_as_previewed;
use provider_core::jail::{JailPath, PathError, WriteLock};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::cancellable::Cancellable;
use crate::change::{Applied, LARGEST_FILE};
use crate::engine::diff::Diff;
use crate::engine::edit::{Edit, LineRange, Replacement, Select, plan};
use crate::engine::explain::{Explanation, MAX_SEARCHED_BYTES};
use crate::engine::find::MatchKind;
use crate::engine::stream::{Excerpt, Located, Place, locate};
use crate::engine::text::{Text, count_lines};
use crate::journal::{Exchanged, Transaction};
use crate::staleness::{
    Claim, EditCondition, REPEAT_AS_IT_IS, changed_error, changed_unseen, check_edit_by_hash, hex, sha256,
};

/// Files from this size on, in bytes, are not held in memory if one place of them is edited.
pub(crate) const LARGE: u64 = 8 << 20;
/// Bytes copied between two looks whether the call still stands.
const COPIED_AT_ONCE: u64 = 16 << 20;

/// The edit that is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) replacement: Replacement<'a>,
    pub(crate) claim: Claim<'a>,
}

/// A planned edit of a large file.
pub(crate) struct Planned {
    located: Located,
    excerpt: Excerpt,
    edit: Edit,
    size: u64,
    before: String,
    /// Where the new text stands.
    pub(crate) replacement: LineRange,
    pub(crate) diff: Diff,
    pub(crate) notes: Vec<String>,
}

/// Plans the edit of a file of `size` bytes. `None` where it takes the whole file to do it, or to say why not.
///
/// # Errors
/// The file cannot be read, or is not what the caller knows.
pub(crate) fn planned<R: Read + Seek>(
    filesystem: &Filesystem,
    shown: &str,
    real: &Path,
    asked: &Asked<'_>,
    mut source: R,
    size: u64,
) -> Result<Option<Planned>, io::Error> {
    let located = locate(&mut source, size, asked.replacement.old_str)?;
    let select = asked.replacement.select;
    let before = hex(&located.sha256);
    let excerpt = match &located.place {
        Place::Once(_) if matches!(select, Select::Count(count) if count != 1) => return Ok(None),
        Place::Once(excerpt) => excerpt.clone(),
        Place::Nowhere if size > MAX_SEARCHED_BYTES as u64 => {
            let why = format!("{shown}: {}", Explanation::unsearched(asked.replacement.old_str));
            return Err(no_place(filesystem, (shown, real, &before), asked, Code::NoMatch, why));
        }
        Place::Several([first, second]) if size > LARGEST_FILE => {
            let text = format!(
                "{shown}: old_str occurs more than once, in lines {first} and {second} and maybe more; nothing was changed. \
                 In a file of more than {LARGEST_FILE} bytes one place is edited at a time: give a longer old_str"
            );
            return Err(no_place(filesystem, (shown, real, &before), asked, Code::Ambiguous, text));
        }
        _ => return Ok(None),
    };
    let mut notes = Vec::new();
    match check_edit_by_hash(filesystem, shown, real, &before, &asked.claim).map_err(io::Error::other)? {
        EditCondition::OnlyIfUnique(_) if select == Select::Unique => notes.push(changed_unseen(shown)),
        EditCondition::OnlyIfUnique(_) => return Ok(None),
        EditCondition::Free => {}
    }
    // The place is the only one, whichever was meant.
    let only = Replacement { select: Select::Unique, ..asked.replacement };
    let Ok(edit) = plan(&Text::of_str(&excerpt.text), &only) else { return Ok(None) };
    if edit.matched == MatchKind::LineEndings {
        notes.push(crate::shown::MATCHED_BUT_FOR_ENDINGS.to_owned());
    }
    let lines = usize::try_from(excerpt.lines_before).unwrap_or(usize::MAX);
    let diff = Diff::between(excerpt.text.as_bytes(), &edit.bytes).of_excerpt(lines);
    let Some(range) = edit.replacements.first() else { return Ok(None) };
    let replacement = LineRange {
        start_line: range.start_line + excerpt.lines_before,
        end_line: range.end_line + excerpt.lines_before,
    };
    Ok(Some(Planned { located, excerpt, edit, size, before, replacement, diff, notes }))
}

/// The error of an edit without a certain place in the file of which the name, the real place and the hash are given.
fn no_place(
    filesystem: &Filesystem,
    (shown, real, hash): (&str, &Path, &str),
    asked: &Asked<'_>,
    code: Code,
    why: String,
) -> io::Error {
    io::Error::other(match check_edit_by_hash(filesystem, shown, real, hash, &asked.claim) {
        Err(stale) => stale,
        Ok(EditCondition::OnlyIfUnique(_)) => {
            changed_error(shown, REPEAT_AS_IT_IS, &format!("\n{why}"), hash)
        }
        Ok(EditCondition::Free) => ToolError::new(code, why),
    })
}

impl Planned {
    pub(crate) fn changed(&self) -> bool {
        self.edit.changed
    }

    /// What identifies the change: the place, what is there, and what will be there.
    pub(crate) fn fingerprint(&self, real: &Path) -> String {
        let place = &self.excerpt.range;
        format!("{}\0{}\0{place:?}\0{}", real.display(), self.before, sha256(&self.edit.bytes))
    }

    /// Carries the plan out, if it is what was previewed and the call still stands.
    pub(crate) fn apply(
        &self,
        filesystem: &Filesystem,
        lock: WriteLock,
        file: &File,
        tool: &str,
        cx: &Cx<Events>,
    ) -> Result<Applied, ToolError> {
        let real = lock.path().absolute();
        ensure_as_previewed(cx, &self.fingerprint(&real))?;
        cx.check_cancelled()?;
        self.notes.iter().for_each(|note| cx.note(note.clone()));
        if !self.changed() {
            return Ok(Applied { sha256: self.before.clone(), change_id: None });
        }
        let mut after = String::new();
        filesystem.journal.expect_temporary(lock.path());
        let staged = lock.stage_with(|to| {
            after = self.write(file, to, cx)?;
            Ok(())
        });
        let staged = staged.map_err(|error| cx.check_cancelled().err().unwrap_or_else(|| error.into()))?;
        let mut transaction = Transaction::default();
        let exchanged = Exchanged {
            before: &self.before,
            after: &after,
            size: self.size,
            range: self.excerpt.range.clone(),
            old: self.excerpt.text.as_bytes(),
            new: &self.edit.bytes,
        };
        transaction.put_exchanged(lock, staged, &exchanged);
        let change_id = transaction.run(filesystem, tool, cx)?.change_id;
        let added = count_lines(&self.edit.bytes);
        let lines = (self.located.lines + added).saturating_sub(count_lines(self.excerpt.text.as_bytes()));
        filesystem.memory.wrote_lines(cx.session_id(), &real, after.clone(), lines, None, Some(&self.before));
        Ok(Applied { sha256: after, change_id })
    }

    /// Writes the new file; answers its hash.
    fn write(&self, file: &File, to: &mut File, cx: &Cx<Events>) -> io::Result<String> {
        let mut source = Cancellable::new(file, cx);
        let copy = |source: &mut Cancellable<'_, &File, Events>, to: &mut File, count: u64| {
            source.seek(SeekFrom::Start(0))?;
            let mut left = count;
            while left > 0 {
                cx.check_cancelled().map_err(io::Error::other)?;
                // From file to file the system copies, and nothing passes through here.
                let mut reader: &File = file;
                let copied = io::copy(&mut Read::take(&mut reader, left.min(COPIED_AT_ONCE)), to)?;
                if copied == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                left -= copied;
            }
            Ok(())
        };
        let hash = self.located.write(&mut source, self.size, &self.excerpt, &self.edit.bytes, to, copy)?;
        to.flush()?;
        Ok(hex(&hash))
    }
}

/// The file at `path`, if it is large: locked, open for reading, and with how many bytes it has.
pub(crate) fn lock(path: &JailPath) -> Result<Option<(WriteLock, File, u64)>, ToolError> {
    let mut lock = path.lock_for_write()?;
    // A file with several names is written in place, which takes the whole of it to be undone.
    let Some(size) =
        lock.metadata().filter(|file| file.size >= LARGE && file.nlink == 1).map(|file| file.size)
    else {
        return Ok(None);
    };
    let Some(file) = lock.file()? else { return Ok(None) };
    let file = file.try_clone().map_err(|error| unreadable(path, &error))?;
    Ok(Some((lock, file, size)))
}

/// The file that a preview is asked about, if it is large.
pub(crate) fn open(path: &JailPath) -> Result<Option<(File, u64)>, ToolError> {
    match path.open_read() {
        Ok(open) => {
            let size = open.metadata().size;
            let is_large = size >= LARGE && open.metadata().nlink == 1;
            Ok(is_large.then(|| (open.into_file(), size)))
        }
        Err(PathError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a failed reading means to the caller: the refusal that it carries, or what the operating system said.
pub(crate) fn unreadable(path: &JailPath, error: &io::Error) -> ToolError {
    let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<ToolError>());
    refusal.cloned().unwrap_or_else(|| ToolError::execution_failed(format!("{path} cannot be read: {error}")))
}
