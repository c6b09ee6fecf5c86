//! Doing several steps, all or none.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use provider_core::jail::{JailPath, PathError, Staged, StagedCopy, WriteLock};
use provider_core::prelude::*;

use super::{Delta, Intent, Mark, Step, Work};
use crate::Filesystem;
use crate::engine::patience;

/// What a step needs besides its description.
enum Ready {
    /// A locked file and its new content.
    Content(Box<WriteLock>, Staged),
    /// A copy that only needs its name.
    Copy(StagedCopy),
    /// A file that is locked already.
    Locked { _lock: Box<WriteLock> },
    /// Nothing.
    Plain,
    /// It was done already.
    Done,
}

/// Steps that are to be taken all or not at all.
#[derive(Default)]
pub(crate) struct Transaction {
    steps: Vec<Step>,
    ready: Vec<Ready>,
    bytes: Vec<u8>,
    effects: Vec<String>,
    undoes: Option<String>,
}

/// A part of a large file that was exchanged.
pub(crate) struct Exchanged<'a> {
    /// The hash of the file before.
    pub(crate) before: &'a str,
    /// The hash of the file after.
    pub(crate) after: &'a str,
    /// How many bytes it had.
    pub(crate) size: u64,
    /// Where the part stood.
    pub(crate) range: Range<u64>,
    /// The part before.
    pub(crate) old: &'a [u8],
    /// The part after.
    pub(crate) new: &'a [u8],
}

/// What a transaction that was made leaves to say.
pub(crate) struct Done {
    /// The change's id, if it can be taken back.
    pub(crate) change_id: Option<String>,
}

impl Transaction {
    /// A transaction that takes back the change `id`.
    pub(crate) fn undoing(id: &str) -> Self {
        Self { undoes: Some(id.to_owned()), ..Self::default() }
    }

    fn push(&mut self, step: Step, ready: Ready, effect: String) {
        self.steps.push(step);
        self.ready.push(ready);
        self.effects.push(effect);
    }

    /// A locked file gets the content that was staged for it. `before` is what it has, `None` if it is not there.
    pub(crate) fn put(&mut self, lock: WriteLock, staged: Staged, before: Option<&[u8]>, after: &[u8]) {
        let path = lock.path().real_absolute();
        let mark = Mark::of_file(after, staged.metadata());
        let shown = lock.path().to_string();
        let (step, verb) = match (before, lock.metadata()) {
            (Some(old), Some(metadata)) => {
                let in_place = staged.in_place();
                let delta = match in_place {
                    true => Delta::whole(old, &mut self.bytes),
                    false => Delta::between(old, after, &mut self.bytes),
                };
                let before = Mark::of_file(old, metadata);
                (Step::Content { path, before, after: mark, delta, in_place }, "changed")
            }
            _ => (Step::Create { path, after: mark }, "created"),
        };
        self.push(step, Ready::Content(Box::new(lock), staged), format!("{verb} {shown}"));
    }

    /// The same for a file that is not in memory, of which a part was exchanged. It is not written in place.
    pub(crate) fn put_exchanged(&mut self, lock: WriteLock, staged: Staged, exchanged: &Exchanged<'_>) {
        let path = lock.path().real_absolute();
        let shown = lock.path().to_string();
        let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (prefix, suffix) = (exchanged.range.start, exchanged.size - exchanged.range.end);
        let size = prefix + exchanged.new.len() as u64 + suffix;
        let metadata = lock.metadata().unwrap_or(staged.metadata());
        let before = Mark::of_hash(exchanged.before, exchanged.size, metadata);
        let after = Mark::of_hash(exchanged.after, size, staged.metadata());
        let delta = Delta::of_span(in_memory(prefix), in_memory(suffix), exchanged.old, &mut self.bytes);
        let step = Step::Content { path, before, after, delta, in_place: false };
        self.push(step, Ready::Content(Box::new(lock), staged), format!("changed {shown}"));
    }

