//! The host's side: starting guards, keeping one warm, following a job.

use std::collections::HashSet;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::GUARD_ARGUMENT;
use crate::channel::{self, LONGEST, Received};
use crate::guard::{HURRIED_GRACE, SPENT};
use crate::job::{Answer, Event, Files, Job, Order, ProcessName, StartError};
use crate::proc::Proc;
use crate::program::{memory_file, program};
use crate::tree::Tree;
use crate::watched::watched;

/// A job that runs longer than this has a new warm guard made behind it.
const REPLACE_AFTER: Duration = Duration::from_millis(20);
/// What a guard may take beyond its grace before it is taken for stuck.
const GUARD_LIMIT: Duration = Duration::from_secs(4);

/// The guards of this process, by number.
static GUARDS: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guard and the socket to it.
struct Guard {
    socket: AsyncFd<OwnedFd>,
    child: Child,
    pid: i32,
    buffer: Vec<u8>,
}

impl Guard {
    fn start() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::ioctl_fionbio(&there, false)?;
        let mut command = std::process::Command::new(program());
        command.arg0("job-guard").arg(GUARD_ARGUMENT).env_clear();
        command.stdin(Stdio::from(there)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut guards = locked(&GUARDS);
        if guards.is_none() {
            // Should a guard be killed, what it guarded becomes ours to end.
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        }
        let child = Command::from(command).spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        guards.get_or_insert_default().insert(pid);
        drop(guards);
        Ok(Self { socket: watched(here)?, child, pid, buffer: vec![0; LONGEST] })
    }

    fn send(&self, order: Order, files: &[std::os::fd::BorrowedFd<'_>]) -> Result<(), Errno> {
        channel::send(self.socket.get_ref(), &order, files)
    }

    /// The next answer; `None` when the guard is dead.
    async fn receive(&mut self) -> Option<Answer> {
        loop {
            let mut ready = self.socket.readable().await.ok()?;
            match channel::receive::<Answer>(ready.get_inner(), &mut self.buffer) {
                Ok(received) => return received.map(|Received { message, .. }| message),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It ends by itself when the socket closes; the runtime collects it.
        if let Some(guards) = locked(&GUARDS).as_mut() {
            guards.remove(&self.pid);
        }
    }
}

/// Starts jobs. Cheap to clone; all clones share the warm guard.
#[derive(Clone, Default)]
pub struct Supervisor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    warm: Mutex<Option<Guard>>,
    running: watch::Sender<usize>,
}

impl Supervisor {
    /// Makes sure that a guard is ready, so that the next job starts at once.
    ///
    /// # Errors
    /// No guard can be started.
    pub fn warm(&self) -> io::Result<()> {
        let mut warm = locked(&self.0.warm);
        if warm.is_none() {
            *warm = Some(Guard::start()?);
        }
        Ok(())
    }

    /// Starts a job. When this returns, the program runs.
    ///
    /// # Errors
    /// The program cannot be run, or there is no guard for it.
    pub async fn start(&self, job: &Job, files: Files) -> Result<Running, StartError> {
        let description = description(job).map_err(StartError::NoGuard)?;
        loop {
            let warm = locked(&self.0.warm).take();
            let fresh = warm.is_none();
            let guard = match warm {
                Some(guard) => guard,
                None => Guard::start().map_err(StartError::NoGuard)?,
            };
            let mut running = Running::new(self.clone(), guard);
            match running.start(&description, &files).await {
                Ok(()) => {
                    running.replacement = Some(self.replace_later());
                    return Ok(running);
                }
                // The warm guard has died or may not be used again; it has not begun.
                Err(Attempt::Again) if !fresh => {}
                Err(Attempt::Again) => return Err(StartError::GuardLost),
                Err(Attempt::Failed(error)) => return Err(error),
            }
        }
    }

    /// Keeps a guard ready behind a job that takes its time. A short job gives its own back before that.
    fn replace_later(&self) -> AbortHandle {
        let shared = Arc::downgrade(&self.0);
        let replacement = tokio::spawn(async move {
            tokio::time::sleep(REPLACE_AFTER).await;
            if let Some(shared) = shared.upgrade() {
                // Without a warm guard the next job only starts a little later.
                let _ = Self(shared).warm();
            }
        });
        replacement.abort_handle()
    }

    /// Waits until no job of this supervisor is left. Jobs whose [`Running`] was dropped end within
    /// [`HURRIED_GRACE`] and what killing takes.
    pub async fn idle(&self) {
        let mut running = self.0.running.subscribe();
        let _ = running.wait_for(|running| *running == 0).await;
    }

    fn put_back(&self, guard: Guard) {
        let mut warm = locked(&self.0.warm);
        if warm.is_none() {
            *warm = Some(guard);
        }
    }
}

/// Why an attempt to start did not succeed.
enum Attempt {
    Again,
    Failed(StartError),
}

/// The job's description as a file.
fn description(job: &Job) -> io::Result<OwnedFd> {
    memory_file("job", &serde_json::to_vec(job)?)
}

/// A job at work. Dropping it ends the job: TERM to all its processes, half a second, KILL.
pub struct Running {
    supervisor: Supervisor,
    guard: Option<Guard>,
    pid: u32,
    queue: VecDeque<Event>,
    over: bool,
    /// What will start another guard, should this job take its time.
    replacement: Option<AbortHandle>,
}

impl Running {
    fn new(supervisor: Supervisor, guard: Guard) -> Self {
        supervisor.0.running.send_modify(|running| *running += 1);
        Self { supervisor, guard: Some(guard), pid: 0, queue: VecDeque::new(), over: true, replacement: None }
    }

    async fn start(&mut self, description: &OwnedFd, files: &Files) -> Result<(), Attempt> {
        let Some(guard) = self.guard.as_mut() else { return Err(Attempt::Again) };
        let mut all = vec![
            description.as_fd(),
            files.directory.as_fd(),
            files.stdin.as_fd(),
            files.stdout.as_fd(),
            files.stderr.as_fd(),
        ];
        all.extend(files.extra.as_ref().map(AsFd::as_fd));
        if guard.send(Order::Start { extra: files.extra.is_some() }, &all).is_err() {
            self.guard = None;
            return Err(Attempt::Again);
        }
        self.over = false;
        match guard.receive().await {
            Some(Answer::Started(pid)) => {
                self.pid = pid;
                Ok(())
            }
            Some(Answer::Refused(refusal)) => {
                self.over = true;
                if refusal.step == SPENT {
                    self.guard = None;
                    return Err(Attempt::Again);
                }
                Err(Attempt::Failed(StartError::Refused(refusal)))
            }
            Some(Answer::Event(_) | Answer::Processes(_)) | None => {
                self.lost().await;
                Err(Attempt::Failed(StartError::GuardLost))
            }
        }
    }

    /// The number of the program's process, which leads a session and a process group of its own.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether no process of the job is left.
    pub fn is_over(&self) -> bool {
        self.over && self.queue.is_empty()
    }

    /// The next thing that happens to the job; `None` once it is over. May be dropped and called again.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            let answer = self.guard.as_mut()?.receive().await;
            self.take(answer).await;
        }
    }

