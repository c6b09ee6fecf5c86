//! Taking turns at writing one file.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Access as Permission, AtFlags, FlockOperation, OFlags, accessat, flock, fstat, statat};
use rustix::io::Errno;

use crate::follow::{Found, Last};
use crate::path::CAUTIOUS;
use crate::rules::Access;
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
    pub(crate) directory: Arc<OwnedFd>,
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
    Missing { _directory: Option<Arc<OwnedFd>> },
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
                return Ok(self.locked(found, target, notes));
            }
            if Instant::now() >= deadline {
                return Err(PathError::Locked { path: self.to_string() });
            }
        }
    }

    fn locked(&self, found: Found, target: Target, notes: Vec<String>) -> WriteLock {
        let Found { place, directory, name, .. } = found;
        let (asked, path, directory) = (self.clone(), self.at(place), Arc::new(directory));
        WriteLock { asked, path, directory, name, target, notes }
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

    /// Creators of one file take turns by locking its directory. `None` if there is such a file by now.
    fn lock_directory(&self, found: &Found, deadline: Instant) -> Result<Option<Target>, PathError> {
        let directory = self.hold_directory(found, deadline)?;
        Ok(self.is_missing(found)?.then_some(Target::Missing { _directory: directory }))
    }

    /// The locked directory; `None` if this process may not read it, or its file system has no locks.
    fn hold_directory(&self, found: &Found, deadline: Instant) -> Result<Option<Arc<OwnedFd>>, PathError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
        match beneath::open_name(found.directory.as_fd(), Path::new("."), flags) {
            Ok(directory) => Ok(self.wait(&directory, deadline)?.then(|| Arc::new(directory))),
            Err(Errno::ACCESS) => Ok(None),
            Err(errno) => Err(self.error("open the directory of", errno)),
        }
    }

    fn is_missing(&self, found: &Found) -> Result<bool, PathError> {
        match statat(&found.directory, found.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(true),
            Ok(_) => Ok(false),
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

/// Locks several files, or the rights to create them, as [`JailPath::lock_for_write`] does for one.
///
/// They are taken in one order, whatever order they are given in: first the directories of files that do not exist,
/// then the files, each by device and inode. So any number of callers that lock several files come to an end.
///
/// # Errors
///
/// As [`JailPath::lock_for_write`]; [`PathError::SameFile`] if two of the paths are one file.
pub fn lock_all(paths: &[JailPath]) -> Result<Vec<WriteLock>, PathError> {
    let deadline = Instant::now() + DEFAULT_WAIT;
    loop {
        if let Some(locks) = try_lock_all(paths, deadline)? {
            return Ok(locks);
        }
        if Instant::now() >= deadline {
            let path = paths.first().map(ToString::to_string).unwrap_or_default();
            return Err(PathError::Locked { path });
        }
    }
}

/// What is locked for one path: a file itself, else the directory it would be in.
type Lockable = (bool, (u64, u64));

/// `None` if a name came to mean something else while we waited.
fn try_lock_all(paths: &[JailPath], deadline: Instant) -> Result<Option<Vec<WriteLock>>, PathError> {
    let mut wanted = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        let found = path.find_for_new(Last::Follow)?;
        let key: Lockable = match &found.metadata {
            Some(metadata) => (true, metadata.id()),
            None => {
                let stat = fstat(&found.directory).map_err(|errno| path.error("inspect", errno))?;
                (false, Metadata::from(&stat).id())
            }
        };
        wanted.push((key, index, path, found));
    }
    wanted.sort_by_key(|(key, index, ..)| (*key, *index));
    refuse_the_same_file(&wanted)?;

    let mut locks: Vec<(usize, WriteLock)> = Vec::with_capacity(wanted.len());
    let mut held: Option<(Lockable, Option<Arc<OwnedFd>>)> = None;
    for (key, index, path, found) in wanted {
        let mut notes = Vec::new();
        let target = if key.0 {
            path.lock_file(&found, deadline, &mut notes)?
        } else {
            // One directory is locked once, for all that are to be created in it.
            let directory = match &held {
                Some((known, directory)) if *known == key => directory.clone(),
                _ => path.hold_directory(&found, deadline)?,
            };
            held = Some((key, directory.clone()));
            path.is_missing(&found)?.then_some(Target::Missing { _directory: directory })
        };
        let Some(target) = target else { return Ok(None) };
        locks.push((index, path.locked(found, target, notes)));
    }
    locks.sort_by_key(|(index, _)| *index);
    Ok(Some(locks.into_iter().map(|(_, lock)| lock).collect()))
}

fn refuse_the_same_file(wanted: &[(Lockable, usize, &JailPath, Found)]) -> Result<(), PathError> {
    for (position, (key, _, path, found)) in wanted.iter().enumerate() {
        let same = |(other_key, _, _, other): &&(Lockable, usize, &JailPath, Found)| {
            key == other_key && (key.0 || found.name == other.name)
        };
        if let Some((_, _, other, _)) = wanted[..position].iter().find(same) {
            return Err(PathError::SameFile { path: path.to_string(), other: other.to_string() });
        }
    }
    Ok(())
}

/// Keeps writers out of a file while it is moved or removed, until dropped.
#[derive(Debug)]
pub struct Held {
    _file: Option<OwnedFd>,
}

impl JailPath {
    /// Locks the file of this name (not what a symbolic link leads to) against every [`WriteLock`].
    ///
    /// What takes no content (directories, links, special files) and what this process may not open is not locked,
    /// which is no error: moving and removing need no lock to be safe, only to be polite.
    ///
    /// # Errors
    ///
    /// [`PathError::Locked`] if a writer does not let go; any [`PathError`] of finding it.
    pub fn hold(&self) -> Result<Held, PathError> {
        let deadline = Instant::now() + DEFAULT_WAIT;
        loop {
            let found = self.find(Last::Keep, Access::Read)?;
            if !found.metadata.as_ref().is_some_and(|metadata| metadata.kind == FileKind::File) {
                return Ok(Held { _file: None });
            }
            let Ok(file) = open_for_lock(&found) else { return Ok(Held { _file: None }) };
            self.wait(&file, deadline)?;
            if is_named(found.directory.as_fd(), found.name(), &file).unwrap_or(false) {
                return Ok(Held { _file: Some(file) });
            }
            if Instant::now() >= deadline {
                return Err(PathError::Locked { path: self.to_string() });
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
