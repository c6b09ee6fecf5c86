//! Listing one directory.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, statat};

use crate::{FileKind, JailPath, Metadata, PathError};

/// An open directory. Its entries can be listed and inspected without walking to them again.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    path: JailPath,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, byte for byte as it is on disk.
    pub name: OsString,
    /// The type of the entry itself; symbolic links are not followed.
    pub kind: FileKind,
}

impl AsFd for Directory {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Directory {
    pub(crate) fn new(handle: OwnedFd, path: JailPath) -> Self {
        Self { handle, path }
    }

    /// Where it really is, behind every symbolic link.
    pub fn path(&self) -> &JailPath {
        &self.path
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    pub(crate) fn into_handle(self) -> OwnedFd {
        self.handle
    }

    /// The entries, in no particular order, without `.` and `..`. An entry that vanishes meanwhile is left out.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn entries(&self) -> Result<impl Iterator<Item = io::Result<DirEntry>> + use<>, PathError> {
        let error = |errno| self.path.error("list", errno);
        let mut stream = Dir::read_from(&self.handle).map_err(error)?;
        Ok(std::iter::from_fn(move || {
            loop {
                match stream.next()? {
                    Err(errno) => return Some(Err(errno.into())),
                    Ok(entry) => {
                        let name = OsStr::from_bytes(entry.file_name().to_bytes());
                        if name == "." || name == ".." {
                            continue;
                        }
                        let known = FileKind::from_type(entry.file_type());
                        let Some(kind) = known.or_else(|| inspect(&stream, name)) else { continue };
                        return Some(Ok(DirEntry { name: name.to_owned(), kind }));
                    }
                }
            }
        }))
    }

    /// What is known about one entry itself, not followed if it is a symbolic link.
    ///
    /// # Errors
    ///
    /// [`PathError::NotFound`] if it is gone; [`PathError::Denied`].
    pub fn symlink_metadata(&self, name: &OsStr) -> Result<Metadata, PathError> {
        let path = self.path.join(name)?;
        path.roots().check_rules(path.place(), crate::rules::Access::Read, &path.to_string())?;
        let stat = statat(&self.handle, Path::new(name), AtFlags::SYMLINK_NOFOLLOW);
        stat.map(|stat| Metadata::from(&stat)).map_err(|errno| path.error("inspect", errno))
    }
}

/// For file systems that do not say in the listing what an entry is.
fn inspect(stream: &Dir, name: &OsStr) -> Option<FileKind> {
    let stat = statat(stream.fd().ok()?, Path::new(name), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Metadata::from(&stat).kind)
}
