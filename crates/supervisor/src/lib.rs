//! Runs programs so that they really end.
//!
//! Every job has a guard: a small process, this same program re-executed, that is the ancestor of all the job's
//! processes and outlives none of them. It confines the job ([`sandbox`]), ends the whole tree when it is told to
//! or when its host is gone, and says what survived. The host's side is [`Supervisor`]; a program that uses it
//! calls [`run_if_asked`] first of all.
//!
//! All of this needs Linux. Elsewhere the crate compiles, and starting anything is an error that says so.

#[cfg(target_os = "linux")]
mod channel;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod host;
mod job;
#[cfg(target_os = "linux")]
mod output;
mod piece;
#[cfg(target_os = "linux")]
mod proc;
mod program;
pub mod sandbox;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod waiting;
#[cfg(target_os = "linux")]
mod watched;

use std::ffi::OsStr;
use std::process::ExitCode;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Pipes, Running, Supervisor, Terminal, Writers};
#[cfg(target_os = "linux")]
pub use host::{Running, Supervisor};
pub use job::{
    EXTRA_DESCRIPTOR, Event, Files, FinalDirectory, Job, Limit, Limits, ProcessName, Refusal, StartError,
    Status, signal_name,
};
#[cfg(target_os = "linux")]
pub use output::{Pipes, Writers};
pub use piece::{Piece, Source};
pub use program::{find_program, is_passed_on, memory_file, null, set_program};
#[cfg(target_os = "linux")]
pub use terminal::Terminal;

/// The first argument of a process that is to be a guard.
pub const GUARD_ARGUMENT: &str = "__supervise";

/// Whether jobs are born in a control group of their own here, by an attempt.
///
/// # Errors
/// Why not. Then their processes are found by looking.
pub fn control_group() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    return guard::cgroup::Cgroup::create().map(drop);
    #[cfg(not(target_os = "linux"))]
    return Err(elsewhere::unsupported());
}

/// Becomes a guard, or tries a sandbox, if this process was started for that. To be called before anything else, and
/// before there is a second thread.
pub fn run_if_asked() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(GUARD_ARGUMENT) {
        #[cfg(target_os = "linux")]
        return Some(guard::main());
        #[cfg(not(target_os = "linux"))]
        return Some(ExitCode::FAILURE);
    } else if first == OsStr::new(sandbox::PROBE_ARGUMENT) {
        Some(sandbox::probe_main())
    } else {
        None
    }
}
