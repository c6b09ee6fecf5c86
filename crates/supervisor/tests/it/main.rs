//! Jobs as processes: what runs, what ends, and that nothing is left.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ends;
mod reads;
mod runs;
mod sandbox;
mod support;
