//! Code mode over a host with a few small tools: what a program is, what it may call, what it may use, and what it can
//! never do.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fx;
mod limits;
mod sandbox;
mod shape;
mod tools;
