//! Building one program so that the same commit gives the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Where programs are built: beside the other builds, whose flags differ.
const TARGET_FOLDER: &str = "target/release-build";

/// The Rust target of this machine.
///
/// # Errors
/// `rustc` does not say.
pub(super) fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc -vV")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}

/// Builds the program of `package`, alone, so that it links what it asks for and nothing that another package of the
/// same build does.
///
/// # Errors
/// The build fails.
pub(super) fn program(root: &Path, package: &str, target: &str) -> anyhow::Result<Vec<u8>> {
    let folder = root.join(TARGET_FOLDER);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--profile", "dist", "--package", package, "--bin", package])
        .args(["--target", target])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(root)?)
        .env("CFLAGS", c_flags(root)?)
        .env_remove("RUSTFLAGS")
        .status()
        .context("cargo build")?;
    if !status.success() {
        bail!("{package} cannot be built: {status}");
    }
    let suffix = if target.contains("windows") { ".exe" } else { "" };
    let path = folder.join(target).join("dist").join(format!("{package}{suffix}"));
    std::fs::read(&path).with_context(|| path.display().to_string())
}

/// Folders of this machine that would stand in programs, and what stands there instead.
fn folders(root: &Path) -> anyhow::Result<[(PathBuf, &'static str); 2]> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cargo")));
    Ok([(root.to_path_buf(), "/catalog"), (cargo.context("neither CARGO_HOME nor HOME is set")?, "/cargo")])
}

fn rust_flags(root: &Path) -> anyhow::Result<String> {
    let maps = folders(root)?;
    let flags = maps.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    Ok(flags.collect::<Vec<_>>().join("\u{1f}"))
}

fn c_flags(root: &Path) -> anyhow::Result<String> {
    let maps = folders(root)?;
    let flags = maps.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
    Ok(flags.collect::<Vec<_>>().join(" "))
}
