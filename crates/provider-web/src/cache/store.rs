//! The cache's folder: one file per page, which only its owner can read, with the facts in the first line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::{Entry, Facts, Key};

/// Of the bytes that are allowed, how many are left when room is made: so that not every page has to make it.
const REMAINS: u64 = 8;
const OF: u64 = 10;
/// Longer first lines are none.
const LONGEST_FACTS: usize = 256 * 1024;
/// A file that was being written when its process died is removed after this, where it cannot be told sooner.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

/// A folder of pages. Several processes may share it: files come and go whole.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    capacity: u64,
    unnamed: AtomicU64,
}

impl Store {
    /// The store in `folder`, made if it is not there, for its owner only.
    pub(crate) fn open(folder: PathBuf, capacity: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let store = Self { folder, capacity, unnamed: AtomicU64::new(0) };
        // Found out now, not at the first page.
        let (path, _) = store.new_file()?;
        fs::remove_file(path)?;
        // What a process that was killed had not finished goes with this look.
        store.files()?;
        Ok(store)
    }

    /// The page that is kept under `key`. One that cannot be read is none.
    pub(crate) fn get(&self, key: &Key, url: &str) -> Option<Entry> {
        let path = self.folder.join(key.file_name());
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let entry = parse(bytes).filter(|entry| entry.facts.url == url);
        match &entry {
            // What was used last goes last.
            Some(_) => drop(file.set_modified(SystemTime::now())),
            None => drop(fs::remove_file(&path)),
        }
        entry
    }

    /// Keeps a page, in the place of what was kept under the same key.
    pub(crate) fn put(&self, key: &Key, entry: &Entry) -> io::Result<()> {
        let mut facts = serde_json::to_vec(&entry.facts)?;
        facts.push(b'\n');
        let size = (facts.len() + entry.body.len()) as u64;
        if size > self.capacity / 2 {
            self.remove(key);
            return Ok(());
        }
        let (path, mut file) = self.new_file()?;
        let written = file.write_all(&facts).and_then(|()| file.write_all(&entry.body));
        let named = written.and_then(|()| fs::rename(&path, self.folder.join(key.file_name())));
        if named.is_err() {
            let _ = fs::remove_file(&path);
        }
        named?;
        self.make_room()
    }

    /// Forgets a page.
    pub(crate) fn remove(&self, key: &Key) {
        let _ = fs::remove_file(self.folder.join(key.file_name()));
    }

    fn new_file(&self) -> io::Result<(PathBuf, File)> {
        let number = self.unnamed.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("new-{}-{number}", std::process::id()));
        let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = match open() {
            // Of a process with the same number, long gone.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                open()?
            }
            opened => opened?,
        };
        Ok((path, file))
    }

    /// Removes what was not used for longest until the rest fits.
    fn make_room(&self) -> io::Result<()> {
        let mut files = self.files()?;
        let mut total: u64 = files.iter().map(|file| file.size).sum();
        if total <= self.capacity {
            return Ok(());
        }
        files.sort_by_key(|file| file.used);
        for file in files {
            if total <= self.capacity / OF * REMAINS {
                break;
            }
            // Another process may have been faster.
            let _ = fs::remove_file(&file.path);
            total -= file.size;
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<Kept>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // Gone meanwhile.
            let Ok(metadata) = path.symlink_metadata() else { continue };
            let used = metadata.modified()?;
            if is_unnamed(&path) {
                let is_old = used.elapsed().is_ok_and(|age| age > ABANDONED_AFTER);
                if is_old || is_orphaned(&path) {
                    let _ = fs::remove_file(&path);
                }
                continue;
            }
            files.push(Kept { path, size: metadata.len(), used });
        }
        Ok(files)
    }
}

struct Kept {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

fn is_unnamed(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("new-"))
}

/// Whether the process that was writing a file has ended. One with the same number may have begun since; then the file's
/// age tells. Who wrongly takes one of another machine for ended costs it a page that is not kept, nothing else.
fn is_orphaned(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    let writer = name.as_deref().and_then(|name| name.split('-').nth(1)?.parse::<u32>().ok());
    cfg!(target_os = "linux")
        && writer.is_some_and(|writer| !Path::new("/proc").join(writer.to_string()).exists())
}

fn parse(mut bytes: Vec<u8>) -> Option<Entry> {
    let end = bytes.iter().take(LONGEST_FACTS).position(|byte| *byte == b'\n')?;
    let body = bytes.split_off(end + 1);
    let facts: Facts = serde_json::from_slice(&bytes).ok()?;
    Some(Entry { facts, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(url: &str, size: usize) -> Entry {
        let facts = Facts {
            url: url.to_owned(),
            final_url: url.to_owned(),
            status: 200,
            redirects: vec![(301, "http://a.example/".to_owned())],
            headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
            notes: Vec::new(),
            is_cut: false,
            checked_ms: 1,
            fresh_until_ms: 2,
        };
        Entry { facts, body: vec![b'\n'; size] }
    }

    fn key(url: &str) -> Key {
        Key::new(url, &[])
    }

    #[test]
    fn what_is_kept_comes_back_and_only_its_owner_can_read_it() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("state/web");
        let store = Store::open(folder.clone(), 1 << 20).unwrap();
        store.put(&key("a"), &entry("a", 10)).unwrap();
        assert_eq!(store.get(&key("a"), "a"), Some(entry("a", 10)));
        assert_eq!(store.get(&key("b"), "b"), None);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.iter().map(|file| mode(file)).collect::<Vec<_>>(), [0o600]);
    }

    #[test]
    fn a_folder_that_others_could_read_is_closed() {
        let scratch = tempfile::tempdir().unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Store::open(scratch.path().to_owned(), 1 << 20).unwrap();
        assert_eq!(scratch.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_bound_holds_and_what_was_used_last_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path().to_owned(), 100_000).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(1_000);
        for number in 0..30 {
            let url = format!("page {number}");
            store.put(&key(&url), &entry(&url, 10_000)).unwrap();
            let file = File::options().write(true).open(scratch.path().join(key(&url).file_name())).unwrap();
            file.set_modified(long_ago + Duration::from_secs(number)).unwrap();
            // Used again and again.
            assert!(store.get(&key("page 0"), "page 0").is_some(), "{number}");
        }
        let total: u64 = store.files().unwrap().iter().map(|file| file.size).sum();
        assert!(total <= 100_000 && total > 50_000, "{total}");
        assert!(
            store.get(&key("page 29"), "page 29").is_some() && store.get(&key("page 1"), "page 1").is_none()
        );
    }

    #[test]
    fn what_is_too_large_is_not_kept_and_replaces_what_was() {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path().to_owned(), 10_000).unwrap();
        store.put(&key("a"), &entry("a", 100)).unwrap();
        store.put(&key("a"), &entry("a", 9_000)).unwrap();
        assert_eq!(store.get(&key("a"), "a"), None);
    }

    #[test]
    fn damaged_files_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let store = Store::open(scratch.path().to_owned(), 10_000).unwrap();
        for content in ["", "{", "{}\nbody", "\n"] {
            let path = scratch.path().join(key("a").file_name());
            fs::write(&path, content).unwrap();
            assert_eq!(store.get(&key("a"), "a"), None, "{content:?}");
            assert!(!path.exists());
        }
    }
}
