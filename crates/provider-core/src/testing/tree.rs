//! A directory as a value: what a test compares before and after.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::must;

/// What is at one path.
///
/// ```
/// use provider_core::testing::tree::Entry;
///
/// let is_script = |entry: &Entry| matches!(entry, Entry::File { mode, .. } if mode & 0o111 != 0);
/// assert!(!is_script(&Entry::Directory { mode: 0o755 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Its permission bits, with setuid, setgid and sticky.
        mode: u32,
        /// How many names it has.
        links: u64,
    },
    /// A directory.
    Directory {
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link, and where it points.
    Symlink(String),
    /// Anything else, by name.
    Special(&'static str),
}

/// Everything below a directory, by relative path.
///
/// ```
/// use provider_core::testing::tree::{Entry, Tree};
///
/// let tree = Tree::from([("link".to_owned(), Entry::Symlink("notes.txt".to_owned()))]);
/// assert!(tree.contains_key("link"));
/// ```
pub type Tree = BTreeMap<String, Entry>;

/// Takes down everything below `root`.
///
/// # Panics
/// When it cannot be read.
///
/// ```
/// use provider_core::testing::tree::snapshot;
///
/// let folder = std::env::temp_dir().join(format!("snapshot-{}", std::process::id()));
/// std::fs::create_dir(&folder).unwrap();
/// let before = snapshot(&folder);
/// // … the call that must change nothing …
/// assert_eq!(snapshot(&folder), before);
/// # std::fs::remove_dir(&folder).unwrap();
/// ```
pub fn snapshot(root: &Path) -> Tree {
    let mut tree = Tree::new();
    add(root, root, &mut tree);
    tree
}

fn add(root: &Path, directory: &Path, tree: &mut Tree) {
    for entry in must(std::fs::read_dir(directory), directory) {
        let path = must(entry, directory).path();
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let entry = entry_at(&path);
        let is_directory = matches!(entry, Entry::Directory { .. });
        tree.insert(name, entry);
        if is_directory {
            add(root, &path, tree);
        }
    }
}

/// What is at `path`.
///
/// # Panics
/// When there is nothing, or it cannot be read.
///
/// ```
/// use provider_core::testing::tree::{Entry, entry_at};
///
/// assert!(matches!(entry_at(&std::env::temp_dir()), Entry::Directory { .. } | Entry::Symlink(_)));
/// ```
pub fn entry_at(path: &Path) -> Entry {
    let metadata = must(path.symlink_metadata(), path);
    let (kind, mode) = (metadata.file_type(), metadata.permissions().mode() & 0o7777);
    if kind.is_symlink() {
        Entry::Symlink(must(path.read_link(), path).to_string_lossy().into_owned())
    } else if kind.is_dir() {
        Entry::Directory { mode }
    } else if kind.is_file() {
        Entry::File { bytes: must(std::fs::read(path), path), mode, links: metadata.nlink() }
    } else if kind.is_fifo() {
        Entry::Special("fifo")
    } else {
        Entry::Special("other")
    }
}

/// Copies a tree with its links and executable bits; one that is not there is empty.
pub(crate) fn copy(from: &Path, to: &Path) {
    must(std::fs::create_dir_all(to), to);
    for (name, entry) in at(from) {
        let path = to.join(name);
        match entry {
            Entry::Directory { .. } => must(std::fs::create_dir(&path), &path),
            Entry::Symlink(target) => must(symlink(target, &path), &path),
            Entry::File { bytes, mode, .. } => {
                must(std::fs::write(&path, bytes), &path);
                set_mode(&path, if mode & 0o100 == 0 { 0o644 } else { 0o755 });
            }
            Entry::Special(kind) => panic!("{}: a {kind} cannot be kept in a repository", path.display()),
        }
    }
}

/// A tree as git can keep it: no empty folders, and of each mode the executable bit.
pub(crate) fn kept(folder: &Path) -> Tree {
    let keep = |entry| match entry {
        Entry::File { bytes, mode, .. } => Some(Entry::File { bytes, mode: mode & 0o100, links: 1 }),
        Entry::Directory { .. } => None,
        other => Some(other),
    };
    at(folder).into_iter().filter_map(|(name, entry)| Some((name, keep(entry)?))).collect()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    must(std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)), path);
}

/// What is in a folder. Without the folder it is nothing: git keeps no empty ones.
fn at(folder: &Path) -> Tree {
    if folder.exists() { snapshot(folder) } else { Tree::new() }
}
