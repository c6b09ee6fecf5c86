//! The exec provider, in process over real gRPC and as a program.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancel;
mod environment;
mod jobs;
mod machines;
mod output;
mod preview;
mod process;
mod returns;
mod sandbox;
mod scenarios;
mod shell_read;
mod shown;
mod support;
mod timeout;
mod working_directory;
