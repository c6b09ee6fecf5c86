//! A provider with a root of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_proto::render::v1::render_node::Node;
use harness_proto::render::v1::{DiffNode, RenderTree};
use provider_core::jail::is_temp_name;
use provider_core::testing::{CallError, Harness, Outcome};
use provider_filesystem::Filesystem;
use serde_json::{Value, json};
use tempfile::TempDir;

use provider_core::testing::tree::{Tree, snapshot};

/// No call in these tests may take longer: most of the faults they look for would show as a hang.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A folder with the directory `root`, which a provider may use, and room beside it, which it may not.
pub struct Sandbox {
    folder: TempDir,
    state: TempDir,
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
        let state = tempfile::tempdir().unwrap();
        let mut config = json!({"allowed_roots": [root], "state_dir": state.path()});
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let harness = Harness::start::<Filesystem>(config).await.unwrap().in_directory(&root);
        Self { folder, state, harness }
    }

    /// Where the provider keeps what it needs for taking changes back.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// Another provider with the same root and state, as a later process has them.
    pub async fn another(&self) -> Harness {
        let config = json!({"allowed_roots": [self.root()], "state_dir": self.state()});
        Harness::start::<Filesystem>(config).await.unwrap().in_directory(self.root())
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

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.at(name)).unwrap()
    }

    /// Everything inside and beside the root.
    pub fn tree(&self) -> Tree {
        snapshot(self.folder.path())
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = self.harness.call(tool, arguments);
        let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs");
        outcome.terminal();
        outcome
    }

    pub async fn read(&self, arguments: Value) -> Value {
        self.call("read_file", arguments).await.payload().clone()
    }

    /// Previews and makes a change, and holds both to what every change promises: the preview changes nothing and
    /// shows the diff that is then made; a refused call changes nothing; no other file is left behind.
    pub async fn change(&self, tool: &str, arguments: Value) -> Outcome {
        let before = self.tree();
        let id = self.harness.next_id();
        let preview = self.preview(&id, tool, arguments.clone()).await;
        assert_eq!(self.tree(), before, "the preview changed something");
        let call = self.harness.call_as(&id, tool, arguments, None);
        let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs");
        let after = self.tree();
        if outcome.terminal()["event"] == "result" {
            let shown = self.harness.render(outcome.payload()).await.unwrap();
            let preview = preview.unwrap_or_else(|status| panic!("only the preview failed: {status}"));
            assert_eq!(diff_of(&preview), diff_of(&shown), "the preview showed another change");
        } else {
            assert_eq!(after, before, "a refused call changed something: {}", outcome.terminal());
        }
        let stray = after.keys().find(|name| is_temp_name(Path::new(name).file_name().unwrap()));
        assert_eq!(stray, None, "a temporary file is left");
        outcome
    }

    /// [`Sandbox::change`] for changes of several files: their diffs are compared one by one.
    pub async fn change_all(&self, tool: &str, arguments: Value) -> Outcome {
        let before = self.tree();
        let id = self.harness.next_id();
        let preview = self.preview(&id, tool, arguments.clone()).await;
        assert_eq!(self.tree(), before, "the preview changed something");
        let call = self.harness.call_as(&id, tool, arguments, None);
        let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs");
        let after = self.tree();
        if outcome.terminal()["event"] == "result" {
            let shown = self.harness.render(outcome.payload()).await.unwrap();
            let preview = preview.unwrap_or_else(|status| panic!("only the preview failed: {status}"));
            assert_eq!(diffs_of(&preview), diffs_of(&shown), "the preview showed another change");
        } else {
            assert_eq!(after, before, "a refused call changed something: {}", outcome.terminal());
        }
        let stray = after.keys().find(|name| is_temp_name(Path::new(name).file_name().unwrap()));
        assert_eq!(stray, None, "a temporary file is left");
        outcome
    }

    /// [`Sandbox::change_all`] for a tool that changes something, else [`Sandbox::call`].
    pub async fn change_all_or_call(&self, tool: &str, arguments: Value) -> Outcome {
        match tool {
            "read_file" | "file_info" | "list_directory" => self.call(tool, arguments).await,
            _ => self.change_all(tool, arguments).await,
        }
    }

    /// The preview of a call with the context that the call will have.
    pub async fn preview(&self, id: &str, tool: &str, arguments: Value) -> Result<RenderTree, tonic::Status> {
        let call = self.harness.request(id, tool, arguments);
        let request = harness_proto::tool::v1::PreviewRequest { call: Some(call) };
        let answer = tokio::time::timeout(LIMIT, async { self.harness.client().preview(request).await });
        Ok(answer.await.expect("the preview hangs")?.into_inner().preview.unwrap())
    }

    pub async fn edit(&self, path: &str, old_str: &str, new_str: &str) -> Outcome {
        self.change("edit_file", json!({"path": path, "old_str": old_str, "new_str": new_str})).await
    }

    pub async fn write(&self, path: &str, content: &str) -> Outcome {
        self.change("write_file", json!({"path": path, "content": content})).await
    }
}

/// The notes of a result, one per line.
pub fn notes(outcome: &Outcome) -> String {
    let notes = outcome.payload()["notes"].as_array().cloned().unwrap_or_default();
    notes.iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The first diff in a tree.
pub fn diff_of(tree: &RenderTree) -> Option<DiffNode> {
    match tree.root.as_ref()?.node.as_ref()? {
        Node::Diff(diff) => Some(diff.clone()),
        Node::Group(group) => {
            let tree = |node| RenderTree { root: Some(node) };
            group.children.iter().find_map(|child| diff_of(&tree(child.clone())))
        }
        _ => None,
    }
}

/// All diffs in a tree, in their order.
pub fn diffs_of(tree: &RenderTree) -> Vec<DiffNode> {
    match tree.root.as_ref().and_then(|root| root.node.as_ref()) {
        Some(Node::Diff(diff)) => vec![diff.clone()],
        Some(Node::Group(group)) => {
            let tree = |node: &_| RenderTree { root: Some(Clone::clone(node)) };
            group.children.iter().flat_map(|child| diffs_of(&tree(child))).collect()
        }
        _ => Vec::new(),
    }
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
