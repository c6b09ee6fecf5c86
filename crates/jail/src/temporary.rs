//! Temporary files beside their targets, and what a killed writer leaves of them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat};
use rustix::io::{Errno, Result};

use crate::path::CAUTIOUS;
use crate::{FileKind, JailPath, Metadata, PathError, beneath};

const PREFIX: &[u8] = b".ph-";
const SUFFIX: &[u8] = b".tmp";
/// What is put back, or removed, by whoever put it there; never swept.
const SPARE: &[u8] = b".old";

/// How many names are tried before giving up; a second is hardly ever needed.
const ATTEMPTS: usize = 128;

/// A larger directory is not searched to its end for what the dead have left.
const MAX_ENTRIES: usize = 20_000;

/// Whether a name is one that a writer here gives its temporary files, which listings leave out.
pub fn is_temp_name(name: &OsStr) -> bool {
    has_suffix(name, SUFFIX) || has_suffix(name, SPARE)
}

fn has_suffix(name: &OsStr, suffix: &[u8]) -> bool {
    let random = name.as_bytes().strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(suffix));
    random.is_some_and(|random| !random.is_empty() && random.iter().all(u8::is_ascii_alphanumeric))
}

/// Removes temporary files in `directory` whose writer is dead. Returns how many.
///
/// A living writer, in this process or any other, holds a lock on its file; such files are left alone.
///
/// # Errors
///
/// Any [`PathError`] of opening the directory. A file that cannot be removed is left, and is no error.
pub fn remove_stale_temps(directory: &JailPath) -> std::result::Result<usize, PathError> {
    let directory = directory.open_dir()?;
    sweep(directory.handle()).map_err(|errno| directory.path().error("list", errno))
}

/// [`remove_stale_temps`] in a directory that is open for reading.
pub(crate) fn sweep(directory: &OwnedFd) -> Result<usize> {
    let entries = Dir::read_from(directory)?.take(MAX_ENTRIES).filter_map(Result::ok);
    let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    let stale =
        names.filter(|name| has_suffix(name, SUFFIX) && remove_if_stale(directory, Path::new(name)).is_ok());
    Ok(stale.count())
}

fn remove_if_stale(directory: &OwnedFd, name: &Path) -> Result<()> {
    let file = beneath::open_name(directory.as_fd(), name, OFlags::RDONLY | CAUTIOUS)?;
    let kind = Metadata::from(&fstat(&file)?).kind;
    if !matches!(kind, FileKind::File | FileKind::Directory) {
        return Err(Errno::INVAL);
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    match (is_named(directory.as_fd(), name, &file)?, kind) {
        (true, FileKind::Directory) => crate::tree::remove_all(directory.as_fd(), name.as_os_str()),
        (true, _) => unlinkat(directory, name, AtFlags::empty()),
        (false, _) => Err(Errno::NOENT),
    }
}

/// Whether `name` in `directory` is the very file that is open.
pub(crate) fn is_named(directory: BorrowedFd<'_>, name: &Path, file: impl AsFd) -> Result<bool> {
    let opened = Metadata::from(&fstat(file)?);
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Metadata::from(&stat).id() == opened.id()),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// A locked file or directory with a temporary name, which is removed with it unless it was put in its place.
#[derive(Debug)]
pub(crate) struct Temporary {
    directory: Arc<OwnedFd>,
    name: OsString,
    file: Option<File>,
}

impl Temporary {
    /// A file, open for reading and writing.
    pub(crate) fn create(directory: &Arc<OwnedFd>, mode: Mode) -> Result<Self> {
        Self::claimed(directory, |directory, name| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(directory, name, flags, mode)
        })
    }

    /// A directory that only its owner may enter.
    pub(crate) fn create_directory(directory: &Arc<OwnedFd>) -> Result<Self> {
        Self::claimed(directory, |directory, name| {
            rustix::fs::mkdirat(directory, name, Mode::RWXU)?;
            beneath::open_name(directory, name, OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS)
        })
    }

    /// A name for something that is no file and no directory. Nothing has it yet.
    pub(crate) fn unused_name() -> OsString {
        random_name()
    }

    fn claimed(
        directory: &Arc<OwnedFd>,
        create: impl Fn(BorrowedFd<'_>, &Path) -> Result<OwnedFd>,
    ) -> Result<Self> {
        for _ in 0..ATTEMPTS {
            let name = random_name();
            let file = match create(directory.as_fd(), Path::new(&name)) {
                Ok(file) => File::from(file),
                Err(Errno::EXIST | Errno::INTR) => continue,
                Err(errno) => return Err(errno),
            };
            let temporary = Self { directory: directory.clone(), name, file: Some(file) };
            if temporary.claim()? {
                return Ok(temporary);
            }
        }
        Err(Errno::EXIST)
    }

    /// Locks the file. `false` if someone took it for a dead writer's before it was locked.
    fn claim(&self) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => is_named(self.directory.as_fd(), self.name(), file),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
            // Without locks on this file system nobody can take it for stale either.
            Err(_) => Ok(true),
        }
    }

    pub(crate) fn name(&self) -> &Path {
        Path::new(&self.name)
    }

    pub(crate) fn file(&mut self) -> Result<&mut File> {
        self.file.as_mut().ok_or(Errno::BADF)
    }

    /// Another handle of the file, to know it by.
    pub(crate) fn handle(&self) -> Result<OwnedFd> {
        let file = self.file.as_ref().ok_or(Errno::BADF)?;
        rustix::io::fcntl_dupfd_cloexec(file, 0)
    }

    /// The file, still locked; its temporary name stays as it is.
    pub(crate) fn keep(mut self) -> Result<File> {
        self.file.take().ok_or(Errno::BADF)
    }

    /// The file, still locked, once whatever has its temporary name is removed.
    pub(crate) fn keep_without_name(mut self) -> Result<File> {
        let file = self.file.take().ok_or(Errno::BADF);
        // What is left is recognisable, and removed by the next one who looks.
        let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
        file
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = crate::tree::remove_all(self.directory.as_fd(), &self.name);
        }
    }
}

/// A file without a name, where the directory of the target takes no new files.
pub(crate) fn anonymous() -> std::io::Result<File> {
    let folder = std::env::temp_dir();
    let path = folder.join(random_name());
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Never the same twice in a process; between processes `O_EXCL` decides.
fn random_name() -> OsString {
    // Every `RandomState` has keys of its own, seeded by the operating system.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    OsString::from(format!(".ph-{:016x}.tmp", hasher.finish()))
}

/// A name beside a target that listings leave out and that no other writer clears away.
pub(crate) fn spare_name() -> OsString {
    let name = random_name();
    let stem = name.as_bytes().strip_suffix(SUFFIX).unwrap_or(name.as_bytes());
    OsStr::from_bytes(&[stem, SPARE].concat()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_recognised_and_no_others() {
        assert!(is_temp_name(&random_name()));
        assert!(is_temp_name(&spare_name()));
        for other in [".ph-.tmp", ".ph-a b.tmp", "x.ph-1.tmp", ".ph-1.tmp.txt", ".ph-1", "notes.txt"] {
            assert!(!is_temp_name(OsStr::new(other)), "{other}");
        }
    }
}
