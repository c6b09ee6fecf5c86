//! A directory of the process's own, outside every root, in which what was removed is kept.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, fsync, openat, renameat_with};
use rustix::io::Errno;

use crate::copy::{Beside, Copied, Copier, Manner, Progress, Spot, settle_tree};
use crate::error::KEEP;
use crate::follow::{Found, Last};
use crate::path::CAUTIOUS;
use crate::rules::Access;
use crate::tree::{inspect, remove_all};
use crate::{FileKind, JailPath, Metadata, PathError};

/// An open directory outside the roots, for what [`JailPath::set_aside`] takes away.
#[derive(Debug)]
pub struct Depot {
    directory: OwnedFd,
    path: PathBuf,
}

impl Depot {
    /// Opens `path`, a directory of this process's own.
    ///
    /// # Errors
    ///
    /// What the operating system says; also if it is a symbolic link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | CAUTIOUS;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// Whether there is something under this name.
    pub fn has(&self, slot: &str) -> bool {
        self.metadata(slot).is_some()
    }

    /// What is known about the entry under this name.
    pub fn metadata(&self, slot: &str) -> Option<Metadata> {
        inspect(self.directory.as_fd(), OsStr::new(slot)).ok()
    }

    /// The content of a regular file of at most `most` bytes; `None` for anything else.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn read(&self, slot: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let small = |found: &Metadata| found.kind == FileKind::File && found.size <= most;
        if !self.metadata(slot).is_some_and(|found| small(&found)) {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | CAUTIOUS;
        let file = crate::beneath::open_name(self.directory.as_fd(), Path::new(slot), flags)?;
        let mut bytes = Vec::new();
        std::fs::File::from(file).take(most).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Removes what is under this name.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn remove(&self, slot: &str) -> io::Result<()> {
        Ok(remove_all(self.directory.as_fd(), OsStr::new(slot))?)
    }

    fn spot<'a>(&'a self, slot: &'a OsStr) -> Spot<'a> {
        Spot { directory: self.directory.as_fd(), name: slot }
    }
}

/// The name under which an incomplete copy waits.
fn partial(slot: &str) -> OsString {
    OsString::from(format!("{slot}.part"))
}

impl JailPath {
    /// Moves the entry of this name, with all that is beneath, into a depot: by renaming it, or by a copy where the
    /// depot is on another file system.
    ///
    /// `expected` is the device and inode that were looked at; anything else that has the name by now stays.
    ///
    /// # Errors
    ///
    /// [`PathError::Changed`] for another inode; what `progress` says while copying; as [`JailPath::walk_to_remove`].
    pub fn set_aside(
        &self,
        depot: &Depot,
        slot: &str,
        expected: (u64, u64),
        progress: &mut Progress<'_>,
    ) -> Result<(), PathError> {
        self.refuse_root("remove")?;
        let found = self.find_entry(Access::Write)?;
        if found.metadata.as_ref().is_none_or(|metadata| metadata.id() != expected) {
            return Err(PathError::Changed { path: self.to_string() });
        }
        let from = (&found.directory, found.name());
        let renamed = renameat_with(from.0, from.1, &depot.directory, slot, RenameFlags::NOREPLACE);
        match renamed {
            Ok(()) => {
                if depot.metadata(slot).is_some_and(|metadata| metadata.id() != expected) {
                    let back = renameat_with(&depot.directory, slot, from.0, from.1, RenameFlags::NOREPLACE);
                    return Err(match back {
                        Ok(()) => PathError::Changed { path: self.to_string() },
                        Err(errno) => self.error("put back", errno),
                    });
                }
                self.settle();
                let _ = fsync(&depot.directory);
                Ok(())
            }
            Err(Errno::XDEV | Errno::NOSYS | Errno::NOTSUP | Errno::INVAL) => {
                self.copy_aside(depot, slot, expected, progress)
            }
            Err(errno) => Err(self.error("remove", errno)),
        }
    }

