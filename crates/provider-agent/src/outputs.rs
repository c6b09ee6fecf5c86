//! The files that hold what runners printed.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Files that are kept.
const KEPT: usize = 64;

/// The path of a new file in `folder`, which is made for this user alone. The oldest files beyond those kept are
/// removed. `None` if the folder cannot be used.
pub(crate) fn new_file(folder: &Path) -> Option<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    // Names begin with the time, so that the first are the oldest.
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for old in files.iter().take(files.len().saturating_sub(KEPT - 1)) {
        // One that another provider has just removed is gone as well.
        let _ = std::fs::remove_file(old);
    }
    Some(folder.join(format!("{}.log", ulid::Ulid::new())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_files_give_way() {
        let folder = tempfile::TempDir::new().unwrap();
        let folder = folder.path().join("agent");
        for _ in 0..KEPT + 5 {
            std::fs::write(new_file(&folder).unwrap(), "x").unwrap();
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), KEPT);
        assert!(new_file(Path::new("/proc/nothing")).is_none());
    }
}
