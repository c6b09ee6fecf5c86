//! Keeping trees between calls, and filling them while nobody waits.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use provider_core::jail::FileKind;

use super::answer::{Answer, NotHere};
use super::tree::{TOP, Tree, Unusable};
use crate::engine::glob::start::Start;
use crate::engine::glob::walk::{Query, Sink, Tally};
use crate::engine::ignore_rules::Verdict;
use crate::engine::stop::Stop;

/// Directories that are listed without a look at whether somebody waits.
const BATCH: usize = 16;
/// How often a tree is begun anew before its root is left alone.
const MOST_FAILURES: u32 = 32;
/// How often filling starts over because something moved meanwhile.
const MOST_RESTARTS: u32 = 8;
/// Roots that trees are kept for.
const MOST_TREES: usize = 8;

/// Trees of directories that were walked before. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Warm(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: Mutex<Calls>,
    quiet: Condvar,
    roots: Mutex<Vec<Arc<Root>>>,
}

/// Who is at work.
#[derive(Default)]
struct Calls {
    running: usize,
    closed: bool,
}

/// What is kept for one root.
struct Root {
    /// Its path without links, with a slash after it.
    full: Vec<u8>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tree: Option<Tree>,
    filling: bool,
    failures: u32,
}

impl Kept {
    fn give_up(&mut self, why: &Unusable) {
        self.tree = None;
        self.failures = match why {
            Unusable::ForGood => MOST_FAILURES,
            Unusable::ForNow | Unusable::Directory(_) => self.failures + 1,
        };
    }
}

/// Held while a call is at work: nothing is filled meanwhile.
pub(crate) struct Busy(Arc<Inner>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut calls = locked(&self.0.calls);
        calls.running -= 1;
        if calls.running == 0 {
            self.0.quiet.notify_all();
        }
    }
}

impl Warm {
    /// Says that a call is at work, as long as the value is kept.
    pub(crate) fn busy(&self) -> Busy {
        locked(&self.0.calls).running += 1;
        Busy(self.0.clone())
    }

    /// What a walk would answer, from memory; `None` if it has to be walked.
    pub(crate) fn answer<S: Sink>(
        &self,
        start: &Start,
        query: Query<'_>,
        stop: &Stop,
        sink: impl Fn() -> S,
    ) -> Option<(S, Tally)> {
        // What is ignored was not kept.
        let root = self.root(start).filter(|_| !query.judge.ignored)?;
        // Whoever comes while another call answers from the tree walks instead of waiting.
        let mut kept = root.kept.try_lock().ok()?;
        let tree = kept.tree.as_mut()?;
        if !tree.is_for(start) {
            kept.tree = None;
            return None;
        }
        match Answer::new(tree, start, query, sink()).run(stop) {
            Ok(found) => Some(found),
            Err(NotHere::Unknown) => None,
            Err(NotHere::Tree(why)) => {
                kept.give_up(&why);
                None
            }
        }
    }

    fn root(&self, start: &Start) -> Option<Arc<Root>> {
        let full = &start.full()[..start.root_length()];
        locked(&self.0.roots).iter().find(|root| root.full == full).cloned()
    }

    /// Sees to it that what was just walked is known soon, if it can be.
    pub(crate) fn keep(&self, start: &Start, hidden: bool) {
        let root = self.root(start).or_else(|| self.add_root(start));
        let Some(root) = root else { return };
        let Ok(mut kept) = root.kept.try_lock() else { return };
        if kept.filling || kept.failures >= MOST_FAILURES {
            return;
        }
        if kept.tree.is_none() {
            kept.tree = Tree::new(start);
        }
        if kept.tree.is_none() {
            kept.give_up(&Unusable::ForGood);
            return;
        }
        let path = start.full()[start.root_length()..].to_vec();
        let filling = Filling { warm: self.0.clone(), root: root.clone(), path, hidden };
        let thread = std::thread::Builder::new().name("keep-tree".to_owned());
        kept.filling = thread.spawn(move || filling.run()).is_ok();
    }

