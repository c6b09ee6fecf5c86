//! The walk that a pattern leads: only into directories that can hold a match.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use provider_core::jail::{FileKind, Listing, WalkHandle, is_temp_name};
use rustix::io::Errno;

use super::judge::{Judge, Lost, Standing};
use super::start::Start;
use crate::engine::ignore_rules::{IgnoreRules, Verdict};
use crate::engine::stop::Stop;

/// Entries of a directory that are held at once.
const PART: usize = 8_192;
/// Directories after which other threads are called in.
const ALONE: usize = 24;
/// Directories kept open for what is in them; beyond, they are opened anew from the start.
const OPEN_DIRECTORIES: usize = 96;
/// Errors that are told one by one.
pub(crate) const MOST_ERRORS: usize = 100;

/// What is done with results as they are found.
pub(crate) trait Sink: Send {
    /// A result, by its path from the start.
    fn hit(&mut self, hit: &Hit<'_>);
}

/// One result.
pub(crate) struct Hit<'a> {
    /// The path from the start, byte for byte.
    pub(crate) path: &'a [u8],
    pub(crate) kind: FileKind,
    /// When it was last modified, in nanoseconds since 1970; 0 if nobody asked.
    pub(crate) modified: i128,
}

/// What a walk came across besides results.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Entries that ignore files exclude and that are, or as directories may hold, results.
    pub(crate) ignored: u64,
    /// The same for names that begin with a dot.
    pub(crate) hidden: u64,
    /// Symbolic links that lead out of the roots, where the pattern would have gone on.
    pub(crate) outside: u64,
    /// Directories that cannot be read, by their path from the start.
    pub(crate) errors: Vec<(Vec<u8>, String)>,
    /// Errors beyond those.
    pub(crate) more_errors: u64,
}

/// What to look for.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) judge: Judge<'a>,
    /// Whether results are told their time of modification.
    pub(crate) times: bool,
    /// How many threads at most.
    pub(crate) threads: usize,
}

/// One entry of a directory.
pub(crate) struct Entry<'a> {
    /// Its path from the start.
    pub(crate) path: &'a [u8],
    pub(crate) name: &'a OsStr,
    pub(crate) kind: FileKind,
}

impl Query<'_> {
    /// Does with one entry what the query asks for: counts it, hands it to the sink, or neither. Answers where the
    /// pattern goes on beneath. What has to be asked of the operating system is asked only where it matters.
    pub(crate) fn settle<S: Sink>(
        &self,
        start: &Start,
        (standing, entry): (Standing, Entry<'_>),
        (verdict, outside, time): (impl FnOnce() -> Verdict, impl FnOnce() -> bool, impl FnOnce() -> i128),
        (sink, tally): (&mut S, &mut Tally),
    ) -> Standing {
        let Entry { path, name, kind } = entry;
        let outcome = self.judge.judge(standing, name.as_bytes(), kind, verdict);
        let nothing = !outcome.hit && !outcome.link && outcome.beneath.is_empty() && outcome.lost.is_none();
        if nothing || is_temp_name(name) || start.denies(path) {
            return Standing::default();
        }
        tally.lose(outcome.lost);
        if outcome.link && outside() {
            tally.outside += 1;
        }
        if outcome.hit {
            sink.hit(&Hit { path, kind, modified: if self.times { time() } else { 0 } });
        }
        outcome.beneath
    }
}

/// Walks until it is done or `stop` says so. Answers what each thread made.
pub(crate) fn walk<S: Sink>(
    start: &Start,
    query: Query<'_>,
    stop: &Stop,
    sink: impl Fn() -> S + Sync,
) -> (Vec<S>, Tally) {
    let open = Arc::new(AtomicUsize::new(0));
    let shared =
        Shared { start, query, stop, open, work: Mutex::new(Work::default()), ready: Condvar::new() };
    let rules = (!query.judge.ignored).then(|| start.rules().clone());
    let task = Task { above: None, path: Vec::new(), rules, standing: query.judge.start(start.is_free()) };
    shared.lock().stack.push(task);
    shared.run(&sink)
}

