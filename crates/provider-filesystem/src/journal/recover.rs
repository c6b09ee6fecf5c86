//! Taking back a change that was not finished.
//!
//! Each step is looked at where it would have been taken, the last one first: was it, it is taken back; was it not,
//! nothing is done. Whatever is neither as before nor as after belongs to somebody else by now, and stays.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use provider_core::jail::{Copied, Depot, JailPath, PathError, Roots};
use rustix::fs::{FlockOperation, flock};

use super::Journal;
use super::entry::{Entry, EntryError, Step};
use super::mark::Mark;
use super::store::{Store, remove_tree};

/// Takes back all pending changes of processes that are gone. Answers what there is to say.
pub(super) fn recover(journal: &Journal, store: &Store, roots: &Roots) -> Vec<String> {
    let entries = fs::read_dir(store.pending()).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| recover_one(journal, store, roots, &entry.path())).collect()
}

fn recover_one(journal: &Journal, store: &Store, roots: &Roots, path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    // Its maker, or somebody else who takes it back, is at it.
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    if !path.exists() {
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    match Entry::parse(&bytes) {
        // Nothing was done before it was whole.
        Err(EntryError::Damaged) => {
            clear(store, path);
            None
        }
        Err(EntryError::Unknown(_)) => Some(
            "a change of another version of this program was not finished; only that version can take it back"
                .to_owned(),
        ),
        Ok(entry) => {
            let what = what(&entry);
            if is_made(&entry, roots) && fs::rename(path, store.changes().join(&entry.header.id)).is_ok() {
                return Some(format!("{what} had been made when it was interrupted; it stands, and undo_change takes it back"));
            }
            let left = take_back(&entry, journal, roots);
            if left.is_empty() {
                clear(store, path);
                return Some(format!("{what} had been interrupted and was taken back: all is as it was before it"));
            }
            Some(format!("{what} had been interrupted and could not be taken back whole: {}", left.join("; ")))
        }
    }
}

/// Whether a change of one file was made, and only its end not written down. It may have been answered long ago: after
/// a power failure that record can be missing. Directories made for it are there if it is.
fn is_made(entry: &Entry, roots: &Roots) -> bool {
    let mut steps = entry.header.steps.iter().filter(|step| !matches!(step, Step::MakeDirectory { .. }));
    let (Some(step), None) = (steps.next(), steps.next()) else { return false };
    let (Step::Content { path, after, in_place: false, .. } | Step::Create { path, after }) = step else {
        return false;
    };
    let place = roots.exact(path, Path::new(""));
    place.and_then(|place| after.is_at(&place)).unwrap_or(false)
}

fn what(entry: &Entry) -> String {
    let mut paths: Vec<String> =
        entry.header.steps.iter().flat_map(Step::paths).map(|path| path.display().to_string()).collect();
    paths.dedup();
    let more = paths.len().saturating_sub(4);
    paths.truncate(4);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("an earlier {} ({}{more})", entry.header.tool, paths.join(", "))
}

fn clear(store: &Store, path: &Path) {
    let id = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(kept) = store.kept(id) {
        remove_tree(&kept);
    }
    let _ = fs::remove_file(path);
}

/// Takes back what was done of a change. Answers what could not be, one sentence each.
pub(super) fn take_back(entry: &Entry, journal: &Journal, roots: &Roots) -> Vec<String> {
    let back = Back { entry, journal, roots };
    let steps = entry.header.steps.iter().rev();
    steps.filter_map(|step| back.step(step).err()).map(|error| error.to_string()).collect()
}

/// Why a step could not be taken back.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{0} was changed by something else since, and stays as it is")]
    Foreign(String),
    #[error("{path} is taken by something else; what was there is kept in {kept}")]
    Taken { path: String, kept: String },
}

struct Back<'a> {
    entry: &'a Entry,
    journal: &'a Journal,
    roots: &'a Roots,
}

