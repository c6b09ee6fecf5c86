//! What a host needs to make a [`Job`](crate::Job) of a name and some text.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The program that guards run.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that becomes a guard, where this program itself cannot: in tests. The first call counts.
pub fn set_program(path: impl Into<PathBuf>) {
    let _ = PROGRAM.set(path.into());
}

/// The program that guards run.
pub(crate) fn program() -> PathBuf {
    PROGRAM.get().cloned().unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// The variables that a program gets of its host's environment when nothing else is said. Nothing in them is secret.
const PASSED: [&str; 7] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"];

/// The same, by the beginning of the name. The second are what is left of the limits on subagents: a command that lost
/// them could start subagents without end.
const PASSED_BEGINNINGS: [&[u8]; 2] = [b"LC_", b"PLUGGABLEHARNESS_SUBAGENT_"];

/// Whether a program gets this variable of its host's environment when nothing else is said: `PATH`, `HOME`, `LANG`,
/// `LC_*`, `TERM`, `TMPDIR`, `USER`, `SHELL`, and the limits on subagents.
pub fn is_passed_on(name: &OsStr) -> bool {
    let begins = |beginning: &&[u8]| name.as_bytes().starts_with(beginning);
    PASSED.iter().any(|passed| name == *passed) || PASSED_BEGINNINGS.iter().any(begins)
}

/// The absolute path of a program: `name` itself where it is one, else the first on the absolute entries of `path`, which
/// is written as `PATH` is. `None` where there is no such file that can be run.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute()).filter(is_program);
    }
    std::env::split_paths(path?)
        .filter(|path| path.is_absolute())
        .map(|folder| folder.join(name))
        .find(is_program)
}

/// A file in memory with this content, to be read from its beginning.
///
/// # Errors
/// What the operating system says.
pub fn memory_file(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let mut file = nameless(name)?;
    file.write_all(content)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(target_os = "linux")]
fn nameless(name: &str) -> io::Result<File> {
    Ok(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &str) -> io::Result<File> {
    tempfile::tempfile()
}

/// `/dev/null`, for reading and writing.
///
/// # Errors
/// What the operating system says.
pub fn null() -> io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).open("/dev/null")?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_absolute_path_entries_only() {
        assert_eq!(find_program("sh", Some("relative:/bin".as_ref())), Some("/bin/sh".into()));
        assert_eq!(find_program("/bin/sh", None), Some("/bin/sh".into()));
        assert_eq!(find_program("./sh", Some("/bin".as_ref())), None);
        assert_eq!(find_program("no-such-program", Some("/bin".as_ref())), None);
    }

    #[test]
    fn only_what_holds_no_secret_is_passed_on() {
        let passed = |name: &str| is_passed_on(name.as_ref());
        assert!(passed("PATH") && passed("LC_ALL") && passed("SHELL"));
        assert!(passed("PLUGGABLEHARNESS_SUBAGENT_LEVELS"));
        assert!(!passed("AWS_SECRET_ACCESS_KEY") && !passed("PATHS") && !passed("LC"));
    }
}
