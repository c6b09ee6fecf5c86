//! The guard: a process that runs one job at a time and outlives none of its processes.
//!
//! It has one thread, and no more state than the job it runs. It ends when its host does.

pub(crate) mod cgroup;
mod child;
mod watch;

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::channel::{self, LONGEST, Received};
use crate::guard::cgroup::Cgroup;
use crate::guard::watch::Watch;
use crate::job::{Answer, Event, FinalDirectory, Job, Order, Refusal, Status};
use crate::proc::Proc;
use crate::sandbox::{Confinement, Namespaces, Policy};
use crate::tree::Tree;

/// The grace when nobody is left who could have set another one.
pub(crate) const HURRIED_GRACE: Duration = Duration::from_millis(500);

/// What lives as long as the guard.
struct Guard {
    socket: OwnedFd,
    signals: SignalFd,
    proc: Proc,
    own: Pid,
    cgroup: Option<Cgroup>,
    root: (u64, u64),
    umask: Mode,
    ignored: Vec<NixSignal>,
    /// What its last job was confined by; the next one most often is by the same.
    confinement: Confinement,
    /// The namespaces it is in for its jobs.
    namespaces: Namespaces,
    /// It has failed to enter namespaces, and is in some of them.
    astray: bool,
    buffer: Vec<u8>,
}

/// The step at which a guard refuses that cannot be used for another job.
pub(crate) const SPENT: &str = "use the guard again";

/// The refusal of a guard that another one must replace.
fn spent(reason: &str) -> Refusal {
    Refusal { step: SPENT.to_owned(), reason: reason.to_owned(), errno: 0 }
}

/// The host is gone.
struct HostGone;

/// Runs as a guard whose standard input is the socket to its host.
pub(crate) fn main() -> ExitCode {
    let Ok(mut guard) = Guard::new() else { return ExitCode::FAILURE };
    while guard.one_job().is_ok() {}
    ExitCode::SUCCESS
}

impl Guard {
    fn new() -> Result<Self, Errno> {
        // Not the name of the program: whoever kills that by name must not take its guards along.
        let _ = rustix::thread::set_name(c"job-guard");
        close_inherited();
        let _ = rustix::process::setsid();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let _ = rustix::thread::set_no_new_privs(true);
        let mut mask = SigSet::empty();
        [NixSignal::SIGCHLD, NixSignal::SIGTERM, NixSignal::SIGINT, NixSignal::SIGHUP]
            .into_iter()
            .for_each(|signal| mask.add(signal));
        let code = |error: nix::errno::Errno| Errno::from_raw_os_error(error as i32);
        mask.thread_block().map_err(code)?;
        let signals =
            SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(code)?;
        let socket = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?;
        let _ = rustix::process::chdir("/");
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        let proc = Proc::open()?;
        Ok(Self {
            socket,
            signals,
            proc,
            own: rustix::process::getpid(),
            // Without one the tree is found by looking.
            cgroup: Cgroup::create().ok(),
            root: root()?,
            umask,
            ignored: child::ignored_signals(),
            confinement: Confinement::default(),
            namespaces: Namespaces::default(),
            astray: false,
            buffer: vec![0; LONGEST],
        })
    }

    /// Waits for a job and runs it to its end.
    fn one_job(&mut self) -> Result<(), HostGone> {
        let Received { message, files } = self.order()?.ok_or(HostGone)?;
        let Order::Start { extra } = message else { return Ok(()) };
        if self.astray || !self.is_clean() {
            let reason = "its last job has changed the root directory, or could not be confined";
            self.answer(&Answer::Refused(spent(reason)));
            return Ok(());
        }
        let started = child::Start::read(files, extra).and_then(|(job, files)| {
            self.enter_namespaces(&job.sandbox)?;
            let (cgroup, ignored) = (self.cgroup.as_ref(), &self.ignored[..]);
            let ready = child::Ready { cgroup, ignored, confinement: &mut self.confinement };
            let pid = child::start(&job, files, ready)?;
            Ok((job, pid))
        });
        match started {
            Ok((job, pid)) => {
                self.answer(&Answer::Started(pid.as_raw_nonzero().get().unsigned_abs()));
                Running::new(self, &job, pid).run()?;
            }
            Err(refusal) => {
                // The child that could not become the program is dead or about to be.
                while rustix::process::wait(WaitOptions::empty()).is_ok_and(|found| found.is_some()) {}
                self.answer(&Answer::Refused(refusal));
            }
        }
        self.clean();
        Ok(())
    }

