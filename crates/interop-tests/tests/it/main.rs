//! The catalog against the original Go plugin library, and against what others wrote for the Model Context Protocol.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agent_under_go_host;
mod conformance_of_go_providers;
mod filesystem_under_go_host;
mod go_host;
mod go_provider_under_go_host;
mod mcp;
mod programs;
mod project_files;
mod toolctl_over_go_provider;
