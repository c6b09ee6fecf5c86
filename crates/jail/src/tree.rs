//! Whole directories: looking through them, copying them, removing them. No link is ever followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, OFlags, fstat, readlinkat, statat, unlinkat};
use rustix::io::{Errno, Result as Outcome};

use crate::path::CAUTIOUS;
use crate::rules::Access;
use crate::{FileKind, JailPath, Metadata, PathError, beneath};

/// A deeper tree is refused: each level holds a directory open.
const DEEPEST: usize = 200;

/// One entry that a walk has come to.
#[derive(Debug)]
pub struct TreeEntry<'a> {
    directory: BorrowedFd<'a>,
    name: &'a OsStr,
    relative: &'a Path,
    metadata: &'a Metadata,
}

impl TreeEntry<'_> {
    /// The names from the top to here; empty for the top itself.
    pub fn relative(&self) -> &Path {
        self.relative
    }

    /// What is known about the entry itself.
    pub fn metadata(&self) -> &Metadata {
        self.metadata
    }

    /// The content of a regular file.
    ///
    /// # Errors
    ///
    /// If it is no regular file any more, or what the operating system says.
    pub fn open(&self) -> io::Result<File> {
        let file = beneath::open_name(self.directory, Path::new(self.name), OFlags::RDONLY | CAUTIOUS)?;
        match Metadata::from(&fstat(&file)?).kind {
            FileKind::File => Ok(File::from(file)),
            _ => Err(Errno::INVAL.into()),
        }
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    ///
    /// If it is none any more, or what the operating system says.
    pub fn read_link(&self) -> io::Result<PathBuf> {
        let target = readlinkat(self.directory, Path::new(self.name), Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
    }
}

/// What is done with each entry of a walk, parents first; an error ends it.
pub type Visit<'a> = dyn FnMut(&TreeEntry<'_>) -> Result<(), PathError> + 'a;

impl JailPath {
    /// Looks at the entry of this name and at everything beneath it, parents first, in the order of the names.
    ///
    /// # Errors
    ///
    /// What `visit` says; [`PathError::Denied`] for anything beneath that a pattern covers; any [`PathError`] of
    /// finding it.
    pub fn walk(&self, visit: &mut Visit<'_>) -> Result<(), PathError> {
        self.walk_for(Access::Read, visit)
    }

    /// [`JailPath::walk`] before everything is carried away: what is protected is refused as well.
    ///
    /// # Errors
    ///
    /// As [`JailPath::walk`], and [`PathError::Protected`].
    pub fn walk_to_remove(&self, visit: &mut Visit<'_>) -> Result<(), PathError> {
        self.walk_for(Access::Write, visit)
    }

    fn walk_for(&self, access: Access, visit: &mut Visit<'_>) -> Result<(), PathError> {
        let found = self.find_entry(access)?;
        let real = self.at(found.place.clone());
        walk(found.directory.as_fd(), &found.name, &mut |entry| {
            if !entry.relative.as_os_str().is_empty() {
                let here = real.beneath(entry.relative);
                here.check(access)?;
            }
            visit(entry)
        })
        .map_err(|error| error.into_path_error(self, "look through"))
    }

    /// Removes the entry of this name and everything beneath it, one by one, children first.
    ///
    /// Every entry is shown to `visit` before anything is removed in its directory; an error ends the work, and what
    /// was removed by then stays so.
    ///
    /// # Errors
    ///
    /// What `visit` says; [`PathError::Invalid`] for a root; as [`JailPath::walk_to_remove`].
    pub fn remove_tree(&self, visit: &mut Visit<'_>) -> Result<(), PathError> {
        self.refuse_root("remove")?;
        let found = self.find_entry(Access::Write)?;
        let real = self.at(found.place.clone());
        remove(found.directory.as_fd(), &found.name, Path::new(""), 0, &mut |entry| {
            real.beneath(entry.relative).check(Access::Write)?;
            visit(entry)
        })
        .map_err(|error| error.into_path_error(self, "remove"))
    }
}

