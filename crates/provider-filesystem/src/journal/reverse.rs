//! Taking back a change that was made: the opposite steps, as a change of its own.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use provider_core::jail::{Depot, JailPath, PathError, WriteLock, is_temp_name, lock_all};
use provider_core::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Delta, Entry, Header, Mark, Step, Store, Transaction, ago};
use crate::Filesystem;
use crate::engine::diff::Diff;
use crate::engine::text::Text;
use crate::entries::{of_bytes, of_files};
use crate::shown::FileDiff;
use crate::staleness::sha256;

/// Longer files are not shown when they come or go, in bytes.
const MOST_SHOWN: u64 = 256 << 10;
/// How many of the newest changes are looked through for the latest.
const LOOKED_THROUGH: usize = 10_000;

/// What becomes of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// It appears.
    Add,
    /// It gets another content.
    Update,
    /// It is gone.
    Delete,
    /// It moves here.
    Move,
}

/// One path of a change that is taken back.
pub(crate) struct Reversed {
    pub(crate) path: JailPath,
    pub(crate) action: Action,
    /// The hash of the file then, where it is one.
    pub(crate) sha256: Option<String>,
}

/// How a change is taken back.
pub(crate) struct Reversal {
    pub(crate) files: Vec<Reversed>,
    pub(crate) diffs: Vec<FileDiff>,
    pub(crate) notes: Vec<String>,
    steps: Vec<Opposite>,
    id: String,
}

/// One step back.
enum Opposite {
    Content { path: JailPath, old: Vec<u8>, new: Vec<u8>, mode: u32 },
    Remove { path: JailPath, mark: Mark, id: (u64, u64) },
    Restore { path: JailPath, mark: Mark, slot: String },
    Rename { from: JailPath, to: JailPath, mark: Mark, id: (u64, u64) },
    Exchange { one: (JailPath, Mark, (u64, u64)), other: (JailPath, Mark) },
    MakeDirectory(JailPath),
    RemoveDirectory(JailPath),
}

/// A change that can be taken back, and whether it is another session's.
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) note: Option<String>,
    /// Locked, so that it is not cleared away, or taken back twice, meanwhile.
    _file: std::fs::File,
}

impl Filesystem {
    /// The change `id`, or the latest that is not taken back: of the session, else of any.
    pub(crate) fn find_change(&self, id: Option<&str>, session: &str) -> Result<Found, ToolError> {
        let stores: Vec<Store> = self.roots.iter().filter_map(|root| self.journal.store(root)).collect();
        let (id, note) = match id {
            Some(id) => (id.to_owned(), None),
            None => latest(&stores, session)?,
        };
        match stores.iter().find_map(|store| store.open(&id)) {
            Some(Ok((entry, file))) => Ok(Found { entry, note, _file: file }),
            Some(Err(error)) => {
                Err(ToolError::execution_failed(format!("the change {id} cannot be undone: {error}")))
            }
            None => {
                let text = format!(
                    "there is no change {id}: it was made below another root, or is no longer kept (7 days, 512 MiB). \
                     Without change_id the latest change is undone"
                );
                Err(ToolError::not_found(text))
            }
        }
    }
}

/// The id of the latest change that stands, and what to say about it.
fn latest(stores: &[Store], session: &str) -> Result<(String, Option<String>), ToolError> {
    let mut ids: Vec<(String, &Store)> =
        stores.iter().flat_map(|store| store.ids().into_iter().map(move |id| (id, store))).collect();
    ids.sort_by(|one, other| other.0.cmp(&one.0));
    let headers: Vec<Header> =
        ids.iter().take(LOOKED_THROUGH).filter_map(|(id, store)| store.header(id)).collect();
    let standing = standing(&headers);
    let own = standing.iter().find(|header| header.session == session);
    match own.or(standing.first()) {
        Some(header) if own.is_some() => Ok((header.id.clone(), None)),
        Some(header) => {
            let note = format!(
                "this session has made no change here that could be undone; the latest of another was taken: {} {}",
                header.tool,
                ago(header.at_ms)
            );
            Ok((header.id.clone(), Some(note)))
        }
        None => Err(ToolError::not_found("there is no change that could be undone")),
    }
}

