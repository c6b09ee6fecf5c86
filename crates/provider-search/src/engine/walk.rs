//! Walking a tree in parallel through open handles.
//!
//! Workers share one stack of directories, so the walk goes deep first and holds few of them at a time, in nearly the
//! order of paths. Small trees are walked by the calling thread alone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ignore::overrides::Override;
use ignore::types::Types;
use provider_core::jail::{Denied, FileKind, JailPath, Listing, WalkHandle, is_temp_name};

use crate::engine::ignore_rules::{IgnoreRules, Verdict};
use crate::engine::stop::Stop;

/// Entries after which other threads are called in.
const ALONE: usize = 256;
/// Entries of one directory that are one piece of work.
const PIECE: usize = 64;
/// Directories kept open for what is below them; beyond, they are opened anew from the start.
const OPEN_DIRECTORIES: usize = 128;

/// What a walk leaves out.
pub struct Options {
    /// Whether entries whose name begins with a dot are walked.
    pub hidden: bool,
    /// Whether what ignore files exclude is walked.
    pub ignored: bool,
    /// Globs that decide before everything else.
    pub globs: Override,
    /// Types of files, by name.
    pub types: Types,
    /// How many threads at most.
    pub threads: usize,
}

/// One entry below the start.
pub struct Entry<'a> {
    /// The directory it is in.
    pub directory: &'a WalkHandle,
    /// Its name.
    pub name: &'a OsStr,
    /// Its path from the start, byte for byte.
    pub path: &'a [u8],
    /// What it is; links are not followed.
    pub kind: FileKind,
}

/// Why an entry is not walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// An ignore file excludes it.
    Ignored,
    /// Its name begins with a dot.
    Hidden,
    /// The globs or types of the search do not cover it.
    Filtered,
    /// A `deny` pattern covers it.
    Denied,
}

