//! The process of a program, from its launch to its end.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use codemode_sandbox::frames::{Confinement, Done, Reason, ToChild, ToParent};
use codemode_sandbox::{SANDBOX_ARGUMENT, Setting};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child as Process, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::frames::Reader;
use crate::starter;

/// What the process says on stderr is kept up to here.
const STDERR_KEPT: u64 = 4 * 1_024;
/// How long a process that has said its last word may take to be gone.
const LEAVING: Duration = Duration::from_secs(2);
/// How long a process may take to lock itself up.
const LOCKING_UP: Duration = Duration::from_secs(20);

/// The program that becomes the sandbox.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that becomes the sandbox, where this program itself cannot: in tests. The first call counts.
pub fn set_program(path: impl Into<PathBuf>) {
    let _ = PROGRAM.set(path.into());
}

/// How the sandbox is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandboxing {
    /// What the child is told on its command line.
    pub settings: Vec<Setting>,
    /// What the child tries instead of the program, for tests of the sandbox; only builds with debug assertions know it.
    pub probe: Option<String>,
}

/// Why nothing can be run here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoSandbox(String);

/// What a sandbox on this machine is made of. Starts one, and lets it go.
///
/// # Errors
/// There is none, and why.
pub async fn probe(sandboxing: &Sandboxing) -> Result<Confinement, NoSandbox> {
    let mut child = Child::start(sandboxing).await.map_err(|error| NoSandbox(error.to_string()))?;
    match timeout(LOCKING_UP, child.frames.next()).await {
        Ok(Ok(ToParent::Ready(confinement))) => Ok(confinement),
        Ok(Ok(ToParent::Done(Done { message, .. }))) => Err(NoSandbox(message)),
        Ok(Ok(_)) => {
            Err(NoSandbox("the process of the sandbox does not begin with what it is made of".to_owned()))
        }
        Ok(Err(error)) => {
            Err(NoSandbox(format!("the process of the sandbox: {error}; {}", child.end().await)))
        }
        Err(_) => Err(NoSandbox("the process of the sandbox does not begin".to_owned())),
    }
}

/// A process that runs, or waits for, a program. Dropping it kills it.
pub(crate) struct Child {
    process: Process,
    stdin: Option<ChildStdin>,
    stderr: Option<ChildStderr>,
    pub(crate) frames: Reader<ChildStdout>,
}

impl Child {
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn start(sandboxing: &Sandboxing) -> io::Result<Self> {
        let program = PROGRAM.get().cloned().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        let mut command = Command::new(program);
        command.arg(SANDBOX_ARGUMENT).arg(std::process::id().to_string());
        command.args(sandboxing.settings.iter().map(|setting| setting.as_argument()));
        command.env_clear().current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = starter::start(command).await?;
        let (stdin, stderr) = (process.stdin.take(), process.stderr.take());
        let stdout = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { process, stdin, stderr, frames: Reader::new(stdout) })
    }

    /// Hands out the way to the child, once.
    pub(crate) fn writer(&mut self) -> Option<Writer> {
        self.stdin.take().map(Writer)
    }

    /// Kills it. What it has written already can still be read.
    pub(crate) fn kill(&mut self) {
        // It may be gone already.
        let _ = self.process.start_kill();
    }

    /// Waits until it is gone, and says how it ended.
    pub(crate) async fn end(&mut self) -> String {
        let Ok(Ok(status)) = timeout(LEAVING, self.process.wait()).await else {
            self.kill();
            return "it had to be killed".to_owned();
        };
        let mut tail = Vec::new();
        if let Some(stderr) = self.stderr.take() {
            // What cannot be read is not shown.
            let _ = timeout(LEAVING, stderr.take(STDERR_KEPT).read_to_end(&mut tail)).await;
        }
        let tail = String::from_utf8_lossy(&tail);
        match tail.trim() {
            "" => how(status),
            tail => format!("{}: {tail}", how(status)),
        }
    }
}

/// The way to the child.
pub(crate) struct Writer(ChildStdin);

impl Writer {
    /// Writes lines; a child that is gone is noticed where its frames are read.
    pub(crate) async fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.0.write_all(line).await
    }
}

/// A first frame as a line.
///
/// # Errors
/// It cannot be written as JSON.
pub(crate) fn first_line(frame: &ToChild) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    Ok(line)
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (Some(signal), _) if signal == rustix::process::Signal::SYS.as_raw() => {
            "it was killed for a system call that is not allowed (SIGSYS)".to_owned()
        }
        (Some(signal), _) => format!("it was killed by signal {signal}"),
        (None, code) => format!("it ended with exit code {}", code.unwrap_or_default()),
    }
}

/// What is said where the child said only why.
pub(crate) fn default_message(reason: Reason, limits: &crate::Limits) -> String {
    match reason {
        Reason::Time => {
            format!(
                "JavaScript ran for more than {:?} without waiting for a tool; do less between two calls",
                limits.slice
            )
        }
        Reason::TotalTime => format!("the program took more than {:?} in all", limits.total),
        Reason::Memory => {
            format!("more than {} MiB; keep less at a time", limits.memory / (1_024 * 1_024))
        }
        Reason::Crashed => "the engine crashed".to_owned(),
        Reason::Cancelled => "the program was given up".to_owned(),
        Reason::UnhandledRejection => "a promise was rejected and nobody handled it".to_owned(),
        Reason::ResultTooLarge => "the value is too large".to_owned(),
        Reason::Syntax
        | Reason::Threw
        | Reason::Deadlock
        | Reason::ValueNotJson
        | Reason::SandboxUnavailable => "no further reason is known".to_owned(),
    }
}
