//! The common course of a change to several files: lock all, plan all, compare with the preview, replace all or none.

use std::path::PathBuf;

use provider_core::jail::{JailPath, PathError, WriteLock, lock_all};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::change::{check_size, peek};
use crate::journal::Transaction;
use crate::shown::FileDiff;
use crate::staleness::{self, sha256};

/// A file of several, with its content. In a preview it is not locked.
pub(crate) struct Member {
    /// The path as the caller knows it.
    pub(crate) path: JailPath,
    /// The real absolute place.
    pub(crate) real: PathBuf,
    /// The content; `None` if there is no such file.
    pub(crate) before: Option<Vec<u8>>,
    lock: Option<WriteLock>,
}

/// Looks at all files without locking them.
pub(crate) fn peek_all(paths: &[JailPath]) -> Result<Vec<Member>, ToolError> {
    let member = |path: &JailPath| {
        let real = path.resolved()?.absolute();
        Ok(Member { path: path.clone(), real, before: peek(path)?, lock: None })
    };
    paths.iter().map(member).collect()
}

/// Locks all files and reads them.
pub(crate) fn lock_members(paths: &[JailPath]) -> Result<Vec<Member>, ToolError> {
    let locks = lock_all(paths)?;
    let member = |(mut lock, path): (WriteLock, &JailPath)| {
        check_size(&path.to_string(), lock.metadata().map_or(0, |metadata| metadata.size))?;
        let before = lock.contents()?;
        Ok(Member { path: path.clone(), real: lock.path().absolute(), before, lock: Some(lock) })
    };
    locks.into_iter().zip(paths).map(member).collect()
}

/// The same paths, each file once, however it is spelled. Answers also which of them each path became.
pub(crate) fn distinct(paths: Vec<JailPath>) -> Result<(Vec<JailPath>, Vec<usize>), ToolError> {
    let (mut known, mut kept, mut indices): (Vec<PathBuf>, Vec<JailPath>, Vec<usize>) = Default::default();
    for path in paths {
        let real = match path.resolved() {
            Ok(resolved) => resolved.real_absolute(),
            Err(PathError::NotFound { .. }) => path.real_absolute(),
            Err(error) => return Err(error.into()),
        };
        let index = known.iter().position(|known| *known == real).unwrap_or(known.len());
        if index == known.len() {
            known.push(real);
            kept.push(path);
        }
        indices.push(index);
    }
    Ok((kept, indices))
}

/// What becomes of one file.
pub(crate) struct Outcome {
    /// What it is now.
    pub(crate) member: Member,
    pub(crate) fate: Fate,
}

/// What becomes of a file.
pub(crate) enum Fate {
    /// Nothing.
    Kept,
    /// It has this content then, and is executable or not where that changes.
    Content {
        after: Vec<u8>,
        executable: Option<bool>,
        /// The name it gets then.
        to: Option<JailPath>,
    },
    /// It is gone.
    Removed,
}

impl Outcome {
    /// Whether anything changes.
    pub(crate) fn is_change(&self) -> bool {
        match &self.fate {
            Fate::Kept => false,
            Fate::Removed => true,
            Fate::Content { after, executable, to } => {
                to.is_some() || executable.is_some() || self.member.before.as_ref() != Some(after)
            }
        }
    }

    /// The content then.
    pub(crate) fn after(&self) -> Option<&[u8]> {
        match &self.fate {
            Fate::Content { after, .. } => Some(after),
            Fate::Kept => self.member.before.as_deref(),
            Fate::Removed => None,
        }
    }

    /// The path then, as the caller knows it.
    pub(crate) fn path(&self) -> &JailPath {
        match &self.fate {
            Fate::Content { to: Some(to), .. } => to,
            _ => &self.member.path,
        }
    }

    pub(crate) fn diff(&self) -> FileDiff {
        let before = self.member.before.as_deref();
        let diff =
            crate::engine::diff::Diff::of_files(before.unwrap_or_default(), self.after().unwrap_or_default());
        let old = before.map(|_| self.member.path.to_string());
        let new = self.after().map(|_| self.path().to_string());
        let mode = match &self.fate {
            Fate::Content { executable: Some(true), .. } => Some("becomes executable".to_owned()),
            Fate::Content { executable: Some(false), .. } => Some("is no longer executable".to_owned()),
            _ => None,
        };
        FileDiff { old, new, diff, remarks: mode.into_iter().collect() }
    }

