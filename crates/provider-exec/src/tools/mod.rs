//! One file per tool, named as on the wire.

pub(crate) mod bash;
pub(crate) mod job_kill;
pub(crate) mod job_list;
pub(crate) mod job_output;
pub(crate) mod job_write;
pub(crate) mod shell_read;
