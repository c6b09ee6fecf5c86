//! Directories that are made for what will be in them.

use provider_core::jail::{JailPath, PathError};

use crate::journal::Journal;

/// Directories that a call has made. They are removed again with this value, unless [`Made::stay`] is said; after a
/// kill by whoever clears up. Only empty ones go: what somebody else put there meanwhile keeps its directory.
pub(crate) struct Made<'a> {
    journal: &'a Journal,
    /// What was noted as going to be made, whoever made it in the end.
    expected: Vec<JailPath>,
    directories: Vec<JailPath>,
}

impl<'a> Made<'a> {
    /// None as yet.
    pub(crate) fn new(journal: &'a Journal) -> Self {
        Self { journal, expected: Vec::new(), directories: Vec::new() }
    }

    /// Makes `directory` and those above it that are missing.
    pub(crate) fn make(&mut self, directory: &JailPath) -> Result<(), PathError> {
        // By the names that they get, whatever links lead there.
        let mut missing = directory.resolved().ok();
        while let Some(path) = missing.filter(|path| matches!(path.exists(), Ok(false))) {
            self.journal.expect_directory(&path);
            missing = path.parent();
            self.expected.push(path);
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
        self.directories.clear();
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.directories.iter().rev().for_each(|directory| drop(directory.remove_dir()));
        self.expected.iter().for_each(|directory| self.journal.directory_stays(directory));
    }
}