/// What stands of all changes, the newest first. A change that was undone does not, nor does the undoing; one that was
/// undone and done again does, by the last of the three.
fn standing(newest_first: &[Header]) -> Vec<&Header> {
    let undone_by: HashMap<&str, &Header> =
        newest_first.iter().rev().filter_map(|header| Some((header.undoes.as_deref()?, header))).collect();
    let mut standing: Vec<&Header> = newest_first
        .iter()
        .filter(|header| header.undoes.is_none())
        .filter_map(|header| {
            let (mut last, mut undone) = (header, false);
            while let Some(next) = undone_by.get(last.id.as_str()) {
                (last, undone) = (next, !undone);
            }
            (!undone).then_some(last)
        })
        .collect();
    standing.sort_by(|one, other| other.id.cmp(&one.id));
    standing
}

/// Where something is that will be elsewhere on the way back.
#[derive(Clone)]
enum Now {
    /// Under this name.
    At(JailPath),
    /// In the journal, from where it comes back before it is needed.
    Kept(Mark, (u64, u64)),
}

impl Now {
    /// Its device and inode, if it is what `mark` says. `path` is the name that the change left it under.
    fn must_be(&self, path: &JailPath, mark: &Mark) -> Result<(u64, u64), ToolError> {
        match self {
            Self::At(now) => {
                must_be(path, now, mark)?;
                Ok(now.symlink_metadata()?.id())
            }
            Self::Kept(kept, id) if kept == mark => Ok(*id),
            Self::Kept(..) => Err(stale(path)),
        }
    }
}

/// Looks at everything that a change was about, and plans the way back.
pub(crate) struct Planner<'a> {
    filesystem: &'a Filesystem,
    entry: &'a Entry,
    base: &'a Path,
    reversal: Reversal,
    /// Where things are now that the change gave another name.
    renamed: HashMap<PathBuf, PathBuf>,
    /// Where things are now that will be elsewhere once the steps planned so far are taken.
    now: HashMap<PathBuf, Now>,
    /// Names that the change only used on the way.
    passing: HashSet<PathBuf>,
}

impl<'a> Planner<'a> {
    /// Plans the way back. Paths are shown relative to `base`.
    ///
    /// # Errors
    /// `stale` if anything is not as the change left it.
    pub(crate) fn plan(
        filesystem: &'a Filesystem,
        entry: &'a Entry,
        base: &'a Path,
    ) -> Result<Reversal, ToolError> {
        let reversal = Reversal {
            files: Vec::new(),
            diffs: Vec::new(),
            notes: Vec::new(),
            steps: Vec::new(),
            id: entry.header.id.clone(),
        };
        let (mut renamed, mut passing) = (HashMap::new(), HashSet::new());
        for step in &entry.header.steps {
            match step {
                Step::Rename { from, to, .. } => drop(renamed.insert(from.clone(), to.clone())),
                Step::Exchange { one, .. } => drop(passing.insert(one.clone())),
                _ => {}
            }
        }
        let mut planner = Self { filesystem, entry, base, reversal, renamed, now: HashMap::new(), passing };
        // Contents are put back where the files are now, before those move.
        let (contents, others): (Vec<_>, Vec<_>) =
            entry.header.steps.iter().rev().partition(|step| matches!(step, Step::Content { .. }));
        contents.into_iter().chain(others).try_for_each(|step| planner.step(step))?;
        Ok(planner.reversal)
    }

    fn place(&self, path: &Path) -> Result<JailPath, ToolError> {
        Ok(self.filesystem.roots.exact(path, self.base)?)
    }

    fn step(&mut self, step: &Step) -> Result<(), ToolError> {
        match step {
            Step::Content { path, before, after, delta, .. } => self.content(path, before, after, delta),
            Step::Create { path, after } | Step::Restore { path, after, .. } => self.created(path, after),
            Step::Remove { path, before, slot, .. } => self.removed(path, before, slot),
            Step::Rename { from, to, mark, .. } => self.renamed(from, to, mark),
            Step::Exchange { one, other, one_mark, other_mark, .. } => {
                self.exchanged(one, other, one_mark, other_mark)
            }
            Step::MakeDirectory { path } => self.made_directory(path),
            Step::RemoveDirectory { path } => {
                let path = self.place(path)?;
                self.must_be_free(&path)?;
                self.push(&path, Action::Add, None);
                self.reversal.steps.push(Opposite::MakeDirectory(path));
                Ok(())
            }
        }
    }

    fn push(&mut self, path: &JailPath, action: Action, sha256: Option<&str>) {
        if !path.file_name().is_some_and(is_temp_name) {
            let sha256 = sha256.map(str::to_owned);
            // What becomes of it in the end is what counts.
            self.reversal.files.retain(|file| file.path != *path);
            self.reversal.files.push(Reversed { path: path.clone(), action, sha256 });
        }
    }

