//! What a model is told when a fetch fails.

use std::time::Duration;

use http_guard::{CheckedUrl, FetchError, Refusal, Stopped, redact_text};
use provider_core::{Code, ToolError};

/// The address in `text`.
///
/// # Errors
/// `invalid_arguments`, naming the argument.
pub(crate) fn address(argument: &str, text: &str) -> Result<CheckedUrl, ToolError> {
    text.parse().map_err(|error| {
        let shown = redact_text(text.trim());
        ToolError::invalid_arguments(format!("{argument}: {shown:?} {error}"))
    })
}

/// A refusal, with what can be done about it.
pub(crate) fn refused(refusal: &Refusal) -> ToolError {
    let (code, advice) = match refusal {
        Refusal::Address { .. } | Refusal::ThisMachine { .. } => (
            Code::BlockedAddress,
            "only an operator can allow this host, in allow_private_hosts; another spelling leads to the same answer",
        ),
        Refusal::NotAllowed { .. } => (Code::Denied, "an operator lists the domains in allowed_domains"),
        Refusal::Blocked { .. } => (Code::Denied, "an operator lists them in blocked_domains"),
        _ => (Code::Denied, "use the address of a web server"),
    };
    ToolError::new(code, format!("{refusal}; nothing was sent to it. {}", capitalised(advice)))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), characters.as_str()))
}

/// A fetch that failed, or whose redirect was not to be followed.
pub(crate) fn stopped_by(stopped: &Stopped<ToolError>) -> ToolError {
    match stopped {
        Stopped::Failed(error) => failed(error),
        Stopped::Declined { to, why } => redirected(&to.redacted().to_string(), why),
    }
}

/// The same error, with where it happened.
fn redirected(to: &str, inner: &ToolError) -> ToolError {
    let message = format!("redirected to {to}: {}", inner.message());
    let told = match inner.code() {
        Some(code) => ToolError::new(code, message),
        None if inner.category() == provider_core::Category::Timeout => ToolError::timeout(message),
        None => ToolError::execution_failed(message),
    };
    let details = inner.details().into_iter();
    details.fold(told, |told, (key, value)| told.with_detail(&key, value))
}

/// A failed fetch.
pub(crate) fn failed(error: &FetchError) -> ToolError {
    let told = match error.root() {
        FetchError::Refused(refusal) => refused(refusal),
        FetchError::Url(error) => ToolError::invalid_arguments(format!("url: {error}")),
        FetchError::Header { name } => ToolError::invalid_arguments(format!(
            "headers: {name:?} cannot be set: it is malformed, or the client sets it itself"
        )),
        error @ FetchError::TimedOut { .. } => {
            ToolError::timeout(format!("{error}; try again later, or give up on this host"))
        }
        error @ FetchError::NoSuchHost { .. } => {
            ToolError::execution_failed(format!("{error}; check the spelling of the address"))
        }
        error => ToolError::execution_failed(error.to_string()),
    };
    match error {
        FetchError::Redirected { to, .. } => redirected(to, &told),
        _ => told,
    }
}

/// A host that asked to be left alone for a while.
pub(crate) fn rate_limited(host: &str, wait: Duration) -> ToolError {
    let seconds = wait.as_millis().div_ceil(1000);
    ToolError::new(
        Code::RateLimited,
        format!(
            "{host} is asked too often: nothing is sent to it for another {seconds} s; repeat the call then"
        ),
    )
    .with_detail("retry_after_ms", u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_told_without_its_secrets() {
        let error = address("url", "ftp://me:hunter2@example.org/?key=hunter2").unwrap_err();
        assert_eq!(error.category().as_str(), "invalid_arguments");
        assert!(error.message().starts_with("url: ") && error.message().contains("http://"), "{error}");
        assert!(!error.message().contains("hunter2"), "{error}");
    }

    #[test]
    fn refusals_say_who_can_lift_them() {
        let inside = address("url", "http://10.0.0.1/").unwrap();
        let refusal = http_guard::Policy::default().admit(&inside).unwrap_err();
        let error = refused(&refusal);
        assert_eq!(error.code(), Some(Code::BlockedAddress));
        assert!(error.message().contains("allow_private_hosts"), "{error}");
    }

    #[test]
    fn a_failure_behind_a_redirect_keeps_its_code() {
        let refusal = Refusal::ThisMachine { host: "localhost".to_owned() };
        let error =
            FetchError::Redirected { to: "http://localhost/".to_owned(), error: Box::new(refusal.into()) };
        let told = failed(&error);
        assert_eq!(told.code(), Some(Code::BlockedAddress));
        assert!(told.message().starts_with("redirected to http://localhost/: "), "{told}");
    }
}
