//! What a guard is asked to run, and what it answers.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sandbox::Policy;

/// A program to run. It reaches the guard over a socket, so nothing of it is in any command line but its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The program, an absolute path.
    pub program: PathBuf,
    /// All arguments, the first is the name it is called by.
    pub arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// What the program may write and reach.
    pub sandbox: Policy,
    /// What ends the job by itself.
    pub limits: Limits,
    /// Whether standard input is a terminal that becomes the controlling one.
    pub terminal: bool,
}

/// Limits over all processes of a job together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Most bytes of memory that the processes may hold privately.
    pub memory_bytes: Option<u64>,
    /// Most processes at one time.
    pub processes: Option<u64>,
}

/// The open files a program starts with.
#[derive(Debug)]
pub struct Files {
    /// The directory it starts in.
    pub directory: OwnedFd,
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
    /// A file that the program finds at descriptor [`EXTRA_DESCRIPTOR`].
    pub extra: Option<OwnedFd>,
}

/// Where [`Files::extra`] is found. Two digits, because shells give one-digit numbers a meaning of their own.
pub const EXTRA_DESCRIPTOR: i32 = 63;

/// A process, as it is named in reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    /// Its number.
    pub pid: u32,
    /// Its command line, cut where it is long.
    pub command: String,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It ended by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
}

impl Status {
    /// The exit code as shells tell it: 128 + n after signal n.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }

    /// The name of the signal that ended it, such as `SIGTERM`.
    pub fn signal_name(self) -> Option<String> {
        match self {
            Self::Exited(_) => None,
            Self::Signaled(number) => Some(signal_name(number)),
        }
    }
}

/// The name of a signal, such as `SIGTERM`; numbers without a name are written `SIG34`.
pub fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| format!("SIG{number}"), |signal| signal.as_str().to_owned())
}

/// Which limit ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// [`Limits::memory_bytes`].
    Memory,
    /// [`Limits::processes`].
    Processes,
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The program itself has ended.
    Exited {
        /// How.
        status: Status,
        /// The directory it was in at its end; `None` where that cannot be known.
        directory: Option<FinalDirectory>,
        /// Processes of the job that live on. When there are none, the job is over.
        survivors: Vec<ProcessName>,
    },
    /// A limit was passed; the job is being ended.
    LimitPassed(Limit),
    /// The job was told to end. This is what it took.
    Ending {
        /// Processes that a signal was sent to first.
        asked: u32,
        /// Processes that had to be killed after the grace.
        killed: u32,
    },
    /// No process of the job is left, or only those named here, which cannot be killed.
    Over {
        /// What is left.
        unkillable: Vec<ProcessName>,
    },
    /// The guard itself was killed. What it guarded has been swept up by the host.
    GuardLost,
}

/// Where a program was when it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalDirectory {
    /// Its absolute path.
    pub path: PathBuf,
    /// It has been removed.
    pub deleted: bool,
}

/// What a host tells a guard.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Run the job whose description and files come with this.
    Start {
        /// Whether an extra file comes with it.
        extra: bool,
    },
    /// Send the signal to all processes.
    Signal(i32),
    /// Send the signal to all processes, and kill what is left after the grace.
    End {
        /// The first signal.
        signal: i32,
        /// How long processes may take.
        grace: std::time::Duration,
    },
    /// Answer which processes there are.
    List,
}

/// What a guard tells its host.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The program runs.
    Started(u32),
    /// The program cannot be run.
    Refused(Refusal),
    /// Something happened.
    Event(Event),
    /// The processes of the job.
    Processes(Vec<ProcessName>),
}

/// Why a program was not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {reason}")]
pub struct Refusal {
    /// What was tried.
    pub step: String,
    /// What the operating system said.
    pub reason: String,
    /// The number of the error, 0 where there is none.
    pub errno: i32,
}

/// Why a job was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot be run, or not so.
    #[error("the command could not be started: {0}")]
    Refused(Refusal),
    /// There is no guard to run it.
    #[error("the process that guards a command could not be started: {0}")]
    NoGuard(io::Error),
    /// The guard died while it started the job.
    #[error("the process that guards the command was killed while it started the command")]
    GuardLost,
}