    /// A copy gets its name, `to`.
    pub(crate) fn put_copy(&mut self, to: &JailPath, staged: StagedCopy) -> Result<(), PathError> {
        let after = Mark::of(staged.path())?;
        self.push(
            Step::Create { path: to.real_absolute(), after },
            Ready::Copy(staged),
            format!("created {to}"),
        );
        Ok(())
    }

    /// What is at `path` is taken away.
    pub(crate) fn remove(&mut self, path: &JailPath, before: Mark, id: (u64, u64)) {
        self.remove_with(path, before, id, Ready::Plain);
    }

    /// A locked file is taken away.
    pub(crate) fn remove_locked(&mut self, lock: WriteLock, content: &[u8]) {
        let Some(metadata) = lock.metadata() else { return };
        let (mark, id, path) = (Mark::of_file(content, metadata), metadata.id(), lock.path().clone());
        self.remove_with(&path, mark, id, Ready::Locked { _lock: Box::new(lock) });
    }

    fn remove_with(&mut self, path: &JailPath, before: Mark, id: (u64, u64), ready: Ready) {
        let slot = self.steps.len().to_string();
        let step = Step::Remove { path: path.real_absolute(), before, id, slot };
        self.push(step, ready, format!("removed {path}"));
    }

    /// What the change `change` took away comes back.
    pub(crate) fn restore(&mut self, path: &JailPath, after: Mark, change: &str, slot: &str) {
        let (change, slot) = (change.to_owned(), slot.to_owned());
        let step = Step::Restore { path: path.real_absolute(), after, change, slot };
        self.push(step, Ready::Plain, format!("restored {path}"));
    }

    /// What is at `from` moves to `to`. `id` is its device and inode when it does.
    pub(crate) fn rename(&mut self, from: &JailPath, to: &JailPath, mark: Mark, id: (u64, u64)) {
        let step = Step::Rename { from: from.real_absolute(), to: to.real_absolute(), mark, id };
        self.push(step, Ready::Plain, format!("moved {from} to {to}"));
    }

    /// Two things get each other's name.
    pub(crate) fn exchange(
        &mut self,
        (one, one_mark, one_id): (&JailPath, Mark, (u64, u64)),
        (other, other_mark): (&JailPath, Mark),
    ) {
        let (one, other, effect) =
            (one.real_absolute(), other.real_absolute(), format!("exchanged {one} and {other}"));
        self.push(Step::Exchange { one, other, one_mark, one_id, other_mark }, Ready::Plain, effect);
    }

    /// What the file at `path` is after the steps so far, if one of them gives it its content.
    pub(crate) fn mark_after(&self, path: &JailPath) -> Option<Mark> {
        let real = path.real_absolute();
        self.steps.iter().rev().find_map(|step| match step {
            Step::Content { path, after, .. } if *path == real => Some(after.clone()),
            _ => None,
        })
    }

    /// A directory is made; with `done` it was already.
    pub(crate) fn make_directory(&mut self, path: &JailPath, done: bool) {
        let ready = if done { Ready::Done } else { Ready::Plain };
        self.push(
            Step::MakeDirectory { path: path.real_absolute() },
            ready,
            format!("created directory {path}"),
        );
    }

    /// An empty directory is removed.
    pub(crate) fn remove_directory(&mut self, path: &JailPath) {
        let step = Step::RemoveDirectory { path: path.real_absolute() };
        self.push(step, Ready::Plain, format!("removed directory {path}"));
    }

