//! A toolbox, handed to the agents of a plugin.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tool_host::source::ToolResult;

use crate::call::ToolEntry;
use crate::client::{HostCall, HostTools, McpAddress};
use crate::message::RpcError;
use crate::server::Served;
use crate::subagents::Subagents;

/// Says what an agent is told; asked for every session, so that it is told what holds then.
type Instructions = dyn Fn() -> BoxFuture<'static, String> + Send + Sync;
/// Serves the tools over MCP, for work in a folder.
type ServeMcp = dyn Fn(Option<PathBuf>) -> BoxFuture<'static, Result<McpAddress, RpcError>> + Send + Sync;

/// The tools of something served, for agents that a plugin provides: they may call what is served, and nothing else.
pub struct Handed<S> {
    served: Arc<S>,
    instructions: Box<Instructions>,
    mcp: Box<ServeMcp>,
}

impl<S> std::fmt::Debug for Handed<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handed")
    }
}

impl<S: Served> Handed<S> {
    /// Hands over what is served.
    pub fn new(
        served: Arc<S>,
        instructions: impl Fn() -> BoxFuture<'static, String> + Send + Sync + 'static,
        mcp: impl Fn(Option<PathBuf>) -> BoxFuture<'static, Result<McpAddress, RpcError>> + Send + Sync + 'static,
    ) -> Self {
        Self { served, instructions: Box::new(instructions), mcp: Box::new(mcp) }
    }
}

impl<S: Served> HostTools for Handed<S> {
    fn tools(&self) -> Vec<ToolEntry> {
        self.served.tools()
    }

    fn instructions(&self) -> BoxFuture<'_, String> {
        (self.instructions)()
    }

    fn call(&self, call: HostCall, cancel: CancellationToken) -> BoxFuture<'_, Result<ToolResult, RpcError>> {
        self.served.clone().call(call.into(), cancel, Subagents::unseen())
    }

    fn serve_mcp(&self, workspace: Option<PathBuf>) -> BoxFuture<'_, Result<McpAddress, RpcError>> {
        (self.mcp)(workspace)
    }
}
