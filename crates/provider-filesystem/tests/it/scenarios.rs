//! Runs the folders below `tests/scenarios/filesystem`: a tree before, calls, what they say, and the tree after.
//!
//! `call.json` holds either one `tool` with `args` or a list of `calls`, of which each may also be `meanwhile`:
//! files that another program writes at that point. `config` is added to the provider's configuration, and `modes`
//! gives files another mode than a checkout does. `$ROOT` stands for the folder that the calls work in, `$CHANGE1` for
//! the first change_id that a call answered, `$CHANGE2` for the second.
//! `events.json` has the events of each call in order. `BLESS=1` writes `events.json` and `after` anew.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use provider_core::testing::Harness;
use provider_filesystem::Filesystem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tree::{Entry, Tree, snapshot};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// One sentence for readers.
    #[serde(rename = "shows")]
    _shows: String,
    #[serde(default)]
    config: serde_json::Map<String, Value>,
    #[serde(default)]
    modes: BTreeMap<String, String>,
    calls: Option<Vec<Step>>,
    tool: Option<String>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Call { tool: String, args: Value },
    Meanwhile { meanwhile: BTreeMap<String, String> },
}

impl Scenario {
    fn read(folder: &Path, root: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join("call.json")).unwrap();
        let text = text.replace("$ROOT", root.to_str().unwrap());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    }

    fn steps(&mut self) -> Vec<Step> {
        match (self.calls.take(), self.tool.take(), self.args.take()) {
            (Some(calls), None, None) => calls,
            (None, Some(tool), Some(args)) => vec![Step::Call { tool, args }],
            _ => panic!("a scenario has either calls, or a tool and args"),
        }
    }

    fn modes(&self) -> impl Iterator<Item = (&String, u32)> {
        self.modes.iter().map(|(name, mode)| (name, u32::from_str_radix(mode, 8).unwrap()))
    }

    /// Runs all steps below `root` and gathers the events of each call.
    async fn run(&mut self, root: &Path) -> Vec<Vec<Value>> {
        let mut config = self.config.clone();
        config.entry("allowed_roots").or_insert_with(|| json!([root]));
        let state = tempfile::tempdir().unwrap();
        config.entry("state_dir").or_insert_with(|| json!(state.path()));
        let mut ids: Vec<String> = Vec::new();
        let harness = Harness::start::<Filesystem>(config.into()).await.unwrap().in_directory(root);
        let mut events = Vec::new();
        for step in self.steps() {
            match step {
                Step::Call { tool, args } => {
                    let said = harness.call(&tool, with_ids(args, &ids)).await.events;
                    ids.extend(
                        said.last().and_then(|last| last["payload"]["change_id"].as_str()).map(str::to_owned),
                    );
                    events.push(said);
                }
                Step::Meanwhile { meanwhile } => meanwhile
                    .iter()
                    .for_each(|(name, content)| std::fs::write(root.join(name), content).unwrap()),
            }
        }
        let text = ids.iter().enumerate().fold(json!(events).to_string(), |text, (index, id)| {
            text.replace(id, &format!("$CHANGE{}", index + 1))
        });
        serde_json::from_str(&text).unwrap()
    }
}

/// Arguments with the ids that earlier calls answered: `$CHANGE1` is the first.
fn with_ids(args: Value, ids: &[String]) -> Value {
    let ids = ids.iter().enumerate().rev();
    let text =
        ids.fold(args.to_string(), |text, (index, id)| text.replace(&format!("$CHANGE{}", index + 1), id));
    serde_json::from_str(&text).unwrap()
}

/// What is in a folder of a scenario. Without the folder it is nothing: git keeps no empty ones.
fn tree_at(folder: &Path) -> Tree {
    if folder.exists() { snapshot(folder) } else { Tree::new() }
}

/// Copies a tree with its links and executable bits.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for (name, entry) in tree_at(from) {
        let path = to.join(name);
        match entry {
            Entry::Directory { .. } => std::fs::create_dir(&path).unwrap(),
            Entry::Symlink(target) => symlink(target, &path).unwrap(),
            Entry::File { bytes, mode, .. } => {
                std::fs::write(&path, bytes).unwrap();
                let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            Entry::Special(kind) => panic!("{}: a {kind} cannot be kept in a repository", path.display()),
        }
    }
}

/// A tree as git can keep it: no empty folders, and of each mode the executable bit.
fn kept(folder: &Path) -> Tree {
    let keep = |entry| match entry {
        Entry::File { bytes, mode, .. } => Some(Entry::File { bytes, mode: mode & 0o100, links: 1 }),
        Entry::Directory { .. } => None,
        other => Some(other),
    };
    tree_at(folder).into_iter().filter_map(|(name, entry)| Some((name, keep(entry)?))).collect()
}

/// Events without what differs from run to run.
fn normalised(events: &[Vec<Value>], root: &Path) -> String {
    let mut events = json!(events);
    steady(&mut events);
    format!("{events:#}\n").replace(root.to_str().unwrap(), "$ROOT")
}

fn steady(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(steady),
        Value::Object(map) => {
            if map.get("type") == Some(&json!("directory")) {
                map.insert("size".to_owned(), json!(0));
            }
            if let Some(modified) = map.get_mut("modified") {
                *modified = json!(0);
            }
            map.values_mut().for_each(steady);
        }
        _ => {}
    }
}

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/filesystem");
    let mut folders: Vec<_> = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

async fn check(folder: &Path, bless: bool) {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap().join("project");
    copy(&folder.join("before"), &root);
    let mut scenario = Scenario::read(folder, &root);
    for (name, mode) in scenario.modes() {
        std::fs::set_permissions(root.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let events = normalised(&scenario.run(&root).await, &root);
    if bless {
        let _ = std::fs::remove_dir_all(folder.join("after"));
        copy(&root, &folder.join("after"));
        std::fs::write(folder.join("events.json"), &events).unwrap();
    }
    let name = folder.file_name().unwrap().to_str().unwrap();
    let expected = std::fs::read_to_string(folder.join("events.json")).unwrap();
    assert!(events == expected, "{name}: expected {expected}found {events}");
    assert_eq!(kept(&root), kept(&folder.join("after")), "{name}");
    for (file, mode) in scenario.modes() {
        let found = root.join(file).metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{name}: {file} has the mode {found:o}");
    }
}

#[tokio::test]
async fn every_scenario_ends_as_written_down() {
    let folders = folders();
    assert!(!folders.is_empty());
    for folder in folders {
        check(&folder, std::env::var_os("BLESS").is_some()).await;
    }
}
