//! One command line for every tool provider.
//!
//! `main` decides between the things this program is: a sandbox or a guard, when a provider has started it as one; a
//! provider of the catalog, when a host has; a question on the terminal, when it has started itself as one; and otherwise the command line.

mod carrier;
mod cli;
mod commands;
mod dialog;
mod embedded;
mod exit;
mod interrupt;
mod open;
mod paint;
mod prompt;
mod reach;
mod registry;
mod shell;
mod sources;
mod workspaces;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tool_host::{CallError, Category};

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::shell::{ColorChoice, Shell};

fn main() -> ExitCode {
    if let Some(code) = provider_code::run_if_asked() {
        return code;
    }
    if let Some(code) = provider_core::supervisor::run_if_asked() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = embedded::run_if_asked(&arguments) {
        return code;
    }
    if let Some(code) = dialog::run_if_asked(&arguments) {
        return code;
    }
    match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(cli).into(),
        Err(error) => refuse(&error, &arguments).into(),
    }
}

fn run(cli: Cli) -> Exit {
    let shell = Shell::new(cli.color, cli.command.json());
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shell.failure(&Failure::provider(format!("cannot start the runtime: {error}"))),
    };
    let exit = match runtime.block_on(commands::run(cli.command, shell.clone())) {
        Ok(exit) => exit,
        Err(failure) => shell.failure(&failure),
    };
    // A thread may still wait for a line from the terminal; nothing is left for it to do.
    runtime.shutdown_timeout(Duration::from_millis(10));
    // What was asked for did not arrive, so it is not done.
    if exit == Exit::Done && shell.output_lost() { Exit::ToolFailed } else { exit }
}

/// What clap has to say: help and version are data, everything else is a usage error.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let json = arguments.iter().any(|argument| argument == "--json");
    let shell = Shell::new(ColorChoice::Auto, json);
    if !error.use_stderr() {
        shell.data(&error.render().to_string());
        return Exit::Done;
    }
    if json {
        let text = error.render().to_string();
        let lines = text.trim_start_matches("error: ").lines().map(str::trim);
        let message = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        return shell.failure(&Failure::usage(CallError::new(Category::InvalidArguments, message)));
    }
    shell.note(&error.render().to_string());
    Exit::Usage
}
