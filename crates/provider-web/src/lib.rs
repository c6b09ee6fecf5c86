//! The web provider: pages as text, searches, requests.
//!
//! [`text`] is pure: it makes of a body and what its server says of it a document that can be read and paged. `fetch`
//! gets pages, through the cache or through [`http_guard`], which is the only way out. `tools` has one file per tool.

mod cache;
mod config;
mod error;
mod fetch;
mod provider;
mod rate;
mod readings;
mod robots;
pub mod search;
mod searcher;
pub mod text;
mod tools;

pub use config::{Media, RobotsWanted, WebConfig};
pub use provider::Web;
