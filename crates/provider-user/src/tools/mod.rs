//! The tools, one file each.

pub(crate) mod ask_user;