    fn copy_aside(
        &self,
        depot: &Depot,
        slot: &str,
        expected: (u64, u64),
        progress: &mut Progress<'_>,
    ) -> Result<(), PathError> {
        let found = self.find_entry(Access::Write)?;
        let part = partial(slot);
        let mut copier = Copier { manner: Manner::Move, copied: Copied::default(), progress };
        let source = Spot { directory: found.directory.as_fd(), name: &found.name };
        let copied = copier.entry(source, depot.spot(&part));
        if let Err(error) = copied {
            let _ = remove_all(depot.directory.as_fd(), &part);
            return Err(error.into_path_error(self, KEEP));
        }
        settle_tree(depot.directory.as_fd(), &part, &copier.copied);
        let named = renameat_with(&depot.directory, &part, &depot.directory, slot, RenameFlags::NOREPLACE);
        named.map_err(|errno| self.error(KEEP, errno))?;
        let _ = fsync(&depot.directory);
        if self.symlink_metadata()?.id() != expected {
            let _ = depot.remove(slot);
            return Err(PathError::Changed { path: self.to_string() });
        }
        self.remove_tree(&mut |_| Ok(()))?;
        self.settle();
        Ok(())
    }

    /// Brings back what [`JailPath::set_aside`] took away, unless something has the name by now.
    ///
    /// # Errors
    ///
    /// [`PathError::Exists`]; [`PathError::NotFound`] if its directory is missing, or the depot has nothing under
    /// `slot`; what `progress` says while copying.
    pub fn put_back(&self, depot: &Depot, slot: &str, progress: &mut Progress<'_>) -> Result<(), PathError> {
        let found = self.find_for_new(Last::Keep)?;
        let to = (&found.directory, found.name());
        match renameat_with(&depot.directory, slot, to.0, to.1, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(PathError::Exists { path: self.to_string() }),
            Err(Errno::XDEV | Errno::NOSYS | Errno::NOTSUP | Errno::INVAL) => {
                self.copy_back(depot, slot, progress)?;
            }
            Err(errno) => return Err(self.error("restore", errno)),
        }
        self.settle();
        Ok(())
    }

    fn copy_back(&self, depot: &Depot, slot: &str, progress: &mut Progress<'_>) -> Result<(), PathError> {
        let Found { directory, name, .. } = self.find_for_new(Last::Keep)?;
        let directory = Arc::new(directory);
        let copy = Beside::copy(&directory, depot.spot(OsStr::new(slot)), Manner::Move, progress)
            .map_err(|error| error.into_path_error(self, "restore"))?;
        renameat_with(&directory, copy.name(), &directory, &name, RenameFlags::NOREPLACE)
            .map_err(|errno| self.error("restore", errno))?;
        copy.keep();
        // What stays behind is only room that is lost.
        let _ = depot.remove(slot);
        Ok(())
    }

    /// Adds to what is left here what the depot has of it, after a removal that was interrupted.
    ///
    /// # Errors
    ///
    /// Any [`PathError`] of finding it.
    pub fn complete_from_depot(&self, depot: &Depot, slot: &str) -> Result<(), PathError> {
        let found = self.find_for_new(Last::Keep)?;
        let mut nothing = |_: &Copied| Ok(());
        let mut copier = Copier::completing(&mut nothing);
        let target = Spot { directory: found.directory.as_fd(), name: &found.name };
        copier
            .entry(depot.spot(OsStr::new(slot)), target)
            .map_err(|error| error.into_path_error(self, "restore"))
    }

    /// Whether the depot's file system is another one than this entry's.
    ///
    /// # Errors
    ///
    /// Any [`PathError`] of finding it.
    pub fn is_elsewhere(&self, depot: &Depot) -> Result<bool, PathError> {
        let found = self.find_entry(Access::Read)?;
        let device = found.metadata.as_ref().map(|metadata| metadata.dev);
        let kept = rustix::fs::fstat(&depot.directory).map(|stat| Metadata::from(&stat).dev).ok();
        Ok(device != kept)
    }
}

impl std::fmt::Display for Depot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.display().fmt(f)
    }
}
