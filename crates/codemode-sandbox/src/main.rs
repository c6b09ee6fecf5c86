//! A program that is nothing but a sandbox, for hosts that are not their own, such as tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    codemode_sandbox::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