/// A directory to be walked.
struct Task {
    /// The directory it is in, if that is kept open.
    above: Option<Arc<Open>>,
    /// Its path from the start with a slash after it; empty for the start.
    path: Vec<u8>,
    /// The rules that hold for it; `None` if ignore files are not asked.
    rules: Option<Arc<IgnoreRules>>,
    standing: Standing,
}

/// An open directory, counted while it is open.
struct Open {
    handle: WalkHandle,
    count: Arc<AtomicUsize>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Work {
    /// What no thread has taken yet; the last is done first.
    stack: Vec<Task>,
    /// Threads that are at work and may add to it.
    busy: usize,
    /// Threads that wait for work.
    idle: usize,
}

struct Shared<'a> {
    start: &'a Start,
    query: Query<'a>,
    stop: &'a Stop,
    open: Arc<AtomicUsize>,
    work: Mutex<Work>,
    ready: Condvar,
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<S: Sink>(&self, sink: &(impl Fn() -> S + Sync)) -> (Vec<S>, Tally) {
        std::thread::scope(|scope| {
            let mut helpers = Vec::new();
            let mut own = Worker::new(self, sink());
            let mut done = 0;
            while let Some(task) = own.next() {
                own.directory(task);
                done += 1;
                if done == ALONE {
                    let help = || {
                        let mut helper = Worker::new(self, sink());
                        while let Some(task) = helper.next() {
                            helper.directory(task);
                        }
                        (helper.sink, helper.tally)
                    };
                    helpers.extend((1..self.query.threads).map(|_| scope.spawn(help)));
                }
            }
            let (mut sinks, mut tally) = (vec![own.sink], own.tally);
            for helper in helpers {
                match helper.join() {
                    Ok((sink, its_tally)) => {
                        sinks.push(sink);
                        tally.add(its_tally);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            tally.errors.sort();
            (sinks, tally)
        })
    }
}

/// Held by a thread that may add work, also while a panic takes it down.
struct Busy<'a>(&'a Shared<'a>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut work = self.0.lock();
        work.busy -= 1;
        if work.busy == 0 || self.0.stop.reached() {
            self.0.ready.notify_all();
        }
    }
}

/// One thread of the walk.
struct Worker<'a, S> {
    shared: &'a Shared<'a>,
    sink: S,
    tally: Tally,
    listing: Listing,
    /// Work of its own, which others get once they have none.
    stack: Vec<Task>,
    busy: Option<Busy<'a>>,
    /// The full path of the entry at hand, for the rules.
    full: Vec<u8>,
}

impl<'a, S: Sink> Worker<'a, S> {
    fn new(shared: &'a Shared<'a>, sink: S) -> Self {
        Self {
            shared,
            sink,
            tally: Tally::default(),
            listing: Listing::default(),
            stack: Vec::new(),
            busy: None,
            full: shared.start.full().to_vec(),
        }
    }

    /// The next directory, once there is one; `None` when the walk is over.
    fn next(&mut self) -> Option<Task> {
        let next = if self.shared.stop.reached() { None } else { self.stack.pop() };
        if next.is_some() {
            return next;
        }
        self.busy = None;
        let mut work = self.shared.lock();
        loop {
            if self.shared.stop.reached() {
                return None;
            }
            if let Some(task) = work.stack.pop() {
                work.busy += 1;
                self.busy = Some(Busy(self.shared));
                return Some(task);
            }
            if work.busy == 0 {
                return None;
            }
            work.idle += 1;
            work = self.shared.ready.wait(work).unwrap_or_else(PoisonError::into_inner);
            work.idle -= 1;
        }
    }

    /// Gives half of its work away, the directories nearest to the start, if somebody waits for some.
    fn share(&mut self) {
        if self.stack.len() < 2 {
            return;
        }
        let mut work = self.shared.lock();
        if work.idle > 0 && work.stack.is_empty() {
            let half = self.stack.len() / 2;
            work.stack.extend(self.stack.drain(..half));
            self.shared.ready.notify_all();
        }
    }

    fn directory(&mut self, task: Task) {
        let opened = match &task.above {
            Some(above) => {
                let name = task.path.strip_suffix(b"/").unwrap_or(&task.path);
                let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
                above.handle.open_directory(OsStr::from_bytes(name))
            }
            None => self.shared.start.open_beneath(&task.path),
        };
        match opened {
            Ok(handle) => self.list(&task, handle),
            Err(error) => self.tally.fail(&task.path, &error),
        }
        self.share();
    }

