//! Builds a provider's crate with cargo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::exit::Failure;

/// What came of a build.
pub(super) struct Built {
    /// The provider's program.
    pub(super) program: PathBuf,
    /// Every source it was made from, also those of other crates that are no downloads.
    pub(super) sources: Vec<PathBuf>,
}

/// Builds the package of a manifest. What cargo and the compiler say goes to stderr as they say it.
///
/// # Errors
/// The build failed, or made no program that could be the provider.
pub(super) async fn build(manifest: &Path, arguments: &[String]) -> Result<Built, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(&cargo);
    command.args(["build", "--message-format=json-render-diagnostics", "--manifest-path"]);
    command.arg(manifest).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| {
        Failure::provider(format!("cannot start {}: {error}", cargo.display()))
            .hint("a crate is built with cargo; https://rustup.rs installs it")
    })?;
    let _group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())).map(Group);
    let mut programs = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            programs.extend(program(&line, manifest));
        }
    }
    match child.wait().await {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(Failure::provider("the crate does not build; the reasons stand above")),
        Err(error) => return Err(Failure::provider(format!("cargo cannot be waited for: {error}"))),
    }
    let program = the_program(programs, manifest)?;
    let sources = sources(&program);
    Ok(Built { program, sources })
}

/// A build that ends, whatever of it still runs, when this is dropped.
struct Group(rustix::process::Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // After an ordinary end there is nobody left in the group, and that is no error here.
        let _ = rustix::process::kill_process_group(self.0, rustix::process::Signal::TERM);
    }
}

/// The program of the manifest's own package that a line of cargo's messages tells of, with its target's name.
fn program(line: &str, manifest: &Path) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["manifest_path"].as_str()? != manifest.to_str()? {
        return None;
    }
    let program = message["executable"].as_str()?;
    let name = message["target"]["name"].as_str()?;
    Some((name.to_owned(), PathBuf::from(program)))
}

/// The one program, or the one that is named as a provider is.
fn the_program(mut programs: Vec<(String, PathBuf)>, manifest: &Path) -> Result<PathBuf, Failure> {
    if programs.len() > 1 && programs.iter().filter(|(name, _)| name.starts_with("provider-")).count() == 1 {
        programs.retain(|(name, _)| name.starts_with("provider-"));
    }
    match <[_; 1]>::try_from(programs) {
        Ok([(_, program)]) => Ok(program),
        Err(none) if none.is_empty() => {
            let message = format!("{} builds no program", manifest.display());
            Err(Failure::provider(message)
                .hint("a provider needs src/main.rs; toolctl new NAME makes a crate"))
        }
        Err(several) => {
            let names: Vec<_> = several.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("{} builds several programs: {}", manifest.display(), names.join(", "));
            Err(Failure::provider(message).hint("choose one: toolctl dev PROVIDER -- --bin NAME"))
        }
    }
}

/// The sources that cargo lists beside a program, and the manifests of their crates.
fn sources(program: &Path) -> Vec<PathBuf> {
    let mut list = program.as_os_str().to_owned();
    list.push(".d");
    let Ok(text) = std::fs::read_to_string(list) else { return Vec::new() };
    let mut sources = dependencies(&text);
    let manifests: std::collections::BTreeSet<PathBuf> = sources
        .iter()
        .filter_map(|source| {
            source.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file())
        })
        .collect();
    sources.extend(manifests);
    sources
}

/// The right side of a makefile's rule, in which a blank inside a name stands behind a backslash.
fn dependencies(rule: &str) -> Vec<PathBuf> {
    let Some((_, names)) = rule.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let marked = names.replace("\\ ", "\0");
    marked.split_whitespace().map(|name| PathBuf::from(name.replace('\0', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_are_read_from_cargos_list() {
        let rule = "/t/debug/p: /a/src/lib.rs /b\\ c/src/main.rs\n\nother: x\n";
        assert_eq!(dependencies(rule), [PathBuf::from("/a/src/lib.rs"), PathBuf::from("/b c/src/main.rs")]);
        assert_eq!(dependencies(""), Vec::<PathBuf>::new());
    }

    #[track_caller]
    fn check_program(names: &[&str], expected: &str) {
        let programs = names.iter().map(|name| ((*name).to_owned(), PathBuf::from(name))).collect();
        let got = the_program(programs, Path::new("Cargo.toml"))
            .map_or_else(|failure| failure.error.message, |program| program.display().to_string());
        assert_eq!(got, expected);
    }

    #[test]
    fn the_provider_among_several_programs_is_the_one_named_so() {
        check_program(&["web"], "web");
        check_program(&["helper", "provider-web"], "provider-web");
        check_program(&[], "Cargo.toml builds no program");
        check_program(&["a", "b"], "Cargo.toml builds several programs: a, b");
    }

    #[test]
    fn only_programs_of_the_package_count() {
        let line = |manifest: &str, program: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","target":{{"name":"p"}},"executable":{program}}}"#
            )
        };
        let manifest = Path::new("/a/Cargo.toml");
        assert_eq!(program(&line("/a/Cargo.toml", "\"/t/p\""), manifest), Some(("p".into(), "/t/p".into())));
        assert_eq!(program(&line("/a/Cargo.toml", "null"), manifest), None);
        assert_eq!(program(&line("/b/Cargo.toml", "\"/t/p\""), manifest), None);
        assert_eq!(program("Compiling p", manifest), None);
    }
}
