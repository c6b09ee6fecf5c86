//! The filesystem provider, killed with SIGKILL at random moments of every kind of change.
//!
//! Every other round is a patch of three files; the rounds between are the other changes in turn. The next provider
//! that is configured for the same root must find all files as they were before the change, or all as they are after
//! it, with their modes, and nothing that the killed one left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tool_host::Provider;

use super::process::{LIMIT, built, call, gone, outcome, started};
use super::tree::{Entry, Tree};
use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "fs-kill",
    about: "SIGKILL at random moments of patches and other changes: all of it or nothing, and nothing left behind",
    short_rounds: 48,
    run,
};

/// A tool and its arguments.
type Step = (&'static str, fn() -> Value);

/// A change that is interrupted.
struct Change {
    name: &'static str,
    tool: &'static str,
    arguments: fn() -> Value,
    /// What is done before it, in the same process.
    first: Option<Step>,
}

/// A patch that updates, updates and moves, removes and adds.
const PATCH: &str = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n*** Update File: b\n*** Move to: deep/moved\n\
                     @@\n-b\n+B\n*** Delete File: c\n*** Add File: new\n+n\n*** End Patch\n";

/// A patch that changes three files where they are.
const UPDATES: &str = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n*** Update File: dir/x\n@@\n-x\n+X\n\
                       *** Update File: c\n@@\n-c\n+C\n*** End Patch\n";

/// One of them has a second name, so it is written in place.
const LINKED: &str = "*** Begin Patch\n*** Update File: a\n@@\n-a\n+A\n*** Update File: linked\n@@\n-l\n+L\n\
                      *** Update File: c\n@@\n-c\n+C\n*** End Patch\n";

/// Patches of three files.
const PATCHES: &[Change] = &[
    Change { name: "patch", tool: "apply_patch", arguments: || json!({"patch": PATCH}), first: None },
    Change { name: "updates", tool: "apply_patch", arguments: || json!({"patch": UPDATES}), first: None },
    Change { name: "linked", tool: "apply_patch", arguments: || json!({"patch": LINKED}), first: None },
];

/// Other changes.
const OTHERS: &[Change] = &[
    Change {
        name: "multi_edit",
        tool: "multi_edit",
        arguments: || {
            let edit = |path: &str, old: &str| json!({"path": path, "old_str": old, "new_str": "edited"});
            json!({"edits": [edit("a", "a"), edit("b", "b"), edit("dir/x", "x"), edit("a", "one")]})
        },
        first: None,
    },
    Change {
        name: "undo of a patch",
        tool: "undo_change",
        arguments: || json!({}),
        first: Some(("apply_patch", || json!({"patch": PATCH}))),
    },
    Change {
        name: "move of a directory",
        tool: "move_path",
        arguments: || json!({"from": "dir", "to": "other"}),
        first: None,
    },
    Change {
        name: "move over a file",
        tool: "move_path",
        arguments: || json!({"from": "a", "to": "dir/x", "overwrite": true}),
        first: None,
    },
    Change {
        name: "copy of a directory",
        tool: "copy_path",
        arguments: || json!({"from": "dir", "to": "other"}),
        first: None,
    },
    Change {
        name: "copy over a file",
        tool: "copy_path",
        arguments: || json!({"from": "a", "to": "dir/x", "overwrite": true}),
        first: None,
    },
    Change {
        name: "delete",
        tool: "delete_path",
        arguments: || json!({"path": "dir", "recursive": true}),
        first: None,
    },
    Change {
        name: "undo of a delete",
        tool: "undo_change",
        arguments: || json!({}),
        first: Some(("delete_path", || json!({"path": "dir", "recursive": true}))),
    },
    Change {
        name: "undo of a move over a file",
        tool: "undo_change",
        arguments: || json!({}),
        first: Some(("move_path", || json!({"from": "a", "to": "dir/x", "overwrite": true}))),
    },
    Change {
        name: "write below new directories",
        tool: "write_file",
        arguments: || json!({"path": "p/q/new", "content": "n\n", "create_parents": true}),
        first: None,
    },
    Change {
        name: "edit",
        tool: "edit_file",
        arguments: || json!({"path": "dir/below/z", "old_str": "0z\n", "new_str": "edited\n"}),
        first: None,
    },
];

fn run(run: &Run) -> anyhow::Result<String> {
    let binary = built("provider-filesystem")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let mut places = vec![Place::new(&binary, &folder.path().join("near"), &folder.path().join("state"))];
        // What is taken away is kept by a copy where the state folder is on another file system.
        let elsewhere = elsewhere(folder.path())?;
        if let Some(elsewhere) = &elsewhere {
            places.push(Place::new(&binary, &folder.path().join("far"), elsewhere.path()));
        }
        let mut tally = Tally::default();
        while let Some(mut random) = run.next_round() {
            let number = random.below(places.len());
            let place = places.get_mut(number).context("no place")?;
            let changes = if run.rounds() % 2 == 1 { PATCHES } else { OTHERS };
            let change = random.pick(changes).context("no change")?;
            let is_patch = run.rounds() % 2 == 1;
            let round = place.round(change, &mut random).await;
            tally.count(is_patch, &round.with_context(|| format!("{}: {}", change.name, place.describe()))?);
        }
        Ok(tally.say(elsewhere.is_some()))
    })
}

