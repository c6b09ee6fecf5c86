//! Walking a tree through handles: one name at a time, never a path, never a link.
//!
//! A recursive walk cannot afford a [`JailPath`] for each of a million entries. Here a directory is a handle that was
//! opened below a root, and everything else is opened from it by one plain name, refusing symbolic links. So
//! whatever is swapped while the walk runs, it only ever holds directories that were below the root when it opened
//! them.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, fstat, readlinkat, statat};
use rustix::io::Errno;

use crate::path::CAUTIOUS;
use crate::roots::Roots;
use crate::rules::Access;
use crate::{Directory, FileKind, JailPath, Metadata, beneath};

/// A directory that a walk has reached, open for listing and for going on from.
#[derive(Debug)]
pub struct WalkHandle(OwnedFd);

impl From<Directory> for WalkHandle {
    fn from(directory: Directory) -> Self {
        Self(directory.into_handle())
    }
}

impl WalkHandle {
    /// Opens a directory in this one. A symbolic link is refused (`ELOOP`).
    ///
    /// # Errors
    ///
    /// What the operating system says, and `EINVAL` for anything but one plain name.
    pub fn open_directory(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
        Ok(Self(beneath::open_name(self.0.as_fd(), plain(name)?, flags)?))
    }

    /// Opens a directory several names further down, none of them a symbolic link.
    ///
    /// # Errors
    ///
    /// What the operating system says; `ELOOP` for a link and `EXDEV` for a path that leads up.
    pub fn open_directory_beneath(&self, relative: &Path) -> io::Result<Self> {
        let found = beneath::open_directory(self.0.as_fd(), relative)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
        Ok(Self(beneath::open_name(found.as_fd(), Path::new("."), flags)?))
    }

    /// Opens a regular file in this directory for reading. Anything else is refused without waiting for it.
    ///
    /// # Errors
    ///
    /// What the operating system says; `ELOOP` for a symbolic link, `ENXIO` for anything else that is no file.
    pub fn open_file(&self, name: &OsStr) -> io::Result<(File, Metadata)> {
        let file = beneath::open_name(self.0.as_fd(), plain(name)?, OFlags::RDONLY | CAUTIOUS)?;
        let metadata = Metadata::from(&fstat(&file)?);
        match metadata.kind {
            FileKind::File => Ok((File::from(file), metadata)),
            _ => Err(Errno::NXIO.into()),
        }
    }

    /// What is known about an entry itself, not followed if it is a symbolic link.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        Ok(Metadata::from(&statat(&self.0, plain(name)?, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// The text of a symbolic link in this directory, wherever that leads.
    ///
    /// # Errors
    ///
    /// What the operating system says; `EINVAL` for what is no link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = readlinkat(&self.0, plain(name)?, Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
    }

    /// Reads all entries into `listing`, in place of what it held, without `.` and `..`, in the order of names.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn list(&self, listing: &mut Listing) -> io::Result<()> {
        listing.clear();
        platform::list(self, listing)?;
        listing.sort();
        Ok(())
    }

    /// Reads further entries into `listing`, in place of what it held: about `most` of them, from where the last call
    /// for this handle ended. Answers whether there may be more. For directories too large to be held at once.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn list_some(&self, listing: &mut Listing, most: usize) -> io::Result<bool> {
        listing.clear();
        let more = platform::list_some(self, listing, most)?;
        listing.sort();
        Ok(more)
    }

    fn add(&self, listing: &mut Listing, name: &[u8], kind: Option<FileKind>) {
        if matches!(name, b"." | b"..") {
            return;
        }
        // Some file systems do not say in the listing what an entry is; what has vanished meanwhile is left out.
        let kind = kind.or_else(|| Some(self.metadata(OsStr::from_bytes(name)).ok()?.kind));
        if let Some(kind) = kind {
            listing.push(name, kind);
        }
    }
}

impl AsFd for WalkHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One plain name as the path the system call takes.
fn plain(name: &OsStr) -> io::Result<&Path> {
    match name.as_bytes() {
        b"" | b"." | b".." => Err(Errno::INVAL.into()),
        bytes if bytes.contains(&b'/') => Err(Errno::INVAL.into()),
        _ => Ok(Path::new(name)),
    }
}

/// The entries of one directory. Made once and used again: it keeps its memory.
#[derive(Debug, Default)]
pub struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, FileKind)>,
    buffer: Vec<u8>,
}

impl Listing {
    /// The entries: name and type, symbolic links not followed.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&OsStr, FileKind)> + ExactSizeIterator {
        self.entries.iter().map(|(start, end, kind)| (OsStr::from_bytes(&self.names[*start..*end]), *kind))
    }

    /// Whether there is an entry of this name.
    pub fn contains(&self, name: &str) -> bool {
        let key = name.as_bytes();
        self.entries.binary_search_by(|(start, end, _)| self.names[*start..*end].cmp(key)).is_ok()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the directory has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn clear(&mut self) {
        self.names.clear();
        self.entries.clear();
    }

    fn push(&mut self, name: &[u8], kind: FileKind) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.entries.push((start, self.names.len(), kind));
    }

    fn sort(&mut self) {
        let names = &self.names;
        self.entries.sort_unstable_by(|one, other| names[one.0..one.1].cmp(&names[other.0..other.1]));
    }
}

/// The `deny` patterns of some roots, for paths that a walk has put together itself.
#[derive(Clone)]
pub struct Denied(Roots);

