//! The PATH of the user's login shell, asked for once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provider_core::supervisor::sandbox::Policy;
use provider_core::supervisor::{Limits, Supervisor, find_program};
use tokio::sync::OnceCell;

use crate::environment::{Environment, Particulars};
use crate::launch::{Launch, Stdin};
use crate::process::Step;

/// A profile that takes longer is not waited for.
const LIMIT: Duration = Duration::from_secs(3);
/// More than any PATH, and what profiles print before it.
const LONGEST: usize = 256 * 1_024;
/// Stands before the PATH, whatever a profile prints.
const MARK: &str = "__login_path__";

/// The PATH that commands get.
#[derive(Debug, Default)]
pub(crate) struct LoginPath(OnceCell<CommandPath>);

impl LoginPath {
    /// The login shell's PATH with what this process has besides; this process's own where the shell does not tell.
    pub(crate) async fn get(&self, supervisor: &Supervisor, environment: &Environment) -> Option<&OsStr> {
        self.0.get_or_init(|| found(supervisor, environment)).await.path.as_deref()
    }
}

/// The PATH that commands get on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPath {
    /// The whole of it; none where neither the login shell nor this process has one.
    pub path: Option<OsString>,
    /// The login shell told it. Otherwise it is this process's own.
    pub from_login_shell: bool,
}

/// Asks for the PATH that commands get, as a provider does.
pub async fn command_path() -> CommandPath {
    match Environment::new(std::env::vars_os(), &[], &BTreeMap::new()) {
        Ok(environment) => found(&Supervisor::default(), &environment).await,
        Err(_) => CommandPath { path: std::env::var_os("PATH"), from_login_shell: false },
    }
}

async fn found(supervisor: &Supervisor, environment: &Environment) -> CommandPath {
    let own = environment.get("PATH").map(OsStr::to_owned);
    match ask(supervisor, environment).await {
        Some(login) => CommandPath { path: join(&login, own.as_deref()), from_login_shell: true },
        None => CommandPath { path: own, from_login_shell: false },
    }
}

/// The entries of `first`, then those that only `second` has.
fn join(first: &OsStr, second: Option<&OsStr>) -> Option<OsString> {
    let mut all: Vec<PathBuf> = Vec::new();
    let entries = std::env::split_paths(first).chain(second.into_iter().flat_map(std::env::split_paths));
    for entry in entries.filter(|entry| !entry.as_os_str().is_empty()) {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    std::env::join_paths(all).ok()
}

async fn ask(supervisor: &Supervisor, environment: &Environment) -> Option<OsString> {
    let shell = environment.get("SHELL")?.to_str()?;
    let program = find_program(shell, environment.get("PATH"))?;
    let home = environment.get("HOME").map_or(Path::new("/"), Path::new);
    let directory = File::open(home).or_else(|_| File::open("/")).ok()?;
    let nothing = BTreeMap::new();
    let particulars =
        Particulars { path: None, directory: home, temporary: None, terminal: false, asked: &nothing };
    let command = format!("printf '\\n%s\\n' {MARK}; printenv PATH");
    let launch = Launch {
        arguments: [shell, "-l", "-i", "-c", &command].map(OsString::from).to_vec(),
        program,
        environment: environment.of(&particulars),
        directory: directory.into(),
        stdin: Stdin::Null,
        // It is the user's own profile, read as it always is.
        sandbox: Policy::none(),
        limits: Limits::default(),
        extra: None,
    };
    tokio::time::timeout(LIMIT, read(launch, supervisor)).await.ok().flatten()
}

async fn read(launch: Launch, supervisor: &Supervisor) -> Option<OsString> {
    let mut process = launch.start(supervisor).await.ok()?;
    let mut output = Vec::new();
    while process.status.is_none() && output.len() < LONGEST {
        match process.step().await {
            Step::Piece(piece) => output.extend(piece.bytes),
            Step::Changed => {}
            Step::Finished => break,
        }
    }
    while let Some(piece) = process.piece() {
        output.extend(piece.bytes);
    }
    parse(&output)
}

/// The line behind the last mark.
fn parse(output: &[u8]) -> Option<OsString> {
    let mut lines: Vec<&[u8]> = output.split(|byte| *byte == b'\n').collect();
    let mark = lines.iter().rposition(|line| *line == MARK.as_bytes())?;
    let line = lines.drain(mark + 1..).next()?;
    (!line.is_empty()).then(|| OsString::from_vec(line.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_found_behind_what_a_profile_prints() {
        let check = |output: &str, expected: Option<&str>| {
            assert_eq!(parse(output.as_bytes()), expected.map(OsString::from), "{output:?}");
        };
        check("Welcome!\n\n__login_path__\n/a:/b\n", Some("/a:/b"));
        check("no newline\n__login_path__\n/a\nbye\n", Some("/a"));
        check("Welcome!\n", None);
        check("__login_path__\n", None);
    }

    #[test]
    fn what_only_this_process_has_comes_last() {
        let join = |first: &str, second: &str| join(first.as_ref(), Some(second.as_ref())).unwrap();
        assert_eq!(join("/a:/b", "/b:/c"), "/a:/b:/c");
        assert_eq!(join("/a::/b", ""), "/a:/b");
    }
}
