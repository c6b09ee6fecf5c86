//! Notices that something was saved.
//!
//! Files are looked at a few times a second instead of being watched by the kernel: a provider has some hundred of
//! them, and looking works alike on every file system, through bind mounts and for editors that rename over.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::target::Target;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// What a file was like: modified (seconds, nanoseconds), size, inode.
type State = (i64, i64, u64, u64);

/// What all watched files were like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<PathBuf, State>);

impl Snapshot {
    /// Looks at the target's own files and at `more`. A missing file is not in it.
    pub(super) async fn take(target: &Target, more: &[PathBuf]) -> Self {
        let (root, more) = match target {
            Target::Crate { manifest, .. } => {
                (manifest.parent().unwrap_or(manifest).to_owned(), more.to_vec())
            }
            Target::Program(path) => (path.clone(), more.to_vec()),
        };
        let look = tokio::task::spawn_blocking(move || {
            let mut snapshot = Self::default();
            snapshot.add(&root);
            more.iter().for_each(|path| snapshot.add(path));
            snapshot
        });
        look.await.unwrap_or_default()
    }

    /// This one, with files that only `later` knows.
    pub(super) fn with(mut self, later: Self) -> Self {
        for (path, state) in later.0 {
            self.0.entry(path).or_insert(state);
        }
        self
    }

    fn add(&mut self, path: &Path) {
        let Ok(metadata) = path.metadata() else { return };
        if !metadata.is_dir() {
            let state = (metadata.mtime(), metadata.mtime_nsec(), metadata.size(), metadata.ino());
            self.0.insert(path.to_owned(), state);
            return;
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            // What is built and what is hidden is no source. A link to a folder could lead anywhere.
            let name = entry.file_name();
            let skipped = name == "target" || name.as_encoded_bytes().starts_with(b".");
            let link_to_folder =
                entry.file_type().is_ok_and(|kind| kind.is_symlink()) && entry.path().is_dir();
            if !skipped && !link_to_folder {
                self.add(&entry.path());
            }
        }
    }

    /// The paths that are not the same in both.
    fn differences<'a>(&'a self, other: &'a Self) -> Vec<&'a Path> {
        let changed = self.0.iter().filter(|(path, state)| other.0.get(*path) != Some(state));
        let fresh = other.0.iter().filter(|(path, _)| !self.0.contains_key(*path));
        changed.chain(fresh).map(|(path, _)| path.as_path()).collect()
    }
}

/// Waits until something differs from `before` and then stays as it is for a moment. Says what.
pub(super) async fn settled_change(target: &Target, more: &[PathBuf], before: &Snapshot) -> String {
    let mut last = before.clone();
    loop {
        let now = Snapshot::take(target, more).await;
        // An editor or a linker at work makes every look another one. A program must be there again, too.
        if now != *before && now == last && !now.0.is_empty() {
            return names(&before.differences(&now));
        }
        last = now;
        tokio::time::sleep(LOOK).await;
    }
}

fn names(paths: &[&Path]) -> String {
    let name =
        |path: &&Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match paths {
        [] => "something".to_owned(),
        [one] => name(one),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_with(files: &[&str]) -> (tempfile::TempDir, Target) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let target = Target::Crate { manifest: folder.path().join("Cargo.toml"), arguments: Vec::new() };
        (folder, target)
    }

    #[tokio::test]
    async fn sources_are_watched_and_builds_are_not() {
        let files = ["Cargo.toml", "src/lib.rs", "target/debug/p", ".git/index"];
        let (folder, target) = crate_with(&files);
        std::os::unix::fs::symlink("/", folder.path().join("everything")).unwrap();
        let before = Snapshot::take(&target, &[]).await;
        assert_eq!(before.0.len(), 2, "{before:?}");
        std::fs::write(folder.path().join("target/debug/p"), "longer").unwrap();
        assert_eq!(Snapshot::take(&target, &[]).await, before);
    }

    #[tokio::test]
    async fn saved_new_and_removed_files_are_named() {
        let (folder, target) = crate_with(&["Cargo.toml", "src/lib.rs"]);
        let before = Snapshot::take(&target, &[]).await;
        std::fs::write(folder.path().join("src/lib.rs"), "longer").unwrap();
        assert_eq!(settled_change(&target, &[], &before).await, "lib.rs");
        std::fs::write(folder.path().join("src/new.rs"), "x").unwrap();
        assert_eq!(settled_change(&target, &[], &before).await, "lib.rs and 1 more");
        std::fs::write(folder.path().join("src/lib.rs"), "x").unwrap();
        std::fs::remove_file(folder.path().join("src/new.rs")).unwrap();
        let now = Snapshot::take(&target, &[]).await;
        std::fs::remove_file(folder.path().join("src/lib.rs")).unwrap();
        assert_eq!(settled_change(&target, &[], &now).await, "lib.rs");
    }

    #[tokio::test]
    async fn a_program_that_is_being_replaced_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "1").unwrap();
        let target = Target::Program(path.clone());
        let before = Snapshot::take(&target, &[]).await;
        std::fs::remove_file(&path).unwrap();
        let change = settled_change(&target, &[], &before);
        tokio::pin!(change);
        // Gone for several looks, and still nothing to load.
        assert!(tokio::time::timeout(LOOK * 4, &mut change).await.is_err());
        std::fs::write(&path, "22").unwrap();
        assert_eq!(change.await, "program");
    }
}
