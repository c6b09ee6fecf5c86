//! The tools, one file each.

pub(crate) mod spawn_subagent;
pub(crate) mod subagent_list;
