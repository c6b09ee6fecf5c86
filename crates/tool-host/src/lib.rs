//! Launches and drives tool providers the way the kernel does: sessions, approval, concurrency, answers.

pub mod assign;
pub mod catalogue;
pub mod config;
pub mod event;
mod json;
mod nearest;
pub mod schedule;
pub mod schema;
mod tree_json;

pub use json::from_struct as struct_to_json;
pub use nearest::nearest;
pub use tree_json::tree_to_json;