    fn add_root(&self, start: &Start) -> Option<Arc<Root>> {
        let mut roots = locked(&self.0.roots);
        if roots.len() >= MOST_TREES {
            return None;
        }
        let full = start.full()[..start.root_length()].to_vec();
        let root = Arc::new(Root { full, kept: Mutex::default() });
        roots.push(root.clone());
        Some(root)
    }

    /// Ends what is being filled.
    pub(crate) fn close(&self) {
        locked(&self.0.calls).closed = true;
        self.0.quiet.notify_all();
    }

    /// Waits until nothing is being filled any more. Answers how many directories are known.
    #[cfg(test)]
    pub(super) fn settle(&self) -> usize {
        loop {
            let roots = locked(&self.0.roots).clone();
            let filling = roots.iter().any(|root| locked(&root.kept).filling);
            if !filling {
                let trees =
                    roots.iter().map(|root| locked(&root.kept).tree.as_ref().map_or(0, Tree::directories));
                return trees.sum();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl fmt::Debug for Warm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Warm")
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The work of the thread that fills a tree.
struct Filling {
    warm: Arc<Inner>,
    root: Arc<Root>,
    /// The directory that was walked, from the root.
    path: Vec<u8>,
    /// Whether hidden directories were walked too.
    hidden: bool,
}

impl Filling {
    fn run(self) {
        // Whatever else the machine has to do is more urgent. Without the permission it is as urgent.
        let _ = rustix::process::setpriority_process(None, 19);
        let mut restarts = 0;
        let mut pending = Vec::new();
        let mut generation = None;
        while self.wait_for_quiet() {
            let mut kept = locked(&self.root.kept);
            let Some(tree) = kept.tree.as_mut() else { break };
            if let Err(why) = tree.refresh() {
                kept.give_up(&why);
                break;
            }
            if generation != Some(tree.generation()) {
                restarts += u32::from(generation.is_some());
                generation = Some(tree.generation());
                pending = vec![(TOP, Vec::new())];
            }
            match self.batch(tree, &mut pending) {
                Ok(()) if pending.is_empty() || restarts > MOST_RESTARTS => break,
                Ok(()) => {}
                Err(why) => {
                    kept.give_up(&why);
                    break;
                }
            }
        }
        locked(&self.root.kept).filling = false;
    }

    /// Waits until no call is at work. `false` once there will be none any more.
    fn wait_for_quiet(&self) -> bool {
        let mut calls = locked(&self.warm.calls);
        while calls.running > 0 && !calls.closed {
            calls = self.warm.quiet.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
        !calls.closed
    }

    /// Lists a few directories.
    fn batch(&self, tree: &mut Tree, pending: &mut Vec<(u32, Vec<u8>)>) -> Result<(), Unusable> {
        let mut listed = 0;
        while let Some((node, path)) = pending.pop() {
            if !tree.is_listed(node) {
                match tree.list(node, &path) {
                    // A walk will tell of it.
                    Err(Unusable::Directory(_)) => continue,
                    other => other?,
                }
                listed += 1;
            }
            let mut wanted = Vec::new();
            let directories = tree.entries(node).filter(|entry| entry.kind == FileKind::Directory);
            for (slot, entry) in directories.enumerate() {
                let beneath = [&path[..], entry.name.as_bytes(), b"/"].concat();
                if self.wants(&path, &beneath, entry.name.as_bytes(), entry.verdict) {
                    wanted.push((slot, beneath));
                }
            }
            for (slot, beneath) in wanted {
                pending.push((tree.enter(node, slot), beneath));
            }
            if listed >= BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Whether a directory is on the way to what was walked, or beneath it and not left out.
    fn wants(&self, above: &[u8], path: &[u8], name: &[u8], verdict: Verdict) -> bool {
        if !above.starts_with(&self.path) {
            return self.path.starts_with(path);
        }
        let dotted = name.first() == Some(&b'.') && !self.hidden && verdict != Verdict::Wanted;
        verdict != Verdict::Excluded && !dotted && name != b".git"
    }
}
