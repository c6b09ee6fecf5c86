//! Every operation of the filesystem provider on paths whose directories and files turn into links to the outside, and
//! back, all the while.
//!
//! Outside is a tree of the same names with other content. It must keep every byte, mode and name, and nothing of it
//! may come back in a result, an error or a preview, or be found inside the root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use provider_core::jail::{JailPath, Roots};
use serde_json::{Value, json};
use tool_host::Provider;

use super::process::{LIMIT, built, call, started};
use super::tree::{Entry, Tree};
use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "fs-swap",
    about: "directories, files and links to the outside exchanged under every operation: not one byte leaves the root",
    short_rounds: 300,
    run,
};

/// In every content and one name outside, and nowhere inside.
const SECRET: &str = "canary";
/// Names that are on both sides, below `dir`.
const NAMES: &[&str] = &["f", "g", "below/h"];
/// Names that are exchanged, each with its neighbour: a directory and a link to one, a file and a link to one, a link
/// that stays inside and one that leaves, a directory further down and a link.
const SWAPPED: &[(&str, &str)] =
    &[("dir", "way out"), ("file", "file out"), ("inside", "outside"), ("deep/er", "deep/out")];
/// The files are put in order again after so many rounds.
const RESET_EVERY: u64 = 20;
/// How many calls run at the same time.
const AT_ONCE: usize = 4;

fn run(run: &Run) -> anyhow::Result<String> {
    let binary = built("provider-filesystem")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let place = Place { root: folder.path().join("root"), outside: folder.path().join("outside") };
        let canary = outside();
        canary.put(&place.outside)?;
        place.fill()?;
        let mut telltales = place.hashes(&binary, folder.path()).await?;
        telltales.push(SECRET.to_owned());
        let config = json!({"allowed_roots": [place.root], "state_dir": folder.path().join("state")});
        let provider = started(&binary, config).await?;
        let swapper = Swapper::start(&place.root, run.seed())?;
        let mut tally = Tally::default();
        let result = rounds(run, &place, &provider, &swapper, (&canary, &telltales), &mut tally).await;
        let swaps = swapper.stop()?;
        provider.stop().await;
        result?;
        place.check(&canary)?;
        Ok(tally.say(swaps))
    })
}

async fn rounds(
    run: &Run,
    place: &Place,
    provider: &Provider,
    swapper: &Swapper,
    (canary, telltales): (&Tree, &[String]),
    tally: &mut Tally,
) -> anyhow::Result<()> {
    while let Some(mut random) = run.next_round() {
        if run.rounds() % RESET_EVERY == 1 {
            swapper.paused(|| place.refill())?;
        }
        let operations: Vec<_> = (0..AT_ONCE).map(|_| operation(&mut random)).collect();
        let calls = operations.iter().map(|operation| said(provider, place, operation));
        let answers = futures_util::future::try_join_all(calls).await?;
        for (operation, (done, said)) in operations.iter().zip(&answers) {
            tally.count(operation, *done);
            let told = telltales.iter().find(|telltale| said.contains(*telltale));
            ensure!(
                told.is_none(),
                "{} {} tells of the outside: {said}",
                operation.tool,
                operation.arguments
            );
        }
        let what =
            || operations.iter().map(|one| format!("{} {}", one.tool, one.arguments)).collect::<Vec<_>>();
        place.check(canary).with_context(|| format!("after {:?}", what()))?;
    }
    Ok(())
}

/// Makes a call, or previews it. Answers whether that was done, and all that was said.
async fn said(provider: &Provider, place: &Place, operation: &Operation) -> anyhow::Result<(bool, String)> {
    let Operation { tool, arguments, preview } = operation;
    let call = call(&place.root, tool, arguments.clone())?;
    let ending = async {
        if *preview {
            let shown = provider.preview(&call).await;
            return (shown.is_ok(), format!("{shown:?}"));
        }
        let outcome = provider.invoke(call).outcome().await;
        (outcome.is_ok(), format!("{outcome:?}"))
    };
    let ended = tokio::time::timeout(LIMIT, ending).await;
    ended.with_context(|| format!("{tool} {arguments} does not end"))
}

/// What is asked of the provider.
struct Operation {
    tool: &'static str,
    arguments: Value,
    preview: bool,
}

