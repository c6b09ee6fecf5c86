//! `cargo xtask dist`: the release, reproducibly.
//!
//! The same commit gives the same bytes: paths of the machine are taken out of the programs, archives know no time
//! and no owner, and nothing that is written depends on the order in which it was made.

mod build;
mod papers;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use harness_proto::config::v1::AttrType;
use harness_proto::tool::v1::GetSchemaResponse;
use release::{Builder, Described, Index, Platform, Release};
use serde_json::{Map, Value, json};

/// Arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder the release goes to.
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Rust target to build for; this machine's by default.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Provider to release; repeatable, all of the catalog and toolctl by default.
    #[arg(long = "provider", value_name = "NAME")]
    providers: Vec<String>,
    /// Build although something is not committed; the release says so.
    #[arg(long)]
    allow_dirty: bool,
    /// Build nothing; put releases of one commit, made on different machines, together. Repeatable.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "providers", "check"])]
    merge: Vec<PathBuf>,
    /// Build nothing; write the list of a mirror's releases anew, which those who read it over HTTP go by.
    #[arg(long, value_name = "MIRROR", conflicts_with_all = ["target", "providers", "check", "merge"])]
    index: Option<PathBuf>,
    /// Build nothing; verify every hash of the release, and hold each program that runs here against the protocol.
    #[arg(long)]
    check: bool,
}

/// Builds the release, or checks one.
///
/// # Errors
/// Something cannot be built or written; with `--check`, a hash is wrong or a provider does not conform.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let out = root.join(&arguments.out);
    if let Some(mirror) = &arguments.index {
        let index = Index::write(mirror).with_context(|| mirror.display().to_string())?;
        tell(&format!("{}: {} releases", mirror.display(), index.releases.len()));
        Ok(())
    } else if arguments.check {
        check(&root, &out)
    } else if let [first, ..] = arguments.merge.as_slice() {
        merge(&out, first, &arguments.merge)
    } else {
        build(&root, &out, arguments)
    }
}

fn merge(out: &Path, first: &Path, folders: &[PathBuf]) -> anyhow::Result<()> {
    let first = Release::open(first)?;
    let mut builder = Builder::new(out, first.manifest().version.clone(), &first.manifest().commit)?;
    for folder in folders {
        builder.adopt(&Release::open(folder)?)?;
    }
    let release = builder.finish()?;
    tell(&format!("{}: {} archives", out.display(), release.manifest().artifacts().count()));
    Ok(())
}

fn build(root: &Path, out: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let commit = commit(root, arguments.allow_dirty)?;
    let target = arguments.target.clone().map_or_else(build::host, Ok)?;
    let platform = Platform::of_target(&target)?;
    let version = env!("CARGO_PKG_VERSION").parse().context("the workspace's version")?;
    let mut builder = Builder::new(out, version, &commit)?;
    let known = crate::docs::providers()?;
    let wanted =
        |name: &str| arguments.providers.is_empty() || arguments.providers.iter().any(|one| one == name);
    if let Some(unknown) =
        arguments.providers.iter().find(|name| !known.iter().any(|(known, _)| known == name))
    {
        bail!("the catalog has no provider {unknown}");
    }
    for (name, schema) in known.iter().filter(|(name, _)| wanted(name)) {
        let package = format!("provider-{name}");
        let described = Described {
            name: (*name).to_owned(),
            source: format!("github.com/pluggable-harness/{package}"),
            category: "tool".to_owned(),
            example: example(name, schema)?,
        };
        let program = build::program(root, &package, &target)?;
        builder.add(&described, &platform, program, &papers::of(root, &package, &target)?)?;
        tell(&format!("packed {package} for {platform}"));
    }
    if arguments.providers.is_empty() {
        let program = build::program(root, "toolctl", &target)?;
        builder.add_program("toolctl", &platform, program, &papers::of(root, "toolctl", &target)?)?;
        tell(&format!("packed toolctl for {platform}"));
    }
    let release = builder.finish()?;
    tell(&format!("{}: {} at {commit}", out.display(), release.manifest().version));
    Ok(())
}

/// The commit that is built. What is not committed cannot be built again by anybody else.
fn commit(root: &Path, allow_dirty: bool) -> anyhow::Result<String> {
    let git = |arguments: &[&str]| -> anyhow::Result<String> {
        let output = Command::new("git").args(arguments).current_dir(root).output().context("git")?;
        if !output.status.success() {
            bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    match git(&["status", "--porcelain"])?.lines().next() {
        None => Ok(commit),
        Some(_) if allow_dirty => Ok(format!("{commit}-dirty")),
        Some(first) => bail!("not committed: {first} (and maybe more); commit it, or say --allow-dirty"),
    }
}

/// A configuration that the provider accepts: a value for each required attribute.
fn example(provider: &str, schema: &GetSchemaResponse) -> anyhow::Result<Map<String, Value>> {
    let mut example = Map::new();
    let attributes = schema.config_schema.iter().flat_map(|schema| &schema.attributes);
    for attribute in attributes.filter(|attribute| attribute.required) {
        let value = match (attribute.name.as_str(), attribute.r#type()) {
            ("allowed_roots", AttrType::ListString) => json!(["."]),
            ("root", AttrType::String) => json!("."),
            (name, _) => bail!("{provider} requires {name}, and no example of it is known"),
        };
        example.insert(attribute.name.clone(), value);
    }
    Ok(example)
}

fn check(root: &Path, out: &Path) -> anyhow::Result<()> {
    let release = Release::open(out)?;
    release.verify()?;
    tell("every hash is right");
    let folder = tempfile::tempdir()?;
    let here = Platform::here();
    let mut checked = 0;
    for provider in &release.manifest().providers {
        let Some(artifact) = provider.artifacts.get(&here) else { continue };
        let path = folder.path().join(&artifact.program);
        std::fs::write(&path, release.program(artifact)?)?;
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        conforms(root, &provider.name, &path)?;
        checked += 1;
    }
    if checked == 0 {
        bail!("the release has no provider for {here}, so none could be held against the protocol");
    }
    tell(&format!("{checked} providers conform on {here}"));
    Ok(())
}

fn conforms(root: &Path, name: &str, program: &Path) -> anyhow::Result<()> {
    let calls = root.join(format!("tests/conformance/{name}.json"));
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "toolctl", "--", "check"])
        .arg(program)
        .arg("--calls")
        .arg(calls)
        .current_dir(root)
        .status()
        .context("cargo run --package toolctl")?;
    if !status.success() {
        bail!("{name} does not conform: {status}");
    }
    Ok(())
}

#[allow(clippy::print_stderr, reason = "what a chore has to say goes to the person who started it")]
fn tell(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_an_example_configuration() {
        for (name, schema) in crate::docs::providers().unwrap() {
            let example = example(name, &schema).unwrap();
            let attributes = schema.config_schema.iter().flat_map(|schema| &schema.attributes);
            assert_eq!(example.len(), attributes.filter(|attribute| attribute.required).count(), "{name}");
        }
    }
}
