//! What happens beside the calls and people may want to see.

use std::fmt;
use std::sync::Arc;

use crate::event::Object;

/// Something that happened beside a provider's calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The provider it is about.
    pub provider: String,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The provider logged something.
    Log(LogRecord),
    /// The provider wrote a line to its standard error.
    Stderr(String),
    /// The provider broke a rule that the host can live with.
    Warning(String),
}

/// One entry a provider logged.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    /// How important it is.
    pub level: Level,
    /// Which part of the provider speaks.
    pub logger: String,
    /// The text.
    pub message: String,
    /// Facts beside the text.
    pub fields: Object,
    /// The session it belongs to, where it belongs to one.
    pub session: Option<String>,
}

/// How important a log entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every step.
    Trace,
    /// For those who look for a fault.
    Debug,
    /// Normal events.
    Info,
    /// Something to look at.
    Warn,
    /// Something failed.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// Receives notices. It is called between other work and must not block.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(Notice) + Send + Sync>);

impl Notices {
    /// Hands every notice to `receive`.
    pub fn to(receive: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Drops every notice.
    pub fn ignored() -> Self {
        Self::to(|_| {})
    }

    /// Hands a notice on.
    pub fn send(&self, provider: &str, what: What) {
        (self.0)(Notice { provider: provider.to_owned(), what });
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
