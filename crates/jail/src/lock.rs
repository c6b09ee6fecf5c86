//! Taking turns at writing one file.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Access as Permission, AtFlags, FlockOperation, OFlags, accessat, flock, fstat, statat};
use rustix::io::Errno;

use crate::follow::{Found, Last};
use crate::path::CAUTIOUS;
use crate::temporary::is_named;
use crate::{FileKind, JailPath, Metadata, PathError, beneath};

/// How long [`JailPath::lock_for_write`] waits. Writers hold a lock for milliseconds; whoever holds it this long is
/// some other program that will not let go.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Between two tries for a lock. Waiters poll, because a wait in `flock` could not end at a deadline.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The right to write one file, or to create it, held until dropped.
///
/// It excludes every other `WriteLock` of the same file, by whatever name, in this process and in others; also one
/// taken by the same thread, so a caller that writes several files must name each once (compare
/// [`WriteLock::path`]) and take them in one order.
#[derive(Debug)]
pub struct WriteLock {
    pub(crate) asked: JailPath,
    pub(crate) path: JailPath,
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
    pub(crate) target: Target,
    pub(crate) notes: Vec<String>,
}

/// What is locked.
#[derive(Debug)]
pub(crate) enum Target {
    /// The file itself.
    Existing {
        file: File,
        metadata: Metadata,
        /// What the file was like when its content was read.
        seen: Option<Stamp>,
    },
    /// The directory, while there is no such file in it. `None` if this process may not read the directory, or its
    /// file system has no locks; creating is exclusive all the same.
    Missing { _directory: Option<OwnedFd> },
}

/// What changes when a file's content does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
    pub(crate) changed: SystemTime,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { size: metadata.size, modified: metadata.modified, changed: metadata.changed }
    }
}

impl JailPath {
    /// Locks the file behind this path for writing, or the right to create it. Waits up to half a minute.
    ///
    /// Symbolic links inside the roots are followed and kept: [`WriteLock::path`] is the file behind them.
    ///
    /// # Errors
    ///
    /// [`PathError::Locked`] if another program does not let go; [`PathError::Denied`], [`PathError::Protected`],
    /// [`PathError::IsDirectory`], [`PathError::SpecialFile`]; [`PathError::NotFound`] if the directory is missing;
    /// [`PathError::Permission`] also for a file that is read-only, though it could be replaced.
    pub fn lock_for_write(&self) -> Result<WriteLock, PathError> {
        self.lock_for_write_within(DEFAULT_WAIT)
    }

    /// [`JailPath::lock_for_write`] with another limit for the wait.
    ///
    /// # Errors
    ///
    /// As [`JailPath::lock_for_write`].
    pub fn lock_for_write_within(&self, wait: Duration) -> Result<WriteLock, PathError> {
        let deadline = Instant::now() + wait;
        loop {
            let found = self.find_for_new(Last::Follow)?;
            let mut notes = Vec::new();
            let target = match found.metadata {
                Some(_) => self.lock_file(&found, deadline, &mut notes)?,
                None => self.lock_directory(&found, deadline)?,
            };
            // `None`: the name came to mean another file while we waited; that one is to be locked instead.
            if let Some(target) = target {
                let Found { place, directory, name, .. } = found;
                let path = self.at(place);
                return Ok(WriteLock { asked: self.clone(), path, directory, name, target, notes });
            }
            if Instant::now() >= deadline {
                return Err(PathError::Locked { path: self.to_string() });
            }
        }
    }