impl Back<'_> {
    fn place(&self, path: &Path) -> Result<JailPath, PathError> {
        self.roots.exact(path, Path::new(""))
    }

    fn step(&self, step: &Step) -> Result<(), Stuck> {
        match step {
            Step::Content { path, before, after, .. } => {
                self.content(&self.place(path)?, step, before, after)
            }
            Step::Create { path, after } => {
                let path = self.place(path)?;
                match after.is_at(&path)? {
                    true => Ok(path.remove_tree(&mut |_| Ok(()))?),
                    false => Ok(()),
                }
            }
            Step::Remove { path, before, id, slot } => self.removed(&self.place(path)?, before, *id, slot),
            Step::Restore { path, after, change, slot } => {
                self.restored(&self.place(path)?, after, change, slot)
            }
            Step::Rename { from, to, id, .. } => {
                let (from, to) = (self.place(from)?, self.place(to)?);
                match !from.exists()? && has_id(&to, *id) {
                    true => Ok(to.rename(&from, false)?),
                    false => Ok(()),
                }
            }
            Step::Exchange { one, other, one_id, one_mark, other_mark } => {
                let (one, other) = (self.place(one)?, self.place(other)?);
                let exchanged =
                    one_mark != other_mark && one_mark.is_at(&other)? && other_mark.is_at(&one)?;
                match has_id(&other, *one_id) || exchanged {
                    true => Ok(one.exchange(&other)?),
                    false => Ok(()),
                }
            }
            Step::MakeDirectory { path } => {
                // With something in it, it is somebody else's by now.
                let _ = self.place(path)?.remove_dir();
                Ok(())
            }
            Step::RemoveDirectory { path } => match self.place(path)?.create_dir() {
                Ok(()) | Err(PathError::Exists { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
        }
    }

    fn content(&self, path: &JailPath, step: &Step, before: &Mark, after: &Mark) -> Result<(), Stuck> {
        let Step::Content { delta, in_place, .. } = step else { return Ok(()) };
        let mut lock = path.lock_for_write()?;
        let Some(content) = lock.contents()? else { return Err(Stuck::Foreign(path.to_string())) };
        let found = lock.metadata().map(|metadata| Mark::of_file(&content, metadata));
        if found.as_ref() == Some(before) {
            return Ok(());
        }
        if found.as_ref() != Some(after) && !in_place {
            return Err(Stuck::Foreign(path.to_string()));
        }
        let old = delta.apply(&content, &self.entry.bytes);
        let old = old.filter(|old| before.sha256() == Some(crate::staleness::sha256(old).as_str()));
        let Some(old) = old else { return Err(Stuck::Foreign(path.to_string())) };
        self.journal.expect_temporary(lock.path());
        let mut staged = lock.stage(&old)?;
        if let Mark::File { mode, .. } = before {
            let mode = staged.set_mode(*mode);
            mode.map_err(|source| PathError::Io { path: path.to_string(), action: "write", source })?;
        }
        lock.put(staged)?;
        Ok(())
    }

    fn removed(&self, path: &JailPath, before: &Mark, id: (u64, u64), slot: &str) -> Result<(), Stuck> {
        let Some(depot) = self.depot(&self.entry.header.id).filter(|depot| depot.has(slot)) else {
            return Ok(());
        };
        if !path.exists()? {
            self.journal.expect_temporary(path);
            return Ok(path.put_back(&depot, slot, &mut nothing)?);
        }
        // What is on another file system is copied first and removed then.
        if !before.is_at(path)? {
            if !(before.is_directory() && has_id(path, id)) {
                return Err(Stuck::Taken { path: path.to_string(), kept: depot.to_string() });
            }
            path.complete_from_depot(&depot, slot)?;
        }
        let _ = depot.remove(slot);
        Ok(())
    }

    fn restored(&self, path: &JailPath, after: &Mark, change: &str, slot: &str) -> Result<(), Stuck> {
        let Some(depot) = self.depot(change).filter(|depot| !depot.has(slot)) else {
            return Ok(());
        };
        if !after.is_at(path)? {
            return Ok(());
        }
        let id = path.symlink_metadata()?.id();
        Ok(path.set_aside(&depot, slot, id, &mut nothing)?)
    }

    fn depot(&self, change: &str) -> Option<Depot> {
        self.journal.depot(self.roots, change)
    }
}

fn nothing(_: &Copied) -> Result<(), PathError> {
    Ok(())
}

fn has_id(path: &JailPath, id: (u64, u64)) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.id() == id)
}
