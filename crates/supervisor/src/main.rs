//! A program that is nothing but a guard, for hosts that are not their own, such as tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    supervisor::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
