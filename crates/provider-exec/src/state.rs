//! Where state is kept.

use std::io;
use std::path::{Path, PathBuf};

use crate::spill::SpillFolder;

/// The folder of this process: below `state`, where there is one; by default also among temporary files, where there is
/// none or it cannot be written.
///
/// # Errors
/// None of them can be written; only the configured one is tried where one is configured.
pub(crate) fn folder(state: Option<&Path>, is_configured: bool) -> io::Result<SpillFolder> {
    let below = state.map(|state| SpillFolder::create(&state.join("exec")));
    match below {
        Some(Err(error)) if is_configured => Err(error),
        Some(Ok(folder)) => Ok(folder),
        _ => SpillFolder::create(&temporary_parent()),
    }
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
