//! Where state is kept.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::spill::SpillFolder;

/// The folder of this process: below `configured`, else below the user's state folder, else among temporary files.
///
/// # Errors
/// None of them can be written; only the configured one is tried where there is one.
pub(crate) fn folder(configured: Option<&Path>) -> io::Result<SpillFolder> {
    match configured {
        Some(parent) => SpillFolder::create(parent),
        None => default_parent()
            .and_then(|parent| SpillFolder::create(&parent).ok())
            .map_or_else(|| SpillFolder::create(&temporary_parent()), Ok),
    }
}

fn default_parent() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(base.join("pluggable-harness").join("exec"))
}

/// A folder that other users do not share: it is named after this one.
fn temporary_parent() -> PathBuf {
    std::env::temp_dir().join(format!("pluggable-harness-exec-{}", rustix::process::getuid().as_raw()))
}

/// A directory that only this user can look into, made when it is not there.
pub(crate) fn private_directory(path: PathBuf) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    Ok(path)
}

/// `/dev/null`, for reading and writing.
pub(crate) fn null() -> io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).open("/dev/null")?.into())
}
