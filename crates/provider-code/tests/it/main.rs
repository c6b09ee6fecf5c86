//! The code provider, in this process and as a process of its own, and programs over providers that a host has.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod gated;
mod process;
mod programs;
mod support;