impl Denied {
    /// Whether a pattern covers `absolute`, which begins with the configured name of its root.
    pub fn covers(&self, absolute: &Path) -> bool {
        self.0.rules().forbids(Access::Read, absolute).is_some()
    }
}

impl JailPath {
    /// Whether an absolute path without `..` is that of a root or begins with one. Nothing is looked up: links on the
    /// way count as what they are called.
    pub fn shares_roots_with(&self, absolute: &Path) -> bool {
        self.roots().containing(absolute).is_some()
    }

    /// The `deny` patterns that hold here; `None` if nothing is denied.
    pub fn denied(&self) -> Option<Denied> {
        let roots = self.roots();
        (!roots.rules().allow_all(Access::Read)).then(|| Denied(roots.clone()))
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod platform {
    use std::io;

    use rustix::fs::{RawDir, SeekFrom, seek};

    use super::{Listing, WalkHandle};
    use crate::FileKind;

    /// What one system call may fill.
    const BUFFER: usize = 32 * 1024;

    pub(super) fn list(handle: &WalkHandle, listing: &mut Listing) -> io::Result<()> {
        // A handle remembers how far it was listed.
        seek(&handle.0, SeekFrom::Start(0))?;
        list_some(handle, listing, usize::MAX).map(drop)
    }

    pub(super) fn list_some(handle: &WalkHandle, listing: &mut Listing, most: usize) -> io::Result<bool> {
        let mut buffer = std::mem::take(&mut listing.buffer);
        buffer.reserve(BUFFER);
        let mut entries = RawDir::new(&handle.0, buffer.spare_capacity_mut());
        let result = loop {
            match entries.next() {
                None => break Ok(false),
                Some(Err(errno)) => break Err(errno.into()),
                Some(Ok(entry)) => {
                    let kind = FileKind::from_type(entry.file_type());
                    handle.add(listing, entry.file_name().to_bytes(), kind);
                    if listing.len() >= most {
                        // What was read beyond this entry is read again from there.
                        let next = SeekFrom::Start(entry.next_entry_cookie());
                        break seek(&handle.0, next).map(|_| true).map_err(Into::into);
                    }
                }
            }
        };
        listing.buffer = buffer;
        result
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod platform {
    use std::io;

    use rustix::fs::Dir;

    use super::{Listing, WalkHandle};
    use crate::FileKind;

    pub(super) fn list(handle: &WalkHandle, listing: &mut Listing) -> io::Result<()> {
        for entry in Dir::read_from(&handle.0)? {
            let entry = entry?;
            handle.add(listing, entry.file_name().to_bytes(), FileKind::from_type(entry.file_type()));
        }
        Ok(())
    }

    /// All at once: a place in a listing cannot be come back to everywhere.
    pub(super) fn list_some(handle: &WalkHandle, listing: &mut Listing, _most: usize) -> io::Result<bool> {
        list(handle, listing).map(|()| false)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn walk_from(folder: &Path) -> WalkHandle {
        let roots = Roots::open(&[".".to_owned()], folder).unwrap();
        roots.directory(0).unwrap().open_dir().unwrap().into()
    }

    #[test]
    fn a_listing_is_sorted_and_can_be_used_again() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "a.b", ".x"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("d")).unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        let handle = walk_from(folder.path());
        let mut listing = Listing::default();
        for _ in 0..2 {
            handle.list(&mut listing).unwrap();
            let names: Vec<_> = listing.iter().map(|(name, _)| name.to_str().unwrap()).collect();
            assert_eq!(names, [".x", "a", "a.b", "b", "d", "link"]);
            assert!(listing.contains("d") && !listing.contains("e"));
            let kinds: Vec<_> = listing.iter().skip(3).map(|(_, kind)| kind).collect();
            assert_eq!(kinds, [FileKind::File, FileKind::Directory, FileKind::Symlink]);
        }
    }

    #[test]
    fn a_large_directory_can_be_listed_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let mut expected: Vec<String> = (0..1_000).map(|n| format!("file-{n}")).collect();
        expected.iter().for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        let (handle, mut listing) = (walk_from(folder.path()), Listing::default());
        let (mut found, mut parts, mut more) = (Vec::new(), 0, true);
        while more {
            more = handle.list_some(&mut listing, 64).unwrap();
            found.extend(listing.iter().map(|(name, _)| name.to_str().unwrap().to_owned()));
            parts += 1;
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert!(parts > 1 || !cfg!(target_os = "linux"), "{parts}");
    }

    #[test]
    fn only_plain_names_are_opened_and_links_never() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("in/deep")).unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        symlink("in", folder.path().join("link")).unwrap();
        symlink("file", folder.path().join("file-link")).unwrap();
        let handle = walk_from(folder.path());
        let directory = |name: &str| handle.open_directory(OsStr::new(name)).is_ok();
        assert!(directory("in"));
        for name in ["", ".", "..", "in/deep", "/", "link", "file", "missing"] {
            assert!(!directory(name), "{name:?}");
        }
        assert!(handle.open_file(OsStr::new("file")).is_ok());
        for name in ["file-link", "in", "../file", "missing"] {
            assert!(handle.open_file(OsStr::new(name)).is_err(), "{name:?}");
        }
        assert!(handle.open_directory_beneath(Path::new("in/deep")).is_ok());
        for path in ["..", "link/deep", "in/../link", "/"] {
            assert!(handle.open_directory_beneath(Path::new(path)).is_err(), "{path:?}");
        }
    }
}
