//! Code mode: an agent writes a short JavaScript program that calls tools, and reads what it returned.
//!
//! The program runs in a process of its own that can do nothing but talk to this one ([`codemode_sandbox`]). Here is the
//! side that does things: [`Program::run`] launches the process, makes the calls that it asks for through a [`ToolHost`],
//! keeps it within its limits, and tells in a [`Report`] what came of it. [`catalogue`] is what a program may call, as a
//! value and as text for a model; [`providers`] is the host over tool providers, where every call is gated as a direct
//! one is.
//!
//! A program that becomes the sandbox calls [`run_if_asked`] first of all.

pub mod catalogue;
mod child;
mod console;
mod frames;
mod host;
mod program;
pub mod providers;
mod report;
mod starter;

pub use child::{NoSandbox, Sandboxing, probe, set_program};
pub use codemode_sandbox::frames::{Confinement, Reason};
pub use codemode_sandbox::{Part, SANDBOX_ARGUMENT, Setting, run_if_asked};
pub use host::{Answer, Failure, ToolCall, ToolHost};
pub use program::{Limits, Program, Progress};
pub use report::{CallRecord, CallStatus, Report};
