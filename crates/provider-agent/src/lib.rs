//! The agent provider: hands work to other agents.
//!
//! A subagent is a nested session of the kernel, where the kernel has them, and otherwise a command: an agent with a
//! command line, run under the process supervisor and its sandbox. [`engine`] is pure; `family` keeps depth and number
//! within what the first of all callers allowed; `runner` runs a command to its end; `tools` has one file per tool.

mod config;
pub mod engine;
mod family;
mod outputs;
mod provider;
mod register;
mod runner;
mod tools;

pub use config::AgentConfig;
pub use provider::Agents;
