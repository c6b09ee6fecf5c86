//! What a tool says when it fails: a category for programs, a message for the model.

use std::error::Error;
use std::fmt;

use serde_json::{Map, Value};

/// The error categories a provider may send.
///
/// The wire has one more, `process_crashed`, which only a host may report; it cannot be constructed here.
///
/// ```
/// use provider_core::{Category, ToolError};
///
/// assert_eq!(ToolError::not_found("there is no note 7").category(), Category::NotFound);
/// assert_eq!(Category::NotFound.as_str(), "not_found");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The arguments do not satisfy the schema or the tool's own rules.
    InvalidArguments,
    /// The thing the call names does not exist.
    NotFound,
    /// The operating system, the jail or the policy refused.
    PermissionDenied,
    /// The operation ran and failed on its own terms.
    ExecutionFailed,
    /// A deadline passed.
    Timeout,
    /// Something else changed the target at the same time.
    ConcurrencyConflict,
    /// The call was given up by its caller.
    Cancelled,
    /// Anything else; the details carry the cause.
    Unknown,
}

impl Category {
    /// The category as it is written in NDJSON and `ErrorInfo`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::ExecutionFailed => "execution_failed",
            Self::Timeout => "timeout",
            Self::ConcurrencyConflict => "concurrency_conflict",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal => $category:ident;)*) => {
        /// A stable, machine-readable reason: `details.code` on the wire.
        ///
        /// The code decides the category, here and nowhere else.
        ///
        /// ```
        /// use provider_core::{Category, Code};
        ///
        /// assert_eq!(Code::parse("outside_root"), Some(Code::OutsideRoot));
        /// assert_eq!(Code::OutsideRoot.category(), Category::PermissionDenied);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// The code as it stands in `details.code`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The wire category that errors with this code have.
            pub fn category(self) -> Category {
                match self { $(Self::$name => Category::$category,)* }
            }

            /// The code written as `text`, if there is one.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// The path leads out of every allowed root.
    OutsideRoot = "outside_root" => PermissionDenied;
    /// A `deny` or `protect` pattern covers the path.
    Denied = "denied" => PermissionDenied;
    /// A FIFO, socket or device where a file is needed.
    SpecialFile = "special_file" => PermissionDenied;
    /// The address is in a range that may not be reached.
    BlockedAddress = "blocked_address" => PermissionDenied;
    /// Nobody is there to answer.
    NoHuman = "no_human" => PermissionDenied;
    /// The person said no.
    DeniedByUser = "denied_by_user" => PermissionDenied;
    /// The target changed since it was read or previewed.
    Stale = "stale" => ConcurrencyConflict;
    /// A directory where a file is needed.
    IsDirectory = "is_directory" => ExecutionFailed;
    /// The target exists and may not be overwritten.
    Exists = "exists" => ExecutionFailed;
    /// The text to replace is not in the file.
    NoMatch = "no_match" => ExecutionFailed;
    /// The text to replace is in the file more than once.
    Ambiguous = "ambiguous" => ExecutionFailed;
    /// The text occurs another number of times than expected.
    CountMismatch = "count_mismatch" => ExecutionFailed;
    /// The file's encoding cannot hold the new text.
    Unencodable = "unencodable" => ExecutionFailed;
    /// The file is not text.
    Binary = "binary" => ExecutionFailed;
    /// The input or the file is over a limit.
    TooLarge = "too_large" => ExecutionFailed;
    /// The provider has not been configured for this operation.
    NotConfigured = "not_configured" => ExecutionFailed;
    /// The service asks to slow down.
    RateLimited = "rate_limited" => ExecutionFailed;
    /// The service answered in a form that is not known.
    BackendChanged = "backend_changed" => ExecutionFailed;
    /// The limit on nested agents is reached.
    DepthLimit = "depth_limit" => ExecutionFailed;
}

/// The failure of a call: the terminal event of the stream.
///
/// The message alone must tell a model what to do next; category, `retryable` and details never reach it.
///
/// ```
/// use provider_core::{Code, ToolError};
///
/// let error = ToolError::new(Code::Exists, "notes.md exists; pass overwrite: true to replace it");
/// assert_eq!(error.category().as_str(), "execution_failed");
/// assert_eq!(error.code(), Some(Code::Exists));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    category: Category,
    code: Option<Code>,
    message: String,
    details: Map<String, Value>,
}

impl ToolError {
    /// An error with a stable code, which decides its category.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: Some(code), ..Self::of(code.category(), message) }
    }

    fn of(category: Category, message: impl Into<String>) -> Self {
        Self { category, code: None, message: message.into(), details: Map::new() }
    }

    /// The arguments are wrong; the message names each wrong field.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::of(Category::InvalidArguments, message)
    }

    /// The path, id or tool does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::of(Category::NotFound, message)
    }

    /// The operating system or the policy refused.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::of(Category::PermissionDenied, message)
    }

    /// The operation ran and failed.
    pub fn execution_failed(message: impl Into<String>) -> Self {
        Self::of(Category::ExecutionFailed, message)
    }

    /// The deadline of the call passed.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::of(Category::Timeout, message)
    }

    /// The call was given up.
    pub fn cancelled() -> Self {
        Self::of(Category::Cancelled, "the call was cancelled")
    }

    /// Anything that fits nowhere else. The cause, with its own causes, goes into the details.
    pub fn unknown(cause: &(dyn Error + 'static)) -> Self {
        let mut chain = cause.to_string();
        let mut next = cause.source();
        while let Some(source) = next {
            chain.push_str(": ");
            chain.push_str(&source.to_string());
            next = source.source();
        }
        Self::of(Category::Unknown, chain.clone()).with_detail("cause", chain)
    }

    /// Adds a machine-readable detail.
    #[must_use]
    pub fn with_detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The category on the wire.
    pub fn category(&self) -> Category {
        self.category
    }

    /// The stable code, if the error has one.
    pub fn code(&self) -> Option<Code> {
        self.code
    }

    /// What the model reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed when it is made again: after a timeout, a conflict or a rate limit.
    pub fn retryable(&self) -> bool {
        matches!(self.category, Category::Timeout | Category::ConcurrencyConflict)
            || self.code == Some(Code::RateLimited)
    }

    /// The details with `code` among them.
    pub fn details(&self) -> Map<String, Value> {
        let mut details = self.details.clone();
        if let Some(code) = self.code {
            details.insert("code".to_owned(), code.as_str().into());
        }
        details
    }

    /// Rewrites every text of the error; used to take secrets out.
    pub(crate) fn map_text(mut self, scrub: impl Fn(&mut Value)) -> Self {
        let mut message = Value::String(std::mem::take(&mut self.message));
        scrub(&mut message);
        if let Value::String(text) = message {
            self.message = text;
        }
        self.details.values_mut().for_each(scrub);
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {}

impl From<jail::PathError> for ToolError {
    fn from(error: jail::PathError) -> Self {
        use jail::PathError as Path;
        let message = error.to_string();
        if let Some(code) = error.code().and_then(Code::parse) {
            return Self::new(code, message);
        }
        match error {
            Path::NotFound { .. } => Self::not_found(message),
            Path::Invalid { .. } => Self::invalid_arguments(message),
            Path::Permission { .. } => Self::permission_denied(message),
            Path::Locked { .. } => Self::of(Category::ConcurrencyConflict, message),
            _ => Self::execution_failed(message),
        }
    }
}
