//! The entries of one directory in little memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use provider_core::jail::FileKind;

use crate::engine::ignore_rules::Verdict;

/// Names longer than this are on no file system that Linux has.
const LONGEST: usize = 255;

const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];
const VERDICTS: [Verdict; 3] = [Verdict::Silent, Verdict::Excluded, Verdict::Wanted];
const OUTSIDE: u8 = 1 << 5;

/// One entry, with what was decided about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a OsStr,
    pub(super) kind: FileKind,
    /// What ignore files say.
    pub(super) verdict: Verdict,
    /// It is a symbolic link that leads out of the roots.
    pub(super) outside: bool,
}

/// Entries one after another: a byte of facts, a byte of length, the name.
#[derive(Debug, Default)]
pub(super) struct Entries(Box<[u8]>);

impl Entries {
    /// `None` if a name is too long.
    pub(super) fn pack<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Option<Self> {
        let mut bytes = Vec::new();
        for entry in entries {
            let name = entry.name.as_bytes();
            let kind = KINDS.iter().position(|kind| *kind == entry.kind)?;
            let verdict = VERDICTS.iter().position(|verdict| *verdict == entry.verdict)?;
            let outside = if entry.outside { OUTSIDE } else { 0 };
            bytes.push(u8::try_from(kind | verdict << 3).ok()? | outside);
            bytes.push(u8::try_from(name.len()).ok().filter(|_| name.len() <= LONGEST)?);
            bytes.extend_from_slice(name);
        }
        Some(Self(bytes.into_boxed_slice()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let [facts, length, after @ ..] = rest else { return None };
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            Some(Entry {
                name: OsStr::from_bytes(name),
                kind: *KINDS.get(usize::from(facts & 7))?,
                verdict: *VERDICTS.get(usize::from(facts >> 3 & 3))?,
                outside: facts & OUTSIDE != 0,
            })
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.iter().any(|entry| entry.name == name)
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_as_it_was() {
        let long = "n".repeat(255);
        let mut all = Vec::new();
        for (kind, name) in KINDS.into_iter().zip(["a", ".git", "x y", "\u{e9}", "b", "c", long.as_str()]) {
            for verdict in VERDICTS {
                let name = OsStr::new(name);
                all.push(Entry { name, kind, verdict, outside: kind == FileKind::Symlink });
            }
        }
        let packed = Entries::pack(all.iter().copied()).unwrap();
        assert_eq!(packed.iter().collect::<Vec<_>>(), all);
        assert!(packed.has(".git") && !packed.has("git"));
        let longer = "n".repeat(256);
        let entry = Entry { name: OsStr::new(&longer), ..all[0] };
        assert!(Entries::pack(std::iter::once(entry)).is_none());
    }
}