/// What ended work on a tree.
pub(crate) enum TreeError {
    /// The visitor.
    Visit(PathError),
    /// The operating system, at the entry so named from the top.
    System(PathBuf, Errno),
}

impl TreeError {
    pub(crate) fn into_path_error(self, top: &JailPath, action: &'static str) -> PathError {
        match self {
            Self::Visit(error) => error,
            Self::System(relative, errno) => top.beneath(&relative).error(action, errno),
        }
    }
}

pub(crate) type TreeResult<T> = Result<T, TreeError>;

pub(crate) fn system(relative: &Path) -> impl Fn(Errno) -> TreeError + '_ {
    move |errno| TreeError::System(relative.to_owned(), errno)
}

/// Walks over `name` in `directory`, and what is beneath.
pub(crate) fn walk(directory: BorrowedFd<'_>, name: &OsStr, visit: &mut Visit<'_>) -> TreeResult<()> {
    walk_at(directory, name, Path::new(""), 0, visit)
}

fn walk_at(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    relative: &Path,
    depth: usize,
    visit: &mut Visit<'_>,
) -> TreeResult<()> {
    let metadata = inspect(directory, name).map_err(system(relative))?;
    visit(&TreeEntry { directory, name, relative, metadata: &metadata }).map_err(TreeError::Visit)?;
    if metadata.kind != FileKind::Directory {
        return Ok(());
    }
    let below = open_below(directory, name, depth).map_err(system(relative))?;
    for name in names(&below).map_err(system(relative))? {
        match walk_at(below.as_fd(), &name, &relative.join(&name), depth + 1, visit) {
            // Gone since it was listed.
            Err(TreeError::System(_, Errno::NOENT)) => {}
            other => other?,
        }
    }
    Ok(())
}

fn remove(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    relative: &Path,
    depth: usize,
    visit: &mut Visit<'_>,
) -> TreeResult<()> {
    let metadata = inspect(directory, name).map_err(system(relative))?;
    visit(&TreeEntry { directory, name, relative, metadata: &metadata }).map_err(TreeError::Visit)?;
    if metadata.kind != FileKind::Directory {
        return unlinkat(directory, Path::new(name), AtFlags::empty()).map_err(system(relative));
    }
    let below = open_below(directory, name, depth).map_err(system(relative))?;
    for name in names(&below).map_err(system(relative))? {
        match remove(below.as_fd(), &name, &relative.join(&name), depth + 1, visit) {
            Err(TreeError::System(_, Errno::NOENT)) => {}
            other => other?,
        }
    }
    unlinkat(directory, Path::new(name), AtFlags::REMOVEDIR).map_err(system(relative))
}

/// Removes `name` in `directory` with all that is beneath, asking nobody.
pub(crate) fn remove_all(directory: BorrowedFd<'_>, name: &OsStr) -> Outcome<()> {
    match remove(directory, name, Path::new(""), 0, &mut |_| Ok(())) {
        Ok(()) => Ok(()),
        Err(TreeError::System(_, errno)) => Err(errno),
        Err(TreeError::Visit(_)) => Err(Errno::CANCELED),
    }
}

pub(crate) fn inspect(directory: BorrowedFd<'_>, name: &OsStr) -> Outcome<Metadata> {
    statat(directory, Path::new(name), AtFlags::SYMLINK_NOFOLLOW).map(|stat| Metadata::from(&stat))
}

/// The directory of this name, for listing.
pub(crate) fn open_below(directory: BorrowedFd<'_>, name: &OsStr, depth: usize) -> Outcome<OwnedFd> {
    if depth >= DEEPEST {
        return Err(Errno::NAMETOOLONG);
    }
    beneath::open_name(directory, Path::new(name), OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS)
}

/// The names in a directory, sorted.
pub(crate) fn names(directory: &OwnedFd) -> Outcome<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
