//! One file per tool, named as on the wire.

pub(crate) mod find_file;
pub(crate) mod glob;
pub(crate) mod grep;
