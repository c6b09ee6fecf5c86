//! What each session has seen of which file, so that a change made by something else is noticed.
//!
//! Kept by content, not by time: a file that was touched or rewritten with the same bytes has not changed.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files remembered over all sessions; the ones remembered longest ago are forgotten first.
const FILES: usize = 8_192;
/// Contents kept to show what changed, in bytes over all sessions.
const CONTENT_BYTES: usize = 32 << 20;
/// Larger files are remembered by their hash only.
pub(crate) const LARGEST_CONTENT: usize = 256 << 10;

/// What a session knows of one file.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// SHA-256 of the whole file in lower-case hex.
    pub(crate) sha256: String,
    /// The file as it was, if it was small enough to keep.
    pub(crate) content: Option<Arc<[u8]>>,
    /// Whether nothing of the file was ever shown: it was only edited.
    pub(crate) unread: bool,
    lines: LineSet,
    /// Up to which byte the line is known that the last page ended in.
    up_to: Option<u64>,
}

impl Seen {
    /// Whether all lines of the file were seen.
    pub(crate) fn is_whole(&self) -> bool {
        self.lines.missing() == 0
    }

    /// How much was seen: lines, and lines in all.
    pub(crate) fn coverage(&self) -> (u64, u64) {
        (self.lines.total - self.lines.missing(), self.lines.total)
    }
}

/// What one read showed.
pub(crate) struct Shown {
    pub(crate) sha256: String,
    pub(crate) content: Option<Arc<[u8]>>,
    /// The lines shown, from 1; empty when none was.
    pub(crate) lines: Option<RangeInclusive<u64>>,
    pub(crate) total_lines: u64,
    /// The byte that it begins with, where that may be inside a line.
    pub(crate) begins_at: Option<u64>,
    /// The byte after its last, where a page may go on.
    pub(crate) ends_at: Option<u64>,
    /// Whether its last line goes on after it.
    pub(crate) ends_inside: bool,
}

/// Which lines of a file were seen: disjoint ranges in order.
#[derive(Clone, Debug, Default)]
struct LineSet {
    total: u64,
    seen: Vec<(u64, u64)>,
}

impl LineSet {
    fn missing(&self) -> u64 {
        let seen: u64 = self.seen.iter().map(|(first, last)| last - first + 1).sum();
        self.total.saturating_sub(seen)
    }

    fn add(&mut self, first: u64, last: u64) {
        self.seen.push((first, last));
        self.seen.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.seen.len());
        for &(first, last) in &self.seen {
            match merged.last_mut() {
                Some(previous) if first <= previous.1 + 1 => previous.1 = previous.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        self.seen = merged;
    }
}

type Key = (String, PathBuf);

#[derive(Default)]
struct Files {
    /// What is known, and when it was recorded.
    known: HashMap<Key, (u64, Seen)>,
    /// The keys by when they were recorded.
    order: BTreeMap<u64, Key>,
    /// Counts what is recorded.
    now: u64,
    content_bytes: usize,
}

/// The memory of all sessions of one process.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Files>);

impl Memory {
    fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `session` knows of the file at `path`, its real absolute place.
    pub(crate) fn seen(&self, session: &str, path: &Path) -> Option<Seen> {
        self.files().get(&(session.to_owned(), path.to_owned())).cloned()
    }

    /// Records that a session was shown a part of a file. Parts of the same content add up.
    pub(crate) fn shown(&self, session: &str, path: &Path, shown: Shown) {
        let key = (session.to_owned(), path.to_owned());
        let mut files = self.files();
        let before = files.get(&key).filter(|seen| seen.sha256 == shown.sha256);
        let mut lines = before.map(|seen| seen.lines.clone()).unwrap_or_default();
        lines.total = shown.total_lines;
        // A page that begins inside a line shows the whole of it only if the one before ended there.
        let continues = shown.begins_at.is_none() || before.is_some_and(|seen| seen.up_to == shown.begins_at);
        let mut up_to = None;
        if let Some(range) = shown.lines {
            let (first, last) = (*range.start(), *range.end());
            up_to = shown.ends_at.filter(|_| continues || first < last);
            let (first, last) = (first + u64::from(!continues), last - u64::from(shown.ends_inside));
            if first <= last {
                lines.add(first, last);
            }
        }
        files.put(key, Seen { sha256: shown.sha256, content: shown.content, unread: false, lines, up_to });
    }

