//! What is going to be written, before it is.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Files to create and files to change, below one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Where everything goes.
    pub root: PathBuf,
    /// New files with their content, by path below the root.
    pub creates: Vec<(PathBuf, String)>,
    /// Existing files with their new content, by path below the root.
    pub edits: Vec<(PathBuf, String)>,
}

/// Why a provider was not made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Something stands where the provider would go.
    #[error("{} exists already; nothing was written", .path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// A file that must be changed is not as this program knows it.
    #[error("{} cannot be changed: {reason}; nothing was written", .path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What was looked for and not found.
        reason: String,
    },
    /// The folder given as the SDK is none.
    #[error(
        "{} is no checkout of the SDK: there is no crates/provider-core/Cargo.toml below it",
        .path.display()
    )]
    NoSdk {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl PlanError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

impl Plan {
    /// One line per file: `create src/lib.rs`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let creates = self.creates.iter().map(|(path, _)| format!("create {}", path.display()));
        creates.chain(self.edits.iter().map(|(path, _)| format!("change {}", path.display())))
    }

    /// Writes everything. New files never replace one.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn apply(&self) -> Result<(), PlanError> {
        for (path, text) in &self.creates {
            create(&self.root.join(path), text)?;
        }
        for (path, text) in &self.edits {
            let path = self.root.join(path);
            std::fs::write(&path, text).map_err(PlanError::io(&path))?;
        }
        Ok(())
    }
}

fn create(path: &Path, text: &str) -> Result<(), PlanError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(PlanError::io(folder))?;
    }
    let file = std::fs::File::create_new(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => PlanError::Exists { path: path.to_owned() },
        _ => PlanError::Io { path: path.to_owned(), source },
    });
    file?.write_all(text.as_bytes()).map_err(PlanError::io(path))
}
