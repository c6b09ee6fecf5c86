//! All descendants of a process, and how they are ended.
//!
//! A guard is the reaper of its job's orphans, so whatever a job does to get away (a session of its own, a double
//! fork) stays a descendant of the guard. Processes are signalled through a handle that is checked after it was
//! opened: a number that meanwhile belongs to somebody else is never hit.

use std::collections::HashSet;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal};

use crate::job::ProcessName;
use crate::proc::{Proc, Stat};

/// How long a killed process may take to disappear before it is called unkillable.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// Between two looks at processes that have been killed but are still there.
const PAUSE: Duration = Duration::from_micros(300);
/// Looks at a tree in which somebody dies during every single one; each takes some microseconds.
const MOST_LOOKS: usize = 10_000;
/// Most processes that are named in one report.
const MOST_NAMED: usize = 64;

/// Children of the root whose groups are stopped before all others are looked for.
const MOST_STRUCK: usize = 256;

/// The descendants of one process.
pub(crate) struct Tree<'a> {
    pub(crate) proc: &'a Proc,
    pub(crate) root: Pid,
    /// Children of the root that do not belong to the tree, nor what is below them.
    pub(crate) spared: &'a dyn Fn(&Stat) -> bool,
    /// A child whose end somebody else collects.
    pub(crate) kept: Option<Pid>,
}

/// What one look at a tree finds.
struct Look {
    living: Vec<Stat>,
    /// Nobody died meanwhile, as far as can be seen.
    is_quiet: bool,
}

impl<'a> Tree<'a> {
    /// Everything below `root`.
    pub(crate) fn below(proc: &'a Proc, root: Pid) -> Self {
        Self { proc, root, spared: &|_| false, kept: None }
    }

    /// The living processes, parents before their children. Processes may come and go meanwhile, but when none is
    /// found, there is none.
    ///
    /// One look proves nothing: the children of a process that dies during the look move to the root, whose children have
    /// been read by then. So it is looked again until two looks in a row find nobody, living or newly dead.
    pub(crate) fn members(&self) -> Vec<Stat> {
        let mut dead = HashSet::new();
        let mut quiet = 0;
        for _ in 0..MOST_LOOKS {
            let look = self.look(&mut dead);
            if !look.living.is_empty() {
                return look.living;
            }
            quiet = if look.is_quiet { quiet + 1 } else { 0 };
            if quiet == 2 {
                break;
            }
        }
        Vec::new()
    }

    /// Looks at the tree once. `dead` are those that were found dead before.
    fn look(&self, dead: &mut HashSet<(Pid, u64)>) -> Look {
        let mut look = Look { living: Vec::new(), is_quiet: true };
        let mut seen = HashSet::new();
        let mut next: Vec<Pid> = self.proc.children(self.root);
        let top = next.len();
        let mut index = 0;
        while let Some(&pid) = next.get(index) {
            let is_child = index < top;
            index += 1;
            if !seen.insert(pid) {
                continue;
            }
            let Some(stat) = self.proc.stat(pid) else {
                look.is_quiet = false;
                continue;
            };
            if is_child && (self.spared)(&stat) {
                continue;
            }
            next.extend(self.proc.children(pid));
            if !stat.is_dead() {
                look.living.push(stat);
            } else if dead.insert((stat.pid, stat.start)) {
                look.is_quiet = false;
            }
        }
        look
    }

    /// Whether more than `most` processes are alive. Looks at no more of them than it takes to know.
    pub(crate) fn has_more_than(&self, most: u64) -> bool {
        let mut seen = HashSet::new();
        let mut next = self.proc.children(self.root);
        let (mut living, mut index) = (0, 0);
        while let Some(&pid) = next.get(index) {
            index += 1;
            if !seen.insert(pid) {
                continue;
            }
            let Some(stat) = self.proc.stat(pid) else { continue };
            living += u64::from(!stat.is_dead());
            if living > most {
                return true;
            }
            next.extend(self.proc.children(pid));
        }
        false
    }

    /// The living processes by name, as many as a report holds.
    pub(crate) fn names(&self) -> Vec<ProcessName> {
        self.members().iter().take(MOST_NAMED).map(|member| self.proc.name(member.pid)).collect()
    }

    /// Sends a signal to every process; answers how many got it.
    pub(crate) fn signal(&self, signal: Signal) -> u32 {
        let sent = self.members().into_iter().filter(|member| self.signal_one(member, signal));
        u32::try_from(sent.count()).unwrap_or(u32::MAX)
    }

