//! Searching, without the SDK and the wire.

pub mod ignore_rules;
pub mod stop;
pub mod walk;
