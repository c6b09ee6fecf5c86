//! `cargo xtask bench`: what has a budget, measured beside a peer in one run, written to `docs/benchmarks.md`.

mod commands;
mod figures;
mod files;
mod machine;
mod pages;
mod programs;
mod searches;
mod start;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use figures::Section;

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the page instead of writing docs/benchmarks.md.
    #[arg(long)]
    dry_run: bool,
    /// A large tree to search: the sources of a kernel, of a registry, or both. Needs rg and fd, the newest, in PATH.
    #[arg(long)]
    tree: Option<PathBuf>,
    /// Measure only this, which implies --dry-run: calls, files, exec, flood, html, search, cancel, many or code. Can be
    /// repeated.
    #[arg(long)]
    only: Vec<String>,
    /// Measure programs that were built before.
    #[arg(long)]
    no_build: bool,
}

/// Measures the rows of one section.
type Measure = fn(&Bench) -> anyhow::Result<Section>;

/// What is measured, by name, and whether it needs the large tree.
const PARTS: &[(&str, bool, Measure)] = &[
    ("calls", false, start::calls),
    ("files", false, files::files),
    ("exec", false, commands::commands),
    ("flood", false, commands::floods),
    ("html", false, pages::pages),
    ("search", true, searches::searches),
    ("cancel", true, searches::cancels),
    ("many", false, searches::many),
    ("code", false, programs::programs),
];

/// The packages that are measured, and the client.
const PROGRAMS: [&str; 5] =
    ["bench-client", "codemode", "provider-exec", "provider-filesystem", "provider-search"];
/// What measures inside its own process.
const EXAMPLES: [&str; 1] = ["measure"];

/// Builds the providers as they are packaged, measures, and writes the page.
///
/// # Errors
/// A provider cannot be built or does not answer as it should; a program to compare with is missing.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    if let Some(unknown) = arguments.only.iter().find(|only| !PARTS.iter().any(|(name, ..)| name == only)) {
        let names: Vec<_> = PARTS.iter().map(|(name, ..)| *name).collect();
        bail!("--only {unknown}: there is {}", names.join(", "));
    }
    let bench = Bench::new(&root, arguments)?;
    let mut page = machine::heading();
    for (name, needs_tree, measure) in PARTS {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| only == name) {
            continue;
        }
        if *needs_tree && arguments.tree.is_none() {
            let _ = write!(page, "\nNot measured in this run, for lack of `--tree`: {name}.\n");
            continue;
        }
        page.push_str(&measure(&bench).context(*name)?.to_string());
    }
    if arguments.dry_run || !arguments.only.is_empty() {
        use std::io::Write as _;
        std::io::stdout().write_all(page.as_bytes())?;
        return Ok(());
    }
    let path = root.join("docs/benchmarks.md");
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

/// The programs, built, and what they are measured on.
struct Bench {
    programs: PathBuf,
    tree: Option<PathBuf>,
}

impl Bench {
    fn new(root: &Path, arguments: &Arguments) -> anyhow::Result<Self> {
        if !arguments.no_build {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(cargo);
            command.current_dir(root).args(["build", "--profile", "dist"]);
            command.args(PROGRAMS.iter().flat_map(|name| ["--package", name])).arg("--bins");
            command.args(EXAMPLES.iter().flat_map(|name| ["--example", name]));
            ensure!(command.status()?.success(), "the programs do not build");
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let tree = arguments.tree.as_ref().map(|tree| tree.canonicalize().context("--tree")).transpose()?;
        Ok(Self { programs: target.join("dist"), tree })
    }

    fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// What the client measures when it is called so.
    fn client(&self, what: &str, provider: &str) -> anyhow::Result<Value> {
        self.client_on(what, &self.program(provider))
    }

    /// What the client measures on something else than a provider.
    fn client_on(&self, what: &str, path: &Path) -> anyhow::Result<Value> {
        let mut command = Command::new(self.program("bench-client"));
        command.arg(what).arg(path).stderr(Stdio::inherit());
        command.args(&self.tree);
        let output = command.output()?;
        ensure!(output.status.success(), "bench-client {what} fails");
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
