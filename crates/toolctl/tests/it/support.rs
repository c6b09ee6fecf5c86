//! Running the program in an environment that is always the same.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to work in, and the program started in it.
pub(crate) struct Bench {
    dir: TempDir,
}

/// What the program wrote and how it exited. The folder's path stands as `$DIR`, the awkward provider's as
/// `$AWKWARD`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Bench {
    /// A folder with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        for (name, content) in files {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The program with nothing in its environment but what it needs.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolctl"));
        let state = self.path().join(".state");
        command.args(arguments).current_dir(self.path()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.path()).env("XDG_STATE_HOME", state);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.tidy(&self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        self.finish(child)
    }

    pub(crate) fn finish(&self, child: Child) -> Ran {
        self.tidy(&child.wait_with_output().unwrap())
    }

    fn tidy(&self, output: &Output) -> Ran {
        Ran {
            stdout: self.named(&output.stdout),
            stderr: self.named(&output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// The text with names for what differs from run to run.
    pub(crate) fn named(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes)
            .replace(self.path().to_str().unwrap(), "$DIR")
            .replace(awkward().to_str().unwrap(), "$AWKWARD")
    }
}

impl Ran {
    /// The lines of stdout, each a JSON document.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect(&self.stdout)
    }
}

/// The provider that breaks the rules.
pub(crate) fn awkward() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_toolctl")).with_file_name("examples").join("awkward");
    assert!(
        path.exists(),
        "{} is missing: `cargo test -p toolctl` builds it, `--test` alone does not",
        path.display()
    );
    path
}

/// Its path as an argument.
pub(crate) fn awkward_argument() -> String {
    awkward().to_str().unwrap().to_owned()
}

/// Waits for something that must come about.
#[track_caller]
pub(crate) fn until(what: &str, happened: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !happened() {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Whether a process has a handler for SIGINT, which toolctl installs before it does anything else.
pub(crate) fn watches_for_interrupts(pid: u32) -> bool {
    const SIGINT: u64 = 1 << 1;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & SIGINT != 0
}

/// Whether a child has ended and waits to be reaped.
pub(crate) fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().starts_with('Z')
}