    fn content(&mut self, path: &Path, before: &Mark, after: &Mark, delta: &Delta) -> Result<(), ToolError> {
        let now = self.renamed.get(path).map_or(path, PathBuf::as_path);
        let path = self.place(now)?;
        must_be(&path, &path, after)?;
        let new = path.read()?;
        let old = delta.apply(&new, &self.entry.bytes);
        let old = old.filter(|old| before.sha256() == Some(sha256(old).as_str()));
        let (Some(old), Mark::File { mode, .. }, Mark::File { mode: mode_now, .. }) = (old, before, after)
        else {
            return Err(stale(&path));
        };
        let shown = path.to_string();
        let remarks =
            if mode == mode_now { Vec::new() } else { vec![format!("mode {mode_now:o} → {mode:o}")] };
        let diff = Diff::of_files(&new, &old);
        self.reversal.diffs.push(FileDiff { old: Some(shown.clone()), new: Some(shown), diff, remarks });
        self.push(&path, Action::Update, before.sha256());
        self.reversal.steps.push(Opposite::Content { path, old, new, mode: *mode });
        Ok(())
    }

    fn created(&mut self, path: &Path, after: &Mark) -> Result<(), ToolError> {
        let path = self.place(path)?;
        let now = self.where_now(&path);
        let id = now.must_be(&path, after)?;
        if !path.file_name().is_some_and(is_temp_name) {
            let small = after.sha256().is_some() && after.size().1 <= MOST_SHOWN;
            let content = match now {
                Now::At(now) if small => now.read().ok(),
                _ => None,
            };
            self.show(Some(path.to_string()), None, content, after);
            self.push(&path, Action::Delete, None);
        }
        self.reversal.steps.push(Opposite::Remove { path, mark: after.clone(), id });
        Ok(())
    }

    /// Where the thing is now that will be at `path` once the steps planned so far are taken.
    fn where_now(&self, path: &JailPath) -> Now {
        self.now.get(&path.real_absolute()).cloned().unwrap_or_else(|| Now::At(path.clone()))
    }

    fn removed(&mut self, path: &Path, before: &Mark, slot: &str) -> Result<(), ToolError> {
        let path = self.place(path)?;
        self.must_be_free(&path)?;
        let depot = self.filesystem.kept_by(&self.entry.header.id)?;
        let Some(kept) = depot.metadata(slot) else { return Err(self.moved_on(&path)) };
        self.now.insert(path.real_absolute(), Now::Kept(before.clone(), kept.id()));
        if !self.passing.contains(&path.real_absolute()) {
            self.show_kept(&path, &depot, before, slot);
            self.push(&path, Action::Add, before.sha256());
        }
        self.reversal.steps.push(Opposite::Restore { path, mark: before.clone(), slot: slot.to_owned() });
        Ok(())
    }

    fn show_kept(&mut self, path: &JailPath, depot: &Depot, before: &Mark, slot: &str) {
        let content = depot.read(slot, MOST_SHOWN).ok().flatten();
        self.show(None, Some(path.to_string()), content, before);
    }

    /// What comes (`new`) or goes (`old`) is shown with its text, if it has one.
    fn show(&mut self, old: Option<String>, new: Option<String>, content: Option<Vec<u8>>, mark: &Mark) {
        let text = content.filter(|content| Text::parse(content).is_ok());
        let (diff, remarks) = match &text {
            Some(text) if old.is_some() => (Diff::of_files(text, b""), Vec::new()),
            Some(text) => (Diff::of_files(b"", text), Vec::new()),
            None => {
                let (files, bytes) = mark.size();
                let verb = if old.is_some() { "removes" } else { "brings back" };
                (Diff::default(), vec![format!("{verb} {}, {}", of_files(files), of_bytes(bytes))])
            }
        };
        self.reversal.diffs.push(FileDiff { old, new, diff, remarks });
    }

