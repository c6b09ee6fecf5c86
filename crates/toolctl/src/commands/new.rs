//! `toolctl new`: a provider as a crate of its own.

use std::path::{Path, PathBuf};

use scaffold::standalone::{Sdk, plan};
use scaffold::{PlanError, ProviderName};

use crate::cli::New;
use crate::exit::{Exit, Failure};
use crate::shell::Shell;

pub(super) fn run(args: &New, shell: &Shell) -> Result<Exit, Failure> {
    let name = ProviderName::parse(&args.name).map_err(|error| Failure::wrong_usage(error.to_string()))?;
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(name.package()));
    let sdk = args.sdk.as_deref().map_or(Ok(Sdk::Repository), Sdk::checkout)?;
    let plan = plan(&name, &folder, &sdk)?;
    let verb = if args.dry_run { "would " } else { "" };
    if !args.dry_run {
        plan.apply()?;
    }
    plan.lines().for_each(|line| shell.note(&format!("{verb}{line}\n")));
    if !args.dry_run {
        shell.note(&next_steps(&name, &folder));
    }
    Ok(Exit::Done)
}

fn next_steps(name: &ProviderName, folder: &Path) -> String {
    let (folder, package) = (folder.display(), name.package());
    format!(
        "\n{package} is in {folder}, with one tool, greet. Next:\n  cd {folder}\n  cargo test\n  \
         toolctl dev .             # build, and show what changed at every save\n  \
         toolctl call ./target/debug/{package} greet name=Ada\n  \
         toolctl check ./target/debug/{package} --calls tests/conformance/{name}.json\n"
    )
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::wrong_usage(error.to_string())
    }
}
