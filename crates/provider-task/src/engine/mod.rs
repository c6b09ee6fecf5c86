//! Tasks without storage.

pub mod changed_files;
pub mod markdown;
pub mod plan;
pub mod task;