    fn renamed(&mut self, from: &Path, to: &Path, mark: &Mark) -> Result<(), ToolError> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let now = self.where_now(&to);
        let id = now.must_be(&to, mark)?;
        self.must_be_free(&from)?;
        self.now.insert(from.real_absolute(), now);
        let (old, new) = (Some(to.to_string()), Some(from.to_string()));
        self.reversal.diffs.push(FileDiff {
            old,
            new,
            diff: Diff::default(),
            remarks: vec!["moves".to_owned()],
        });
        self.push(&from, Action::Move, mark.sha256());
        self.reversal.steps.push(Opposite::Rename { from: to, to: from, mark: mark.clone(), id });
        Ok(())
    }

    fn exchanged(
        &mut self,
        one: &Path,
        other: &Path,
        one_mark: &Mark,
        other_mark: &Mark,
    ) -> Result<(), ToolError> {
        let (one, other) = (self.place(one)?, self.place(other)?);
        let (one_now, other_now) = (self.where_now(&one), self.where_now(&other));
        let id = other_now.must_be(&other, one_mark)?;
        self.now.insert(one.real_absolute(), other_now);
        self.now.insert(other.real_absolute(), one_now);
        let (old, new) = (Some(other.to_string()), Some(one.to_string()));
        let moved = !one.file_name().is_some_and(is_temp_name);
        if moved {
            let remarks = vec!["moves".to_owned()];
            self.reversal.diffs.push(FileDiff { old, new, diff: Diff::default(), remarks });
        }
        let remarks = vec![format!("is what it was before again ({} bytes)", other_mark.size().1)];
        let name = Some(other.to_string());
        self.reversal.diffs.push(FileDiff { old: name.clone(), new: name, diff: Diff::default(), remarks });
        self.push(&one, Action::Move, one_mark.sha256());
        self.push(&other, Action::Update, other_mark.sha256());
        let (now, then) = ((other, one_mark.clone(), id), (one, other_mark.clone()));
        self.reversal.steps.push(Opposite::Exchange { one: now, other: then });
        Ok(())
    }

    fn made_directory(&mut self, path: &Path) -> Result<(), ToolError> {
        let path = self.place(path)?;
        let going: HashSet<PathBuf> = self.reversal.steps.iter().filter_map(Opposite::goes).collect();
        let mut stays = None;
        let listed = path.read_dir();
        let entries = match listed {
            Ok(entries) => entries,
            // It is gone already, which is what was wanted.
            Err(PathError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let name = entry.map_err(|error| ToolError::execution_failed(error.to_string()))?.name;
            if !going.contains(&path.real_absolute().join(&name)) {
                stays = Some(provider_core::jail::escape_bytes(&name));
            }
        }
        match stays {
            None => {
                self.push(&path, Action::Delete, None);
                self.reversal.steps.push(Opposite::RemoveDirectory(path));
                Ok(())
            }
            Some(name) if self.reversal.steps.is_empty() => {
                let text = format!(
                    "the directory `{path}` has something in it by now (`{name}`), so making it is not undone; nothing was \
                     changed. Use delete_path to remove it with that"
                );
                Err(ToolError::new(Code::Stale, text))
            }
            Some(name) => {
                self.reversal
                    .notes
                    .push(format!("the directory {path} stays, because `{name}` is in it by now"));
                Ok(())
            }
        }
    }

    fn must_be_free(&self, path: &JailPath) -> Result<(), ToolError> {
        if path.exists()? {
            let text = format!(
                "`{path}` is there again, made by something else since, so the change is not undone; nothing was changed. \
                 Move it away first"
            );
            return Err(ToolError::new(Code::Stale, text));
        }
        if let Some(parent) = path.parent()
            && !parent.exists()?
            && !self.reversal.steps.iter().any(|step| step.brings(&parent))
        {
            let text = format!(
                "`{path}` cannot be brought back: `{parent}` is gone; make it first with create_directory"
            );
            return Err(ToolError::new(Code::Stale, text));
        }
        Ok(())
    }

    fn moved_on(&self, path: &JailPath) -> ToolError {
        let text = format!(
            "the change {} was undone before and done again since; what it took away from `{path}` is kept by that later \
             change: undo that one",
            self.entry.header.id
        );
        ToolError::new(Code::Stale, text)
    }
}

/// Refuses unless what is at `now`, and was left at `path`, is what `mark` says.
fn must_be(path: &JailPath, now: &JailPath, mark: &Mark) -> Result<(), ToolError> {
    match mark.is_at(now) {
        Ok(true) => Ok(()),
        Ok(false) | Err(PathError::NotFound { .. }) => Err(stale(path)),
        Err(error) => Err(error.into()),
    }
}

fn stale(path: &JailPath) -> ToolError {
    let text = format!(
        "`{path}` is no longer as the change left it, so the change is not undone; nothing was changed. Read it and edit it \
         instead"
    );
    ToolError::new(Code::Stale, text)
}

impl Opposite {
    /// Whether this step makes the directory.
    fn brings(&self, directory: &JailPath) -> bool {
        match self {
            Self::MakeDirectory(path) => path == directory,
            // What comes back may have it beneath.
            Self::Restore { path, .. } => directory.is_below(path),
            Self::Rename { to, .. } => directory.is_below(to),
            _ => false,
        }
    }

