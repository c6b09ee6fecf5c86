//! The JSON-RPC plugin wire, both sides.
//!
//! A plugin is a process that answers its host on its standard input and output: `initialize`, `tools/list`, `tool/call`,
//! the notification `tool/cancel`; it tells the host of changes with `host/tools.changed`. Shapes are those of the Model
//! Context Protocol.
//!
//! * [`server`] is the plugin's side: [`serve`] answers for anything that is [`Served`]; [`Toolbox`] is that for providers
//!   and other sources of tools.
//! * [`client`] is the host's side: a [`PluginProcess`] starts a plugin and is a source of tools; with a [`HostTools`] it
//!   also answers what the plugin asks of its host, for plugins that provide agents.
//! * [`conventions`] holds all that is not written down anywhere.

mod call;
pub mod client;
pub mod conventions;
mod handed;
mod message;
mod result;
pub mod server;
pub mod subagents;
mod toolbox;

pub use call::{Context, ToolCall, ToolEntry};
pub use handed::Handed;
pub use message::{Id, Incoming, Malformed, Outgoing, Parsed, RpcError, parse, write};
pub use result::{Reported, failed, failure, result_of, structured};
pub use server::{Served, serve};
pub use subagents::Subagents;
pub use toolbox::{Caller, Made, Member, Toolbox};
