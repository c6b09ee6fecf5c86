//! The common course of a change to one file: lock, plan, compare with the preview, replace, remember.

use std::path::Path;

use provider_core::ensure_as_previewed;
use provider_core::jail::{JailPath, PathError, WriteLock};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::engine::diff::Diff;
use crate::staleness::{fingerprint, sha256};

/// Larger files are not edited as a whole in memory. In bytes.
const LARGEST_FILE: u64 = 512 << 20;

/// What a change will do: shown by a preview, done by a call.
pub(crate) struct Plan {
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Vec<u8>,
    pub(crate) diff: Diff,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    pub(crate) fn new(before: Option<Vec<u8>>, after: Vec<u8>, notes: Vec<String>) -> Self {
        let diff = Diff::of_files(before.as_deref().unwrap_or_default(), &after);
        Self { before, after, diff, notes }
    }

    pub(crate) fn created(&self) -> bool {
        self.before.is_none()
    }

    pub(crate) fn changed(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }

    pub(crate) fn fingerprint(&self, real: &Path) -> String {
        fingerprint(real, self.before.as_deref(), &self.after)
    }
}

/// Refuses a file that is too large to be held in memory, before it is read.
pub(crate) fn check_size(shown: &str, size: u64) -> Result<(), ToolError> {
    if size <= LARGEST_FILE {
        return Ok(());
    }
    let text = format!("{shown} has {size} bytes; files up to {LARGEST_FILE} bytes can be changed");
    Err(ToolError::new(Code::TooLarge, text))
}

/// The content of a file that a preview is asked about. `None` when there is none yet.
pub(crate) fn peek(path: &JailPath) -> Result<Option<Vec<u8>>, ToolError> {
    match path.open_read() {
        Ok(open) => {
            check_size(&path.to_string(), open.metadata().size)?;
            Ok(Some(path.read()?))
        }
        Err(PathError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A file locked for a change, with its content.
pub(crate) struct Locked {
    lock: WriteLock,
    pub(crate) shown: String,
    pub(crate) before: Option<Vec<u8>>,
}

impl Locked {
    /// Locks the file at `path`, which the caller knows under that name.
    pub(crate) fn lock(path: &JailPath) -> Result<Self, ToolError> {
        let mut lock = path.lock_for_write()?;
        let shown = path.to_string();
        check_size(&shown, lock.metadata().map_or(0, |metadata| metadata.size))?;
        let before = lock.contents()?;
        Ok(Self { lock, shown, before })
    }

    /// The real absolute place.
    pub(crate) fn real(&self) -> std::path::PathBuf {
        self.lock.path().absolute()
    }

    /// The file behind the path, where the path is a symbolic link.
    pub(crate) fn note_link(&self, path: &JailPath, cx: &Cx<Events>) {
        if self.real() != path.absolute() {
            cx.note(format!("{path} leads through a symbolic link; {} was changed", self.lock.path()));
        }
    }

    /// Carries out a plan, if it is what was previewed and the call still stands. Answers the hash of the file.
    pub(crate) fn apply(
        mut self,
        filesystem: &Filesystem,
        path: &JailPath,
        plan: &Plan,
        whole: bool,
        cx: &Cx<Events>,
    ) -> Result<String, ToolError> {
        let real = self.real();
        ensure_as_previewed(cx, &plan.fingerprint(&real))?;
        cx.check_cancelled()?;
        plan.notes.iter().for_each(|note| cx.note(note.clone()));
        if plan.changed() {
            let replaced = self.lock.replace(&plan.after)?;
            let verb = if plan.created() { "created" } else { "changed" };
            cx.effects().record(format!("{verb} {}", self.shown));
            replaced.notes.into_iter().for_each(|note| cx.note(note));
            self.note_link(path, cx);
        }
        let hash = sha256(&plan.after);
        let replaced = plan.before.as_deref().filter(|_| !whole).map(sha256);
        filesystem.memory.wrote(cx.session_id(), &real, hash.clone(), &plan.after, replaced.as_deref());
        Ok(hash)
    }
}