    /// Records that a session changed a file: it knows all of it if it wrote it whole, or knew all of what was there
    /// before. `replaced` is the hash of that; `None` when the file was written whole.
    pub(crate) fn wrote(
        &self,
        session: &str,
        path: &Path,
        sha256: String,
        content: &[u8],
        replaced: Option<&str>,
    ) {
        let total = content.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let content = (content.len() <= LARGEST_CONTENT).then(|| content.into());
        self.wrote_lines(session, path, sha256, total, content, replaced);
    }

    /// [`Memory::wrote`] for a file of `total` lines, with its content if that is to be kept.
    pub(crate) fn wrote_lines(
        &self,
        session: &str,
        path: &Path,
        sha256: String,
        total: u64,
        content: Option<Arc<[u8]>>,
        replaced: Option<&str>,
    ) {
        let key = (session.to_owned(), path.to_owned());
        let mut files = self.files();
        let unread = replaced.is_some() && files.get(&key).is_none_or(|seen| seen.unread);
        let knew_all = replaced.is_none_or(|replaced| {
            files.get(&key).is_some_and(|seen| seen.sha256 == replaced && seen.is_whole())
        });
        let mut lines = LineSet { total, seen: Vec::new() };
        if knew_all {
            lines.add(1, total);
        }
        files.put(key, Seen { sha256, content, unread, lines, up_to: None });
    }

    /// What all sessions know of the file at `from`, to be remembered of `to` once it is there.
    pub(crate) fn moving(&self, from: &Path, to: &Path) -> Moving {
        let files = self.files();
        let of_it = files.known.iter().filter(|((_, path), _)| path == from);
        Moving(
            of_it.map(|((session, _), (_, seen))| ((session.clone(), to.to_owned()), seen.clone())).collect(),
        )
    }

    /// Remembers what was known of a file at its new place.
    pub(crate) fn moved(&self, moving: Moving) {
        let mut files = self.files();
        moving.0.into_iter().for_each(|(key, seen)| files.put(key, seen));
    }
}

/// What is known of a file that is being moved.
pub(crate) struct Moving(Vec<(Key, Seen)>);

impl Files {
    fn get(&self, key: &Key) -> Option<&Seen> {
        self.known.get(key).map(|(_, seen)| seen)
    }

    fn put(&mut self, key: Key, seen: Seen) {
        self.now += 1;
        self.content_bytes += size(&seen);
        self.order.insert(self.now, key.clone());
        if let Some((then, old)) = self.known.insert(key, (self.now, seen)) {
            self.order.remove(&then);
            self.content_bytes -= size(&old);
        }
        while self.order.len() > FILES || self.content_bytes > CONTENT_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some((_, old)) = self.known.remove(&oldest) {
                self.content_bytes -= size(&old);
            }
        }
    }
}

fn size(seen: &Seen) -> usize {
    seen.content.as_ref().map_or(0, |content| content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sha256: &str, lines: RangeInclusive<u64>) -> Shown {
        Shown {
            sha256: sha256.to_owned(),
            content: None,
            lines: Some(lines),
            total_lines: 10,
            begins_at: None,
            ends_at: None,
            ends_inside: false,
        }
    }

    #[test]
    fn pages_of_the_same_content_add_up() {
        let memory = Memory::default();
        let path = Path::new("/f");
        memory.shown("s", path, shown("a", 1..=4));
        assert_eq!(memory.seen("s", path).unwrap().coverage(), (4, 10));
        memory.shown("s", path, shown("a", 3..=10));
        assert!(memory.seen("s", path).unwrap().is_whole());
        memory.shown("s", path, shown("b", 1..=1));
        assert_eq!(memory.seen("s", path).unwrap().coverage(), (1, 10));
        assert!(memory.seen("other", path).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let memory = Memory::default();
        let content: Arc<[u8]> = vec![0; LARGEST_CONTENT].into();
        for n in 0..1_000 {
            let shown = Shown { content: Some(content.clone()), ..shown("a", 1..=1) };
            memory.shown("s", Path::new(&format!("/{n}")), shown);
        }
        assert!(memory.files().content_bytes <= CONTENT_BYTES);
        assert!(memory.seen("s", Path::new("/999")).is_some());
        assert!(memory.seen("s", Path::new("/0")).is_none());
    }

    #[test]
    fn what_was_seen_longest_ago_is_forgotten_first() {
        let memory = Memory::default();
        let see = |n: usize| memory.shown("s", Path::new(&format!("/{n}")), shown("a", 1..=1));
        (0..FILES).for_each(see);
        see(0);
        see(FILES);
        assert!(memory.seen("s", Path::new("/0")).is_some());
        assert!(memory.seen("s", Path::new("/1")).is_none());
        assert_eq!(memory.files().known.len(), FILES);
    }
}
