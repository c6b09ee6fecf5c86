//! Directories as they were listed, each watched since before it was.
//!
//! A node is listed, stale (something in it changed, so that it must be listed again, but what is known of the
//! directories beneath still holds) or unlisted. What is listed is what a listing now would give: the watch was there
//! first, so whatever happens later is told, and told changes are applied before anything is answered. Texts of ignore
//! files are not watched but read again, and compared.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use provider_core::jail::{FileKind, JailPath, Listing, Metadata, WalkHandle};
use rustix::io::Errno;

use super::entries::{Entries, Entry};
use super::watch::{Change, Watch, WatchId};
use crate::engine::glob::start::{Start, link_leads_outside, with_slash};
use crate::engine::glob::walk::as_path;
use crate::engine::ignore_rules::{IgnoreRules, Sources};

/// No node.
const NONE: u32 = u32::MAX;
/// The node of the root.
pub(super) const TOP: u32 = 0;
/// What one directory costs beside its names, in bytes, nearly.
const OVERHEAD: usize = 256;
/// A tree that takes more memory than this is not kept.
const MOST_BYTES: usize = 160 << 20;

/// Why the tree cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// A directory cannot be read; the others can.
    Directory(io::Error),
    /// The tree must be given up for good.
    ForGood,
    /// Something happened that only a new tree can cope with.
    ForNow,
}

/// All that is known below one root.
pub(super) struct Tree {
    root: WalkHandle,
    place: JailPath,
    id: (u64, u64),
    /// The root's path without links, with a slash after it.
    full: Vec<u8>,
    rules: Arc<IgnoreRules>,
    watch: Watch,
    most_watches: usize,
    nodes: Vec<Node>,
    unused: Vec<u32>,
    by_watch: HashMap<WatchId, u32>,
    listing: Listing,
    bytes: usize,
    generation: u64,
}

struct Node {
    above: u32,
    state: State,
}

enum State {
    Unlisted,
    Stale(Box<Known>),
    Listed(Box<Known>),
}

/// What is known of a directory that was listed.
struct Known {
    watch: WatchId,
    entries: Entries,
    /// The nodes of the entries that are directories, in their order.
    beneath: Box<[u32]>,
    rules: Arc<IgnoreRules>,
    /// Where there are files that can make rules, what they said.
    sources: Option<Sources>,
}

impl Tree {
    /// A tree of which nothing is known yet, for the root that `start` is in.
    pub(super) fn new(start: &Start) -> Option<Self> {
        let place = root_of(start)?;
        let root: WalkHandle = place.open_dir().ok()?.into();
        let metadata = rustix::fs::fstat(&root).ok()?;
        let most_watches = most_watches()?;
        Some(Self {
            id: Metadata::from(&metadata).id(),
            full: with_slash(place.root().real_path()),
            rules: IgnoreRules::above(&place),
            watch: Watch::new().ok()?,
            root,
            place,
            most_watches,
            nodes: vec![Node { above: NONE, state: State::Unlisted }],
            unused: Vec::new(),
            by_watch: HashMap::new(),
            listing: Listing::default(),
            bytes: 0,
            generation: 0,
        })
    }

    /// Whether this is the tree for `start`: the same root, with the same rules above it.
    pub(super) fn is_for(&self, start: &Start) -> bool {
        let root = root_of(start);
        self.full.len() == start.root_length()
            && start.full().starts_with(&self.full)
            && self.rules.same_above(start.rules(), self.full.len())
            && root.and_then(|root| root.metadata().ok()).is_some_and(|found| found.id() == self.id)
    }

    /// Changes whenever the number of a node may come to mean another directory.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// How many directories are listed.
    pub(super) fn directories(&self) -> usize {
        self.by_watch.len()
    }

