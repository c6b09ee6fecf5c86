//! One file per tool, named as on the wire.

pub(crate) mod add_note;
pub(crate) mod import_notes;
pub(crate) mod list_notes;