    async fn take(&mut self, answer: Option<Answer>) {
        match answer {
            Some(Answer::Event(event)) => {
                self.over = match &event {
                    Event::Exited { survivors, .. } => survivors.is_empty(),
                    Event::Over { .. } => true,
                    _ => false,
                };
                self.queue.push_back(event);
            }
            Some(Answer::Refused(_)) => self.over = true,
            Some(Answer::Started(_) | Answer::Processes(_)) => {}
            None => {
                self.lost().await;
                self.queue.push_back(Event::GuardLost);
            }
        }
    }

    /// Ends what a killed guard has left behind.
    async fn lost(&mut self) {
        self.over = true;
        if let Some(mut guard) = self.guard.take() {
            // Its children become ours when it is dead for good.
            let _ = tokio::time::timeout(GUARD_LIMIT, guard.child.wait()).await;
        }
        let _ = tokio::task::spawn_blocking(sweep).await;
    }

    /// The processes of the job.
    pub async fn processes(&mut self) -> Vec<ProcessName> {
        match self.guard.as_ref() {
            Some(guard) if !self.over && guard.send(Order::List, &[]).is_ok() => {}
            _ => return Vec::new(),
        }
        while !self.over {
            let Some(guard) = self.guard.as_mut() else { break };
            match guard.receive().await {
                Some(Answer::Processes(processes)) => return processes,
                answer => self.take(answer).await,
            }
        }
        Vec::new()
    }

    /// Sends a signal to all processes of the job.
    pub fn signal(&self, signal: i32) {
        self.order(Order::Signal(signal));
    }

    /// Sends `signal` to all processes of the job, and kills what is left after `grace`. Asked more than once, the
    /// earliest end counts.
    pub fn end(&self, signal: i32, grace: Duration) {
        self.order(Order::End { signal, grace });
    }

    fn order(&self, order: Order) {
        if let (Some(guard), false) = (&self.guard, self.over) {
            // A dead guard is noticed where events are read.
            let _ = guard.send(order, &[]);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let done = |supervisor: &Supervisor| supervisor.0.running.send_modify(|running| *running -= 1);
        let supervisor = self.supervisor.clone();
        let Some(guard) = self.guard.take() else { return done(&supervisor) };
        if self.over {
            self.replacement.take().inspect(AbortHandle::abort);
            done(&supervisor);
            return supervisor.put_back(guard);
        }
        let _ = guard.send(Order::End { signal: Signal::TERM.as_raw(), grace: HURRIED_GRACE }, &[]);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                let mut rest = Self {
                    guard: Some(guard),
                    pid: 0,
                    queue: VecDeque::new(),
                    over: false,
                    supervisor,
                    replacement: None,
                };
                let end = async { while rest.event().await.is_some() {} };
                if tokio::time::timeout(HURRIED_GRACE + GUARD_LIMIT, end).await.is_err() {
                    rest.give_up();
                }
            })),
            // Without a runtime the closed socket tells the guard the same.
            Err(_) => done(&supervisor),
        }
    }
}

impl Running {
    /// Kills a guard that does not do its work, and then what it guarded.
    fn give_up(&mut self) {
        self.over = true;
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.child.start_kill();
            tokio::spawn(async move {
                let _ = guard.child.wait().await;
                let _ = tokio::task::spawn_blocking(sweep).await;
            });
        }
    }
}

/// Kills the orphans that dead guards have left to this process: its children that are neither guards nor in its own
/// session, in which everything else it starts is.
fn sweep() {
    let Ok(proc) = Proc::open() else { return };
    let own = rustix::process::getpid();
    let session = proc.stat(own).map_or(0, |stat| stat.session);
    let spared = |stat: &crate::proc::Stat| {
        let is_guard = |guards: &HashSet<i32>| guards.contains(&stat.pid.as_raw_nonzero().get());
        stat.session == session || locked(&GUARDS).as_ref().is_some_and(is_guard)
    };
    Tree { spared: &spared, ..Tree::below(&proc, own) }.kill();
}
