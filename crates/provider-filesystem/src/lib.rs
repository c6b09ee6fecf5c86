//! The filesystem provider: reads and edits that lose nothing.
//!
//! [`engine`] is pure: what a read or an edit means, on bytes. `tools` has one file per tool, named as on the
//! wire. Every path goes through [`provider_core::jail`]; there is no other way to a file here.

mod batch;
mod cancellable;
mod change;
mod config;
mod directories;
mod document;
pub mod engine;
mod entries;
mod journal;
mod large;
mod media;
mod memory;
mod provider;
mod shown;
mod source;
mod staleness;
mod tools;
mod verify;

pub use config::{FilesystemConfig, Media, Stale};
pub use provider::Filesystem;
