//! The exec provider: a shell that never hangs, never leaks, and really ends.
//!
//! [`engine`] is pure: how output is decoded, kept and shown, and how a command is read. `tools` has one file per
//! tool, named as on the wire. Processes are run by [`provider_core::supervisor`], and by nothing else: `launch`
//! starts them, `process` follows one, `foreground` while its caller waits and `job` beside the calls; `record` is
//! what both write to.

mod config;
pub mod engine;
mod environment;
mod foreground;
mod job;
mod launch;
mod login;
mod process;
mod protect;
mod provider;
mod reading;
mod record;
mod session;
mod shown;
pub mod spill;
mod state;
mod tools;

pub use config::{ExecConfig, SandboxWanted, Survivors};
pub use login::{CommandPath, command_path};
pub use provider::Exec;
