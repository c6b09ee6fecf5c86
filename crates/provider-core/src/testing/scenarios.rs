//! Scenario folders: a tree before, calls, what they say, and the tree after.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::tree::{copy, kept, set_mode};
use super::{Harness, must};
use crate::tool::Provider;

/// Longer than any call of a scenario takes, on any machine.
const CALL_LIMIT: Duration = Duration::from_secs(60);

type Configure = Box<dyn Fn(&Path, &Path) -> Value>;
type Steady = Box<dyn Fn(&mut Value)>;

/// The scenarios of one provider.
///
/// Each folder has `call.json`, `events.json` and perhaps `before` and `after`. `call.json` holds `shows`, one sentence
/// for readers; either one `tool` with `args` or a list of `calls`, of which each may also be `meanwhile`: files that
/// another program writes at that point; `config`, which goes over the provider's configuration; and `modes`, which gives
/// files another mode than a checkout does. `$ROOT` stands for the folder that the calls work in. `events.json` has the
/// events of each call in order. With `BLESS=1` in the environment `events.json` and `after` are written anew.
///
/// ```no_run
/// # use provider_core::prelude::*;
/// # use provider_core::testing::Scenarios;
/// # async fn check<P: Provider>() {
/// Scenarios::in_folder("tests/scenarios/notes")
///     .configured(|root, _| serde_json::json!({"root": root}))
///     .check::<P>()
///     .await;
/// # }
/// ```
pub struct Scenarios {
    folder: PathBuf,
    configure: Configure,
    steady: Steady,
    named: Option<(&'static str, &'static str)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    #[serde(rename = "shows")]
    _shows: String,
    #[serde(default)]
    config: Map<String, Value>,
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
        let path = folder.join("call.json");
        let text = must(std::fs::read_to_string(&path), &path);
        let text = text.replace("$ROOT", &root.to_string_lossy());
        must(serde_json::from_str(&text), &path)
    }

    fn steps(&mut self) -> Vec<Step> {
        match (self.calls.take(), self.tool.take(), self.args.take()) {
            (Some(calls), None, None) => calls,
            (None, Some(tool), Some(args)) => vec![Step::Call { tool, args }],
            _ => panic!("a scenario has either calls, or a tool and args"),
        }
    }

    fn modes(&self) -> impl Iterator<Item = (&String, u32)> {
        let octal = |mode: &str| u32::from_str_radix(mode, 8).unwrap_or_else(|_| panic!("{mode} is no mode"));
        self.modes.iter().map(move |(name, mode)| (name, octal(mode)))
    }
}

