//! The search provider over real gRPC, in this process and as a process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod find_file;
mod glob;
mod grep;
mod ignoring;
mod limits;
mod peer;
mod races;
mod sandbox;
mod scenarios;
