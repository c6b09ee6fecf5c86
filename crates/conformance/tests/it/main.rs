//! The suite is held against providers that are known to be wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod faults;
