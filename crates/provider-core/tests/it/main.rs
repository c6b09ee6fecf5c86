//! The SDK, driven in-process over real gRPC.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod calls;
mod compile_fail;
mod demo;
mod kernel;
mod services;
