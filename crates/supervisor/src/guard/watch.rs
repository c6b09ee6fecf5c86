//! Limits over all processes of a job, watched from outside.

use std::time::{Duration, Instant};

use crate::guard::cgroup::Cgroup;
use crate::job::{Limit, Limits};
use crate::tree::Tree;

/// Between two looks. A program that fills memory as fast as it can gains about 100 MB meanwhile.
const INTERVAL: Duration = Duration::from_millis(20);

pub(super) struct Watch {
    limits: Limits,
    next: Instant,
}

impl Watch {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, next: Instant::now() + INTERVAL }
    }

    /// How often to look, if there is anything to look at.
    pub(super) fn interval(&self) -> Option<Duration> {
        let any = self.limits.memory_bytes.is_some() || self.limits.processes.is_some();
        any.then(|| self.next.saturating_duration_since(Instant::now()))
    }

    /// The limit that the processes are beyond. However many there are, seeing that there are too many takes no longer
    /// than counting to the limit: what multiplies must not outrun who watches it.
    pub(super) fn passed(&mut self, tree: &Tree<'_>, cgroup: Option<&Cgroup>) -> Option<Limit> {
        if self.interval().is_none_or(|rest| !rest.is_zero()) {
            return None;
        }
        self.next = Instant::now() + INTERVAL;
        if let Some(most) = self.limits.processes {
            // The group's list is the quicker one, but what has moved into a group below is not in it.
            let in_group = cgroup.and_then(|cgroup| cgroup.count(most).ok()).unwrap_or_default();
            if in_group > most || tree.has_more_than(most) {
                return Some(Limit::Processes);
            }
        }
        let most = self.limits.memory_bytes?;
        let members = tree.members();
        let used: u64 = members.iter().map(|member| tree.proc.private_memory(member.pid)).sum();
        (used > most).then_some(Limit::Memory)
    }
}