    /// Enters the namespaces of a job, once. A guard cannot leave them, so it serves only jobs with the same ones.
    fn enter_namespaces(&mut self, sandbox: &Policy) -> Result<(), Refusal> {
        if self.namespaces == *sandbox.namespaces() {
            return Ok(());
        }
        if self.namespaces != Namespaces::default() {
            return Err(spent("its last job was confined differently"));
        }
        self.astray = true;
        sandbox.prepare().map_err(|error| child::failed("enter the sandbox", &error))?;
        self.astray = false;
        self.namespaces = sandbox.namespaces().clone();
        Ok(())
    }

    /// Receives one order, waiting for it.
    fn order(&mut self) -> Result<Option<Received<Order>>, HostGone> {
        channel::receive(&self.socket, &mut self.buffer).map_err(|_| HostGone)
    }

    /// Tells the host. A host that is gone is noticed where orders are read.
    fn answer(&self, answer: &Answer) {
        let _ = channel::send(&self.socket, answer, &[]);
    }

    /// Takes back what a job changed here: it shares the working directory and the creation mask with its guard.
    fn clean(&self) {
        let _ = rustix::process::chdir("/");
        rustix::process::umask(self.umask);
    }

    /// Whether the root directory is still the one the guard began with. A job shares that, too.
    fn is_clean(&self) -> bool {
        root() == Ok(self.root)
    }
}

