//! A plugin's folder, read through an open handle on it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use jail::{JailPath, PathError, Roots};

use crate::manifest::{Manifest, ManifestError};
use crate::path::InnerPath;

/// The names a manifest can have; the first that is there counts.
pub const MANIFEST_NAMES: [&str; 2] = ["plugin.json", "manifest.json"];
/// A manifest is no longer than this, in bytes.
const LONGEST_MANIFEST: u64 = 1 << 20;

/// A plugin: its manifest, and its folder to read from.
#[derive(Clone, Debug)]
pub struct Plugin {
    folder: Roots,
    /// What it says about itself.
    pub manifest: Manifest,
    /// The manifest's bytes, as they were read.
    manifest_bytes: Vec<u8>,
}

/// Why a folder is no plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// There is no such folder, or it cannot be opened.
    #[error("{}: {reason}", .folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It has no manifest.
    #[error("{} has no plugin.json (or manifest.json), so it is no plugin", .folder.display())]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// Its manifest cannot be read.
    #[error("{}: {reason}", .file.display())]
    Unreadable {
        /// The manifest.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Its manifest is wrong.
    #[error("{} is no manifest of a plugin:\n{error}", .file.display())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        error: ManifestError,
    },
}

/// Why a file of a plugin cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is none, it leads out of the folder, or it is no plain file.
    #[error("{0}")]
    Path(String),
    /// It is longer than it may be.
    #[error("it is longer than {most} bytes")]
    TooLong {
        /// How long it may be, in bytes.
        most: u64,
    },
}

impl Plugin {
    /// Opens a folder that has a manifest.
    ///
    /// # Errors
    /// It is no plugin.
    pub fn open(folder: &Path) -> Result<Self, PluginError> {
        let no_folder = |reason: String| PluginError::NoFolder { folder: folder.to_owned(), reason };
        let absolute = std::path::absolute(folder).map_err(|error| no_folder(error.to_string()))?;
        let spelled = jail::escape_bytes(absolute.as_os_str());
        // Opened as a root, which means by its descriptor from here on.
        let folder_handle =
            Roots::open_with_home(&[spelled], Path::new("/"), None).map_err(|error| match error {
                jail::RootError::Root { reason, .. } => no_folder(reason),
                other => no_folder(other.to_string()),
            })?;
        for name in MANIFEST_NAMES {
            let file = absolute.join(name);
            let bytes = match read(&folder_handle, name, LONGEST_MANIFEST) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(error) => return Err(PluginError::Unreadable { file, reason: error.to_string() }),
            };
            let manifest = Manifest::parse(&bytes).map_err(|error| PluginError::Manifest { file, error })?;
            return Ok(Self { folder: folder_handle, manifest, manifest_bytes: bytes });
        }
        Err(PluginError::NoManifest { folder: absolute })
    }

    /// The folder, absolute.
    pub fn folder(&self) -> &Path {
        self.folder.first().path()
    }

    /// The manifest as it was read.
    pub fn manifest_bytes(&self) -> &[u8] {
        &self.manifest_bytes
    }

    /// A file of the folder, as long as it may be. Links are followed as far as they stay inside.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(&self, path: &InnerPath, most: u64) -> Result<Vec<u8>, FileError> {
        let missing = || FileError::Path(format!("`{path}` does not exist"));
        read(&self.folder, path.as_str(), most)?.ok_or_else(missing)
    }

    /// Where a file of the folder really is, after links that stay inside; for a program that is to be started.
    ///
    /// # Errors
    /// There is none, or it leads out.
    pub fn locate(&self, path: &InnerPath) -> Result<PathBuf, FileError> {
        let path = place(&self.folder, path.as_str())?;
        let file = path.open_read().map_err(|error| FileError::Path(error.to_string()))?;
        Ok(file.resolved().real_absolute())
    }
}

/// The exact name, not one that is spelled alike.
fn place(folder: &Roots, path: &str) -> Result<JailPath, FileError> {
    let told = |error: PathError| match error {
        PathError::OutsideRoot { .. } => {
            FileError::Path(format!("`{path}` is a link that leads out of the plugin's folder"))
        }
        other => FileError::Path(other.to_string()),
    };
    let base = folder.first().path();
    folder.exact(&base.join(path), base).map_err(told)
}

/// The content of a file; `None` where there is none.
fn read(folder: &Roots, path: &str, most: u64) -> Result<Option<Vec<u8>>, FileError> {
    let file = match place(folder, path)?.open_read() {
        Ok(file) => file,
        Err(PathError::NotFound { .. }) => return Ok(None),
        Err(PathError::OutsideRoot { .. }) => {
            return Err(FileError::Path(format!("`{path}` is a link that leads out of the plugin's folder")));
        }
        Err(error) => return Err(FileError::Path(error.to_string())),
    };
    let mut bytes = Vec::new();
    // One more than allowed shows that there is more, whatever the size was said to be.
    let read = file.into_file().take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| FileError::Path(format!("cannot read `{path}`: {error}")))?;
    match bytes.len() as u64 > most {
        true => Err(FileError::TooLong { most }),
        false => Ok(Some(bytes)),
    }
}