    fn list(&mut self, task: &Task, handle: WalkHandle) {
        let count = self.shared.open.clone();
        let keep = count.fetch_add(1, Ordering::Relaxed) < OPEN_DIRECTORIES;
        let open = Arc::new(Open { handle, count });
        let mut listing = std::mem::take(&mut self.listing);
        let mut rules: Option<Option<Arc<IgnoreRules>>> = None;
        let mut more = true;
        while more && !self.shared.stop.reached() {
            more = match open.handle.list_some(&mut listing, PART) {
                Ok(more) => more,
                Err(error) => {
                    self.tally.fail(&task.path, &error);
                    false
                }
            };
            let rules = rules.get_or_insert_with(|| {
                let above = task.rules.as_ref()?;
                Some(self.shared.start.descend(above, &open.handle, &listing, more, &task.path))
            });
            self.entries(task, rules.as_ref(), &open, keep, &listing);
        }
        self.listing = listing;
    }

    fn entries(
        &mut self,
        task: &Task,
        rules: Option<&Arc<IgnoreRules>>,
        open: &Arc<Open>,
        keep: bool,
        listing: &Listing,
    ) {
        let start = self.shared.start;
        let base = start.full().len();
        self.full.truncate(base);
        self.full.extend_from_slice(&task.path);
        let directory = self.full.len();
        let first = self.stack.len();
        for (name, kind) in listing.iter() {
            let bytes = name.as_bytes();
            self.full.truncate(directory);
            self.full.extend_from_slice(bytes);
            let entry = Entry { path: &self.full[base..], name, kind };
            let verdict = || match rules {
                Some(rules) => {
                    rules.matched(&self.full, &self.full[start.root_length()..], kind == FileKind::Directory)
                }
                None => Verdict::Silent,
            };
            let outside = || start.leads_outside(&open.handle, name, &task.path);
            let time = || modified(&open.handle, name);
            let query = &self.shared.query;
            let beneath = query.settle(
                start,
                (task.standing, entry),
                (verdict, outside, time),
                (&mut self.sink, &mut self.tally),
            );
            if !beneath.is_empty() {
                let path = [&self.full[base..], b"/"].concat();
                let above = keep.then(|| open.clone());
                self.stack.push(Task { above, path, rules: rules.cloned(), standing: beneath });
            }
        }
        // The last is done first.
        self.stack[first..].reverse();
    }
}

/// When an entry was last modified, in nanoseconds since 1970; the beginning of time for one that is gone.
pub(crate) fn modified(handle: &WalkHandle, name: &OsStr) -> i128 {
    let Ok(metadata) = handle.metadata(name) else { return i128::MIN };
    let since = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH);
    match since(metadata.modified) {
        Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => i128::try_from(before.duration().as_nanos()).map_or(i128::MIN, |nanos| -nanos),
    }
}

impl Tally {
    pub(crate) fn lose(&mut self, lost: Option<Lost>) {
        match lost {
            Some(Lost::Ignored) => self.ignored += 1,
            Some(Lost::Hidden) => self.hidden += 1,
            None => {}
        }
    }

    /// A directory that could not be read, unless it has vanished or become something else.
    pub(crate) fn fail(&mut self, path: &[u8], error: &io::Error) {
        let swapped = matches!(
            error.raw_os_error().map(Errno::from_raw_os_error),
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
        );
        if swapped {
            return;
        }
        let text = error.to_string();
        let message = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned();
        let path = path.strip_suffix(b"/").unwrap_or(path).to_vec();
        self.errors.push((path, message));
        self.trim();
    }

    fn trim(&mut self) {
        while self.errors.len() > MOST_ERRORS {
            self.errors.pop();
            self.more_errors += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.ignored += other.ignored;
        self.hidden += other.hidden;
        self.outside += other.outside;
        self.more_errors += other.more_errors;
        self.errors.extend(other.errors);
        self.trim();
    }
}

/// The path that an entry of a tree has, as the operating system takes it.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
