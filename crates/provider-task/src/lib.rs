//! The task provider: a durable list of what is to be done, one per session.
//!
//! [`engine`] is pure: what a list may look like, how it reads as text, which files a call has changed. `store` keeps
//! lists in SQLite. `tools` has one file per tool. Beside its tools the provider serves a prompt, a slash command and a
//! hook, as an example of what else a provider can do.

pub mod engine;
mod provider;
mod store;
mod tools;

pub use provider::{TaskConfig, Tasks};
