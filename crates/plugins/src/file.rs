//! Files of others, changed in one step.

use std::path::{Path, PathBuf};

use jail::{JailPath, PathError, Roots};

/// Why a file could not be changed. It is as it was.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .file.display())]
pub struct WriteError {
    /// The file.
    pub file: PathBuf,
    /// Why not.
    pub reason: String,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It stays as it is.
    Keep,
    /// It gets this content.
    Write(Vec<u8>),
    /// It goes.
    Remove,
}

/// Changes a file: `change` is given what it holds, or `None` where there is none, while no other writer that takes locks
/// is at it. Readers see the old content or the new one, never less; mode and owner stay; links stay, and the file behind
/// them is changed. Missing folders are made, for their user alone. Whether anything was written is returned.
///
/// # Errors
/// What `change` fails with, or why the file cannot be read or written.
pub fn change_file<E: From<WriteError>>(
    path: &Path,
    change: impl FnOnce(Option<&[u8]>) -> Result<FileChange, E>,
) -> Result<bool, E> {
    let failed = |reason: String| WriteError { file: path.to_owned(), reason };
    let place = place(path).map_err(failed)?;
    let told = |error: PathError| failed(error.to_string());
    let mut lock = place.lock_for_write().map_err(told)?;
    let before = lock.contents().map_err(told)?;
    match change(before.as_deref())? {
        FileChange::Keep => Ok(false),
        FileChange::Write(bytes) if before.as_ref() == Some(&bytes) => Ok(false),
        FileChange::Write(bytes) => {
            lock.replace(&bytes).map_err(told)?;
            Ok(true)
        }
        FileChange::Remove if before.is_none() => Ok(false),
        FileChange::Remove => {
            lock.path().remove_file().map_err(told)?;
            Ok(true)
        }
    }
}

/// The file's place: behind every link, in a folder that exists.
fn place(path: &Path) -> Result<JailPath, String> {
    let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
    let target = behind_links(absolute)?;
    let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
        return Err("it is no file".to_owned());
    };
    make_folder(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let roots = Roots::open_with_home(&[jail::escape_bytes(folder.as_os_str())], Path::new("/"), None)
        .map_err(|error| error.to_string())?;
    roots.directory(0).and_then(|folder| folder.join(name)).map_err(|error| error.to_string())
}

/// Where a path leads; also where a link leads whose target is not there yet.
fn behind_links(mut path: PathBuf) -> Result<PathBuf, String> {
    for _ in 0..40 {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err("its links lead in a circle".to_owned())
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
