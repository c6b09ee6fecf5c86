//! A provider with a root of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use provider_core::testing::{CallError, Harness, Outcome};
use provider_search::Search;
use serde_json::{Value, json};
use tempfile::TempDir;

/// No call in these tests may take longer: most of the faults they look for would show as a hang.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A folder with the directory `root`, which a provider may search, and room beside it, which it may not.
pub struct Sandbox {
    folder: TempDir,
    pub harness: Harness,
}

impl Sandbox {
    pub async fn new() -> Self {
        Self::with(json!({})).await
    }

    /// A sandbox whose provider is configured with `extra` beside its root.
    pub async fn with(extra: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut config = json!({"allowed_roots": [root]});
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let harness = Harness::start::<Search>(config).await.unwrap().in_directory(&root);
        Self { folder, harness }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// The directory around the root.
    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Writes a file, and the directories above it.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Makes the root, or a directory below it, a git repository as far as ignore rules are concerned.
    pub fn repository(&self, name: &str) {
        std::fs::create_dir_all(self.at(name).join(".git")).unwrap();
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = self.harness.call(tool, arguments);
        let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs");
        outcome.terminal();
        outcome
    }

    /// The payload of a call that succeeds.
    pub async fn payload(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.payload().clone()
    }
}

/// The notes of a result, one per line.
pub fn notes(payload: &Value) -> String {
    let notes = payload["notes"].as_array().cloned().unwrap_or_default();
    notes.iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The `path` of each member of a list of objects, or the members themselves.
pub fn paths(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["path"].as_str().or(entry.as_str()).unwrap()).collect()
}

/// Checks that a call was refused with this category and code, and returns what it said.
#[track_caller]
pub fn refused(outcome: &Outcome, category: &str, code: &str) -> String {
    let CallError { category: its_category, code: its_code, message } = outcome.error();
    assert_eq!((its_category.as_str(), its_code.as_str()), (category, code), "{message}");
    message
}

/// Checks that a text has every part.
#[track_caller]
pub fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}