/// Closes what the host left open across its start of the guard: nothing of it belongs to a job.
#[allow(unsafe_code)] // Called before anything of this process is open.
fn close_inherited() {
    // SAFETY: closes numbers that nothing in this process owns yet.
    let _ = unsafe { nix::libc::syscall(nix::libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// The identity of the root directory.
fn root() -> Result<(u64, u64), Errno> {
    rustix::fs::stat("/").map(|stat| (stat.st_dev, stat.st_ino))
}

/// How far the end of a job has come.
#[derive(Clone, Copy)]
enum Ending {
    No,
    /// Processes have been asked, and are killed at this moment.
    Asked {
        at: Instant,
        kill_at: Instant,
        asked: u32,
    },
}

/// A job that runs.
struct Running<'a> {
    guard: &'a mut Guard,
    leader: Pid,
    leader_lives: bool,
    watch: Watch,
    ending: Ending,
    host_gone: bool,
}

impl<'a> Running<'a> {
    fn new(guard: &'a mut Guard, job: &Job, leader: Pid) -> Self {
        let watch = Watch::new(job.limits);
        Self { guard, leader, leader_lives: true, watch, ending: Ending::No, host_gone: false }
    }

    fn tree(&self) -> Tree<'_> {
        Tree::below(&self.guard.proc, self.guard.own)
    }

    /// Runs until no process of the job is left.
    fn run(mut self) -> Result<(), HostGone> {
        loop {
            let timeout = self.timeout();
            let (orders, signals) = self.wait(timeout);
            if signals {
                self.read_signals();
            }
            if self.collect() {
                break;
            }
            if orders {
                self.obey();
            }
            let tree = Tree::below(&self.guard.proc, self.guard.own);
            if let Some(limit) = self.watch.passed(&tree, self.guard.cgroup.as_ref()) {
                self.guard.answer(&Answer::Event(Event::LimitPassed(limit)));
                self.kill(0);
                break;
            }
            if let Ending::Asked { kill_at, asked, .. } = self.ending
                && Instant::now() >= kill_at
            {
                self.kill(asked);
                break;
            }
        }
        if self.host_gone { Err(HostGone) } else { Ok(()) }
    }

    /// How long there is nothing to do unless something happens.
    fn timeout(&self) -> Option<Duration> {
        let kill = match self.ending {
            Ending::Asked { kill_at, .. } => Some(kill_at.saturating_duration_since(Instant::now())),
            Ending::No => None,
        };
        [kill, self.watch.interval()].into_iter().flatten().min()
    }

    /// Waits for orders or signals; tells which of them there are.
    fn wait(&self, timeout: Option<Duration>) -> (bool, bool) {
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        let signals = PollFd::new(&self.guard.signals, PollFlags::IN);
        let orders = PollFd::new(&self.guard.socket, PollFlags::IN);
        // Once the host is gone there is nothing to hear from it, only the same end again and again.
        let mut all = [signals, orders];
        let watched = if self.host_gone { &mut all[..1] } else { &mut all[..] };
        match poll(watched, timeout.as_ref()) {
            Ok(_) => (!all[1].revents().is_empty(), !all[0].revents().is_empty()),
            Err(_) => (false, false),
        }
    }

    fn read_signals(&mut self) {
        while let Ok(Some(signal)) = self.guard.signals.read_signal() {
            if signal.ssi_signo != NixSignal::SIGCHLD as u32 {
                self.end(Signal::TERM, HURRIED_GRACE);
            }
        }
    }

    /// Collects ended children. True when the job is over.
    fn collect(&mut self) -> bool {
        let mut left = true;
        let mut leader_status = None;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.leader => leader_status = Some(status),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    left = false;
                    break;
                }
            }
        }
        if let Some(status) = leader_status {
            self.leader_lives = false;
            let survivors = if left { self.tree().names() } else { Vec::new() };
            // A child may have ended between the two looks; then nothing is left after all.
            let left = left && !survivors.is_empty();
            let status = how(status);
            self.report_ending_if_over(left);
            let directory = final_directory(&self.guard.proc);
            self.guard.answer(&Answer::Event(Event::Exited { status, directory, survivors }));
            if !left {
                self.collect_rest();
            }
            return !left;
        }
        if !left && !self.leader_lives {
            self.report_ending_if_over(false);
            self.guard.answer(&Answer::Event(Event::Over { unkillable: Vec::new() }));
        }
        !left
    }

    /// Collects children that were dead already when the leader's end was reported.
    fn collect_rest(&self) {
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }

    fn report_ending_if_over(&self, left: bool) {
        if let (Ending::Asked { asked, .. }, false) = (self.ending, left) {
            self.guard.answer(&Answer::Event(Event::Ending { asked, killed: 0 }));
        }
    }

    fn obey(&mut self) {
        match self.guard.order() {
            Ok(Some(Received { message: Order::Start { .. }, .. })) => {}
            Ok(Some(Received { message: Order::Signal(number), .. })) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.tree().signal(signal);
                }
            }
            Ok(Some(Received { message: Order::End { signal, grace }, .. })) => {
                self.end(Signal::from_named_raw(signal).unwrap_or(Signal::TERM), grace);
            }
            Ok(Some(Received { message: Order::List, .. })) => {
                let names = self.tree().names();
                self.guard.answer(&Answer::Processes(names));
            }
            Ok(None) | Err(_) => {
                self.host_gone = true;
                self.end(Signal::TERM, HURRIED_GRACE);
            }
        }
    }

    /// Asks all processes to end. Asked again, the earlier moment to kill counts.
    fn end(&mut self, signal: Signal, grace: Duration) {
        let now = Instant::now();
        self.ending = match self.ending {
            Ending::Asked { at, kill_at, asked } => {
                Ending::Asked { at, kill_at: kill_at.min(at + grace), asked }
            }
            Ending::No => {
                let asked = self.tree().signal(signal);
                // What is stopped does not hear the signal.
                self.tree().signal(Signal::CONT);
                Ending::Asked { at: now, kill_at: now + grace, asked }
            }
        };
    }

    /// Kills what is left and reports the end of the job.
    fn kill(&mut self, asked: u32) {
        // The leader's end is reported like any other, so that killing must not collect it.
        let leader = self.leader_lives.then_some(self.leader);
        // In this order nothing that takes longer the more processes there are comes before their end.
        let before = self.guard.cgroup.as_ref().map_or(0, |cgroup| {
            let count = cgroup.count(u64::from(u32::MAX)).unwrap_or_default();
            cgroup.kill();
            u32::try_from(count).unwrap_or(u32::MAX)
        });
        let (killed, unkillable) = Tree { kept: leader, ..self.tree() }.kill();
        self.guard.answer(&Answer::Event(Event::Ending { asked, killed: killed.max(before) }));
        if let Some(leader) = leader {
            let status = match rustix::process::waitpid(Some(leader), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => how(status),
                _ => Status::Signaled(Signal::KILL.as_raw()),
            };
            self.leader_lives = false;
            let directory = final_directory(&self.guard.proc);
            let exited = Event::Exited { status, directory, survivors: unkillable.clone() };
            self.guard.answer(&Answer::Event(exited));
            if unkillable.is_empty() {
                return;
            }
        }
        self.guard.answer(&Answer::Event(Event::Over { unkillable }));
    }
}

fn how(status: WaitStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Status::Signaled(signal),
        (code, None) => Status::Exited(code.unwrap_or_default()),
    }
}

/// Where the leader was at its end. It shares this with its guard.
fn final_directory(proc: &Proc) -> Option<FinalDirectory> {
    use std::os::unix::ffi::OsStringExt;
    const DELETED: &[u8] = b" (deleted)";
    let mut path = proc.read_link("self/cwd").ok()?;
    let exists = rustix::fs::stat(".").is_ok_and(|stat| stat.st_nlink > 0);
    let deleted = !exists;
    if deleted && path.ends_with(DELETED) {
        path.truncate(path.len() - DELETED.len());
    }
    Some(FinalDirectory { path: std::ffi::OsString::from_vec(path).into(), deleted })
}