    /// Sends a signal to the process that `member` was, if it still is that process.
    fn signal_one(&self, member: &Stat, signal: Signal) -> bool {
        let Ok(handle) = pidfd_open(member.pid, PidfdFlags::empty()) else { return false };
        // The handle means whatever has the number now. Only if that is still the same process is it ours.
        let same = self.proc.stat(member.pid).is_some_and(|now| now.start == member.start && !now.is_dead());
        same && pidfd_send_signal(&handle, signal).is_ok()
    }

    /// Stops the groups of the first processes at once. The kernel stops all of a group in one step, so what multiplies
    /// within its group is caught whole, however many it has become.
    fn stop_groups(&self) {
        let own = rustix::process::getpgrp();
        let mut groups = HashSet::new();
        for pid in self.proc.children(self.root).into_iter().take(MOST_STRUCK) {
            let Some(stat) = self.proc.stat(pid).filter(|stat| !(self.spared)(stat)) else { continue };
            if stat.group != own.as_raw_nonzero().get() && groups.insert(stat.group) {
                self.signal_group(&stat, Signal::STOP);
            }
        }
    }

    /// Sends a signal to the whole group of the process that `member` was, if it still is that process, and the kernel
    /// can do that by a handle. The handle is that of the group's leader; once that was collected, there is none.
    fn signal_group(&self, member: &Stat, signal: Signal) {
        let leader = Pid::from_raw(member.group);
        let Some(handle) = leader.and_then(|leader| pidfd_open(leader, PidfdFlags::empty()).ok()) else {
            return;
        };
        // As long as the same process is in the same group, the group's number belongs to nobody else.
        let same = |now: Stat| (now.start, now.group) == (member.start, member.group);
        if self.proc.stat(member.pid).is_some_and(same) {
            send_to_group(&handle, signal);
        }
    }

    /// Kills every process, also those that appear meanwhile, until none is left. Answers how many were killed
    /// and which could not be.
    pub(crate) fn kill(&self) -> (u32, Vec<ProcessName>) {
        let limit = Instant::now() + KILL_LIMIT;
        let mut stopped = HashSet::new();
        self.stop_groups();
        loop {
            let members = self.members();
            self.collect_dead();
            if members.is_empty() {
                return (u32::try_from(stopped.len()).unwrap_or(u32::MAX), Vec::new());
            }
            // What is stopped cannot fork, so that killing is not a race against new processes.
            let mut all_stopped = true;
            for member in members.iter().filter(|member| stopped.insert((member.pid, member.start))) {
                self.signal_one(member, Signal::STOP);
                all_stopped = false;
            }
            if !all_stopped && Instant::now() < limit {
                continue;
            }
            for member in &members {
                self.signal_one(member, Signal::KILL);
            }
            self.collect_dead();
            if Instant::now() >= limit {
                return (u32::try_from(stopped.len()).unwrap_or(u32::MAX), self.names());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Collects dead children of this process that belong to the tree, so that they do not linger.
    fn collect_dead(&self) {
        for pid in self.proc.children(self.root).into_iter().filter(|pid| Some(*pid) != self.kept) {
            let ours = self.proc.stat(pid).is_some_and(|stat| stat.is_dead() && !(self.spared)(&stat));
            if ours {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }
}

/// Sends a signal to the group of a process. Kernels before 6.9 cannot do that by a handle, and nothing is sent.
#[allow(unsafe_code)] // No wrapper knows the flag.
fn send_to_group(handle: &OwnedFd, signal: Signal) {
    const PROCESS_GROUP: u32 = 1 << 2;
    let no_details = std::ptr::null::<nix::libc::siginfo_t>();
    // SAFETY: the handle is open, and the call reads nothing from memory where there are no details.
    let _ = unsafe {
        nix::libc::syscall(
            nix::libc::SYS_pidfd_send_signal,
            handle.as_raw_fd(),
            signal.as_raw(),
            no_details,
            PROCESS_GROUP,
        )
    };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_number_that_belongs_to_somebody_else_by_now_is_not_signalled() {
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        let proc = Proc::open().unwrap();
        let tree = Tree::below(&proc, rustix::process::getpid());
        let now = proc.stat(Pid::from_child(&stranger)).unwrap();
        // Whoever had this number before began earlier.
        let before = Stat { start: now.start - 1, ..now };
        for signal in [Signal::TERM, Signal::STOP, Signal::KILL] {
            assert!(!tree.signal_one(&before, signal));
        }
        assert!(stranger.try_wait().unwrap().is_none());
        assert!(tree.signal_one(&now, Signal::KILL));
        assert_eq!(stranger.wait().unwrap().signal(), Some(9));
        assert!(!tree.signal_one(&now, Signal::KILL), "nobody has the number");
    }
}