    /// Brings the tree up to what the kernel has told so far.
    pub(super) fn refresh(&mut self) -> Result<(), Unusable> {
        for change in self.watch.changes() {
            match change {
                Change::Everything => return Err(Unusable::ForNow),
                Change::Entry(watch) => self.make_stale(watch),
                Change::Directory(watch, name) => {
                    if let Some(node) = self.by_watch.get(&watch).copied() {
                        self.forget_beneath(node, &name);
                        self.make_stale(watch);
                    }
                }
                Change::Itself(watch) => match self.by_watch.get(&watch).copied() {
                    Some(TOP) => return Err(Unusable::ForNow),
                    Some(node) => self.forget(node),
                    None => {}
                },
            }
        }
        Ok(())
    }

    fn make_stale(&mut self, watch: WatchId) {
        let Some(node) = self.by_watch.get(&watch).copied() else { return };
        let state = &mut self.nodes[node as usize].state;
        *state = match std::mem::replace(state, State::Unlisted) {
            State::Listed(known) => State::Stale(known),
            other => other,
        };
    }

    fn known(&self, node: u32) -> Option<&Known> {
        match &self.nodes.get(node as usize)?.state {
            State::Listed(known) | State::Stale(known) => Some(known),
            State::Unlisted => None,
        }
    }

    fn known_mut(&mut self, node: u32) -> Option<&mut Known> {
        match &mut self.nodes.get_mut(node as usize)?.state {
            State::Listed(known) | State::Stale(known) => Some(known),
            State::Unlisted => None,
        }
    }

    /// The place of the directory `name` among those in `node`.
    fn slot(&self, node: u32, name: &[u8]) -> Option<usize> {
        let directories = |entry: &Entry<'_>| entry.kind == FileKind::Directory;
        self.known(node)?.entries.iter().filter(directories).position(|entry| entry.name.as_bytes() == name)
    }

    fn forget_beneath(&mut self, node: u32, name: &[u8]) {
        let slot = self.slot(node, name);
        let beneath = slot.and_then(|slot| self.known(node)?.beneath.get(slot).copied());
        if let Some(beneath) = beneath.filter(|beneath| *beneath != NONE) {
            self.forget(beneath);
        }
    }

