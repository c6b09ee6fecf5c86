//! The web provider as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    provider_core::run::<provider_web::Web>()
}
