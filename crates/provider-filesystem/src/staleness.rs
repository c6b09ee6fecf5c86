//! Whether a change may be made to a file that a session has read, or has not.
//!
//! Judged by content: a touched file, or one rewritten with the same bytes, has not changed.

use std::fmt::Write as _;
use std::path::Path;

use provider_core::{Code, ToolError};
use sha2::{Digest, Sha256};

use crate::Filesystem;
use crate::config::Stale;
use crate::engine::diff::Diff;
use crate::engine::patience;
use crate::memory::Seen;

/// Bytes that are hashed between two looks whether that is still wanted.
const HASHED_AT_ONCE: usize = 16 << 10;
/// How much of what changed is shown in an error, in bytes.
const SHOWN_CHANGE: usize = 8 << 10;

/// SHA-256 in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    for part in bytes.chunks(HASHED_AT_ONCE) {
        patience::check();
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// What identifies a change: the place, what is there, and what will be there.
pub(crate) fn fingerprint(path: &Path, before: Option<&[u8]>, after: &[u8]) -> String {
    let before = before.map_or_else(|| "absent".to_owned(), sha256);
    format!("{}\0{before}\0{}", path.display(), sha256(after))
}

/// The file that is to be changed, as it is now.
pub(crate) struct Target<'a> {
    /// The path as a caller knows it.
    pub(crate) shown: &'a str,
    /// The real absolute place.
    pub(crate) real: &'a Path,
    /// The content; `None` when there is no file.
    pub(crate) content: Option<&'a [u8]>,
}

/// What the caller said about the file it means.
pub(crate) struct Claim<'a> {
    /// The session. Empty in a preview, which cannot know what was read.
    pub(crate) session: &'a str,
    /// The hash the file must have.
    pub(crate) expected_sha256: Option<&'a str>,
    /// Whether everything but the hash is skipped.
    pub(crate) force: bool,
}

/// Under which condition an edit may be made.
pub(crate) enum EditCondition {
    /// None.
    Free,
    /// The file changed since it was read: only if the text occurs exactly once.
    OnlyIfUnique(Box<Seen>),
}

impl EditCondition {
    /// The error of an edit without a certain place. In a file that changed since it was read, that is why.
    pub(crate) fn explain(&self, shown: &str, now: &[u8], error: ToolError) -> ToolError {
        match (self, error.code()) {
            (Self::OnlyIfUnique(seen), Some(Code::NoMatch | Code::Ambiguous | Code::CountMismatch)) => {
                lost_place(shown, seen, now, &error.to_string())
            }
            _ => error,
        }
    }
}

/// Refuses to overwrite content that the caller does not know.
///
/// # Errors
/// `stale`, with a diff of what changed where the content that was read is still known.
pub(crate) fn check_write(
    filesystem: &Filesystem,
    target: &Target<'_>,
    claim: &Claim<'_>,
) -> Result<(), ToolError> {
    check_hash(target, claim)?;
    let Some(content) = target.content.filter(|_| !is_waived(filesystem, claim)) else { return Ok(()) };
    match filesystem.memory.seen(claim.session, target.real) {
        Some(seen) if seen.sha256 != sha256(content) => Err(changed(target.shown, &seen, content)),
        Some(seen) if !seen.unread && !seen.is_whole() => {
            let how_much = match seen.coverage() {
                // What was seen of a file that was edited since is not counted.
                (0, _) => "only a part of it was read".to_owned(),
                (lines, total) => format!("only {lines} of its {total} lines were read"),
            };
            let text = format!(
                "{}: {how_much}, so overwriting it could lose the rest; nothing was changed. Read the rest first, use \
                 edit_file, or pass force: true",
                target.shown
            );
            Err(ToolError::new(Code::Stale, text))
        }
        seen if filesystem.stale == Stale::Strict && seen.as_ref().is_none_or(|seen| seen.unread) => {
            Err(unread(target.shown))
        }
        _ => Ok(()),
    }
}

/// Decides under which condition an edit may be made.
///
/// # Errors
/// `stale`, as [`check_write`].
pub(crate) fn check_edit(
    filesystem: &Filesystem,
    target: &Target<'_>,
    claim: &Claim<'_>,
) -> Result<EditCondition, ToolError> {
    check_hash(target, claim)?;
    let Some(content) = target.content.filter(|_| !is_waived(filesystem, claim)) else {
        return Ok(EditCondition::Free);
    };
    let strict = filesystem.stale == Stale::Strict;
    match filesystem.memory.seen(claim.session, target.real) {
        Some(seen) if seen.sha256 != sha256(content) => {
            if strict {
                return Err(changed(target.shown, &seen, content));
            }
            Ok(EditCondition::OnlyIfUnique(Box::new(seen)))
        }
        None if strict => Err(unread(target.shown)),
        _ => Ok(EditCondition::Free),
    }
}