    /// What is no longer at its name after this step.
    fn goes(&self) -> Option<PathBuf> {
        match self {
            Self::Remove { path, .. } | Self::RemoveDirectory(path) => Some(path.real_absolute()),
            Self::Rename { from, .. } => Some(from.real_absolute()),
            _ => None,
        }
    }
}

impl Reversal {
    /// What identifies the way back: the change, everything being as that left it, and what stays all the same.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{}\0{}", self.id, self.notes.join("\0"))
    }

    /// Takes the way back. Answers the id of that change.
    pub(crate) fn run(
        self,
        filesystem: &Filesystem,
        tool: &str,
        cx: &Cx<Events>,
    ) -> Result<Option<String>, ToolError> {
        let paths: Vec<JailPath> = self.steps.iter().filter_map(Opposite::content_path).cloned().collect();
        let mut locks = lock_all(&paths)?.into_iter();
        let mut transaction = Transaction::undoing(&self.id);
        let mut inodes: HashMap<PathBuf, (u64, u64)> = HashMap::new();
        let mut remembered = Vec::new();
        for step in self.steps {
            match step {
                Opposite::Content { path, old, new, mode } => {
                    let lock = locks.next().ok_or_else(|| stale(&path))?;
                    let real = lock.path().real_absolute();
                    filesystem.journal.expect_temporary(lock.path());
                    let (lock, staged) = restage(lock, &path, &old, &new, mode)?;
                    if !staged.in_place() {
                        inodes.insert(real, staged.metadata().id());
                    }
                    transaction.put(lock, staged, Some(&new), &old);
                    remembered.push((path.absolute(), old, sha256(&new)));
                }
                Opposite::Remove { path, mark, id } => transaction.remove(&path, mark, id),
                Opposite::Restore { path, mark, slot } => transaction.restore(&path, mark, &self.id, &slot),
                Opposite::Rename { from, to, mark, id } => {
                    let id = inodes.get(&from.real_absolute()).copied().unwrap_or(id);
                    let mark = transaction.mark_after(&from).unwrap_or(mark);
                    transaction.rename(&from, &to, mark, id);
                }
                Opposite::Exchange { one, other } => {
                    transaction.exchange((&one.0, one.1, one.2), (&other.0, other.1));
                }
                Opposite::MakeDirectory(path) => transaction.make_directory(&path, false),
                Opposite::RemoveDirectory(path) => transaction.remove_directory(&path),
            }
        }
        let done = transaction.run(filesystem, tool, cx)?;
        for (path, content, replaced) in remembered {
            filesystem.memory.wrote(cx.session_id(), &path, sha256(&content), &content, Some(&replaced));
        }
        Ok(done.change_id)
    }
}

impl Opposite {
    fn content_path(&self) -> Option<&JailPath> {
        match self {
            Self::Content { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Stages the old content, once it is certain under the lock that the new one is still there.
fn restage(
    mut lock: WriteLock,
    path: &JailPath,
    old: &[u8],
    new: &[u8],
    mode: u32,
) -> Result<(WriteLock, provider_core::jail::Staged), ToolError> {
    if lock.contents()?.as_deref() != Some(new) {
        return Err(stale(path));
    }
    let mut staged = lock.stage(old)?;
    if staged.metadata().mode != mode {
        staged.set_mode(mode).map_err(|error| {
            ToolError::execution_failed(format!("`{path}`: its mode cannot be set: {error}"))
        })?;
    }
    Ok((lock, staged))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: &str, undoes: Option<&str>) -> Header {
        Header {
            id: id.to_owned(),
            tool: String::new(),
            session: String::new(),
            at_ms: 0,
            undoes: undoes.map(str::to_owned),
            steps: Vec::new(),
        }
    }

    fn check(changes: &[(&str, Option<&str>)], expected: &[&str]) {
        let newest_first: Vec<_> = changes.iter().rev().map(|(id, undoes)| header(id, *undoes)).collect();
        let found: Vec<_> = standing(&newest_first).into_iter().map(|header| header.id.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_undone_does_not_stand_and_what_was_done_again_does() {
        check(&[], &[]);
        check(&[("1", None), ("2", None)], &["2", "1"]);
        check(&[("1", None), ("2", None), ("3", Some("2"))], &["1"]);
        check(&[("1", None), ("2", None), ("3", Some("2")), ("4", Some("1"))], &[]);
        check(&[("1", None), ("2", None), ("3", Some("1")), ("4", Some("3"))], &["4", "2"]);
        check(&[("1", None), ("2", Some("1")), ("3", Some("2")), ("4", Some("3"))], &[]);
    }
}
