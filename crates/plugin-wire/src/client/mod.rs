//! The host's side: starts a plugin's process and uses what it offers.

mod host;
mod link;
mod listing;
mod plugin;
mod process;

pub use host::{HostCall, HostTools, McpAddress, Opening};
pub use listing::listed;
pub use plugin::{PluginProcess, Start, StartError};
