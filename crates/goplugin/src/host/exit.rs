//! How a plugin ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a plugin ended.
///
/// ```
/// use goplugin::host::Exit;
///
/// fn tell(exit: &Exit) {
///     println!("the plugin {exit}");
/// }
/// # let _ = tell;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to stop and left with code 0.
    Orderly,
    /// It left unasked, or asked but with another code.
    Crashed(Death),
    /// The host killed it: it did not stop in time, or was dropped without being stopped.
    Killed,
}

/// What the system tells of a process that ended.
///
/// ```
/// use goplugin::host::Death;
///
/// assert_eq!(Death::Code(3).to_string(), "exited with code 3");
/// assert_eq!(Death::Signal(9).to_string(), "was ended by SIGKILL");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It left with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// What the host had done to the plugin when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Nothing.
    Run,
    /// It had asked it to stop.
    Stop,
    /// It had killed it.
    Kill,
}

impl Exit {
    pub(super) fn new(status: ExitStatus, intent: Intent) -> Self {
        match (Death::new(status), intent) {
            (Death::Code(0), Intent::Stop | Intent::Kill) => Self::Orderly,
            (Death::Signal(_), Intent::Kill) => Self::Killed,
            (death, _) => Self::Crashed(death),
        }
    }
}

impl Death {
    fn new(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// Reads after "the plugin".
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orderly => f.write_str("stopped"),
            Self::Crashed(death) => death.fmt(f),
            Self::Killed => f.write_str("was killed by its host"),
        }
    }
}

/// Reads after "the plugin".
impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(known) => write!(f, "was ended by {known}"),
                Err(_) => write!(f, "was ended by signal {signal}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: i32, intent: Intent, expected: Exit, text: &str) {
        let exit = Exit::new(ExitStatus::from_raw(raw), intent);
        assert_eq!((exit, exit.to_string().as_str()), (expected, text));
    }

    #[test]
    fn an_exit_is_judged_by_what_the_host_had_done() {
        let code = |code: i32| code << 8;
        check(code(0), Intent::Stop, Exit::Orderly, "stopped");
        check(code(0), Intent::Run, Exit::Crashed(Death::Code(0)), "exited with code 0");
        check(code(3), Intent::Stop, Exit::Crashed(Death::Code(3)), "exited with code 3");
        check(9, Intent::Run, Exit::Crashed(Death::Signal(9)), "was ended by SIGKILL");
        check(9, Intent::Stop, Exit::Crashed(Death::Signal(9)), "was ended by SIGKILL");
        check(9, Intent::Kill, Exit::Killed, "was killed by its host");
        check(code(0), Intent::Kill, Exit::Orderly, "stopped");
        check(64, Intent::Run, Exit::Crashed(Death::Signal(64)), "was ended by signal 64");
    }
}
