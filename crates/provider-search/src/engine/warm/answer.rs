//! Answering from a tree what a walk would answer.

use std::os::unix::ffi::OsStrExt;

use provider_core::jail::{FileKind, WalkHandle};

use super::tree::{TOP, Tree, Unusable};
use crate::engine::glob::judge::Standing;
use crate::engine::glob::start::Start;
use crate::engine::glob::walk::{self, Query, Sink, Tally, modified};
use crate::engine::ignore_rules::Verdict;
use crate::engine::stop::Stop;

/// So many directories may always have to be listed again.
const FEWEST_FRESH: usize = 16;
/// Beyond that, this part of those that are known; more would be slower than to walk.
const FRESH_PART: usize = 8;

/// Why an answer was not found here.
#[derive(Debug)]
pub(super) enum NotHere {
    /// Too much is not known.
    Unknown,
    /// The tree is of no use any more, now or for good.
    Tree(Unusable),
}

impl From<Unusable> for NotHere {
    fn from(unusable: Unusable) -> Self {
        Self::Tree(unusable)
    }
}

/// A directory yet to be gone through.
struct Task {
    node: u32,
    /// From the root, with a slash after it.
    path: Vec<u8>,
    standing: Standing,
}

/// One answer in the making.
pub(super) struct Answer<'a, S> {
    tree: &'a mut Tree,
    start: &'a Start,
    query: Query<'a>,
    sink: S,
    tally: Tally,
    /// Directories that may still be listed.
    fresh: usize,
}

impl<'a, S: Sink> Answer<'a, S> {
    pub(super) fn new(tree: &'a mut Tree, start: &'a Start, query: Query<'a>, sink: S) -> Self {
        let fresh = FEWEST_FRESH.max(tree.directories() / FRESH_PART);
        Self { tree, start, query, sink, tally: Tally::default(), fresh }
    }

    /// Goes through what is known, as [`walk::walk`] goes through what is there.
    pub(super) fn run(mut self, stop: &Stop) -> Result<(S, Tally), NotHere> {
        self.tree.refresh()?;
        let Some(start) = self.start_node()? else { return Err(NotHere::Unknown) };
        let standing = self.query.judge.start(self.start.is_free());
        let path = self.start.full()[self.start.root_length()..].to_vec();
        let mut pending = vec![Task { node: start, path, standing }];
        while let Some(task) = pending.pop() {
            if stop.reached() {
                break;
            }
            if self.ready(task.node, &task.path)? {
                self.directory(&task, &mut pending);
            }
        }
        self.tally.errors.sort();
        Ok((self.sink, self.tally))
    }

    /// The node of the directory that the walk starts in; the directories on the way must be known for it.
    fn start_node(&mut self) -> Result<Option<u32>, NotHere> {
        let root = self.start.root_length();
        let path = self.start.full()[root..].to_vec();
        let (mut node, mut end) = (TOP, 0);
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if !self.ready(node, &path[..end])? {
                return Ok(None);
            }
            match self.tree.enter_by_name(node, name) {
                Some(beneath) => node = beneath,
                None => return Ok(None),
            }
            end += name.len() + 1;
        }
        Ok(Some(node))
    }

    /// Makes sure that a directory's entries are known. `false` if it cannot be read, which is taken down.
    fn ready(&mut self, node: u32, path: &[u8]) -> Result<bool, NotHere> {
        if self.tree.is_listed(node) && !self.query.judge.ignored {
            self.tree.check_rules(node, path);
        }
        if self.tree.is_listed(node) {
            return Ok(true);
        }
        self.fresh = self.fresh.checked_sub(1).ok_or(NotHere::Unknown)?;
        match self.tree.list(node, path) {
            Ok(()) => Ok(true),
            Err(Unusable::Directory(error)) => {
                let from_start = self.start.full().len() - self.start.root_length();
                self.tally.fail(path.get(from_start..).unwrap_or_default(), &error);
                Ok(false)
            }
            Err(other) => Err(other.into()),
        }
    }

    fn directory(&mut self, task: &Task, pending: &mut Vec<Task>) {
        let from_start = self.start.full().len() - self.start.root_length();
        let mut path = task.path.clone();
        let mut handle: Option<Option<WalkHandle>> = None;
        let mut slot = 0;
        let mut enter = Vec::new();
        for entry in self.tree.entries(task.node) {
            path.truncate(task.path.len());
            path.extend_from_slice(entry.name.as_bytes());
            let shown = walk::Entry { path: &path[from_start..], name: entry.name, kind: entry.kind };
            let verdict = || if self.query.judge.ignored { Verdict::Silent } else { entry.verdict };
            let time = || {
                let handle = handle.get_or_insert_with(|| self.tree.open(&task.path).ok());
                handle.as_ref().map_or(i128::MIN, |handle| modified(handle, entry.name))
            };
            let beneath = self.query.settle(
                self.start,
                (task.standing, shown),
                (verdict, || entry.outside, time),
                (&mut self.sink, &mut self.tally),
            );
            if !beneath.is_empty() {
                let path = [&path[..], b"/"].concat();
                enter.push((slot, Task { node: 0, path, standing: beneath }));
            }
            slot += usize::from(entry.kind == FileKind::Directory);
        }
        for (slot, beneath) in enter.into_iter().rev() {
            let node = self.tree.enter(task.node, slot);
            pending.push(Task { node, ..beneath });
        }
    }
}
