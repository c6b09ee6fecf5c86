//! A JavaScript runtime in a process of its own that can do nothing but talk to its parent.
//!
//! A program becomes such a process when its first argument is [`SANDBOX_ARGUMENT`]: it calls [`run_if_asked`] first
//! of all. The process locks itself up before it reads a single byte, then takes
//! its first frame and works until it is done. What it and its parent say to each other is in [`frames`].
//!
//! Read in this order: `frames.rs` (the words), `child.rs` (the life of the process), `confine/` (what it gives up),
//! `clock.rs` and `memory.rs` (what JavaScript may use), `engine.rs` (the loop between jobs and answers), and
//! `program.rs` with `prelude.js`: code mode, the one kind of work there is so far. Another kind is a prelude of its own
//! and a first frame of its own on the same engine.
//!
//! Nothing here knows tools, gRPC or an async runtime, and nothing of the kind is linked.

#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod engine;
pub mod frames;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(all(target_os = "linux", debug_assertions))]
mod probe;
#[cfg(target_os = "linux")]
mod program;

use std::process::ExitCode;

/// The first argument of a process that is to run JavaScript. The second is the parent's process id, further ones are
/// [`Setting`]s.
pub const SANDBOX_ARGUMENT: &str = "__javascript";

/// What the parent may say about the sandbox on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Go on where system calls cannot be filtered.
    AllowWeak,
    /// Behave as if the kernel had no such thing. Only builds with debug assertions know these: they are for tests.
    Without(Part),
}

/// A part of the sandbox that a kernel may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The filter of system calls.
    Seccomp,
    /// The rules about files and network.
    Landlock,
    /// Namespaces of its own.
    Namespaces,
}

impl Setting {
    const ALL: [(Self, &'static str); 4] = [
        (Self::AllowWeak, "--allow-weak"),
        (Self::Without(Part::Seccomp), "--without-seccomp"),
        (Self::Without(Part::Landlock), "--without-landlock"),
        (Self::Without(Part::Namespaces), "--without-namespaces"),
    ];

    /// The argument.
    pub fn as_argument(self) -> &'static str {
        Self::ALL.iter().find(|(setting, _)| *setting == self).map_or("", |(_, argument)| argument)
    }

    /// The setting written as `argument`, if this build knows it.
    pub fn parse(argument: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == argument).map(|(setting, _)| *setting)?;
        let known = cfg!(debug_assertions) || found == Self::AllowWeak;
        known.then_some(found)
    }
}

/// Becomes the sandbox, if this process was started for that. To be called before anything else, and before there is a
/// second thread.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != SANDBOX_ARGUMENT {
        return None;
    }
    let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    Some(start(&rest))
}

#[cfg(target_os = "linux")]
fn start(arguments: &[String]) -> ExitCode {
    child::main(arguments)
}

/// Elsewhere there is no sandbox that is known to hold, so nothing is run.
#[cfg(not(target_os = "linux"))]
fn start(_: &[String]) -> ExitCode {
    use std::io::Write as _;
    let refusal =
        frames::Done::failed(frames::Reason::SandboxUnavailable, "there is no sandbox for this system");
    if let Ok(line) = serde_json::to_string(&frames::ToParent::Done(refusal)) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }
    ExitCode::FAILURE
}
