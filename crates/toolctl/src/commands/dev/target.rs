//! What PROVIDER means to `toolctl dev`: a crate that is built, or a program that something else builds.

use std::path::{Path, PathBuf};

use crate::embedded;
use crate::exit::Failure;

/// What is watched and loaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A package, by its manifest, and what cargo is told besides.
    Crate { manifest: PathBuf, arguments: Vec<String> },
    /// A program.
    Program(PathBuf),
}

impl Target {
    /// # Errors
    /// A usage error when there is neither.
    pub(super) fn find(given: &str, arguments: &[String]) -> Result<Self, Failure> {
        let path = Path::new(given);
        let absolute = |path: &Path| {
            path.canonicalize().map_err(|error| Failure::wrong_usage(format!("{}: {error}", path.display())))
        };
        let manifest = if path.is_dir() { path.join("Cargo.toml") } else { path.to_owned() };
        if manifest.is_file() && manifest.file_name().is_some_and(|name| name == "Cargo.toml") {
            return Ok(Self::Crate { manifest: absolute(&manifest)?, arguments: arguments.to_vec() });
        }
        if path.is_dir() {
            let message = format!("{given} has no Cargo.toml");
            return Err(Failure::wrong_usage(message)
                .hint("a provider in another language is given by the path of its program"));
        }
        if !arguments.is_empty() {
            return Err(Failure::wrong_usage(
                "only a crate is built, so only a crate takes arguments for cargo",
            ));
        }
        if path.is_file() {
            return absolute(path).map(Self::Program);
        }
        if embedded::names().any(|name| name == given) {
            let message = format!("{given} is inside this program, where it cannot change");
            return Err(Failure::wrong_usage(message)
                .hint(format!("give the folder of its crate, for example crates/provider-{given}")));
        }
        Err(Failure::wrong_usage(format!("there is no crate and no program at {given}"))
            .hint("toolctl new NAME makes a crate"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(given: &str, arguments: &[&str], reason: &str) {
        let arguments: Vec<_> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let failure = Target::find(given, &arguments).unwrap_err();
        assert!(failure.error.message.contains(reason), "{}", failure.error.message);
    }

    #[test]
    fn a_folder_or_its_manifest_is_a_crate_and_a_file_is_a_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap();
        let manifest = root.join("Cargo.toml");
        let expected = Target::Crate { manifest: manifest.clone(), arguments: Vec::new() };
        assert_eq!(Target::find(root.to_str().unwrap(), &[]).unwrap(), expected);
        assert_eq!(Target::find(manifest.to_str().unwrap(), &[]).unwrap(), expected);
        let program = root.join("src/main.rs");
        assert_eq!(Target::find(program.to_str().unwrap(), &[]).unwrap(), Target::Program(program));
    }

    #[test]
    fn what_cannot_be_worked_on_is_refused_with_the_reason() {
        check_refused("/", &[], "/ has no Cargo.toml");
        check_refused("/nowhere", &[], "no crate and no program at /nowhere");
        check_refused("filesystem", &[], "filesystem is inside this program");
        check_refused("/proc/self/exe", &["--release"], "only a crate takes arguments");
    }
}
