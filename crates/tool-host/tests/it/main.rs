//! The host against a real process that breaks the rules.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancelling;
mod kernel;
mod order;
mod outcomes;
mod people;
mod support;
