//! The built program: what it writes where, and how it exits.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agent;
mod call;
mod check;
mod code;
mod dev;
mod diff;
mod exec;
mod inspect;
mod install;
mod install_agents;
mod install_http;
mod mcp;
mod new;
mod new_crate;
mod plugin;
mod rules;
mod session;
mod support;
mod terminal;