    /// Forgets a directory and all beneath it.
    fn forget(&mut self, node: u32) {
        let above = self.nodes[node as usize].above;
        if let Some(known) = self.known_mut(above) {
            known.beneath.iter_mut().filter(|slot| **slot == node).for_each(|slot| *slot = NONE);
        }
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            pending.extend(self.unlist(node));
            if node != TOP {
                self.unused.push(node);
            }
        }
        self.generation += 1;
    }

    /// Makes a node unlisted, without a watch. Answers the nodes beneath, which belong to nobody then.
    fn unlist(&mut self, node: u32) -> Vec<u32> {
        match std::mem::replace(&mut self.nodes[node as usize].state, State::Unlisted) {
            State::Unlisted => Vec::new(),
            State::Stale(known) | State::Listed(known) => {
                self.by_watch.remove(&known.watch);
                self.watch.remove(known.watch);
                self.bytes -= OVERHEAD + known.entries.size();
                known.beneath.iter().copied().filter(|beneath| *beneath != NONE).collect()
            }
        }
    }

    fn forget_all_beneath(&mut self, node: u32) {
        let beneath = self.known(node).map(|known| known.beneath.to_vec()).unwrap_or_default();
        beneath.into_iter().filter(|beneath| *beneath != NONE).for_each(|beneath| self.forget(beneath));
    }

    /// Whether `node` need not be listed to be used.
    pub(super) fn is_listed(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| matches!(node.state, State::Listed(_)))
    }

    /// Makes sure that the rules of a listed directory at `path` from the root are what they were.
    pub(super) fn check_rules(&mut self, node: u32, path: &[u8]) {
        let Some(known) = self.known(node) else { return };
        let Some(sources) = &known.sources else { return };
        let now = self.root.open_directory_beneath(as_path(path)).map(|handle| {
            Sources::read(&handle, |name| known.entries.has(name), || self.place_beneath(path))
        });
        if !now.is_ok_and(|now| now == *sources) {
            self.forget_all_beneath(node);
            let _none = self.unlist(node);
            self.generation += 1;
        }
    }

    fn place_beneath(&self, path: &[u8]) -> Option<JailPath> {
        as_path(path).iter().try_fold(self.place.clone(), |place, name| place.join(name).ok())
    }

    /// Lists the directory at `path` from the root, whose node is `node`, and watches it from before that.
    pub(super) fn list(&mut self, node: u32, path: &[u8]) -> Result<(), Unusable> {
        let handle = match self.root.open_directory_beneath(as_path(path)) {
            Ok(handle) => handle,
            Err(error) => {
                self.forget_all_beneath(node);
                let _none = self.unlist(node);
                return Err(Unusable::Directory(error));
            }
        };
        if !tells_changes(&handle) || self.bytes > MOST_BYTES || self.by_watch.len() >= self.most_watches {
            return Err(Unusable::ForGood);
        }
        let watch = self.watch.add(&handle).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => Unusable::ForNow,
            _ => Unusable::ForGood,
        })?;
        let before = self.known(node).map(|known| known.watch);
        if self.by_watch.get(&watch).is_some_and(|other| *other != node) {
            // One directory in two places: moved since the last refresh, or mounted twice.
            return Err(Unusable::ForNow);
        }
        if before.is_some_and(|before| before != watch) {
            self.forget_all_beneath(node);
            let _none = self.unlist(node);
        }
        let mut listing = std::mem::take(&mut self.listing);
        let result = handle.list(&mut listing).map_err(Unusable::Directory);
        let result = result.and_then(|()| self.take(node, path, watch, &handle, &listing));
        self.listing = listing;
        if result.is_err() && self.known(node).is_none() {
            self.watch.remove(watch);
        }
        result
    }

    /// Puts a fresh listing in place of what was known.
    fn take(
        &mut self,
        node: u32,
        path: &[u8],
        watch: WatchId,
        handle: &WalkHandle,
        listing: &Listing,
    ) -> Result<(), Unusable> {
        let above = match node {
            TOP => self.rules.clone(),
            _ => self.known(self.nodes[node as usize].above).ok_or(Unusable::ForNow)?.rules.clone(),
        };
        let ruled = listing.iter().any(|(name, _)| Sources::can_be(name.as_bytes()));
        let read = || Sources::read(handle, |name| listing.contains(name), || self.place_beneath(path));
        let sources = ruled.then(read);
        let same = self.known(node).is_some_and(|known| known.sources == sources);
        let rules = match self.known(node).filter(|_| same) {
            Some(known) => known.rules.clone(),
            None => self.make_rules(&above, handle, listing, path),
        };
        if !same {
            self.forget_all_beneath(node);
        }
        let entries = self.pack(path, handle, listing, &rules).ok_or(Unusable::ForGood)?;
        let before = self.directories_in(node);
        let directories = entries.iter().filter(|entry| entry.kind == FileKind::Directory);
        let kept =
            |name: &[u8]| before.binary_search_by(|(known, _)| known[..].cmp(name)).map(|at| before[at].1);
        let beneath: Box<[u32]> =
            directories.map(|entry| kept(entry.name.as_bytes()).unwrap_or(NONE)).collect();
        let mut stay: Vec<u32> = beneath.to_vec();
        stay.sort_unstable();
        for (_, gone) in before.iter().filter(|(_, node)| stay.binary_search(node).is_err()) {
            self.forget(*gone);
        }
        self.bytes += OVERHEAD + entries.size();
        if let Some(known) = self.known(node) {
            self.bytes -= OVERHEAD + known.entries.size();
        }
        self.by_watch.insert(watch, node);
        let known = Known { watch, entries, beneath, rules, sources };
        self.nodes[node as usize].state = State::Listed(Box::new(known));
        Ok(())
    }

    fn make_rules(
        &self,
        above: &Arc<IgnoreRules>,
        handle: &WalkHandle,
        listing: &Listing,
        path: &[u8],
    ) -> Arc<IgnoreRules> {
        above.descend(handle, listing, self.full.len() + path.len(), || self.place_beneath(path))
    }

    /// The directories in `node` that have nodes, in the order of names.
    fn directories_in(&self, node: u32) -> Vec<(Box<[u8]>, u32)> {
        let Some(known) = self.known(node) else { return Vec::new() };
        let directories = known.entries.iter().filter(|entry| entry.kind == FileKind::Directory);
        let named = directories.zip(&known.beneath).filter(|(_, node)| **node != NONE);
        named.map(|(entry, node)| (entry.name.as_bytes().into(), *node)).collect()
    }

    fn pack(
        &self,
        path: &[u8],
        handle: &WalkHandle,
        listing: &Listing,
        rules: &Arc<IgnoreRules>,
    ) -> Option<Entries> {
        let from = [&self.full[..], path].concat();
        let mut full = from.clone();
        Entries::pack(listing.iter().map(|(name, kind)| {
            full.truncate(from.len());
            full.extend_from_slice(name.as_bytes());
            let relative = &full[self.full.len()..];
            let verdict = rules.matched(&full, relative, kind == FileKind::Directory);
            let outside = kind == FileKind::Symlink
                && handle.read_link(name).is_ok_and(|target| {
                    let from = PathBuf::from(OsStr::from_bytes(&from));
                    link_leads_outside(&self.place, from, &target)
                });
            Entry { name, kind, verdict, outside }
        }))
    }

    /// The entries of a listed directory.
    pub(super) fn entries(&self, node: u32) -> impl Iterator<Item = Entry<'_>> {
        self.known(node).into_iter().flat_map(|known| known.entries.iter())
    }

    /// The node of the directory that is `slot` among the directories in `node`.
    pub(super) fn enter(&mut self, node: u32, slot: usize) -> u32 {
        let known = self.known(node).and_then(|known| known.beneath.get(slot).copied()).unwrap_or(NONE);
        if known != NONE {
            return known;
        }
        let fresh = Node { above: node, state: State::Unlisted };
        let number = match self.unused.pop() {
            Some(number) => {
                self.nodes[number as usize] = fresh;
                number
            }
            None => {
                self.nodes.push(fresh);
                u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
            }
        };
        if let Some(slot) = self.known_mut(node).and_then(|known| known.beneath.get_mut(slot)) {
            *slot = number;
        }
        number
    }

    /// The node of the directory `name` in `node`, if there is one.
    pub(super) fn enter_by_name(&mut self, node: u32, name: &[u8]) -> Option<u32> {
        let slot = self.slot(node, name)?;
        Some(self.enter(node, slot))
    }

    /// Opens a directory by its path from the root.
    pub(super) fn open(&self, path: &[u8]) -> io::Result<WalkHandle> {
        self.root.open_directory_beneath(as_path(path))
    }
}

/// The root itself, as `start` sees it.
fn root_of(start: &Start) -> Option<JailPath> {
    std::iter::successors(Some(start.place().clone()), JailPath::parent).last()
}

/// Half of what the user may have: others want to watch too.
fn most_watches() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    text.trim().parse::<usize>().ok().map(|most| most / 2)
}

/// Whether the file system is one whose every change goes through this kernel, so that none is missed.
fn tells_changes(directory: &WalkHandle) -> bool {
    /// ext2 to 4, xfs, btrfs, tmpfs, overlayfs, f2fs, zfs, bcachefs, ramfs.
    const LOCAL: [u64; 9] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0x0102_1994,
        0x794C_7630,
        0xF2F5_2010,
        0x2FC1_2FC1,
        0xCA45_1A4E,
        0x8584_58F6,
    ];
    rustix::fs::fstatfs(directory).is_ok_and(|found| LOCAL.contains(&(found.f_type as u64 & 0xFFFF_FFFF)))
}