    /// Takes all steps. `tool` is written down beside them.
    ///
    /// # Errors
    /// What a step failed with; the steps before it are taken back then, or it is said which could not be.
    pub(crate) fn run(self, filesystem: &Filesystem, tool: &str, cx: &Cx<Events>) -> Result<Done, ToolError> {
        let Some(first) = self.steps.first().and_then(|step| step.paths().first().copied().cloned()) else {
            return Ok(Done { change_id: None });
        };
        // Neither what is taken back nor what is done from here on may stop half-way; a cancel is asked about below.
        patience::see_through();
        filesystem.recover_pending().into_iter().for_each(|note| cx.note(note));
        let root = filesystem.place(&first, cx)?;
        let intent = Intent {
            tool: tool.to_owned(),
            session: cx.session_id().to_owned(),
            undoes: self.undoes,
            steps: self.steps,
            bytes: self.bytes,
        };
        let work = filesystem.journal.begin(root.root(), intent);
        // The last moment: from here on it is done, or taken back.
        if let Err(cancelled) = cx.check_cancelled() {
            drop(self.ready);
            return Err(taken_back(cancelled, &work.roll_back(&filesystem.journal, &filesystem.roots), cx));
        }
        // Directories that were made for it are taken back with it from here on.
        for step in work.steps() {
            if let Step::MakeDirectory { path } = step
                && let Ok(path) = filesystem.place(path, cx)
            {
                filesystem.journal.directory_stays(&path);
            }
        }
        let several =
            work.steps().iter().filter(|step| !matches!(step, Step::MakeDirectory { .. })).count() > 1;
        let inodes = HashMap::new();
        let mut performer = Performer { filesystem, work: &work, cx, inodes, removed: Removed::Kept };
        // Consumed one by one: the locks of what was not come to are let go before anything is taken back.
        let failed =
            work.steps().iter().zip(self.ready).try_for_each(|(step, ready)| performer.step(step, ready));
        if let Err(error) = failed {
            return Err(match performer.removed {
                Removed::Kept => {
                    taken_back(error, &work.roll_back(&filesystem.journal, &filesystem.roots), cx)
                }
                // Then what was done before may be all that is left of it.
                Removed::ForGood(_) => {
                    work.forget();
                    error
                }
            });
        }
        let removed = performer.removed;
        self.effects.into_iter().for_each(|effect| cx.effects().record(effect));
        let made = match removed {
            Removed::Kept => work.commit(&filesystem.journal),
            Removed::ForGood(reason) => {
                work.forget();
                Err(reason)
            }
        };
        match made {
            Ok(id) => Ok(Done { change_id: Some(id) }),
            Err(reason) => {
                let more = if several {
                    "; had it been interrupted, a part of it could have been left done"
                } else {
                    ""
                };
                cx.note(format!("this change cannot be undone: {reason}{more}"));
                Ok(Done { change_id: None })
            }
        }
    }
}

/// The error of a change, with what is left of it.
fn taken_back(error: ToolError, left: &[String], cx: &Cx<Events>) -> ToolError {
    if cx.check_cancelled().is_err() && left.is_empty() {
        return ToolError::cancelled();
    }
    if left.is_empty() {
        return error;
    }
    let text =
        format!("{error}. What had been done by then could not be taken back whole: {}", left.join("; "));
    match error.code() {
        Some(code) => ToolError::new(code, text),
        None => ToolError::execution_failed(text),
    }
}

/// Takes one step after another.
struct Performer<'a> {
    filesystem: &'a Filesystem,
    work: &'a Work,
    cx: &'a Cx<Events>,
    /// The inodes of what came back: others than were expected, where it was copied from another file system.
    inodes: HashMap<PathBuf, (u64, u64)>,
    removed: Removed,
}

/// What became of what was taken away.
enum Removed {
    /// It can be brought back.
    Kept,
    /// It is kept nowhere, for this reason.
    ForGood(String),
}

