//! One file per tool, named as on the wire.

pub(crate) mod edit_file;
pub(crate) mod file_info;
pub(crate) mod list_directory;
pub(crate) mod read_file;
pub(crate) mod write_file;
