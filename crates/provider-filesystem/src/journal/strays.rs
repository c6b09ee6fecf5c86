//! What a process that is killed may leave outside of its changes: temporary files, and directories that were made for
//! files which never came.
//!
//! Each process has a file of its own in the journal's folder. To it it adds every directory in which it is about to
//! make a temporary file, once, and every directory that it is about to make, until a change answers for that. It holds
//! the file's lock as long as it lives. Whoever can lock such a file removes what its writer left, and then the file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use provider_core::jail::{JailPath, Roots, remove_stale_temps};
use rustix::fs::{FlockOperation, flock};

use super::store::Store;

/// What is noted of a directory. One byte before its name, and a NUL after it, are a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// Temporary files are made in it.
    Temporary,
    /// It is going to be made.
    Expected,
    /// It is nobody's concern any more.
    Stays,
}

impl Note {
    fn byte(self) -> u8 {
        match self {
            Self::Temporary => b't',
            Self::Expected => b'+',
            Self::Stays => b'=',
        }
    }
}

/// The notes of this process, by the root's real path.
#[derive(Default)]
pub(super) struct Strays(Mutex<HashMap<PathBuf, Notes>>);

struct Notes {
    /// `None` where it cannot be written.
    file: Option<File>,
    /// Directories with temporary files.
    temporary: HashSet<PathBuf>,
}

impl Strays {
    /// Notes something of `directory`, for the state folder `base`. Where that cannot be written, nothing is noted: then
    /// the next change in the same directory removes temporary files.
    pub(super) fn note(&self, base: &Path, directory: &JailPath, note: Note) {
        let (root, name) = (directory.root().real_path(), directory.real_absolute());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if note == Note::Stays && !all.contains_key(root) {
            return;
        }
        let notes = all
            .entry(root.to_owned())
            .or_insert_with(|| Notes { file: create(base, root).ok(), temporary: HashSet::new() });
        if note == Note::Temporary && !notes.temporary.insert(name.clone()) {
            return;
        }
        if let Some(file) = &mut notes.file {
            // In one piece, so that a kill leaves all of a record or nothing.
            let _ = file.write_all(&[&[note.byte()], name.as_os_str().as_bytes(), b"\0"].concat());
        }
    }
}

fn create(base: &Path, root: &Path) -> io::Result<File> {
    let store = Store::create(base, root)?;
    let path = store.strays().join(ulid::Ulid::new().to_string());
    let file = File::options().append(true).create_new(true).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes what processes that are gone have left.
pub(super) fn sweep(store: &Store, roots: &Roots) {
    let entries = fs::read_dir(store.strays()).into_iter().flatten().filter_map(Result::ok);
    entries.for_each(|entry| sweep_one(&entry.path(), roots));
}

fn sweep_one(path: &Path, roots: &Roots) {
    let Ok(mut file) = File::open(path) else { return };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let mut noted = Vec::new();
    if file.read_to_end(&mut noted).is_err() {
        return;
    }
    let place = |name: &[u8]| roots.exact(Path::new(OsStr::from_bytes(name)), Path::new(""));
    let mut expected = BTreeSet::new();
    for record in noted.split(|byte| *byte == 0) {
        match record {
            // One that is gone, or that this process may not list, has nothing for it to remove.
            [b't', name @ ..] => drop(place(name).and_then(|place| remove_stale_temps(&place))),
            [b'+', name @ ..] => drop(expected.insert(name)),
            [b'=', name @ ..] => drop(expected.remove(name)),
            _ => {}
        }
    }
    // The innermost first; one with something in it is somebody's.
    for name in expected.iter().rev() {
        let _ = place(name).and_then(|place| place.remove_dir());
    }
    let _ = fs::remove_file(path);
}
