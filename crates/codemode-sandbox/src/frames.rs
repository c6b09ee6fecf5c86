//! What parent and child say to each other: one JSON object a line, in both directions.
//!
//! The child is not trusted: a parent checks every name and number that comes from it, and takes any line that is no
//! [`ToParent`] for the end of the conversation.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest frame, in bytes with its newline.
pub const LONGEST_FRAME: usize = 32 * 1_024 * 1_024;
/// What a frame needs around the value it carries.
pub const FRAME_MARGIN: usize = 4 * 1_024;

/// Calls that may be without an answer at one time. A child makes no more, and a parent ends one that does.
pub const MOST_OUTSTANDING: usize = 10_000;

/// What the parent says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToChild {
    /// The first frame: run this program.
    Run(Run),
    /// A call has ended.
    Ans(Answer),
}

/// A program and what it may use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The source.
    pub code: String,
    /// The names of the tools there are, by plugin. What a program may call is decided by the parent, at the call.
    pub tools: BTreeMap<String, Vec<String>>,
    /// What it may use.
    pub limits: Limits,
    /// What is tried instead of the program, in builds with debug assertions: for tests of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
}

/// What a program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long JavaScript may run between two answers, in milliseconds.
    pub slice_ms: u64,
    /// Bytes that JavaScript may keep.
    pub memory_bytes: usize,
    /// Bytes of the program's value that are sent.
    pub value_bytes: usize,
    /// Bytes of console text that are sent.
    pub console_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            slice_ms: 10_000,
            memory_bytes: 256 * 1_024 * 1_024,
            value_bytes: 1_024 * 1_024,
            console_bytes: 64 * 1_024,
        }
    }
}

impl Limits {
    /// How long JavaScript may run between two answers.
    pub fn slice(&self) -> Duration {
        Duration::from_millis(self.slice_ms)
    }
}

/// How a call ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The call.
    pub id: u64,
    /// Whether it succeeded. Otherwise the value is a string, the message of the error.
    pub ok: bool,
    /// What the value is.
    pub kind: AnswerKind,
    /// The value as JSON.
    pub value: Box<RawValue>,
}

/// What the value of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A value of the tool's output schema.
    Structured,
    /// A string.
    Text,
    /// A list of MCP content items.
    Content,
}

/// What the child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToParent {
    /// The first frame: the sandbox holds, and this is what it is made of.
    Ready(Confinement),
    /// The program calls a tool.
    Call(Call),
    /// The program wrote a line to the console.
    Log(String),
    /// The program waits. The number is how many answers it has taken so far.
    Idle(u64),
    /// The last frame.
    Done(Done),
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Counts from 1; never used twice.
    pub id: u64,
    /// The plugin as the program named it; `$` for the catalogue itself.
    pub plugin: String,
    /// The tool as the program named it.
    pub tool: String,
    /// The input: a JSON object.
    pub input: Box<RawValue>,
}

/// What the sandbox is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// How far files and network are denied by Landlock: `fully enforced`, …, or why not at all.
    pub landlock: String,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// The namespaces of its own, or why there are none.
    pub namespaces: String,
    /// The limits of the process, as `name=value`.
    pub limits: Vec<String>,
    /// What the process still has of its parent's: variables, directory, open descriptors.
    pub surroundings: String,
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {
    /// Why it failed; `None` when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What it failed with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Where, one frame of the program a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stack: String,
    /// What it returned; `None` for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// Rejections that nobody handled, as `Name: message`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unhandled: Vec<String>,
}

/// A text that may have been cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text, or its head.
    pub text: String,
    /// Bytes of the whole text.
    pub bytes: usize,
}

impl Done {
    /// A failure without a stack.
    pub fn failed(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason: Some(reason), message: message.into(), ..Self::default() }
    }
}

/// Why a program failed. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It is no JavaScript.
    Syntax,
    /// It threw.
    Threw,
    /// JavaScript ran too long between two answers.
    Time,
    /// It took too long in all.
    TotalTime,
    /// It used too much memory.
    Memory,
    /// It waits for what nothing will settle.
    Deadlock,
    /// A promise was rejected and nobody handled it.
    UnhandledRejection,
    /// What it returned cannot be written as JSON.
    ValueNotJson,
    /// It was given up.
    Cancelled,
    /// Its process died or spoke nonsense.
    Crashed,
    /// There is no sandbox to run it in.
    SandboxUnavailable,
    /// What it returned is too large.
    ResultTooLarge,
}

impl Reason {
    /// The name as it is read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Threw => "threw",
            Self::Time => "time",
            Self::TotalTime => "total-time",
            Self::Memory => "memory",
            Self::Deadlock => "deadlock",
            Self::UnhandledRejection => "unhandled-rejection",
            Self::ValueNotJson => "value-not-json",
            Self::Cancelled => "cancelled",
            Self::Crashed => "crashed",
            Self::SandboxUnavailable => "sandbox-unavailable",
            Self::ResultTooLarge => "result-too-large",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_written_as_it_is_read() {
        for reason in [
            Reason::Syntax,
            Reason::TotalTime,
            Reason::UnhandledRejection,
            Reason::ValueNotJson,
            Reason::SandboxUnavailable,
            Reason::ResultTooLarge,
        ] {
            assert_eq!(serde_json::to_string(&reason).unwrap(), format!("{:?}", reason.as_str()));
        }
    }

    #[test]
    fn last_words_are_a_frame() {
        let done: ToParent = serde_json::from_str(r#"{"done":{"reason":"time"}}"#).unwrap();
        assert!(matches!(done, ToParent::Done(Done { reason: Some(Reason::Time), .. })));
    }

    #[test]
    fn an_input_keeps_what_no_rust_string_can_hold() {
        let line = r#"{"call":{"id":1,"plugin":"fx","tool":"echo","input":{"t":"\ud800"}}}"#;
        let ToParent::Call(call) = serde_json::from_str(line).unwrap() else { panic!("a call") };
        assert_eq!(call.input.get(), r#"{"t":"\ud800"}"#);
    }
}
