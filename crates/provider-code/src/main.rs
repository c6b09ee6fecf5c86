//! The code provider as a process of its own, and its sandbox.

use std::process::ExitCode;

fn main() -> ExitCode {
    provider_code::run_if_asked().unwrap_or_else(provider_core::run::<provider_code::Code>)
}
