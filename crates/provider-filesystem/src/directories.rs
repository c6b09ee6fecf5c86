//! Directories that are made for what will be in them.

use provider_core::jail::{JailPath, PathError};

use crate::journal::Journal;

/// Directories that a call has made. They are removed again with this value, unless [`Made::stay`] is said; after a
/// kill by whoever clears up. Only empty ones go: what somebody else put there meanwhile keeps its directory.
pub(crate) struct Made<'a> {
    journal: &'a Journal,
    directories: Vec<JailPath>,
}

impl<'a> Made<'a> {
    /// None as yet.
    pub(crate) fn new(journal: &'a Journal) -> Self {
        Self { journal, directories: Vec::new() }
    }

    /// Makes `directory` and those above it that are missing.
    pub(crate) fn make(&mut self, directory: &JailPath) -> Result<(), PathError> {
        let mut missing = Some(directory.clone());
        while let Some(path) = missing.filter(|path| matches!(path.exists(), Ok(false))) {
            self.journal.expect_directory(&path);
            missing = path.parent();
        }
        self.directories.extend(directory.create_dir_all()?);
        Ok(())
    }

    /// What was made, outermost first.
    pub(crate) fn list(&self) -> &[JailPath] {
        &self.directories
    }

    /// Leaves them where they are.
    pub(crate) fn stay(mut self) {
        self.directories.iter().for_each(|directory| self.journal.directory_stays(directory));
        self.directories.clear();
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for directory in self.directories.iter().rev() {
            let _ = directory.remove_dir();
            self.journal.directory_stays(directory);
        }
    }
}
