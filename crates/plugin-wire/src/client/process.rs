//! The process of a plugin: started in a group of its own, and ended with all of it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;

/// Variables that a plugin gets besides those it is given.
const INHERITED: [&str; 14] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "USER",
    "SHELL",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "RUST_BACKTRACE",
];
/// After its input has ended, and after it was asked to, a plugin has so long to end.
const LEAVE: Duration = Duration::from_millis(1_500);
const TERMINATE: Duration = Duration::from_millis(500);
/// How often a process is looked at where the system cannot tell of its end.
const LOOK: Duration = Duration::from_millis(20);

/// What is started.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) folder: PathBuf,
    pub(super) env: Vec<(String, String)>,
}

/// Its ends.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A process that leads its own group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Process(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pid: Pid,
    /// `None` once reaped: from then on its number may be somebody else's.
    child: Mutex<Option<Child>>,
    exit: watch::Sender<Option<ExitStatus>>,
}

impl Process {
    pub(super) fn start(program: &Program) -> std::io::Result<(Self, Pipes)> {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).current_dir(&program.folder).env_clear().process_group(0);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(program.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| explain(&program.path, error))?;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let pid = Pid::from_child(&child);
        let shared = Arc::new(Shared { pid, child: Mutex::new(Some(child)), exit: watch::Sender::new(None) });
        let process = Self(shared.clone());
        tokio::spawn(async move {
            ended(shared.pid).await;
            shared.reap();
        });
        let Some(((stdin, stdout), stderr)) = pipes else {
            return Err(std::io::Error::other("the process has no pipes"));
        };
        let pipes = Pipes {
            stdin: ChildStdin::from_std(stdin)?,
            stdout: ChildStdout::from_std(stdout)?,
            stderr: ChildStderr::from_std(stderr)?,
        };
        Ok((process, pipes))
    }

    /// Resolves when the process has ended.
    pub(super) fn exited(&self) -> impl Future<Output = ExitStatus> + Send + use<> {
        let shared = self.0.clone();
        async move {
            let mut exit = shared.exit.subscribe();
            loop {
                if let Some(status) = *exit.borrow_and_update() {
                    return status;
                }
                // The sender lives as long as this holds it.
                let _ = exit.changed().await;
            }
        }
    }

    /// Sees to it that the process ends, whose input has been closed.
    pub(super) async fn leave(&self) {
        if timeout(LEAVE, self.exited()).await.is_ok() {
            return;
        }
        self.signal(Signal::TERM);
        if timeout(TERMINATE, self.exited()).await.is_ok() {
            return;
        }
        self.signal(Signal::KILL);
        let _ = timeout(TERMINATE, self.exited()).await;
    }

    fn signal(&self, signal: Signal) {
        let child = self.0.lock();
        if child.is_some() {
            // An error means that nobody is left in the group.
            let _ = kill_process_group(self.0.pid, signal);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the end of a process that has ended, and kills what it left behind in its group.
    fn reap(&self) {
        let mut held = self.lock();
        let Some(child) = held.as_mut() else { return };
        if !has_ended(self.pid) {
            return;
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        if let Ok(status) = child.wait() {
            *held = None;
            self.exit.send_replace(Some(status));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // The task that reaps may never run again, if the runtime is on its way out.
        for _ in 0..500 {
            self.0.reap();
            if self.0.lock().is_none() {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Whether the child has ended, without taking its end.
fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Resolves when the child has ended; it is not reaped before that, so the number is its own.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // A descriptor has to be registered.
async fn ended(pid: Pid) {
    use rustix::process::{PidfdFlags, pidfd_open};
    use tokio::io::{Interest, unix::AsyncFd};
    let Ok(handle) = pidfd_open(pid, PidfdFlags::NONBLOCK) else { return poll(pid).await };
    // SAFETY: the `OwnedFd` is open, always returns the same descriptor, and stays inside the `AsyncFd`, which gives it up
    // only when it is dropped.
    match unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) } {
        Ok(watched) => drop(watched.readable().await.map(|_| ())),
        Err(_) => poll(pid).await,
    }
}

#[cfg(not(target_os = "linux"))]
async fn ended(pid: Pid) {
    poll(pid).await;
}

/// Where the system cannot tell.
async fn poll(pid: Pid) {
    while !has_ended(pid) {
        tokio::time::sleep(LOOK).await;
    }
}

fn explain(path: &Path, error: std::io::Error) -> std::io::Error {
    let hint = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; is it executable?",
        std::io::ErrorKind::NotFound => "; does it exist, and the interpreter that its first line names?",
        _ => "",
    };
    std::io::Error::new(error.kind(), format!("cannot start {}: {error}{hint}", path.display()))
}