impl Scenarios {
    /// The scenarios that are the folders of `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            configure: Box::new(|_, _| json!({})),
            steady: Box::new(|_| {}),
            named: None,
        }
    }

    /// With this configuration, made of the folder that the calls work in and of one for state.
    #[must_use]
    pub fn configured(mut self, configure: impl Fn(&Path, &Path) -> Value + 'static) -> Self {
        self.configure = Box::new(configure);
        self
    }

    /// With what differs from run to run replaced: `steady` is given the list of the events of each call.
    #[must_use]
    pub fn steadied(mut self, steady: impl Fn(&mut Value) + 'static) -> Self {
        self.steady = Box::new(steady);
        self
    }

    /// With names for ids that results make up: the first value of the member is written `name` and 1, the second `name`
    /// and 2, in events and in the arguments of later calls.
    #[must_use]
    pub fn named(mut self, member: &'static str, name: &'static str) -> Self {
        self.named = Some((member, name));
        self
    }

    /// Runs all of them.
    ///
    /// # Panics
    /// When there is none, or one does not end as it is written down.
    pub async fn check<P: Provider>(&self) {
        let entries = must(std::fs::read_dir(&self.folder), &self.folder);
        let mut folders: Vec<PathBuf> = entries.map(|entry| must(entry, &self.folder).path()).collect();
        folders.sort();
        assert!(!folders.is_empty(), "{} has no scenarios", self.folder.display());
        for folder in folders {
            self.check_one::<P>(&folder, std::env::var_os("BLESS").is_some()).await;
        }
    }

    async fn check_one<P: Provider>(&self, folder: &Path, bless: bool) {
        let scratch = must(tempfile::tempdir(), folder);
        let scratch = must(scratch.path().canonicalize().map(|path| (path, scratch)), folder);
        let (root, state) = (scratch.0.join("project"), scratch.0.join("state"));
        copy(&folder.join("before"), &root);
        let mut scenario = Scenario::read(folder, &root);
        scenario.modes().for_each(|(name, mode)| set_mode(&root.join(name), mode));
        let events = self.run::<P>(&mut scenario, &root, &state).await;
        let events = self.normalised(events, &root);
        if bless {
            // There may be none yet.
            let _ = std::fs::remove_dir_all(folder.join("after"));
            copy(&root, &folder.join("after"));
            must(std::fs::write(folder.join("events.json"), &events), folder);
        }
        let expected = must(std::fs::read_to_string(folder.join("events.json")), folder);
        let name = folder.display();
        assert!(events == expected, "{name}: expected {expected}found {events}");
        assert_eq!(kept(&root), kept(&folder.join("after")), "{name}");
        for (file, mode) in scenario.modes() {
            let path = root.join(file);
            let found = must(path.metadata(), &path).permissions().mode() & 0o7777;
            assert_eq!(found, mode, "{name}: {file} has the mode {found:o}");
        }
    }

    /// Runs all steps and gathers the events of each call.
    async fn run<P: Provider>(&self, scenario: &mut Scenario, root: &Path, state: &Path) -> Value {
        let mut config = (self.configure)(root, state);
        if let Value::Object(config) = &mut config {
            config.extend(std::mem::take(&mut scenario.config));
        }
        let started = Harness::start::<P>(config).await;
        let harness = started.unwrap_or_else(|status| panic!("configure: {status}")).in_directory(root);
        let (mut ids, mut events) = (Vec::new(), Vec::new());
        for step in scenario.steps() {
            match step {
                Step::Call { tool, args } => {
                    let call = harness.call(&tool, self.with_ids(args, &ids));
                    let said = tokio::time::timeout(CALL_LIMIT, call).await;
                    let said = said.unwrap_or_else(|_| panic!("{tool} does not end")).events;
                    ids.extend(self.id_in(said.last()));
                    events.push(said);
                }
                Step::Meanwhile { meanwhile } => meanwhile.iter().for_each(|(name, content)| {
                    must(std::fs::write(root.join(name), content), root);
                }),
            }
        }
        self.without_ids(json!(events), &ids)
    }

    /// The id that a result has made up.
    fn id_in(&self, last: Option<&Value>) -> Option<String> {
        let (member, _) = self.named?;
        last?["payload"][member].as_str().map(str::to_owned)
    }

    fn with_ids(&self, args: Value, ids: &[String]) -> Value {
        let Some((_, name)) = self.named else { return args };
        // The last first, so that the tenth is not taken for the first.
        let numbered = ids.iter().enumerate().rev();
        let text = numbered
            .fold(args.to_string(), |text, (index, id)| text.replace(&format!("{name}{}", index + 1), id));
        must(serde_json::from_str(&text), Path::new("arguments"))
    }

    fn without_ids(&self, events: Value, ids: &[String]) -> Value {
        let Some((_, name)) = self.named else { return events };
        let numbered = ids.iter().enumerate();
        let text = numbered
            .fold(events.to_string(), |text, (index, id)| text.replace(id, &format!("{name}{}", index + 1)));
        must(serde_json::from_str(&text), Path::new("events"))
    }

    /// Events as they are written down.
    fn normalised(&self, mut events: Value, root: &Path) -> String {
        (self.steady)(&mut events);
        format!("{events:#}\n").replace(&*root.to_string_lossy(), "$ROOT")
    }
}
