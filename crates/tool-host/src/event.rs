//! What a call produces: events on the way, then exactly one outcome, and how both are written as NDJSON.

use std::fmt;

use base64::Engine as _;
use serde::Serialize;
use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;

/// Something a call reports before its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A piece of a process's output, in the order it was read.
    OutputChunk {
        /// Which pipe it came from.
        stream: Pipe,
        /// The bytes.
        #[serde(flatten)]
        data: Chunk,
    },
    /// How far the call is.
    Progress {
        /// A sentence for people.
        message: String,
        /// From 0 to 1, where known.
        #[serde(skip_serializing_if = "Option::is_none")]
        fraction_complete: Option<f64>,
    },
    /// A part of the result that is already known.
    PartialResult {
        /// The part.
        payload: Object,
    },
    /// How the process behind the call ended.
    ExitStatus {
        /// The exit code; 128 plus the signal's number for a process that a signal ended.
        exit_code: i32,
        /// The signal's name, for example `SIGTERM`.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
}

/// Which pipe a chunk came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipe {
    /// Standard output; also what a provider did not label.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The bytes of a chunk: text where they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// UTF-8; written as `data`.
    Text(String),
    /// Anything else; written as `data_base64`.
    Bytes(Vec<u8>),
}

impl Chunk {
    /// The bytes as they came.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }
}

impl Serialize for Chunk {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Text(text) => map.serialize_entry("data", text)?,
            Self::Bytes(bytes) => {
                map.serialize_entry("data_base64", &base64::engine::general_purpose::STANDARD.encode(bytes))?;
            }
        }
        map.end()
    }
}

/// How a call ended: the result's payload, or the error in its place.
pub type Outcome = Result<Object, CallError>;

/// The error of a call, whether the provider sent it or the host found it.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// What kind of failure it is.
    pub category: Category,
    /// What happened and what to do next, for people and models.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Facts for programs; `code` is the stable reason.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub details: Object,
}

impl CallError {
    /// An error that is worth repeating only where its category always is.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        let retryable = matches!(category, Category::Timeout | Category::ConcurrencyConflict);
        Self { category, message: message.into(), retryable, details: Map::new() }
    }

    /// Adds one fact to the details.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Whether the host refused the call before it was made, and not the tool.
    pub fn is_denial(&self) -> bool {
        let by_host = ["denied_by_user", "denied_by_policy", "no_human", "no_kind"];
        self.category == Category::PermissionDenied && self.code().is_some_and(|code| by_host.contains(&code))
    }

    /// The stable reason, `details.code`, where there is one.
    pub fn code(&self) -> Option<&str> {
        self.details.get("code").and_then(Value::as_str)
    }
}

/// The error categories of the wire, by the names NDJSON gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The arguments are wrong.
    InvalidArguments,
    /// What the call names does not exist.
    NotFound,
    /// Refused by the system, the jail, the policy or a person.
    PermissionDenied,
    /// The operation ran and failed.
    ExecutionFailed,
    /// A deadline passed.
    Timeout,
    /// Something else changed the target meanwhile.
    ConcurrencyConflict,
    /// The call was given up.
    Cancelled,
    /// The provider's process died. Only hosts report this.
    ProcessCrashed,
    /// Anything else.
    Unknown,
}

impl Category {
    const ALL: [(Self, &'static str); 9] = [
        (Self::InvalidArguments, "invalid_arguments"),
        (Self::NotFound, "not_found"),
        (Self::PermissionDenied, "permission_denied"),
        (Self::ExecutionFailed, "execution_failed"),
        (Self::Timeout, "timeout"),
        (Self::ConcurrencyConflict, "concurrency_conflict"),
        (Self::Cancelled, "cancelled"),
        (Self::ProcessCrashed, "process_crashed"),
        (Self::Unknown, "unknown"),
    ];

    /// The category written as `text`, if there is one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name)| *name == text).map(|(category, _)| *category)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            Self::ALL.iter().find(|(category, _)| category == self).map_or("unknown", |(_, name)| name);
        f.pad(name)
    }
}

/// One line of NDJSON. `id` names the request in a session of many calls.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    /// The request the line belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a Value>,
    /// What happened.
    #[serde(flatten)]
    pub report: Report<'a>,
}

/// What a line reports.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Report<'a> {
    /// An event before the end.
    Event(&'a Event),
    /// The end.
    End(End<'a>),
}

/// The last line of a call.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum End<'a> {
    /// Success.
    Result {
        /// The result's payload.
        payload: &'a Object,
    },
    /// Failure.
    Error(&'a CallError),
}

impl<'a> From<&'a Outcome> for End<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        match outcome {
            Ok(payload) => Self::Result { payload },
            Err(error) => Self::Error(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(report: Report<'_>, expected: &str) {
        let line = Line { id: None, report };
        assert_eq!(serde_json::to_string(&line).unwrap(), expected);
    }

    #[test]
    fn events_have_the_documented_shapes() {
        let chunk = |bytes: &[u8]| Event::OutputChunk { stream: Pipe::Stdout, data: bytes.to_vec().into() };
        check(Report::Event(&chunk(b"hi\n")), r#"{"event":"output_chunk","stream":"stdout","data":"hi\n"}"#);
        check(
            Report::Event(&chunk(b"\xff")),
            r#"{"event":"output_chunk","stream":"stdout","data_base64":"/w=="}"#,
        );
        let progress = Event::Progress { message: "half".into(), fraction_complete: Some(0.5) };
        check(Report::Event(&progress), r#"{"event":"progress","message":"half","fraction_complete":0.5}"#);
        let exit = Event::ExitStatus { exit_code: 1, signal: Some("SIGTERM".into()) };
        check(Report::Event(&exit), r#"{"event":"exit_status","exit_code":1,"signal":"SIGTERM"}"#);
        let exit = Event::ExitStatus { exit_code: 0, signal: None };
        check(Report::Event(&exit), r#"{"event":"exit_status","exit_code":0}"#);
        let partial = Event::PartialResult { payload: Map::from_iter([("a".to_owned(), json!(1))]) };
        check(Report::Event(&partial), r#"{"event":"partial_result","payload":{"a":1}}"#);
    }

    #[test]
    fn terminals_have_the_documented_shapes() {
        let ok: Outcome = Ok(Map::from_iter([("path".to_owned(), json!("a"))]));
        check(Report::End((&ok).into()), r#"{"event":"result","payload":{"path":"a"}}"#);
        let failed: Outcome = Err(CallError::new(Category::NotFound, "no a").with("code", "missing"));
        check(
            Report::End((&failed).into()),
            r#"{"event":"error","category":"not_found","message":"no a","retryable":false,"details":{"code":"missing"}}"#,
        );
    }

    #[test]
    fn a_session_line_begins_with_its_id() {
        let ok: Outcome = Ok(Map::new());
        let id = json!("7");
        let line = Line { id: Some(&id), report: Report::End((&ok).into()) };
        assert_eq!(serde_json::to_string(&line).unwrap(), r#"{"id":"7","event":"result","payload":{}}"#);
    }
}
