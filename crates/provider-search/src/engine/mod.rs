//! Searching, without the SDK and the wire.

pub mod encoding;
pub mod excerpt;
pub mod filter;
pub mod fuzzy;
pub mod glob;
pub mod grep;
pub mod hits;
pub mod ignore_rules;
mod lines;
mod look_around;
pub mod matcher;
pub mod select;
pub mod stop;
pub mod walk;
pub(crate) mod warm;
