//! Plugin folders, rules and settings on a real file system.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod folder;
mod rules;
mod settings;
mod support;
