//! The exec provider, in process over real gRPC and as a program.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancel;
mod environment;
mod jobs;
mod output;
mod process;
mod returns;
mod scenarios;
mod shown;
mod support;
mod timeout;
mod working_directory;
