//! The common course of a change to one file: lock, plan, compare with the preview, replace, remember.

use std::path::Path;

use provider_core::jail::{JailPath, PathError, WriteLock};
use provider_core::prelude::*;
use provider_core::{Category, ensure_as_previewed};

use crate::Filesystem;
use crate::engine::diff::Diff;
use crate::journal::Transaction;
use crate::staleness::{self, fingerprint, sha256};

/// Larger files are not edited as a whole in memory. In bytes.
pub(crate) const LARGEST_FILE: u64 = 512 << 20;

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

/// Why a call cannot be made. Where it was previewed, it could be made then, and so something changed since.
pub(crate) fn since_preview(cx: &Cx<Events>, error: ToolError) -> ToolError {
    let is_about_the_target = matches!(error.category(), Category::NotFound | Category::ExecutionFailed);
    if cx.previewed().is_none() || !is_about_the_target {
        return error;
    }
    let text = format!(
        "the target changed between the preview and the call, so what was approved cannot be done; nothing was changed: \
         look again and repeat the call. {error}"
    );
    ToolError::new(Code::Stale, text)
}

/// A file locked for a change, with its content.
pub(crate) struct Locked {
    lock: WriteLock,
    pub(crate) before: Option<Vec<u8>>,
}

impl Locked {
    /// Locks the file at `path`, which the caller knows under that name.
    pub(crate) fn lock(path: &JailPath) -> Result<Self, ToolError> {
        let mut lock = path.lock_for_write()?;
        let shown = path.to_string();
        check_size(&shown, lock.metadata().map_or(0, |metadata| metadata.size))?;
        let before = lock.contents()?;
        Ok(Self { lock, before })
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
        self,
        filesystem: &Filesystem,
        path: &JailPath,
        plan: &Plan,
        call: &Call<'_>,
        cx: &Cx<Events>,
    ) -> Result<Applied, ToolError> {
        let real = self.real();
        ensure_as_previewed(cx, &plan.fingerprint(&real))?;
        cx.check_cancelled()?;
        plan.notes.iter().for_each(|note| cx.note(note.clone()));
        let change_id = if plan.changed() { self.make(filesystem, path, plan, call, cx)? } else { None };
        let sha256 = sha256(&plan.after);
        let replaced = plan.before.as_deref().filter(|_| !call.whole).map(staleness::sha256);
        filesystem.memory.wrote(cx.session_id(), &real, sha256.clone(), &plan.after, replaced.as_deref());
        Ok(Applied { sha256, change_id })
    }

    /// Answers the id of the change, if it can be taken back.
    fn make(
        self,
        filesystem: &Filesystem,
        path: &JailPath,
        plan: &Plan,
        call: &Call<'_>,
        cx: &Cx<Events>,
    ) -> Result<Option<String>, ToolError> {
        self.note_link(path, cx);
        let mut transaction = Transaction::default();
        call.made.iter().for_each(|directory| transaction.make_directory(directory, true));
        filesystem.journal.expect_temporary(self.lock.path());
        let staged = self.lock.stage(&plan.after)?;
        transaction.put(self.lock, staged, plan.before.as_deref(), &plan.after);
        Ok(transaction.run(filesystem, call.tool, cx)?.change_id)
    }
}

/// What a change of one file is told by its tool.
pub(crate) struct Call<'a> {
    /// The tool, as on the wire.
    pub(crate) tool: &'a str,
    /// Whether the file is written whole, so that the caller knows all of it.
    pub(crate) whole: bool,
    /// Directories that were made for it.
    pub(crate) made: &'a [JailPath],
}

/// What a change of one file has come to.
pub(crate) struct Applied {
    /// The hash of the file now.
    pub(crate) sha256: String,
    /// The change's id, if there was a change and it can be taken back.
    pub(crate) change_id: Option<String>,
}
