//! The exec provider: a shell that never hangs, never leaks, and really ends.
//!
//! [`engine`] is pure: how output is decoded, kept and shown, and how a command is read. `tools` has one file per
//! tool, named as on the wire. Processes are run by [`provider_core::supervisor`], and by nothing else.

pub mod engine;
pub mod spill;
