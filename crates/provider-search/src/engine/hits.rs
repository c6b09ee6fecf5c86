//! What was found, kept in the order of paths and no more of it than will be answered.

use std::collections::BinaryHeap;

/// One hit, as it will be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// The line it begins in, from 1.
    pub line: u64,
    /// What is shown of that line.
    pub excerpt: crate::engine::excerpt::Excerpt,
    /// The lines right before, the nearest last.
    pub before: Vec<String>,
    /// The lines right after, the nearest first.
    pub after: Vec<String>,
}

/// The hits of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHits {
    /// The file's path from the start of the search.
    pub path: Box<[u8]>,
    /// The first hits, in order.
    pub hits: Vec<Hit>,
    /// Hits in all.
    pub total: u64,
    /// Lines with a hit.
    pub lines: u64,
    /// The encoding the file is in, if that is not UTF-8.
    pub encoding: Option<String>,
}

/// The order is that of paths.
impl Ord for FileHits {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.path.cmp(&other.path)
    }
}

impl PartialOrd for FileHits {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What one hit, or file, is when results are counted out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each hit.
    Hit,
    /// Each file with a hit.
    File,
}

/// The first results in the order of paths, of all that one thread has found. Holds at most about twice its capacity,
/// however much is found.
#[derive(Debug)]
pub struct First {
    unit: Unit,
    capacity: usize,
    kept: usize,
    /// The last in the order of paths is on top.
    files: BinaryHeap<FileHits>,
    /// Hits in all.
    pub total: u64,
    /// Lines with a hit.
    pub lines: u64,
    /// Files with a hit.
    pub total_files: u64,
}

impl First {
    /// Keeps the first `capacity` results.
    pub fn new(unit: Unit, capacity: usize) -> Self {
        Self { unit, capacity, kept: 0, files: BinaryHeap::new(), total: 0, lines: 0, total_files: 0 }
    }

    /// How many hits of a file at `path` could be among the first.
    pub fn wanted(&self, path: &[u8]) -> usize {
        let full = self.kept >= self.capacity;
        match self.files.peek() {
            Some(last) if full && path > &*last.path => 0,
            _ => self.capacity,
        }
    }

    /// Counts a file's hits, and keeps them if they are among the first.
    pub fn add(&mut self, file: FileHits) {
        if file.total == 0 {
            return;
        }
        self.total += file.total;
        self.lines += file.lines;
        self.total_files += 1;
        if self.wanted(&file.path) == 0 {
            return;
        }
        self.kept += self.weight(&file);
        self.files.push(file);
        while let Some(last) = self.files.peek().map(|last| self.weight(last))
            && self.kept - last >= self.capacity
        {
            self.kept -= last;
            self.files.pop();
        }
    }

    fn weight(&self, file: &FileHits) -> usize {
        match self.unit {
            Unit::Hit => file.hits.len(),
            Unit::File => 1,
        }
    }

    /// Everything that several threads have found.
    pub fn merged(parts: impl IntoIterator<Item = Self>) -> (Vec<FileHits>, Totals) {
        let (mut files, mut totals) = (Vec::new(), Totals::default());
        for part in parts {
            totals.hits += part.total;
            totals.lines += part.lines;
            totals.files += part.total_files;
            files.extend(part.files);
        }
        files.sort_unstable();
        (files, totals)
    }
}

/// How much was found in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Hits.
    pub hits: u64,
    /// Lines with a hit.
    pub lines: u64,
    /// Files with a hit.
    pub files: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, total: u64, wanted: usize) -> FileHits {
        let hit = |line| Hit { line, ..Hit::default() };
        let hits = (1..=total).take(wanted).map(hit).collect();
        FileHits { path: path.as_bytes().into(), hits, total, lines: total, encoding: None }
    }

    /// The first `capacity` hits of files added in any order, as path and line.
    fn first(capacity: usize, files: &[(&str, u64)], threads: usize) -> (Vec<(String, u64)>, Totals) {
        let mut parts: Vec<_> = (0..threads).map(|_| First::new(Unit::Hit, capacity)).collect();
        for (index, (path, total)) in files.iter().enumerate() {
            let part = &mut parts[index % threads];
            let wanted = part.wanted(path.as_bytes());
            part.add(file(path, *total, wanted));
            assert!(part.kept < 2 * capacity.max(1), "{} are kept", part.kept);
        }
        let (files, totals) = First::merged(parts);
        let name = |file: &FileHits| String::from_utf8_lossy(&file.path).into_owned();
        let hits = files.iter().flat_map(|file| file.hits.iter().map(move |hit| (name(file), hit.line)));
        (hits.take(capacity).collect(), totals)
    }

    #[test]
    fn the_first_are_the_same_in_whatever_order_they_come() {
        let mut files: Vec<(String, u64)> = (0..50).map(|n| (format!("f{n:02}"), n % 7)).collect();
        let all: Vec<_> = files
            .iter()
            .flat_map(|(path, total)| (1..=*total).map(move |line| (path.clone(), line)))
            .collect();
        for (round, capacity) in [1, 2, 5, 20, 100, 1000].into_iter().cycle().take(60).enumerate() {
            files.rotate_left(round % 50);
            files.swap(round % 50, round * 7 % 50);
            let borrowed: Vec<_> = files.iter().map(|(path, total)| (path.as_str(), *total)).collect();
            for threads in 1..4 {
                let (hits, totals) = first(capacity, &borrowed, threads);
                assert_eq!(hits, all[..capacity.min(all.len())], "capacity {capacity}");
                assert_eq!(totals.hits, all.len() as u64);
            }
        }
    }
}
