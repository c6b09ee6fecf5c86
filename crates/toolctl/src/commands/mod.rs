//! One file per command.

mod call;
mod check;
mod describe;
mod dev;
mod diff;
mod doctor;
mod install;
mod instructions;
mod list;
mod mcp;
mod mirror;
mod new;
mod plugin;
mod plugins;
mod preview;
mod rules;
mod session;
mod settings;

use clap::CommandFactory as _;

use crate::cli::{Cli, Command, Man, Schema};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::open::Setup;
use crate::shell::Shell;

/// Runs a command to the program's exit code.
pub(crate) async fn run(command: Command, shell: Shell) -> Result<Exit, Failure> {
    let mut interrupts = Interrupts::watch()?;
    match command {
        Command::List(args) => interrupts.guard(list::run(args, &shell)).await,
        Command::Describe(args) => interrupts.guard(describe::run(args, &shell)).await,
        Command::Schema(args) => interrupts.guard(schema(args, &shell)).await,
        Command::Call(args) => call::run(args, &shell, &mut interrupts).await,
        Command::Preview(args) => interrupts.guard(preview::run(args, &shell)).await,
        Command::Mcp(args) => mcp::run(args, &shell, &mut interrupts).await,
        Command::Session(args) => session::run(args, &shell, &mut interrupts).await,
        Command::Check(args) => interrupts.guard(check::run(args, &shell)).await,
        Command::Doctor(args) => interrupts.guard(doctor::run(args, &shell)).await,
        Command::Dev(args) => dev::run(args, &shell, &mut interrupts).await,
        Command::Diff(args) => interrupts.guard(diff::run(args, &shell)).await,
        Command::Install(args) => interrupts.guard(install::run(args, &shell)).await,
        Command::Plugin(args) => plugin::run(args, &shell, &mut interrupts).await,
        Command::Instructions(args) => interrupts.guard(instructions::run(args, &shell)).await,
        Command::Rules(args) => rules::run(&args, &shell),
        Command::Plugins(args) => interrupts.guard(plugins::run(args, &shell)).await,
        Command::Settings(args) => settings::run(&args, &shell),
        Command::New(args) => new::run(&args, &shell),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "toolctl", &mut script);
            shell.data(&String::from_utf8_lossy(&script));
            Ok(Exit::Done)
        }
        Command::Man(args) => manual(args, &shell),
    }
}

fn manual(args: Man, shell: &Shell) -> Result<Exit, Failure> {
    let mut program = Cli::command();
    program.build();
    let command = match args.command.as_deref() {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => return Err(Failure::wrong_usage(format!("there is no command {name}"))),
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::provider(format!("cannot write the manual page: {error}")))?;
    shell.data(&String::from_utf8_lossy(&page));
    Ok(Exit::Done)
}

async fn schema(args: Schema, shell: &Shell) -> Result<Exit, Failure> {
    verbosity(args.shared.verbose, shell);
    let provider = Setup::new(&args.shared)?.launch(&args.provider, shell).await?;
    shell.json_document(&tool_host::catalogue::dump(provider.identity(), provider.catalogue()));
    provider.stop().await;
    Ok(Exit::Done)
}

fn verbosity(verbose: bool, shell: &Shell) {
    if verbose {
        shell.be_verbose();
    }
}
