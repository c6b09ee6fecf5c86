//! The contract between a plugin and its host, shown with real processes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;
mod conversation;
mod generated;
mod host;
mod plugin;
mod support;