/// What one thread does with what it comes across.
pub trait Visitor: Send {
    /// An entry that is walked. A directory is then descended into.
    fn visit(&mut self, entry: &Entry<'_>);
    /// An entry that is not walked, nor anything below it.
    fn leave_out(&mut self, entry: &Entry<'_>, why: LeftOut);
    /// A directory that cannot be read, by its path from the start.
    fn fail(&mut self, path: &[u8], error: io::Error);
}

/// Walks everything below the directory `start`, until it is done or `stop` says so. Answers what each thread made.
///
/// # Errors
/// The start itself cannot be opened.
pub fn walk<V: Visitor>(
    start: &JailPath,
    options: &Options,
    stop: &Stop,
    visitor: impl Fn() -> V + Sync,
) -> Result<Vec<V>, provider_core::jail::PathError> {
    let directory = start.open_dir()?;
    let place = directory.path().clone();
    let mut real = place.root().real_path().join(place.relative()).into_os_string().into_encoded_bytes();
    if !real.ends_with(b"/") {
        real.push(b'/');
    }
    let rules = if options.ignored { None } else { Some(IgnoreRules::above(&place)) };
    let denied = place.denied().map(|denied| {
        let mut base = place.absolute().into_os_string().into_encoded_bytes();
        if !base.ends_with(b"/") {
            base.push(b'/');
        }
        (denied, base)
    });
    let open = Arc::new(AtomicUsize::new(0));
    let top = Arc::new(Open::new(directory.into(), &open));
    let shared = Shared {
        options,
        stop,
        denied,
        place,
        real,
        work: Mutex::new(Work { stack: Vec::new(), busy: 0 }),
        ready: Condvar::new(),
        open,
        start: top.clone(),
    };
    let level = Arc::new(Level { path: Vec::new(), rules });
    shared.lock().stack.push(Piece::Start { level, handle: top });
    Ok(shared.run(&visitor))
}

/// What is known of a directory while its entries are walked.
struct Level {
    /// Its path from the start with a slash after it; empty for the start.
    path: Vec<u8>,
    /// The rules for what is in it; for a directory not yet listed, those of the one above.
    rules: Option<Arc<IgnoreRules>>,
}

/// One thing to do next.
enum Piece {
    /// The directory the walk starts from.
    Start { level: Arc<Level>, handle: Arc<Open> },
    /// A directory, by its name in the one above; without a handle of that, by its path.
    Directory { above: Arc<Level>, handle: Option<Arc<Open>>, name: Box<[u8]> },
    /// Some entries of a large directory, none of them a directory.
    Entries { level: Arc<Level>, handle: Arc<Open>, entries: Vec<(Box<[u8]>, FileKind)> },
}

/// An open directory, counted while it is open.
struct Open {
    handle: WalkHandle,
    count: Arc<AtomicUsize>,
}

impl Open {
    fn new(handle: WalkHandle, count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self { handle, count: count.clone() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Work {
    /// The last is done first.
    stack: Vec<Piece>,
    /// Threads that may still add to it.
    busy: usize,
}

struct Shared<'a> {
    options: &'a Options,
    stop: &'a Stop,
    /// The `deny` patterns, and the path of the start in the form that they are matched against.
    denied: Option<(Denied, Vec<u8>)>,
    place: JailPath,
    /// The start's path without links, with a slash after it.
    real: Vec<u8>,
    work: Mutex<Work>,
    ready: Condvar,
    open: Arc<AtomicUsize>,
    start: Arc<Open>,
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<V: Visitor>(&self, visitor: &(impl Fn() -> V + Sync)) -> Vec<V> {
        std::thread::scope(|scope| {
            let mut helpers = Vec::new();
            let mut own = Worker::new(self, visitor());
            while let Some((piece, busy)) = self.next() {
                own.piece(piece);
                drop(busy);
                if own.seen > ALONE && helpers.is_empty() {
                    let help = || {
                        let mut helper = Worker::new(self, visitor());
                        while let Some((piece, _busy)) = self.next() {
                            helper.piece(piece);
                        }
                        helper.visitor
                    };
                    helpers.extend((1..self.options.threads).map(|_| scope.spawn(help)));
                }
            }
            let mut visitors = vec![own.visitor];
            for helper in helpers {
                match helper.join() {
                    Ok(visitor) => visitors.push(visitor),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            visitors
        })
    }

    /// The next piece of work, once there is one; `None` when the walk is over.
    fn next(&self) -> Option<(Piece, Busy<'_>)> {
        let mut work = self.lock();
        loop {
            if self.stop.reached() {
                return None;
            }
            if let Some(piece) = work.stack.pop() {
                work.busy += 1;
                return Some((piece, Busy { shared: self }));
            }
            if work.busy == 0 {
                return None;
            }
            work = self.ready.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn push(&self, pieces: impl IntoIterator<Item = Piece>) {
        self.lock().stack.extend(pieces);
        self.ready.notify_all();
    }
}

/// Held by a thread that works on a piece, also while a panic takes it down.
struct Busy<'a> {
    shared: &'a Shared<'a>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut work = self.shared.lock();
        work.busy -= 1;
        if work.busy == 0 {
            self.shared.ready.notify_all();
        }
    }
}

/// One thread of the walk.
struct Worker<'a, V> {
    shared: &'a Shared<'a>,
    visitor: V,
    listing: Listing,
    /// The full path of the entry at hand.
    full: Vec<u8>,
    /// The same, as `deny` patterns name it.
    named: Vec<u8>,
    seen: usize,
}

impl<'a, V: Visitor> Worker<'a, V> {
    fn new(shared: &'a Shared<'a>, visitor: V) -> Self {
        let (listing, full, named) = Default::default();
        Self { shared, visitor, listing, full, named, seen: 0 }
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Start { level, handle } => self.list(&level, handle),
            Piece::Directory { above, handle, name } => self.directory(&above, handle, &name),
            Piece::Entries { level, handle, entries } => {
                for (name, kind) in &entries {
                    if self.shared.stop.reached() {
                        return;
                    }
                    self.entry(&level, &handle, OsStr::from_bytes(name), *kind);
                }
            }
        }
    }

    fn directory(&mut self, above: &Level, handle: Option<Arc<Open>>, name: &[u8]) {
        let path = [&above.path, name, b"/"].concat();
        let opened = match handle {
            Some(above) => above.handle.open_directory(OsStr::from_bytes(name)),
            None => self.shared.start.handle.open_directory_beneath(Path::new(OsStr::from_bytes(&path))),
        };
        let level = Level { path, rules: above.rules.clone() };
        match opened {
            Ok(handle) => self.list(&level, Arc::new(Open::new(handle, &self.shared.open))),
            Err(error) => self.fail(&level, error),
        }
    }

    fn fail(&mut self, level: &Level, error: io::Error) {
        // What has vanished, or become something else, is not there to be walked.
        let swapped = matches!(
            error.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP)
        );
        if !swapped {
            self.visitor.fail(level.path.strip_suffix(b"/").unwrap_or(&level.path), error);
        }
    }

    /// Walks the entries of a directory and puts those that are directories on the stack.
    fn list(&mut self, level: &Level, handle: Arc<Open>) {
        let mut listing = std::mem::take(&mut self.listing);
        if let Err(error) = handle.handle.list(&mut listing) {
            self.fail(level, error);
        }
        let rules = level.rules.as_ref().map(|rules| {
            let prefix = self.shared.real.len() + level.path.len();
            rules.descend(&handle.handle, &listing, prefix, || self.place(&level.path))
        });
        let level = Arc::new(Level { path: level.path.clone(), rules });
        let keep = self.shared.open.load(Ordering::Relaxed) < OPEN_DIRECTORIES;
        let (mut pieces, mut rest) = (Vec::new(), Vec::new());
        let mut own = 0;
        for (name, kind) in listing.iter() {
            if self.shared.stop.reached() {
                break;
            }
            if kind != FileKind::Directory && own >= PIECE {
                rest.push((Box::from(name.as_bytes()), kind));
                if rest.len() == PIECE {
                    let entries = std::mem::take(&mut rest);
                    pieces.push(Piece::Entries { level: level.clone(), handle: handle.clone(), entries });
                }
                continue;
            }
            own += usize::from(kind != FileKind::Directory);
            if self.entry(&level, &handle, name, kind) && kind == FileKind::Directory {
                let handle = keep.then(|| handle.clone());
                pieces.push(Piece::Directory { above: level.clone(), handle, name: name.as_bytes().into() });
            }
        }
        if !rest.is_empty() {
            pieces.push(Piece::Entries { level, handle, entries: rest });
        }
        self.seen += listing.len();
        self.listing = listing;
        if !pieces.is_empty() {
            self.shared.push(pieces.into_iter().rev());
        }
    }

    fn place(&self, path: &[u8]) -> Option<JailPath> {
        let names = Path::new(OsStr::from_bytes(path)).iter();
        names.into_iter().try_fold(self.shared.place.clone(), |place, name| place.join(name).ok())
    }

    /// Visits one entry. Answers whether it is walked.
    fn entry(&mut self, level: &Level, handle: &Open, name: &OsStr, kind: FileKind) -> bool {
        if is_temp_name(name) {
            return false;
        }
        self.full.clear();
        for part in [&self.shared.real, &level.path, name.as_bytes()] {
            self.full.extend_from_slice(part);
        }
        let left_out = self.judge(level, name, kind);
        let path = &self.full[self.shared.real.len()..];
        let entry = Entry { directory: &handle.handle, name, path, kind };
        match left_out {
            None => self.visitor.visit(&entry),
            Some(why) => self.visitor.leave_out(&entry, why),
        }
        left_out.is_none()
    }

    /// Whether the entry whose path is in `self.full` is left out, in the order of precedence that ripgrep has.
    fn judge(&mut self, level: &Level, name: &OsStr, kind: FileKind) -> Option<LeftOut> {
        let options = self.shared.options;
        let relative = &self.full[self.shared.real.len()..];
        if let Some((denied, base)) = &self.shared.denied {
            self.named.clear();
            self.named.extend_from_slice(base);
            self.named.extend_from_slice(relative);
            if denied.covers(Path::new(OsStr::from_bytes(&self.named))) {
                return Some(LeftOut::Denied);
            }
        }
        let is_directory = kind == FileKind::Directory;
        let path = Path::new(OsStr::from_bytes(relative));
        match options.globs.matched(path, is_directory).into() {
            Verdict::Excluded => return Some(LeftOut::Filtered),
            Verdict::Wanted => return None,
            Verdict::Silent => {}
        }
        let rules = level.rules.as_ref();
        let by_rules =
            rules.map_or(Verdict::Silent, |rules| rules.matched(&self.full, relative, is_directory));
        if by_rules == Verdict::Excluded {
            return Some(LeftOut::Ignored);
        }
        let by_type = Verdict::from(options.types.matched(path, is_directory));
        if by_type == Verdict::Excluded {
            return Some(LeftOut::Filtered);
        }
        let wanted = by_rules == Verdict::Wanted || by_type == Verdict::Wanted;
        let hidden = !wanted && !options.hidden && name.as_bytes().first() == Some(&b'.');
        hidden.then_some(LeftOut::Hidden)
    }
}