/// A folder on another file system than `here`, if there is one that is known to be everywhere.
fn elsewhere(here: &Path) -> anyhow::Result<Option<tempfile::TempDir>> {
    use std::os::unix::fs::MetadataExt as _;
    let device = here.metadata()?.dev();
    let other = ["/dev/shm", "/var/tmp", "/run"].into_iter().find_map(|path| {
        let differs = Path::new(path).metadata().is_ok_and(|metadata| metadata.dev() != device);
        differs.then(|| tempfile::tempdir_in(path).ok()).flatten()
    });
    Ok(other)
}

/// How a round came out.
struct Outcome {
    /// Whether the change was found made, or else not made.
    after: bool,
    /// Whether it was begun and neither made nor taken back when the process was gone.
    was_pending: bool,
}

#[derive(Default)]
struct Tally {
    patches: u64,
    before: u64,
    after: u64,
    pending: u64,
}

impl Tally {
    fn count(&mut self, is_patch: bool, round: &Outcome) {
        self.patches += u64::from(is_patch);
        self.before += u64::from(!round.after);
        self.after += u64::from(round.after);
        self.pending += u64::from(round.was_pending);
    }

    fn say(&self, far: bool) -> String {
        let Self { patches, before, after, pending } = self;
        let far = if far {
            "the state folder by turns on the same and on another file system"
        } else {
            "one file system"
        };
        format!(
            "{patches} of them patches of three files, {far}: {before} times all as before, {after} times all as after, never a \
             mixture; in {pending} the kill fell between the first step and the last"
        )
    }
}

/// A root with its state folder.
struct Place {
    binary: PathBuf,
    root: PathBuf,
    state: PathBuf,
    /// How long each change takes when nobody interrupts it, and what it makes of the root.
    known: BTreeMap<&'static str, (Duration, Tree, Tree)>,
}

impl Place {
    fn new(binary: &Path, root: &Path, state: &Path) -> Self {
        let (binary, root, state) = (binary.to_owned(), root.to_owned(), state.to_owned());
        Self { binary, root, state, known: BTreeMap::new() }
    }

    fn describe(&self) -> String {
        format!("root {}, state {}", self.root.display(), self.state.display())
    }

    fn reset(&self) -> anyhow::Result<()> {
        furnished().put(&self.root)?;
        std::fs::hard_link(self.root.join("linked"), self.root.join("second name"))?;
        Ok(())
    }

    async fn provider(&self) -> anyhow::Result<Provider> {
        started(&self.binary, json!({"allowed_roots": [self.root], "state_dir": self.state})).await
    }

    async fn do_it(&self, provider: &Provider, tool: &str, arguments: Value) -> anyhow::Result<()> {
        let outcome = outcome(provider, call(&self.root, tool, arguments)?).await?;
        outcome.map(drop).map_err(|error| anyhow::anyhow!("{tool}: {error:?}"))
    }

    /// The root before and after a change that nobody interrupts, and how long that takes, so that kills fall all over it.
    async fn learn(&mut self, change: &Change) -> anyhow::Result<(Duration, Tree, Tree)> {
        if let Some(known) = self.known.get(change.name) {
            return Ok(known.clone());
        }
        self.reset()?;
        let provider = self.provider().await?;
        let mut usual = Duration::ZERO;
        let (mut before, mut after) = (Tree::default(), Tree::default());
        for _ in 0..2 {
            self.begin(change, &provider).await?;
            before = Tree::of(&self.root)?;
            let begun = Instant::now();
            self.do_it(&provider, change.tool, (change.arguments)()).await?;
            usual = usual.max(begun.elapsed());
            after = Tree::of(&self.root)?;
            ensure!(before != after, "it changes nothing");
        }
        provider.stop().await;
        self.known.insert(change.name, (usual, before.clone(), after.clone()));
        Ok((usual, before, after))
    }

    /// Makes the root anew, as it is before the change.
    async fn begin(&self, change: &Change, provider: &Provider) -> anyhow::Result<()> {
        self.reset()?;
        match change.first {
            Some((tool, arguments)) => self.do_it(provider, tool, arguments()).await,
            None => Ok(()),
        }
    }

