//! The chores, and what they hold the workspace to.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod allowed;
mod claims;
mod examples;
mod generated;
mod new_provider;
