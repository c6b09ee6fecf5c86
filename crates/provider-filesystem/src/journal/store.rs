//! The folder of one root's journal.
//!
//! `pending/` has the changes that are being made: each file is locked by the process that makes it, so one that can
//! be locked belongs to a process that is gone. A change is made when its file is in `changes/`. `kept/<id>.<bytes>/`
//! has what it took away. `strays/` has for each process where its temporary files are.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::entry::{Entry, EntryError, Header};
use crate::staleness::sha256;

/// What the changes of one root may take up, in bytes.
pub(crate) const QUOTA: u64 = 512 << 20;
/// How long a change can be taken back.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Headers are looked for in this much of a file at first.
const FIRST_READ: u64 = 16 << 10;

/// One root's journal folder, which exists.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    /// The folder of the root whose real path is `root`, made if it is missing.
    pub(crate) fn create(base: &Path, root: &Path) -> io::Result<Self> {
        let store = Self { folder: base.join(folder_name(root)) };
        for name in ["pending", "changes", "kept", "strays"] {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(store.folder.join(name))?;
        }
        store.check_owner()?;
        let name = store.folder.join("root");
        if !name.exists() {
            fs::write(name, root.as_os_str().as_encoded_bytes())?;
        }
        Ok(store)
    }

    /// The folder, if there is one.
    pub(crate) fn existing(base: &Path, root: &Path) -> Option<Self> {
        let store = Self { folder: base.join(folder_name(root)) };
        (store.folder.is_dir() && store.check_owner().is_ok()).then_some(store)
    }

    /// Nobody else's folder is believed.
    fn check_owner(&self) -> io::Result<()> {
        let metadata = fs::symlink_metadata(&self.folder)?;
        match metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to somebody else")),
        }
    }

    pub(crate) fn pending(&self) -> PathBuf {
        self.folder.join("pending")
    }

    pub(crate) fn changes(&self) -> PathBuf {
        self.folder.join("changes")
    }

    /// What processes have noted of their temporary files.
    pub(crate) fn strays(&self) -> PathBuf {
        self.folder.join("strays")
    }

    /// A new file in `pending/`, locked.
    pub(crate) fn begin(&self, id: &str) -> io::Result<(PathBuf, File)> {
        let path = self.pending().join(id);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok((path, file))
    }

    /// Where `id` keeps what it takes away: `bytes` in all. Made anew.
    pub(crate) fn make_kept(&self, id: &str, bytes: u64) -> io::Result<PathBuf> {
        let path = self.folder.join("kept").join(format!("{id}.{bytes}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Where `id` keeps what it took away, if it does.
    pub(crate) fn kept(&self, id: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(self.folder.join("kept")).ok()?;
        let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        paths.find(|path| path.file_stem().is_some_and(|stem| stem == id))
    }

    /// The ids of the changes, the newest first.
    pub(crate) fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(self.changes()).into_iter().flatten().filter_map(Result::ok);
        let mut ids: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|id| is_id(id)).collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids
    }

    pub(crate) fn header(&self, id: &str) -> Option<Header> {
        let mut file = File::open(self.changes().join(id)).ok()?;
        let mut beginning = Vec::new();
        file.by_ref().take(FIRST_READ).read_to_end(&mut beginning).ok()?;
        let missing = Header::length(&beginning)?.saturating_sub(beginning.len());
        file.take(missing as u64).read_to_end(&mut beginning).ok()?;
        Header::parse(&beginning).ok()
    }

    /// A change, and its file, locked so that it is not cleared away meanwhile.
    pub(crate) fn open(&self, id: &str) -> Option<Result<(Entry, File), EntryError>> {
        let mut file = is_id(id).then(|| File::open(self.changes().join(id)).ok()).flatten()?;
        // Only one who clears away, or takes back the same change, holds it, and not for long.
        let _ = flock(&file, FlockOperation::LockExclusive);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        Some(Entry::parse(&bytes).map(|entry| (entry, file)))
    }

    /// Forgets a change and what it kept.
    pub(crate) fn forget(&self, id: &str) {
        if let Some(kept) = self.kept(id) {
            remove_tree(&kept);
        }
        let _ = fs::remove_file(self.changes().join(id));
    }

    /// Forgets changes that are too old, and the oldest while all take up more than the quota.
    pub(crate) fn prune(&self, now: SystemTime) {
        let mut total = 0;
        for id in self.ids() {
            let path = self.changes().join(&id);
            let Ok(metadata) = fs::metadata(&path) else { continue };
            total += metadata.len() + self.kept(&id).map_or(0, |kept| kept_bytes(&kept));
            let age = metadata.modified().ok().and_then(|then| now.duration_since(then).ok());
            if total <= QUOTA && age.is_none_or(|age| age <= KEPT_FOR) {
                continue;
            }
            // What somebody is taking back right now stays until the next time.
            if let Ok(file) = File::open(&path)
                && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            {
                self.forget(&id);
            }
        }
    }
}

/// The names of the folders do not tell where the roots are.
fn folder_name(root: &Path) -> String {
    let mut name = sha256(root.as_os_str().as_encoded_bytes());
    name.truncate(32);
    name
}

/// Whether a text can be the id of a change, and no path.
fn is_id(text: &str) -> bool {
    text.len() == 26 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn kept_bytes(kept: &Path) -> u64 {
    kept.extension().and_then(|bytes| bytes.to_str()?.parse().ok()).unwrap_or(0)
}

/// Removes a folder of our own, also where what is in it was made read-only.
pub(crate) fn remove_tree(folder: &Path) {
    if fs::remove_dir_all(folder).is_ok() {
        return;
    }
    let mut pending = vec![folder.to_owned()];
    while let Some(directory) = pending.pop() {
        let _ = fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().filter_map(Result::ok);
        pending.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store_with(changes: &[(u8, Duration, u64)]) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path(), Path::new("/some/root")).unwrap();
        for (number, age, kept) in changes {
            let id = id(*number);
            let file = File::create(store.changes().join(&id)).unwrap();
            file.set_modified(SystemTime::now() - *age).unwrap();
            store.make_kept(&id, *kept).unwrap();
        }
        (folder, store)
    }

    fn id(number: u8) -> String {
        format!("{number:026}")
    }

    #[test]
    fn what_is_too_old_or_too_much_is_forgotten_and_the_newest_stays() {
        let day = Duration::from_secs(24 * 60 * 60);
        let (_folder, store) =
            store_with(&[(1, 8 * day, 1), (2, day, 300 << 20), (3, day, 200 << 20), (4, day, 200 << 20)]);
        store.prune(SystemTime::now());
        assert_eq!(store.ids(), [id(4), id(3)]);
        assert!(store.kept(&id(1)).is_none() && store.kept(&id(2)).is_none() && store.kept(&id(3)).is_some());
    }

    #[test]
    fn what_is_being_taken_back_is_not_forgotten_meanwhile() {
        let (_folder, store) = store_with(&[(1, 2 * KEPT_FOR, 0)]);
        let file = File::open(store.changes().join(id(1))).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap();
        store.prune(SystemTime::now());
        assert_eq!(store.ids(), [id(1)]);
        drop(file);
        store.prune(SystemTime::now());
        assert!(store.ids().is_empty());
    }

    #[test]
    fn the_folder_is_its_owners_alone() {
        let (folder, store) = store_with(&[]);
        for path in [
            store.changes(),
            store.pending(),
            store.strays(),
            folder.path().join(folder_name(Path::new("/some/root"))),
        ] {
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700, "{path:?}");
        }
        assert!(Store::existing(folder.path(), Path::new("/other/root")).is_none());
    }
}