    fn fingerprint(&self) -> String {
        let before = self.member.before.as_deref().map(sha256);
        let fate = match &self.fate {
            Fate::Kept => "kept".to_owned(),
            Fate::Removed => "removed".to_owned(),
            Fate::Content { after, executable, to } => {
                let to = to.as_ref().map(|to| to.absolute());
                format!("{} {executable:?} {to:?}", sha256(after))
            }
        };
        format!("{}\0{before:?}\0{fate}", self.member.real.display())
    }
}

/// What identifies a change of several files.
pub(crate) fn fingerprint(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(Outcome::fingerprint).collect::<Vec<_>>().join("\0\0")
}

/// Makes all changes, or none. `made` are directories that were made for them. Answers the change's id.
pub(crate) fn commit(
    filesystem: &Filesystem,
    tool: &str,
    outcomes: Vec<Outcome>,
    made: &[JailPath],
    cx: &Cx<Events>,
) -> Result<Option<String>, ToolError> {
    let mut transaction = Transaction::default();
    made.iter().for_each(|directory| transaction.make_directory(directory, true));
    let mut remembered = Vec::new();
    let mut moving = Vec::new();
    let (mut renames, mut removals) = (Vec::new(), Vec::new());
    for outcome in outcomes.into_iter().filter(Outcome::is_change) {
        let Outcome { member, fate } = outcome;
        let Member { path, real, before, lock } = member;
        let Some(lock) = lock else {
            return Err(ToolError::execution_failed(format!("{path} is not locked")));
        };
        if real != path.absolute() && before.is_some() {
            cx.note(format!("{path} leads through a symbolic link; {} was changed", lock.path()));
        }
        match fate {
            Fate::Kept => {}
            Fate::Removed => removals.push((lock, before.unwrap_or_default())),
            Fate::Content { after, executable, to } => {
                let target = to.as_ref().map_or_else(|| real.clone(), |to| to.absolute());
                if to.is_some() {
                    moving.push(filesystem.memory.moving(&real, &target));
                }
                let moved = lock.path().clone();
                filesystem.journal.expect_temporary(lock.path());
                let id = stage(&mut transaction, lock, before.as_deref(), &after, executable)?;
                if let (Some(to), Some((mark, id))) = (to, id) {
                    renames.push((moved, to, mark, id));
                }
                remembered.push((target, after, before.as_deref().map(sha256)));
            }
        }
    }
    renames.into_iter().for_each(|(from, to, mark, id)| transaction.rename(&from, &to, mark, id));
    removals.into_iter().for_each(|(lock, content)| transaction.remove_locked(lock, &content));
    cx.check_cancelled()?;
    let change_id = transaction.run(filesystem, tool, cx)?.change_id;
    moving.into_iter().for_each(|moved| filesystem.memory.moved(moved));
    for (real, content, replaced) in remembered {
        let hash = staleness::sha256(&content);
        filesystem.memory.wrote(cx.session_id(), &real, hash, &content, replaced.as_deref());
    }
    Ok(change_id)
}

type Marked = (crate::journal::Mark, (u64, u64));

/// Has the transaction give a file its content and mode, if they change. Answers what the file is then.
fn stage(
    transaction: &mut Transaction,
    lock: WriteLock,
    before: Option<&[u8]>,
    after: &[u8],
    executable: Option<bool>,
) -> Result<Option<Marked>, ToolError> {
    let path = lock.path().clone();
    if before == Some(after) && executable.is_none() {
        // Only its name changes.
        let marked = lock.metadata().map(|found| (crate::journal::Mark::of_file(after, found), found.id()));
        drop(lock);
        return Ok(marked);
    }
    let mut staged = lock.stage(after)?;
    if let Some(executable) = executable {
        let mode = staged.metadata().mode;
        // Whoever may read it may run it, as git has it.
        let mode = if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        staged.set_mode(mode).map_err(|error| {
            ToolError::execution_failed(format!("`{path}`: its mode cannot be set: {error}"))
        })?;
    }
    let id = match (staged.in_place(), lock.metadata()) {
        (true, Some(found)) => found.id(),
        _ => staged.metadata().id(),
    };
    let mark = crate::journal::Mark::of_file(after, staged.metadata());
    transaction.put(lock, staged, before, after);
    Ok(Some((mark, id)))
}
