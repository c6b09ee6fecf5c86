//! A provider on a directory of its own, and what it leaves behind.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use provider_core::testing::{Harness, Outcome};
use provider_exec::Exec;
use serde_json::{Value, json};

/// More than any step of a test takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A configured provider in a directory that goes away with it.
pub(crate) struct Place {
    pub(crate) harness: Harness,
    pub(crate) root: PathBuf,
    _folder: tempfile::TempDir,
}

/// A provider with this configuration besides its directories.
pub(crate) async fn place(config: Value) -> Place {
    provider_core::supervisor::set_program(env!("CARGO_BIN_EXE_provider-exec"));
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let root = base.join("root");
    std::fs::create_dir(&root).unwrap();
    let mut all = json!({ "root": root, "state_dir": base.join("state") });
    all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let harness = Harness::start::<Exec>(all).await.unwrap_or_else(|status| panic!("configure: {status}"));
    Place { harness: harness.in_directory(&root), root, _folder: folder }
}

impl Place {
    /// Runs `bash`.
    pub(crate) async fn bash(&self, arguments: Value) -> Outcome {
        within(self.harness.call("bash", arguments)).await
    }

    /// Runs a command and answers its result.
    pub(crate) async fn run(&self, command: &str) -> Value {
        self.bash(json!({ "command": command })).await.payload().clone()
    }

    /// Runs a tool and answers its result.
    pub(crate) async fn tool(&self, tool: &str, arguments: Value) -> Value {
        within(self.harness.call(tool, arguments)).await.payload().clone()
    }
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("this takes too long")
}

pub(crate) fn notes(payload: &Value) -> Vec<String> {
    let list = payload["notes"].as_array().cloned().unwrap_or_default();
    list.iter().map(|note| note.as_str().unwrap().to_owned()).collect()
}

pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A number that no other test has in a command line.
pub(crate) fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("8{:07}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The numbers of processes whose command line has `mark` in it.
pub(crate) fn with_mark(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    numbers.filter(|pid| *pid != own).filter(has_mark).collect()
}