    fn lock_file(
        &self,
        found: &Found,
        deadline: Instant,
        notes: &mut Vec<String>,
    ) -> Result<Option<Target>, PathError> {
        match found.metadata.as_ref().map(|metadata| metadata.kind) {
            Some(FileKind::File) => {}
            Some(FileKind::Directory) => return Err(PathError::IsDirectory { path: self.to_string() }),
            Some(kind) => return Err(PathError::SpecialFile { path: self.to_string(), kind }),
            None => return Ok(None),
        }
        let file = match open_for_lock(found) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(self.error("open", errno)),
        };
        if !self.wait(&file, deadline)? {
            notes.push(
                "the file system has no locks: two writers at once could overwrite each other".to_owned(),
            );
        }
        let same = is_named(found.directory.as_fd(), found.name(), &file);
        if !same.map_err(|errno| self.error("inspect", errno))? {
            return Ok(None);
        }
        check_writable(found).map_err(|errno| self.error("write", errno))?;
        let metadata = Metadata::from(&fstat(&file).map_err(|errno| self.error("inspect", errno))?);
        match metadata.kind {
            FileKind::File => Ok(Some(Target::Existing { file: File::from(file), metadata, seen: None })),
            kind => Err(PathError::SpecialFile { path: self.to_string(), kind }),
        }
    }

    /// Creators of one file take turns by locking its directory.
    fn lock_directory(&self, found: &Found, deadline: Instant) -> Result<Option<Target>, PathError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
        let directory = match beneath::open_name(found.directory.as_fd(), Path::new("."), flags) {
            Ok(directory) => directory,
            Err(Errno::ACCESS) => return Ok(Some(Target::Missing { _directory: None })),
            Err(errno) => return Err(self.error("open the directory of", errno)),
        };
        let locked = self.wait(&directory, deadline)?;
        match statat(&found.directory, found.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(Some(Target::Missing { _directory: locked.then_some(directory) })),
            Ok(_) => Ok(None),
            Err(errno) => Err(self.error("inspect", errno)),
        }
    }

    /// Waits for the lock; `false` if the file system has none.
    fn wait(&self, file: &OwnedFd, deadline: Instant) -> Result<bool, PathError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() >= deadline => {
                    return Err(PathError::Locked { path: self.to_string() });
                }
                Err(Errno::WOULDBLOCK) => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                // Some file systems have no locks, others none for files that are open for reading only.
                Err(Errno::NOLCK | Errno::NOSYS | Errno::NOTSUP | Errno::INVAL | Errno::BADF) => {
                    return Ok(false);
                }
                Err(errno) => return Err(self.error("lock", errno)),
            }
        }
    }
}

/// A lock needs the file open, no matter how; a file that cannot be read can still be overwritten.
fn open_for_lock(found: &Found) -> rustix::io::Result<OwnedFd> {
    let open = |flags| beneath::open_name(found.directory.as_fd(), found.name(), flags | CAUTIOUS);
    match open(OFlags::RDONLY) {
        Err(Errno::ACCESS) => open(OFlags::WRONLY),
        other => other,
    }
}

/// Replacing needs the right to write the directory only; we do not use that to get around a file's own mode.
fn check_writable(found: &Found) -> rustix::io::Result<()> {
    match accessat(&found.directory, found.name(), Permission::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::NOSYS | Errno::INVAL) => Ok(()),
        other => other,
    }
}

impl WriteLock {
    /// The file that is locked: where the asked path leads, behind every symbolic link.
    pub fn path(&self) -> &JailPath {
        &self.path
    }

    /// Whether there is a file; if not, [`WriteLock::replace`] creates it.
    pub fn exists(&self) -> bool {
        matches!(self.target, Target::Existing { .. })
    }

    /// What is known about the file, from when it was locked or last replaced.
    pub fn metadata(&self) -> Option<&Metadata> {
        match &self.target {
            Target::Existing { metadata, .. } => Some(metadata),
            Target::Missing { .. } => None,
        }
    }

    /// The whole content, or `None` if there is no file.
    ///
    /// A change by a program that takes no locks is noticed from here on: [`WriteLock::replace`] then refuses.
    ///
    /// # Errors
    ///
    /// [`PathError::Permission`] for a file that can be written but not read.
    pub fn contents(&mut self) -> Result<Option<Vec<u8>>, PathError> {
        let shown = self.asked.to_string();
        let Some(file) = self.file()? else { return Ok(None) };
        let mut bytes = Vec::new();
        read_all(file, &mut bytes).map_err(|source| PathError::from_io(shown, "read", source))?;
        Ok(Some(bytes))
    }

    /// The file for reading, where it is too large for [`WriteLock::contents`]; `None` if there is none. Changes are
    /// noticed from here on as well.
    ///
    /// # Errors
    ///
    /// If it cannot be inspected.
    pub fn file(&mut self) -> Result<Option<&File>, PathError> {
        match &mut self.target {
            Target::Missing { .. } => Ok(None),
            Target::Existing { file, seen, .. } => {
                let now = fstat(&*file).map_err(|errno| self.asked.error("inspect", errno))?;
                seen.get_or_insert(Stamp::of(&Metadata::from(&now)));
                Ok(Some(file))
            }
        }
    }
}

/// Reads from the beginning, wherever the file's own position is.
fn read_all(file: &File, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let expected = file.metadata()?.len();
    bytes.resize(usize::try_from(expected).unwrap_or(0).saturating_add(1), 0);
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            bytes.resize(bytes.len().saturating_mul(2), 0);
        }
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(())
}
