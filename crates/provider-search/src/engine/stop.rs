//! When a search must end before it is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Asked by every worker between one entry, or one block of a file, and the next.
#[derive(Debug)]
pub struct Stop {
    asked: AtomicBool,
    timed_out: AtomicBool,
    deadline: Instant,
}

impl Stop {
    /// Nothing ends the search but `deadline`, so far.
    pub fn at(deadline: Instant) -> Self {
        Self { asked: AtomicBool::new(false), timed_out: AtomicBool::new(false), deadline }
    }

    /// Ends the search: nobody wants its answer any more.
    pub fn now(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether to stop.
    pub fn reached(&self) -> bool {
        if self.asked.load(Ordering::Relaxed) {
            return true;
        }
        if Instant::now() < self.deadline {
            return false;
        }
        self.timed_out.store(true, Ordering::Relaxed);
        self.now();
        true
    }

    /// Whether it was the deadline that ended the search.
    pub fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }
}
