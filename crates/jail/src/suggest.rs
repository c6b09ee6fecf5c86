//! Names that exist, for a name that does not.

use std::collections::BinaryHeap;
use std::ffi::OsStr;

use crate::follow::Last;
use crate::rules::Access;
use crate::temporary::is_temp_name;
use crate::{JailPath, PathError};

/// How many names are suggested.
const MAX_NAMES: usize = 3;

/// In a larger directory only the first so many entries are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The error for a path with nothing at it: how much of it is missing, and what is there that is spelled like it.
pub(crate) fn not_found(path: &JailPath) -> PathError {
    let mut missing = path.clone();
    let nearest = loop {
        let (Some(parent), Some(name)) = (missing.parent(), missing.file_name()) else { break Vec::new() };
        if parent.is_there() {
            break nearest(&parent, name);
        }
        missing = parent;
    };
    let missing_parent = (missing != *path).then(|| missing.to_string());
    PathError::NotFound { path: path.to_string(), missing_parent, nearest }
}

/// Up to three paths in `directory` that are spelled like `wanted`, best first. Denied names are never given away.
fn nearest(directory: &JailPath, wanted: &OsStr) -> Vec<String> {
    let Ok(entries) = directory.read_dir() else { return Vec::new() };
    let wanted = comparable(wanted);
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
    /// Whether it can be found, without suggesting anything if not.
    fn is_there(&self) -> bool {
        let found = self.find(Last::Follow, Access::Read);
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
