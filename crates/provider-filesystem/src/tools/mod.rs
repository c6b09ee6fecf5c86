//! One file per tool, named as on the wire.

pub(crate) mod apply_patch;
pub(crate) mod copy_path;
pub(crate) mod create_directory;
pub(crate) mod delete_path;
pub(crate) mod edit_file;
pub(crate) mod file_info;
pub(crate) mod list_directory;
pub(crate) mod move_path;
pub(crate) mod multi_edit;
pub(crate) mod read_file;
pub(crate) mod undo_change;
pub(crate) mod write_file;