impl Performer<'_> {
    fn place(&self, path: &Path) -> Result<JailPath, ToolError> {
        self.filesystem.place(path, self.cx)
    }

    fn step(&mut self, step: &Step, ready: Ready) -> Result<(), ToolError> {
        match (step, ready) {
            (_, Ready::Done) => Ok(()),
            (_, Ready::Content(mut lock, staged)) => {
                let replaced = lock.put(staged)?;
                replaced.notes.into_iter().for_each(|note| self.cx.note(note));
                Ok(())
            }
            (_, Ready::Copy(staged)) => Ok(staged.put()?),
            (Step::Remove { path, id, slot, .. }, ready) => {
                let id = self.inodes.get(path).copied().unwrap_or(*id);
                self.remove(&self.place(path)?, id, slot, &ready)
            }
            (Step::Restore { path, change, slot, .. }, _) => {
                let back = self.place(path)?;
                let depot = self.filesystem.kept_by(change)?;
                self.filesystem.journal.expect_temporary(&back);
                back.put_back(&depot, slot, &mut |_| ask(self.cx))?;
                self.inodes.insert(path.clone(), back.symlink_metadata()?.id());
                Ok(())
            }
            (Step::Rename { from, to, id, .. }, _) => rename(&self.place(from)?, &self.place(to)?, *id),
            (Step::Exchange { one, other, .. }, _) => {
                let (first, second) = (self.place(one)?, self.place(other)?);
                first.exchange(&second)?;
                first.settle();
                second.settle();
                for (name, found) in [(one, first), (other, second)] {
                    self.inodes.insert(name.clone(), found.symlink_metadata()?.id());
                }
                Ok(())
            }
            (Step::MakeDirectory { path }, _) => {
                let path = self.place(path)?;
                path.create_dir()?;
                path.settle();
                Ok(())
            }
            (Step::RemoveDirectory { path }, _) => Ok(self.place(path)?.remove_dir()?),
            (Step::Content { path, .. } | Step::Create { path, .. }, _) => {
                Err(ToolError::execution_failed(format!("{}: nothing was staged for it", path.display())))
            }
        }
    }

    fn remove(
        &mut self,
        path: &JailPath,
        id: (u64, u64),
        slot: &str,
        ready: &Ready,
    ) -> Result<(), ToolError> {
        let _held = if matches!(ready, Ready::Locked { .. }) { None } else { Some(path.hold()?) };
        let reason = match (&self.removed, self.work.depot()) {
            (Removed::ForGood(reason), _) => reason.clone(),
            (Removed::Kept, None) => self.work.unkept.clone().unwrap_or_default(),
            (Removed::Kept, Some(depot)) => match path.set_aside(depot, slot, id, &mut |_| ask(self.cx)) {
                Err(error) if error.is_depot_unusable() => {
                    // Nobody may take back the steps before this one after a kill, once what they rest on begins to go.
                    self.work.withdraw();
                    format!("the state folder has no room to keep {path}, or cannot be written")
                }
                other => return Ok(other?),
            },
        };
        self.remove_for_good(path, id, reason)
    }

    /// Removes without keeping, where there is nowhere to keep it. What was removed when the call is given up stays
    /// so, and is said.
    fn remove_for_good(&mut self, path: &JailPath, id: (u64, u64), reason: String) -> Result<(), ToolError> {
        if path.symlink_metadata()?.id() != id {
            return Err(PathError::Changed { path: path.to_string() }.into());
        }
        let mut seen = 0_u64;
        let removed = path.remove_tree(&mut |_| {
            ask(self.cx)?;
            seen += 1;
            Ok(())
        });
        if let Err(error) = removed {
            if seen > 1 {
                self.removed = Removed::ForGood(reason);
                self.cx.effects().record(format!("removed a part of {path}"));
            }
            return Err(self.cx.check_cancelled().err().unwrap_or_else(|| error.into()));
        }
        self.removed = Removed::ForGood(reason);
        path.settle();
        Ok(())
    }
}

fn rename(from: &JailPath, to: &JailPath, id: (u64, u64)) -> Result<(), ToolError> {
    let _held = from.hold()?;
    if from.symlink_metadata()?.id() != id {
        return Err(PathError::Changed { path: from.to_string() }.into());
    }
    from.rename(to, false)?;
    from.settle();
    to.settle();
    Ok(())
}

/// Whether long work is still wanted.
pub(crate) fn ask(cx: &Cx<Events>) -> Result<(), PathError> {
    cx.check_cancelled().map_err(|_| PathError::Stopped { path: String::new() })
}
