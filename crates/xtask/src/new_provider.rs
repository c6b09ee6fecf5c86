//! `cargo xtask new-provider`: a provider in this workspace, from the template.

use std::collections::BTreeSet;
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
    /// With a name: make it in a copy, and fail unless it is the template under that name in a workspace that
    /// cargo accepts. Without: fail if a provider's crate is not in every list that a new one is added to.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
}

/// Makes the crate and registers it.
///
/// # Errors
/// The name cannot be used, is taken, or a file could not be written; with `--check`, what is not as it should be.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let Some(name) = &arguments.name else { return check_lists(&root) };
    let name = ProviderName::parse(name)?;
    if arguments.check {
        return check_made(&root, &name);
    }
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

/// Holds the lists against the crates that there are.
///
/// # Errors
/// A provider is not in every list, or one cannot be read.
pub fn check_lists(root: &Path) -> anyhow::Result<()> {
    none(&workspace::missing(root)?)
}

/// Makes a provider in a copy of what it changes, and holds it against the template. Nothing is compiled: the template
/// is, and what is made differs from it in nothing but the name.
///
/// # Errors
/// A file differs, a changed list cannot be read any more, or cargo does not accept the workspace.
pub fn check_made(root: &Path, name: &ProviderName) -> anyhow::Result<()> {
    let copy = tempfile::tempdir()?;
    copy_skeleton(root, copy.path())?;
    let plan = workspace::plan(name, copy.path())?;
    none(&workspace::differences(name, &plan, root)?)?;
    plan.apply()?;
    // What is no Rust does not pass this.
    format(copy.path(), &plan)?;
    none(&workspace::missing(copy.path())?)?;
    let members = members(copy.path())?;
    let made = dependencies(&members, &name.package())?;
    let template = dependencies(&members, "provider-template")?;
    if made != template {
        bail!("{} depends on {made:?}, the template on {template:?}", name.package());
    }
    for user in ["toolctl", "xtask"] {
        if !dependencies(&members, user)?.contains(&name.package()) {
            bail!("{user} does not depend on {}", name.package());
        }
    }
    Ok(())
}

fn none(problems: &[String]) -> anyhow::Result<()> {
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Copies the manifests of a workspace and of its members, with the files by which cargo knows a package's kind.
fn copy_skeleton(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let copied = |path: &Path| -> anyhow::Result<()> {
        let from = root.join(path);
        if from.is_file() {
            let to = copy.join(path);
            std::fs::create_dir_all(to.parent().unwrap_or(copy))?;
            std::fs::copy(&from, to).with_context(|| from.display().to_string())?;
        }
        Ok(())
    };
    for file in ["Cargo.toml", "rustfmt.toml", "crates/toolctl/src/embedded.rs", "crates/xtask/src/docs.rs"] {
        copied(Path::new(file))?;
    }
    for member in members(root)? {
        let manifest = member["manifest_path"].as_str().map(Path::new).context("a member has no manifest")?;
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
        let folder = folder.with_context(|| format!("{} is not below the root", manifest.display()))?;
        for file in ["Cargo.toml", "build.rs", "src/lib.rs", "src/main.rs"] {
            copied(&folder.join(file))?;
        }
    }
    Ok(())
}

/// The packages of a workspace, as cargo reads their manifests.
fn members(root: &Path) -> anyhow::Result<Vec<serde_json::Value>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("cargo does not accept the workspace:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    serde_json::from_value(metadata["packages"].take()).context("cargo metadata lists no packages")
}

fn dependencies(members: &[serde_json::Value], package: &str) -> anyhow::Result<BTreeSet<String>> {
    let found = members.iter().find(|member| member["name"] == package);
    let listed = found.and_then(|member| member["dependencies"].as_array());
    let listed = listed.with_context(|| format!("{package} is not in the workspace"))?;
    Ok(listed.iter().filter_map(|it| it["name"].as_str().map(str::to_owned)).collect())
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
