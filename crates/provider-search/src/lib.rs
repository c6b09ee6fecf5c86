//! The search provider: what is in files, and where files are.
//!
//! [`engine`] knows neither the SDK nor the wire: matching, walking, excerpts. `tools` has one file per tool, named
//! as on the wire. Every directory and file is opened through [`provider_core::jail`].

mod config;
pub mod engine;
mod provider;
mod running;
mod tools;

pub use config::SearchConfig;
pub use provider::Search;
