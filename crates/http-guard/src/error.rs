//! Why nothing came back.

use std::time::Duration;

use crate::policy::Refusal;
use crate::url::{CheckedUrl, UrlError};

/// Why a request has no response. The messages name hosts, never the rest of an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The policy does not allow it. Nothing was sent to the host.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The address is none.
    #[error("the address {0}")]
    Url(#[from] UrlError),
    /// A header may not be set: it belongs to the connection.
    #[error("the header {name} cannot be set: it is the client's own")]
    Header {
        /// Its name.
        name: String,
    },
    /// There is no such host.
    #[error("there is no host {host}")]
    NoSuchHost {
        /// Its name.
        host: String,
    },
    /// The host's addresses could not be found out.
    #[error("{host} cannot be reached: {reason}")]
    Resolve {
        /// Its name.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// No connection could be made.
    #[error("{host} cannot be reached: {reason}")]
    Connect {
        /// The host.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// The host could not prove who it is, or encryption failed otherwise.
    #[error("no secure connection to {host}: {reason}")]
    Tls {
        /// The host.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// The configured proxy did not connect.
    #[error("the proxy does not connect to {host}: {reason}")]
    Proxy {
        /// The host.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// The connection broke, or what came was not HTTP.
    #[error("{host} gave no valid answer: {reason}")]
    Exchange {
        /// The host.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// A time limit ran out before there was an answer.
    #[error("{host} was given up after {} ms {during}", .after.as_millis())]
    TimedOut {
        /// The host.
        host: String,
        /// What was being waited for.
        during: &'static str,
        /// The limit.
        after: Duration,
    },
    /// Redirects did not come to an end.
    #[error("{count} redirects were followed and the last one leads on to {next}")]
    TooManyRedirects {
        /// How many were followed.
        count: usize,
        /// Where the last one leads, redacted.
        next: String,
    },
    /// A redirect that was followed came to one of the errors above.
    #[error("redirected to {to}: {error}")]
    Redirected {
        /// Where to, redacted.
        to: String,
        /// What happened there.
        #[source]
        error: Box<FetchError>,
    },
}

/// Why [`crate::Guard::send_asking`] has no response.
#[derive(Debug, thiserror::Error)]
pub enum Stopped<E> {
    /// The request failed, whatever was asked.
    #[error(transparent)]
    Failed(#[from] FetchError),
    /// The caller does not want a redirect to be followed.
    #[error("not redirected to {}: {why}", .to.redacted())]
    Declined {
        /// Where it leads.
        to: CheckedUrl,
        /// What the caller said.
        why: E,
    },
}

impl FetchError {
    /// The error itself, without the redirect that led to it.
    pub fn root(&self) -> &Self {
        match self {
            Self::Redirected { error, .. } => error.root(),
            error => error,
        }
    }
}
