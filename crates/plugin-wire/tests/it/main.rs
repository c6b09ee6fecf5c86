//! Both sides of the wire, without a process between them and with one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod client;
mod server;
mod support;
mod toolbox;
