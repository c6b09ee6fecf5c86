//! Runs the folders below `tests/scenarios/exec`: a tree before, calls, what they say, and the tree after.
//!
//! `call.json` holds `calls`, and `config` for the provider. `$ROOT` stands for the folder that the calls work in; what
//! differs from run to run (times, process numbers, the sandbox of the machine) is named likewise. `BLESS=1` writes
//! `events.json` and `after` anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Place, place, within};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// One sentence for readers.
    #[serde(rename = "shows")]
    _shows: String,
    #[serde(default)]
    config: serde_json::Map<String, Value>,
    calls: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    tool: String,
    args: Value,
}

/// Files by relative path.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut tree = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                tree.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(path).unwrap());
            }
        }
    }
    tree
}

fn copy(from: &Path, to: &Path) {
    for (name, bytes) in tree(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Events without what differs from run to run.
fn normalised(events: &[Vec<Value>], place: &Place) -> String {
    let mut events = json!(events);
    steady(&mut events);
    format!("{events:#}\n").replace(place.root.to_str().unwrap(), "$ROOT")
}

fn steady(value: &mut Value) {
    match value {
        Value::Array(items) => {
            // How a program's output is cut into chunks is an accident; that these two notes come depends on the machine.
            items.retain(|item| {
                let note = item.as_str().unwrap_or_default();
                item["event"] != "output_chunk"
                    && !note.starts_with("environment variables that commands do not get")
                    && !note.starts_with("not protected from commands")
            });
            items.iter_mut().for_each(steady);
        }
        Value::Object(map) => {
            for name in ["duration_ms", "pid"] {
                map.entry(name).and_modify(|value| *value = json!(0));
            }
            map.entry("sandbox").and_modify(|value| *value = json!("$SANDBOX"));
            map.values_mut().for_each(steady);
            map.retain(|name, value| name != "notes" || *value != json!([]));
        }
        Value::String(text) => *text = without_times(text),
        _ => {}
    }
}

/// Takes durations out of a summary: ` after 12 ms` becomes ` after $TIME`.
fn without_times(text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    let is_time = |pair: &[&str]| {
        pair[0].parse::<f64>().is_ok() && matches!(pair[1].trim_end_matches([';', ',']), "ms" | "s")
    };
    while let Some(index) = words.windows(2).position(is_time) {
        let end = words[index + 1].trim_start_matches(['m', 's']);
        let replaced = if end.is_empty() { "$TIME" } else { "$TIME;" };
        words.splice(index..index + 2, [replaced]);
    }
    words.join(" ")
}

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/exec");
    let mut folders: Vec<_> = std::fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

async fn check(folder: &Path, bless: bool) {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(folder.join("call.json")).unwrap();
    let scenario: Scenario = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let place = place(scenario.config.into()).await;
    copy(&folder.join("before"), &place.root);
    let mut events = Vec::new();
    for step in scenario.calls {
        events.push(within(place.harness.call(&step.tool, step.args)).await.events);
    }
    let events = normalised(&events, &place);
    if bless {
        let _ = std::fs::remove_dir_all(folder.join("after"));
        copy(&place.root, &folder.join("after"));
        std::fs::write(folder.join("events.json"), &events).unwrap();
    }
    let expected = std::fs::read_to_string(folder.join("events.json")).unwrap();
    assert!(events == expected, "{name}: expected {expected}found {events}");
    assert_eq!(tree(&place.root), tree(&folder.join("after")), "{name}");
}

#[tokio::test]
async fn every_scenario_ends_as_written_down() {
    let folders = folders();
    assert!(!folders.is_empty());
    for folder in folders {
        check(&folder, std::env::var_os("BLESS").is_some()).await;
    }
}