/// [`check_edit`] for a file that is not in memory, of which `hash` is the SHA-256.
///
/// # Errors
/// `stale`, as [`check_edit`].
pub(crate) fn check_edit_by_hash(
    filesystem: &Filesystem,
    shown: &str,
    real: &Path,
    hash: &str,
    claim: &Claim<'_>,
) -> Result<EditCondition, ToolError> {
    if let Some(expected) = claim.expected_sha256 {
        compare_hashes(shown, expected, hash)?;
    }
    if is_waived(filesystem, claim) {
        return Ok(EditCondition::Free);
    }
    let strict = filesystem.stale == Stale::Strict;
    match filesystem.memory.seen(claim.session, real) {
        Some(seen) if seen.sha256 != hash && strict => Err(changed_error(shown, REPEAT_OR_FORCE, "", hash)),
        Some(seen) if seen.sha256 != hash => Ok(EditCondition::OnlyIfUnique(Box::new(seen))),
        None if strict => Err(unread(shown)),
        _ => Ok(EditCondition::Free),
    }
}

/// The note on an edit that was made although its file had changed.
pub(crate) fn changed_unseen(shown: &str) -> String {
    format!("{shown} was changed by something else since it was read; old_str still occurs exactly once")
}

fn is_waived(filesystem: &Filesystem, claim: &Claim<'_>) -> bool {
    claim.force || claim.session.is_empty() || filesystem.stale == Stale::Off
}

fn check_hash(target: &Target<'_>, claim: &Claim<'_>) -> Result<(), ToolError> {
    let Some(expected) = claim.expected_sha256 else { return Ok(()) };
    check_spelling(expected)?;
    let Some(content) = target.content else {
        let text = format!(
            "{}: expected_sha256 was given, but there is no such file; nothing was changed",
            target.shown
        );
        return Err(ToolError::new(Code::Stale, text));
    };
    compare_hashes(target.shown, expected, &sha256(content))
}

fn check_spelling(expected: &str) -> Result<(), ToolError> {
    if expected.len() != 64 || !expected.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        let text = "expected_sha256: wanted 64 hexadecimal digits, as read_file answers them in sha256";
        return Err(ToolError::invalid_arguments(text));
    }
    Ok(())
}

fn compare_hashes(shown: &str, expected: &str, found: &str) -> Result<(), ToolError> {
    check_spelling(expected)?;
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    let text = format!(
        "{shown}: expected_sha256 is {expected}, but the file has {found}; nothing was changed. Read it again and repeat \
         the call with the new hash"
    );
    Err(ToolError::new(Code::Stale, text).with_detail("sha256", found.to_owned()))
}

fn unread(shown: &str) -> ToolError {
    let text = format!(
        "{shown} has not been read in this session; nothing was changed. Read it first, or pass force: true"
    );
    ToolError::new(Code::Stale, text)
}

/// The error for a file that something else changed since it was read.
pub(crate) fn changed(shown: &str, seen: &Seen, now: &[u8]) -> ToolError {
    changed_error(shown, REPEAT_OR_FORCE, &what_changed(shown, seen, now), &sha256(now))
}

/// The error for an edit of such a file that has not one certain place in it any more. `why` says so.
pub(crate) fn lost_place(shown: &str, seen: &Seen, now: &[u8], why: &str) -> ToolError {
    let what = format!("{}\n{why}", what_changed(shown, seen, now));
    changed_error(shown, REPEAT_AS_IT_IS, &what, &sha256(now))
}

/// What to do about a file that changed.
const REPEAT_OR_FORCE: &str = "Read it again and repeat, or pass force: true.";
/// What to do about an edit whose text is not there any more, which no force would help.
pub(crate) const REPEAT_AS_IT_IS: &str = "Read it again and repeat with the text as it is now.";

fn what_changed(shown: &str, seen: &Seen, now: &[u8]) -> String {
    let mut what = String::new();
    match &seen.content {
        Some(before) => {
            let diff = Diff::of_files(before, now);
            let _ = write!(
                what,
                " What changed since:\n{}",
                diff.unified(Some(shown), Some(shown), SHOWN_CHANGE)
            );
            for remark in diff.remarks() {
                let _ = writeln!(what, "{remark}");
            }
        }
        None => what.push_str(" The file is too large to show what changed."),
    }
    what.trim_end().to_owned()
}

/// The error for a changed file, with what to do, what changed, and its hash now.
pub(crate) fn changed_error(shown: &str, advice: &str, what: &str, now: &str) -> ToolError {
    let text = format!(
        "{shown} was changed by something else since it was read; nothing was changed here. {advice}{what}"
    );
    ToolError::new(Code::Stale, text).with_detail("sha256", now.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_lower_case_hex() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn a_fingerprint_tells_absent_from_empty() {
        let path = Path::new("/f");
        assert_ne!(fingerprint(path, None, b"x"), fingerprint(path, Some(b""), b"x"));
    }
}
