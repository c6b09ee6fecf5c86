//! The bridge against clients: what goes over the wire, line by line.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod asking;
mod calls;
mod changes;
mod fixture;
mod http;
mod lifecycle;
mod servers;
mod views;
mod wire;
