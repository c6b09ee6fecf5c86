//! The web provider: pages as text, searches, requests.
//!
//! [`text`] is pure: it makes of a body and what its server says of it a document that can be read and paged.

mod provider;
pub mod text;

pub use provider::{Web, WebConfig};
