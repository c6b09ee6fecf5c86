//! Runs programs so that they really end.
//!
//! Every job has a guard: a small process, this same program re-executed, that is the ancestor of all the job's
//! processes and outlives none of them. It confines the job ([`sandbox`]), ends the whole tree when it is told to
//! or when its host is gone, and says what survived. The host's side is [`Supervisor`]; a program that uses it
//! calls [`run_if_asked`] first of all.

mod channel;
mod guard;
mod host;
mod job;
mod output;
mod proc;
mod program;
pub mod sandbox;
mod terminal;
mod tree;
mod waiting;
mod watched;

use std::ffi::OsStr;
use std::process::ExitCode;

pub use host::{Running, StartError, Supervisor, set_program};
pub use job::{
    EXTRA_DESCRIPTOR, Event, Files, FinalDirectory, Job, Limit, Limits, ProcessName, Refusal, Status,
    signal_name,
};
pub use output::{Piece, Pipes, Source, Writers};
pub use program::{find_program, is_passed_on, memory_file, null};
pub use terminal::Terminal;

/// The first argument of a process that is to be a guard.
pub const GUARD_ARGUMENT: &str = "__supervise";

/// Becomes a guard, or tries a sandbox, if this process was started for that. To be called before anything else, and
/// before there is a second thread.
pub fn run_if_asked() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    if first == OsStr::new(GUARD_ARGUMENT) {
        Some(guard::main())
    } else if first == OsStr::new(sandbox::PROBE_ARGUMENT) {
        Some(sandbox::probe_main())
    } else {
        None
    }
}
