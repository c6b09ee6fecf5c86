//! The Model Context Protocol, both sides.
//!
//! As a server, a [`Bridge`] serves the tools of a [`Toolbox`] to an agent, over [stdio](serve_stdio) or over
//! [HTTP on this machine](serve_http): one tool, `execute`, that runs programs over all of them, or each as a tool of its
//! own. As a client, [`McpServer`] makes a server's tools a [`Source`](tool_host::Source) that a toolbox can hold.
//!
//! `rmcp` speaks the protocol, and no other crate of the workspace names it.
//!
//! A call takes this way: [`Bridge`] looks up the tool, `running` makes the call on a task of its own, and `drive` follows
//! it for the request: tells of progress, puts questions, ends it when it is cancelled. A question to a client that can be
//! asked goes out at once; to one of a stateless revision it is the answer, and `rounds` keeps the call until the next
//! request brings what the person said.

mod client;
mod execute;
mod limits;
mod programs;
mod server;
mod text;
mod toolbox;

pub use client::{McpError, McpServer};
pub use server::{
    Access, Bridge, HttpError, ServeError, Serving, View, serve_http, serve_stdio, serve_stream,
};
pub use toolbox::{SameName, Setting, Toolbox};
