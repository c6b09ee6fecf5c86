//! How the program ends.

use std::process::ExitCode;

use tool_host::assign::AssignError;
use tool_host::{CallError, Category, LaunchError, Outcome};

/// The exit codes. They are a contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The tool returned an error.
    ToolFailed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The provider could not start, or does not speak.
    Provider = 3,
    /// A person or the host denied the call, or nobody was there to ask.
    Denied = 4,
    /// The provider does not conform.
    Nonconforming = 5,
    /// The call ran out of time.
    TimedOut = 124,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code for the way a call ended.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Ok(_) => Self::Done,
            Err(error) => Self::of_error(error),
        }
    }

    fn of_error(error: &CallError) -> Self {
        match (error.category, error.code()) {
            (
                Category::PermissionDenied,
                Some("no_human" | "denied_by_user" | "denied_by_policy" | "no_kind"),
            ) => Self::Denied,
            (Category::Timeout, _) => Self::TimedOut,
            (Category::Cancelled, _) => Self::Interrupted,
            (Category::ProcessCrashed, _) => Self::Provider,
            _ => Self::ToolFailed,
        }
    }
}

/// Why a command did not come to its end, ready to be told.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: CallError,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    /// The command line is wrong.
    pub(crate) fn usage(error: CallError) -> Self {
        Self { exit: Exit::Usage, error, hints: Vec::new() }
    }

    /// The command line is wrong, in words.
    pub(crate) fn wrong_usage(message: impl Into<String>) -> Self {
        Self::usage(CallError::new(Category::InvalidArguments, message))
    }

    /// The provider could not start, or does not speak.
    pub(crate) fn provider(message: impl Into<String>) -> Self {
        let mut error = CallError::new(Category::ProcessCrashed, message);
        error.retryable = false;
        Self { exit: Exit::Provider, error, hints: Vec::new() }
    }

    /// Interrupted before there was a call.
    pub(crate) fn interrupted() -> Self {
        CallError::new(Category::Cancelled, "interrupted").into()
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self { exit: Exit::of_error(&error), error, hints: Vec::new() }
    }
}

impl From<AssignError> for Failure {
    fn from(error: AssignError) -> Self {
        Self::wrong_usage(error.to_string())
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self::provider(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: CallError, expected: u8) {
        assert_eq!(Exit::of(&Err(error)) as u8, expected);
    }

    #[test]
    fn the_terminal_event_decides_the_code() {
        let error = |category| CallError::new(category, "x");
        assert_eq!(Exit::of(&Ok(tool_host::Object::new())) as u8, 0);
        check(error(Category::NotFound), 1);
        check(error(Category::InvalidArguments), 1);
        check(error(Category::PermissionDenied).with("code", "outside_root"), 1);
        check(error(Category::PermissionDenied).with("code", "no_human"), 4);
        check(error(Category::PermissionDenied).with("code", "denied_by_user"), 4);
        check(error(Category::PermissionDenied).with("code", "denied_by_policy"), 4);
        check(error(Category::Timeout), 124);
        check(error(Category::Cancelled), 130);
        check(error(Category::ProcessCrashed), 3);
    }
}
