//! A program that is nothing but a sandbox, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    codemode::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
