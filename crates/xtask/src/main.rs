//! The workspace's own chores: docs, bench, generated code.

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct CommandLine {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write the code generated from proto/.
    Proto(xtask::proto::Arguments),
}

fn main() -> anyhow::Result<()> {
    match CommandLine::parse().chore {
        Chore::Proto(arguments) => xtask::proto::run(&arguments),
    }
}