    /// Kills one provider in the middle of a change, and looks at what the next one makes of it.
    async fn round(&mut self, change: &Change, random: &mut Random) -> anyhow::Result<Outcome> {
        let (usual, before, after) = self.learn(change).await?;
        self.reset()?;
        let provider = self.provider().await?;
        self.begin(change, &provider).await?;
        let pid = provider.pid().context("no process")?;
        let most = usize::try_from(usual.as_micros() * 5 / 4).unwrap_or(usize::MAX);
        let moment = Duration::from_micros(random.below(most) as u64);
        let invocation = provider.invoke(call(&self.root, change.tool, (change.arguments)())?);
        let killer = std::thread::spawn({
            let provider = provider.clone();
            move || {
                std::thread::sleep(moment);
                provider.kill();
            }
        });
        let ended = tokio::time::timeout(LIMIT, invocation.outcome()).await;
        // Whatever it was: it was killed.
        drop(ended.context("the call does not end with its provider")?);
        let joined = tokio::task::spawn_blocking(move || killer.join()).await?;
        ensure!(joined.is_ok(), "the kill panicked");
        gone(pid).await?;

        let was_pending = self.pending()? > 0;
        let next = self.provider().await?;
        let found = Tree::of(&self.root)?;
        let is_after = found == after;
        if !is_after && found != before {
            bail!("a mixture after {moment:?} of {usual:?}:\n{found}\nis neither\n{before}\nnor\n{after}");
        }
        self.check_journal().with_context(|| format!("after {moment:?} of {usual:?}"))?;
        self.check_usable(change, &next, is_after, (&before, &after)).await?;
        next.stop().await;
        Ok(Outcome { after: is_after, was_pending })
    }

    /// What was not made can be made now, and what was made can be taken back.
    async fn check_usable(
        &self,
        change: &Change,
        next: &Provider,
        is_after: bool,
        (before, after): (&Tree, &Tree),
    ) -> anyhow::Result<()> {
        if !is_after {
            self.do_it(next, change.tool, (change.arguments)()).await.context("made again")?;
            let found = Tree::of(&self.root)?;
            ensure!(found == *after, "made again it gives\n{found}");
        }
        // Without an id, an undo would go further back than one that was made before it.
        self.do_it(next, "undo_change", json!({"change_id": self.newest()?})).await.context("taken back")?;
        let found = Tree::of(&self.root)?;
        ensure!(found == *before, "taken back it gives\n{found}\ninstead of\n{before}");
        self.check_journal()
    }

    /// The folders of the journal, one for each root.
    fn journals(&self) -> Vec<PathBuf> {
        let roots = std::fs::read_dir(self.state.join("filesystem")).into_iter().flatten();
        roots.filter_map(Result::ok).map(|entry| entry.path()).collect()
    }

    fn pending(&self) -> anyhow::Result<usize> {
        let mut pending = 0;
        for journal in self.journals() {
            pending += names(&journal.join("pending"))?.len();
        }
        Ok(pending)
    }

    /// The id of the newest change.
    fn newest(&self) -> anyhow::Result<String> {
        let mut newest = None;
        for journal in self.journals() {
            newest = newest.max(names(&journal.join("changes"))?.into_iter().max());
        }
        newest.context("no change is known")
    }

    /// Nothing is begun, and nothing is kept for a change that is not known.
    fn check_journal(&self) -> anyhow::Result<()> {
        for journal in self.journals() {
            let pending = names(&journal.join("pending"))?;
            ensure!(pending.is_empty(), "begun and neither made nor taken back: {pending:?}");
            let changes = names(&journal.join("changes"))?;
            let kept = names(&journal.join("kept"))?;
            let owner = |kept: &String| kept.split('.').next().unwrap_or_default().to_owned();
            let orphans: Vec<_> = kept.iter().filter(|kept| !changes.contains(&owner(kept))).collect();
            ensure!(orphans.is_empty(), "kept for nothing: {orphans:?}");
        }
        Ok(())
    }
}

fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    std::fs::read_dir(folder)?.map(name).collect()
}

/// What every round begins with: files of several modes and sizes, a directory in a directory, and links.
fn furnished() -> Tree {
    let file = |content: &str, mode| Entry::File { content: content.as_bytes().to_vec(), mode };
    let large: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    let entries = [
        ("a", file("one\na\n", 0o644)),
        ("b", file("one\nb\n", 0o600)),
        ("c", file("one\nc\n", 0o755)),
        ("deep", Entry::Directory { mode: 0o750 }),
        ("dir", Entry::Directory { mode: 0o755 }),
        ("dir/below", Entry::Directory { mode: 0o700 }),
        ("dir/below/z", file(&format!("{large}0z\n"), 0o640)),
        ("dir/empty", Entry::Directory { mode: 0o711 }),
        ("dir/link", Entry::Link("below/z".into())),
        ("dir/x", file("one\nx\n", 0o664)),
        ("dir/y", file("", 0o400)),
        ("linked", file("one\nl\n", 0o644)),
    ];
    Tree(entries.into_iter().map(|(name, entry)| (name.into(), entry)).collect())
}
