//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// How the names of files in the making begin and end.
const UNFINISHED: (&str, &str) = (".ph-", ".tmp");

/// Replaces `path` by `content` with `mode`, durably. A link is followed, so that it stays one.
pub(crate) fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut unfinished =
        tempfile::Builder::new().prefix(UNFINISHED.0).suffix(UNFINISHED.1).tempfile_in(folder)?;
    unfinished.write_all(content)?;
    unfinished.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(&target).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// Removes what a killed [`write`] left in `folder`. Only whoever holds the folder's lock may call it.
pub(crate) fn sweep(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
            removed.push(entry.path());
        }
    }
    Ok(removed)
}

/// Holds a folder until it is dropped; whoever else locks it waits.
pub(crate) fn lock(folder: &Path) -> io::Result<File> {
    let handle = File::open(folder)?;
    rustix::fs::flock(&handle, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(handle)
}
