//! Names that exist, for a name that does not.

use std::collections::BinaryHeap;
use std::ffi::OsStr;

use crate::JailPath;
use crate::temporary::is_temp_name;

/// How many names are suggested.
const MAX_NAMES: usize = 3;

/// In a larger directory only the first so many entries are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Up to three paths beside `path` that are spelled like it, best first. Denied names are never given away.
pub(crate) fn nearest(path: &JailPath) -> Vec<String> {
    // The nearest directory that exists, and the name that is missing in it.
    let mut missing = path.clone();
    let (directory, wanted) = loop {
        let (Some(parent), Some(name)) = (missing.parent(), missing.file_name().map(OsStr::to_owned)) else {
            return Vec::new();
        };
        if parent.metadata_quietly() {
            break (parent, name);
        }
        missing = parent;
    };
    let Ok(entries) = directory.read_dir() else { return Vec::new() };
    let wanted = comparable(&wanted);
    let mut best: BinaryHeap<(usize, String)> = BinaryHeap::new();
    for entry in entries.take(MAX_ENTRIES).filter_map(Result::ok) {
        let Some(distance) = distance(&wanted, &comparable(&entry.name)) else { continue };
        let Ok(candidate) = directory.join(&entry.name) else { continue };
        if is_temp_name(&entry.name) || candidate.is_denied() {
            continue;
        }
        best.push((distance, candidate.to_string()));
        if best.len() > MAX_NAMES {
            best.pop();
        }
    }
    best.into_sorted_vec().into_iter().map(|(_, name)| name).collect()
}

impl JailPath {
    /// Whether the directory can be found, without suggesting anything if not.
    fn metadata_quietly(&self) -> bool {
        let found = self.find(crate::follow::Last::Follow, crate::rules::Access::Read);
        found.is_ok_and(|found| found.metadata.is_some())
    }
}

fn comparable(name: &OsStr) -> Vec<char> {
    name.to_string_lossy().to_lowercase().chars().take(128).collect()
}

/// How many characters must be changed, if that is few for the length; a name that contains the other is near.
fn distance(wanted: &[char], name: &[char]) -> Option<usize> {
    let limit = (wanted.len().max(name.len()) / 3).max(1);
    let contains = |long: &[char], short: &[char]| {
        short.len() >= 3 && long.windows(short.len()).any(|window| window == short)
    };
    let edits = edit_distance(wanted, name);
    (edits <= limit || contains(name, wanted) || contains(wanted, name)).then_some(edits)
}

fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