/// One operation on a path that is being exchanged.
fn operation(random: &mut Random) -> Operation {
    let below = random.pick(NAMES).copied().unwrap_or_default();
    let top = random.pick(&["dir", "inside", "deep/er", "way out", "outside"]).copied().unwrap_or_default();
    let path = if random.once_in(5) { "file".to_owned() } else { format!("{top}/{below}") };
    let other = format!("{top}/new{}", random.below(4));
    let parent = format!("{other}/x/y");
    let (tool, arguments) = match random.below(18) {
        0 => ("read_file", json!({"path": path})),
        1 => ("list_directory", json!({"path": top, "depth": 3, "ignored": true})),
        2 => ("list_directory", json!({"path": ".", "depth": 5})),
        3 => ("file_info", json!({"path": path})),
        4 => ("write_file", json!({"path": path, "content": "inside\nline\n", "force": true})),
        5 => ("write_file", json!({"path": parent, "content": "x", "create_parents": true})),
        6 => ("edit_file", json!({"path": path, "old_str": "line", "new_str": "LINE", "force": true})),
        7 => ("edit_file", json!({"path": path, "old_str": "nowhere at all", "new_str": ""})),
        8 => (
            "multi_edit",
            json!({"force": true, "edits": [
                {"path": format!("{top}/f"), "old_str": "line", "new_str": "LINE"},
                {"path": format!("{top}/g"), "old_str": "line", "new_str": "LINE"},
            ]}),
        ),
        9 => (
            "apply_patch",
            json!({"force": true, "patch": format!(
                "*** Begin Patch\n*** Update File: {path}\n@@\n inside\n+more\n*** Add File: {other}\n+x\n*** End Patch\n"
            )}),
        ),
        10 => (
            "apply_patch",
            json!({"force": true, "patch": format!(
                "*** Begin Patch\n*** Update File: {path}\n*** Move to: {other}\n@@\n-inside\n+moved\n*** End Patch\n"
            )}),
        ),
        11 => (
            "apply_patch",
            json!({"force": true, "patch": format!(
                "*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"
            )}),
        ),
        12 => ("move_path", json!({"from": path, "to": other, "overwrite": true})),
        13 => (
            "copy_path",
            json!({"from": format!("{top}/below"), "to": format!("copy{}", random.below(1 << 30))}),
        ),
        14 => ("copy_path", json!({"from": path, "to": other, "overwrite": true})),
        15 => ("delete_path", json!({"path": path, "recursive": true})),
        16 => ("create_directory", json!({"path": format!("{other}/d/e")})),
        _ => ("undo_change", json!({})),
    };
    let can_preview = !matches!(tool, "read_file" | "list_directory" | "file_info");
    Operation { tool, arguments, preview: can_preview && random.once_in(4) }
}

/// How often each operation was done, and how often it was refused.
#[derive(Default)]
struct Tally(BTreeMap<String, (u64, u64)>);

impl Tally {
    fn count(&mut self, operation: &Operation, done: bool) {
        let name = if operation.preview { "previews" } else { operation.tool };
        let (finished, refused) = self.0.entry(name.to_owned()).or_default();
        *if done { finished } else { refused } += 1;
    }

    fn say(&self, swaps: u64) -> String {
        let each: Vec<_> = self
            .0
            .iter()
            .map(|(name, (done, refused))| format!("{name} {done}/{}", done + refused))
            .collect();
        format!("{swaps} swaps; outside is as it was; of the calls were done: {}", each.join(", "))
    }
}

struct Place {
    root: PathBuf,
    outside: PathBuf,
}

impl Place {
    /// What the root has besides links.
    fn fill(&self) -> anyhow::Result<()> {
        inside(&self.outside).put(&self.root)
    }

    /// Puts the files in order again. Nothing may be exchanged meanwhile, and the root itself stays.
    fn refill(&self) -> anyhow::Result<()> {
        let found = Tree::of(&self.root)?;
        ensure!(!found.holds(SECRET.as_bytes()), "something of the outside is in the root:\n{found}");
        self.fill()
    }

    fn check(&self, canary: &Tree) -> anyhow::Result<()> {
        let found = Tree::of(&self.outside)?;
        ensure!(found == *canary, "outside was\n{canary}\nand is\n{found}");
        Ok(())
    }

