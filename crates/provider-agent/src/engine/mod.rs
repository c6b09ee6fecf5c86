//! Subagents without processes.

pub mod kept;
pub mod lines;
pub mod template;
