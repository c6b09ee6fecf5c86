//! What a plugin that provides agents asks of its host.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tool_host::Object;
use tool_host::source::ToolResult;

use crate::call::{Context, ToolCall, ToolEntry};
use crate::conventions::method;
use crate::message::RpcError;

/// The host's tools, for the agents of a plugin.
pub trait HostTools: Send + Sync {
    /// The tools that a session may call.
    fn tools(&self) -> Vec<ToolEntry>;

    /// What an agent is told besides its own instructions.
    fn instructions(&self) -> BoxFuture<'_, String>;

    /// Makes a call of one of the tools, for an agent; once `cancel` is cancelled it ends soon.
    ///
    /// # Errors
    /// There is no such tool.
    fn call(&self, call: HostCall, cancel: CancellationToken) -> BoxFuture<'_, Result<ToolResult, RpcError>>;

    /// Serves the tools over MCP on this machine, for an agent that takes them in no other way.
    ///
    /// # Errors
    /// They cannot be served.
    fn serve_mcp(&self, workspace: Option<PathBuf>) -> BoxFuture<'_, Result<McpAddress, RpcError>>;
}

/// A call that an agent makes through its plugin.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostCall {
    /// The agent.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// The agent's session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The absolute folder that the session works in.
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    /// The tool.
    pub name: String,
    /// What it is called with.
    #[serde(default)]
    pub input: Option<Map<String, Value>>,
    /// The agent's id for the call.
    #[serde(default)]
    pub call_id: Option<String>,
}

impl From<HostCall> for ToolCall {
    fn from(call: HostCall) -> Self {
        Self {
            name: call.name,
            input: Ok(call.input.unwrap_or_default()),
            context: Context {
                workspace: call.workspace,
                agent_id: call.agent_id,
                chat_id: call.session_id,
                call_id: call.call_id,
                ..Context::default()
            },
        }
    }
}

/// Where the host's tools are served over MCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct McpAddress {
    /// The address, on this machine.
    pub url: String,
    /// What a client must send with every request, as `Authorization: Bearer TOKEN`.
    pub token: String,
}

/// How a session of an agent begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It is new.
    Create,
    /// It goes on.
    Resume,
    /// It goes on beside itself.
    Fork,
}

impl Opening {
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Create => method::CREATE_SESSION,
            Self::Resume => method::RESUME_SESSION,
            Self::Fork => method::FORK_SESSION,
        }
    }
}

/// The parameters of an opening: what the caller says, and what the session may call and is told.
pub(super) async fn opening_params(mut params: Object, tools: &dyn HostTools) -> Value {
    let entries: Vec<Value> = tools.tools().iter().map(ToolEntry::to_json).collect();
    params.insert("tools".to_owned(), entries.into());
    params.insert("instructions".to_owned(), tools.instructions().await.into());
    Value::Object(params)
}