    /// The hashes of what is outside, as a provider would say them.
    async fn hashes(&self, binary: &Path, folder: &Path) -> anyhow::Result<Vec<String>> {
        let config = json!({"allowed_roots": [self.outside], "state_dir": folder.join("other state")});
        let provider = started(binary, config).await?;
        let mut hashes = Vec::new();
        for name in NAMES {
            let call = call(&self.outside, "file_info", json!({"path": name}))?;
            let outcome = provider.invoke(call).outcome().await?;
            hashes.push(outcome.get("sha256").and_then(Value::as_str).context("no hash")?.to_owned());
        }
        provider.stop().await;
        Ok(hashes)
    }
}

fn file(content: String) -> Entry {
    Entry::File { content: content.into_bytes(), mode: 0o644 }
}

fn directory() -> Entry {
    Entry::Directory { mode: 0o755 }
}

/// What may never be read or changed.
fn outside() -> Tree {
    let mut entries = vec![("below".into(), directory())];
    entries.extend(
        NAMES
            .iter()
            .map(|name| ((*name).into(), file(format!("inside {SECRET}\nline {SECRET} of {name}\n")))),
    );
    entries.push((format!("{SECRET} name").into(), Entry::File { content: b"x".to_vec(), mode: 0o600 }));
    entries.push(("link".into(), Entry::Link("f".into())));
    Tree(entries.into_iter().collect())
}

/// The root, with links to `outside`.
fn inside(outside: &Path) -> Tree {
    let mut entries: Vec<(PathBuf, Entry)> = vec![
        ("way out".into(), Entry::Link(outside.to_owned())),
        ("file".into(), file("inside\nline\n".to_owned())),
        ("file out".into(), Entry::Link(outside.join("f"))),
        ("inside".into(), Entry::Link("target".into())),
        ("outside".into(), Entry::Link(outside.to_owned())),
        ("deep".into(), directory()),
        ("deep/out".into(), Entry::Link(outside.to_owned())),
    ];
    for top in ["dir", "target", "deep/er"] {
        entries.push((top.into(), directory()));
        entries.push((format!("{top}/below").into(), directory()));
        entries.extend(
            NAMES.iter().map(|name| (format!("{top}/{name}").into(), file("inside\nline\n".to_owned()))),
        );
    }
    Tree(entries.into_iter().collect())
}

/// Exchanges the names of [`SWAPPED`], over and over, a thread for each.
struct Swapper {
    gate: Arc<RwLock<()>>,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(root: &Path, seed: u64) -> anyhow::Result<Self> {
        let roots = Roots::open(&[root.display().to_string()], Path::new("/"))?;
        let place = |name: &str| roots.exact(&root.join(name), Path::new(""));
        let mut swapper =
            Self { gate: Arc::default(), stop: Arc::default(), swaps: Arc::default(), threads: Vec::new() };
        for (number, (one, other)) in SWAPPED.iter().enumerate() {
            let pair = (place(one)?, place(other)?);
            let random = Random::new(seed, u64::MAX - number as u64);
            let (gate, stop, swaps) = (swapper.gate.clone(), swapper.stop.clone(), swapper.swaps.clone());
            swapper.threads.push(std::thread::spawn(move || swap(&pair, random, &gate, &stop, &swaps)));
        }
        Ok(swapper)
    }

    /// Does something while nothing is exchanged.
    fn paused<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    fn stop(self) -> anyhow::Result<u64> {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads {
            if thread.join().is_err() {
                bail!("an exchange panicked");
            }
        }
        Ok(self.swaps.load(Ordering::Relaxed))
    }
}

fn swap(
    (one, other): &(JailPath, JailPath),
    mut random: Random,
    gate: &RwLock<()>,
    stop: &AtomicBool,
    swaps: &AtomicU64,
) {
    while !stop.load(Ordering::Acquire) {
        let held = gate.read().unwrap_or_else(PoisonError::into_inner);
        // An operation may have moved or removed either.
        if one.exchange(other).is_ok() {
            swaps.fetch_add(1, Ordering::Relaxed);
        }
        drop(held);
        std::thread::sleep(Duration::from_micros(random.below(300) as u64));
    }
}
