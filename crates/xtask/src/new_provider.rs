//! `cargo xtask new-provider`: a provider in this workspace, from the template.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use scaffold::{Plan, ProviderName, workspace};

/// Arguments of `cargo xtask new-provider`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name of the provider, such as `web` or `issue-tracker`.
    #[arg(required_unless_present = "check")]
    name: Option<String>,
    /// Show what would be created and changed, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Fail if a provider's crate is not in every list that a new one is added to.
    #[arg(long, conflicts_with_all = ["name", "dry_run"])]
    check: bool,
}

/// Makes the crate and registers it.
///
/// # Errors
/// The name cannot be used, is taken, or a file could not be written; with `--check`, a provider is not listed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let Some(name) = &arguments.name else { return check(&root) };
    let name = ProviderName::parse(name)?;
    let plan = workspace::plan(&name, &root)?;
    if arguments.dry_run {
        tell(&plan.lines().map(|line| format!("would {line}\n")).collect::<String>());
        return Ok(());
    }
    plan.apply()?;
    format(&root, &plan)?;
    tell(&report(&name, &plan));
    Ok(())
}

fn check(root: &Path) -> anyhow::Result<()> {
    let missing = workspace::missing(root)?;
    if !missing.is_empty() {
        bail!("{}", missing.join("\n"));
    }
    Ok(())
}

/// Formats what was written: other names make other line breaks.
fn format(root: &Path, plan: &Plan) -> anyhow::Result<()> {
    let created = plan.creates.iter().map(|(path, _)| path.as_path());
    let rust =
        created.chain(workspace::rust_lists()).filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let status = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .args(rust)
        .current_dir(root)
        .status()
        .context("rustfmt cannot be started; run `cargo fmt`")?;
    if !status.success() {
        bail!("rustfmt failed; everything is written, run `cargo fmt`");
    }
    Ok(())
}

fn report(name: &ProviderName, plan: &Plan) -> String {
    let mut text: String = plan.lines().map(|line| line + "\n").collect();
    let package = name.package();
    text.push_str(&format!(
        "\n{package} has one tool, greet. Next:\n  cargo test -p {package}\n  cargo xtask docs          # its pages in the catalog\n  \
         cargo run -p toolctl -- call {name} greet name=Ada\n  cargo run -p toolctl -- check {name} --calls tests/conformance/{name}.json\n\
         docs/write-a-provider.md goes on from here.\n"
    ));
    text
}

#[allow(clippy::print_stdout, reason = "what a chore has to say goes to the person who started it")]
fn tell(text: &str) {
    print!("{text}");
}
