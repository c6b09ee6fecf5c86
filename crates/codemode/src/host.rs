//! What makes the calls of a program.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Map;
use serde_json::value::{RawValue, Value, to_raw_value};
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;

/// What makes the calls of a program: providers, an MCP server, whatever has tools.
///
/// Which calls may run together, who is asked before one is made, and what a call may take are the host's affair, as they
/// are for calls that come from elsewhere.
pub trait ToolHost: Send + Sync {
    /// The tools there are now. Asked at every call, so that a program always calls the current ones.
    fn tools(&self) -> Arc<Catalogue>;

    /// Makes a call, to its end. Once `cancel` is cancelled it ends soon; dropping the future gives it up.
    ///
    /// # Errors
    /// What the program gets instead of an answer.
    fn call<'a>(
        &'a self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;
}

/// A call of a tool that is in the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The plugin, by its own name.
    pub plugin: String,
    /// The tool, by its own name.
    pub tool: String,
    /// The input.
    pub input: Map<String, Value>,
    /// Names the call: the id of the call that runs the program, `/`, and a number from 1.
    pub id: String,
}

/// What a call answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// JSON that fits the tool's output schema; the program gets the value.
    Structured(Box<RawValue>),
    /// The text of a tool without an output schema; the program gets the string.
    Text(String),
    /// MCP content with pictures in it, a JSON list; the program gets the list.
    Content(Box<RawValue>),
}

impl Answer {
    /// A structured answer.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn structured(value: &impl Serialize) -> serde_json::Result<Self> {
        to_raw_value(value).map(Self::Structured)
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The message of the error that the program gets.
    pub message: String,
    /// Whether the call was refused before it was made.
    pub denied: bool,
}

impl Failure {
    /// A call that was made and failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), denied: false }
    }

    /// A call that was not allowed.
    pub fn denied(message: impl Into<String>) -> Self {
        Self { message: message.into(), denied: true }
    }
}
