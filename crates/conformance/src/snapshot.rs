//! A directory tree as it is now, to be compared with what it is later.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Everything below a directory: names, types, modes, times of change and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    content: Content,
    mode: u32,
    modified: (i64, i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Directory,
    Link(PathBuf),
    File([u8; 32]),
    /// A file that this process may not read.
    Unreadable,
    Special,
}

/// What a comparison looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Everything.
    All,
    /// Everything but the times.
    State,
}

impl Snapshot {
    /// What is below `top` now.
    pub(crate) fn of(top: &Path) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        let mut open = vec![top.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                let found = Entry::of(&path)?;
                if found.content == Content::Directory {
                    open.push(path.clone());
                }
                entries.insert(path.strip_prefix(top).unwrap_or(&path).to_owned(), found);
            }
        }
        Ok(Self(entries))
    }

    /// What differs in `later`, one phrase for each path.
    pub(crate) fn differences(&self, later: &Self, look: Look) -> BTreeMap<PathBuf, &'static str> {
        let mut out = BTreeMap::new();
        for (path, entry) in &self.0 {
            match later.0.get(path) {
                None => _ = out.insert(path.clone(), "is gone"),
                Some(found) => {
                    if let Some(change) = entry.change(found, look) {
                        out.insert(path.clone(), change);
                    }
                }
            }
        }
        out.extend(
            later.0.keys().filter(|path| !self.0.contains_key(*path)).map(|path| (path.clone(), "is new")),
        );
        out
    }
}

impl Entry {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        let kind = metadata.file_type();
        let content = if kind.is_dir() {
            Content::Directory
        } else if kind.is_symlink() {
            Content::Link(fs::read_link(path)?)
        } else if kind.is_file() {
            match digest(path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Content::Unreadable,
                digest => Content::File(digest?),
            }
        } else {
            Content::Special
        };
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Ok(Self { content, mode: metadata.mode(), modified })
    }

    fn change(&self, later: &Self, look: Look) -> Option<&'static str> {
        match () {
            () if self.content != later.content => Some("has other content"),
            () if self.mode != later.mode => Some("has another mode"),
            () if look == Look::All && self.modified != later.modified => Some("was written"),
            () => None,
        }
    }
}

fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// The differences in words, for a finding.
pub(crate) fn in_words(differences: &BTreeMap<PathBuf, &'static str>) -> String {
    let phrase = |(path, change): (&PathBuf, &&str)| format!("{} {change}", path.display());
    let mut words: Vec<String> = differences.iter().take(5).map(phrase).collect();
    if differences.len() > 5 {
        words.push(format!("and {} more", differences.len() - 5));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&Path), look: Look, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("d/a"), "one").unwrap();
        let before = Snapshot::of(dir.path()).unwrap();
        change(dir.path());
        let after = Snapshot::of(dir.path()).unwrap();
        assert_eq!(in_words(&before.differences(&after, look)), expected);
    }

    #[test]
    fn every_change_is_seen() {
        check(|_| {}, Look::All, "");
        check(|top| fs::write(top.join("d/a"), "two").unwrap(), Look::All, "d/a has other content");
        check(|top| fs::write(top.join("b"), "").unwrap(), Look::All, "b is new");
        check(|top| fs::remove_file(top.join("d/a")).unwrap(), Look::State, "d/a is gone");
        let touch = |top: &Path| {
            let file = fs::File::options().write(true).open(top.join("d/a")).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        };
        check(touch, Look::All, "d/a was written");
        check(touch, Look::State, "");
    }
}
