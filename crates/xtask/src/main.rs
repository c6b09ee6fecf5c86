//! The workspace's own chores: docs, bench, stress, generated code.

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct CommandLine {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write catalog.md and docs/tools/ from the declarations of the tools.
    Docs(xtask::docs::Arguments),
    /// Measure what has a budget and write docs/benchmarks.md.
    Bench(xtask::bench::Arguments),
    /// Build the release: archives, hashes, manifest, mirror.
    Dist(xtask::dist::Arguments),
    /// Make a provider in this workspace, from the template.
    NewProvider(xtask::new_provider::Arguments),
    /// Write the code generated from proto/.
    Proto(xtask::proto::Arguments),
    /// Run something for a long time in search of what is wrong.
    Stress(xtask::stress::Arguments),
}

fn main() -> anyhow::Result<()> {
    match CommandLine::parse().chore {
        Chore::Docs(arguments) => xtask::docs::run(&arguments),
        Chore::Bench(arguments) => xtask::bench::run(&arguments),
        Chore::Dist(arguments) => xtask::dist::run(&arguments),
        Chore::NewProvider(arguments) => xtask::new_provider::run(&arguments),
        Chore::Proto(arguments) => xtask::proto::run(&arguments),
        Chore::Stress(arguments) => xtask::stress::run(&arguments),
    }
}
