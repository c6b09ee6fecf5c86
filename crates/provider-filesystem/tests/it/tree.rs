//! A directory as a value: what a test compares before and after.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// What is at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    File { bytes: Vec<u8>, mode: u32, links: u64 },
    Directory { mode: u32 },
    Symlink(String),
    Special(&'static str),
}

/// Everything below a directory, by relative path.
pub type Tree = BTreeMap<String, Entry>;

/// Takes down everything below `root`.
pub fn snapshot(root: &Path) -> Tree {
    let mut tree = Tree::new();
    add(root, root, &mut tree);
    tree
}

fn add(root: &Path, directory: &Path, tree: &mut Tree) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        tree.insert(name, entry_at(&path));
        if path.symlink_metadata().unwrap().is_dir() {
            add(root, &path, tree);
        }
    }
}

/// What is at `path`, which exists.
pub fn entry_at(path: &Path) -> Entry {
    let metadata = path.symlink_metadata().unwrap();
    let (kind, mode) = (metadata.file_type(), metadata.permissions().mode() & 0o7777);
    if kind.is_symlink() {
        Entry::Symlink(path.read_link().unwrap().to_string_lossy().into_owned())
    } else if kind.is_dir() {
        Entry::Directory { mode }
    } else if kind.is_file() {
        Entry::File { bytes: std::fs::read(path).unwrap(), mode, links: metadata.nlink() }
    } else if kind.is_fifo() {
        Entry::Special("fifo")
    } else {
        Entry::Special("other")
    }
}
