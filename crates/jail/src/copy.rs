//! Copying files and whole directories, so that no link is followed and nothing is overwritten.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid, chownat, copy_file_range, fstat, fsync,
    ftruncate, futimens, mkdirat, openat, readlinkat, seek, symlinkat, utimensat,
};
use rustix::io::{Errno, Result as Outcome};

use crate::path::CAUTIOUS;
use crate::preserve::copy_attributes;
use crate::rules::Access;
use crate::temporary::Temporary;
use crate::tree::{TreeError, TreeResult, inspect, names, open_below, system};
use crate::{FileKind, JailPath, Metadata, PathError, beneath};

/// How much is copied between two looks at whether it is still wanted.
const CHUNK: usize = 16 << 20;

/// Notes of one kind are not repeated beyond this many.
const MOST_NOTES: usize = 8;

/// What a copy has come to so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Entries that are no directories.
    pub files: u64,
    /// Directories, the top included.
    pub directories: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Files that share their blocks with the original until one of them is written.
    pub cloned: u64,
    /// What could not be kept, one sentence each.
    pub notes: Vec<String>,
}

impl Copied {
    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Asked before each entry and each chunk; an error ends the copy.
pub type Progress<'a> = dyn FnMut(&Copied) -> Result<(), PathError> + 'a;

/// Which of the attributes go along, and what is done where there is something already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A copy of its own: a new time.
    Copy,
    /// The thing itself in another place: times as well.
    Move,
    /// What is there stays, and only what is missing is added.
    Complete,
}

/// A complete copy under a temporary name beside its destination. Dropped, it is removed.
#[derive(Debug)]
pub struct StagedCopy {
    path: JailPath,
    to: JailPath,
    copy: Beside,
}

impl StagedCopy {
    /// What was copied.
    pub fn copied(&self) -> &Copied {
        &self.copy.copied
    }

    /// Where the copy is as yet.
    pub fn path(&self) -> &JailPath {
        &self.path
    }

    /// The name it is going to have.
    pub fn destination(&self) -> &JailPath {
        &self.to
    }

    /// Gives the copy its name, unless that is taken by now.
    ///
    /// # Errors
    ///
    /// [`PathError::Exists`]; as [`JailPath::rename`].
    pub fn put(self) -> Result<(), PathError> {
        self.path.rename(&self.to, false)?;
        self.copy.keep();
        self.to.settle();
        Ok(())
    }
}

impl JailPath {
    /// Copies the entry of this name with all that is beneath to a temporary name beside `to`.
    ///
    /// Modes, owners, extended attributes and links are kept, `times` only if asked for. Blocks are shared where the
    /// file system can. Anything that is no file, directory or symbolic link is refused.
    ///
    /// # Errors
    ///
    /// [`PathError::SpecialFile`]; [`PathError::Invalid`] for a copy into itself; [`PathError::Denied`] and
    /// [`PathError::Protected`] for anything beneath on either side; what `progress` says; any [`PathError`] of
    /// finding either.
    pub fn stage_copy(
        &self,
        to: &Self,
        times: bool,
        progress: &mut Progress<'_>,
    ) -> Result<StagedCopy, PathError> {
        let from = self.find_entry(Access::Read)?;
        let real = self.at(from.place.clone());
        let target = to.find_for_new(crate::follow::Last::Keep)?;
        let to_real = to.at(target.place.clone());
        if to_real.is_below(&real) {
            return Err(PathError::Invalid {
                path: to.to_string(),
                reason: format!("it is inside `{self}`, which cannot be put into itself"),
            });
        }
        self.walk(&mut |entry| {
            let kind = entry.metadata().kind;
            let here = real.beneath(entry.relative());
            to_real.beneath(entry.relative()).check(Access::Write)?;
            match kind {
                FileKind::File | FileKind::Directory | FileKind::Symlink => Ok(()),
                kind => Err(PathError::SpecialFile { path: here.to_string(), kind }),
            }
        })?;
        let directory = Arc::new(target.directory);
        let source = Spot { directory: from.directory.as_fd(), name: &from.name };
        let manner = if times { Manner::Move } else { Manner::Copy };
        let copy = Beside::copy(&directory, source, manner, progress);
        let copy = copy.map_err(|error| error.into_path_error(self, "copy"))?;
        Ok(StagedCopy { path: to_real.sibling(&copy.name), to: to_real, copy })
    }
}

/// A complete copy under a temporary name in a directory. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Beside {
    name: OsString,
    copied: Copied,
    guard: Guard,
}

#[derive(Debug)]
enum Guard {
    Temporary(Temporary),
    /// A symbolic link, which cannot be locked.
    Link(Arc<OwnedFd>),
    Gone,
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Guard::Link(directory) = &self.guard {
            let _ = crate::tree::remove_all(directory.as_fd(), &self.name);
        }
    }
}

impl Beside {
    pub(crate) fn copy(
        directory: &Arc<OwnedFd>,
        source: Spot<'_>,
        manner: Manner,
        progress: &mut Progress<'_>,
    ) -> TreeResult<Self> {
        let error = system(Path::new(""));
        let guard = match inspect(source.directory, source.name).map_err(&error)?.kind {
            FileKind::Directory => Guard::Temporary(Temporary::create_directory(directory).map_err(&error)?),
            FileKind::Symlink => Guard::Link(directory.clone()),
            _ => Guard::Temporary(Temporary::create(directory, Mode::RUSR | Mode::WUSR).map_err(&error)?),
        };
        let name = match &guard {
            Guard::Temporary(temporary) => temporary.name().as_os_str().to_owned(),
            _ => Temporary::unused_name(),
        };
        let mut copier = Copier { manner, copied: Copied::default(), progress };
        let target = Spot { directory: directory.as_fd(), name: &name };
        match &guard {
            Guard::Temporary(_) => copier.onto(source, target)?,
            _ => copier.entry(source, target)?,
        }
        let copied = copier.copied;
        settle_tree(directory.as_fd(), &name, &copied);
        Ok(Self { name, copied, guard })
    }

    pub(crate) fn name(&self) -> &Path {
        Path::new(&self.name)
    }

    /// Leaves the copy where it is, under whatever name it has by now.
    pub(crate) fn keep(mut self) {
        if let Guard::Temporary(temporary) = std::mem::replace(&mut self.guard, Guard::Gone) {
            drop(temporary.keep());
        }
    }
}

/// Makes a copied tree survive a power failure.
pub(crate) fn settle_tree(directory: BorrowedFd<'_>, name: &OsStr, copied: &Copied) {
    let one = copied.files + copied.directories <= 1;
    if let Ok(top) = beneath::open_name(directory, Path::new(name), OFlags::RDONLY | CAUTIOUS) {
        // One flush for all where there are many. A file system that cannot has done what it can.
        let _ = if one { fsync(&top) } else { sync_all(&top) };
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn sync_all(top: &OwnedFd) -> Outcome<()> {
    rustix::fs::syncfs(top)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn sync_all(_: &OwnedFd) -> Outcome<()> {
    rustix::fs::sync();
    Ok(())
}

/// A name in an open directory.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub(crate) directory: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
}

impl Spot<'_> {
    fn path(&self) -> &Path {
        Path::new(self.name)
    }
}

pub(crate) struct Copier<'a, 'p> {
    pub(crate) manner: Manner,
    pub(crate) copied: Copied,
    pub(crate) progress: &'a mut Progress<'p>,
}

impl<'a, 'p> Copier<'a, 'p> {
    pub(crate) fn completing(progress: &'a mut Progress<'p>) -> Self {
        Self { manner: Manner::Complete, copied: Copied::default(), progress }
    }

    /// Copies one entry, and what is beneath, to a name that nothing has.
    pub(crate) fn entry(&mut self, from: Spot<'_>, to: Spot<'_>) -> TreeResult<()> {
        self.at(from, to, Path::new(""), 0, false)
    }

    /// Copies into the empty file or directory that has the name already.
    fn onto(&mut self, from: Spot<'_>, to: Spot<'_>) -> TreeResult<()> {
        self.at(from, to, Path::new(""), 0, true)
    }

    fn at(
        &mut self,
        from: Spot<'_>,
        to: Spot<'_>,
        relative: &Path,
        depth: usize,
        exists: bool,
    ) -> TreeResult<()> {
        (self.progress)(&self.copied).map_err(TreeError::Visit)?;
        let error = system(relative);
        let metadata = inspect(from.directory, from.name).map_err(&error)?;
        let present = self.manner == Manner::Complete && inspect(to.directory, to.name).is_ok();
        match metadata.kind {
            FileKind::Directory => self.directory(from, to, relative, depth, exists || present),
            _ if present => Ok(()),
            FileKind::Symlink => self.link(from, to, &metadata).map_err(error),
            FileKind::File => self.file(from, to, relative, exists),
            _ => Err(TreeError::System(relative.to_owned(), Errno::INVAL)),
        }
    }

    fn directory(
        &mut self,
        from: Spot<'_>,
        to: Spot<'_>,
        relative: &Path,
        depth: usize,
        exists: bool,
    ) -> TreeResult<()> {
        let error = system(relative);
        if !exists {
            mkdirat(to.directory, to.path(), Mode::RWXU).map_err(&error)?;
        }
        let source = open_below(from.directory, from.name, depth).map_err(&error)?;
        let target = open_below(to.directory, to.name, depth).map_err(&error)?;
        for name in names(&source).map_err(&error)? {
            let below = Spot { directory: source.as_fd(), name: &name };
            let copy = Spot { directory: target.as_fd(), name: &name };
            self.at(below, copy, &relative.join(&name), depth + 1, false)?;
        }
        self.copied.directories += 1;
        let metadata = Metadata::from(&fstat(&source).map_err(&error)?);
        self.attributes(&File::from(source), &metadata, &File::from(target)).map_err(error)
    }

    fn link(&mut self, from: Spot<'_>, to: Spot<'_>, metadata: &Metadata) -> Outcome<()> {
        let target = readlinkat(from.directory, from.path(), Vec::new())?;
        symlinkat(&target, to.directory, to.path())?;
        let (uid, gid) = (Uid::from_raw(metadata.uid), Gid::from_raw(metadata.gid));
        // Nothing asks who owns a link.
        let _ = chownat(to.directory, to.path(), Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW);
        if self.manner != Manner::Copy {
            let _ = utimensat(to.directory, to.path(), &times(metadata), AtFlags::SYMLINK_NOFOLLOW);
        }
        self.copied.files += 1;
        Ok(())
    }

    fn file(&mut self, from: Spot<'_>, to: Spot<'_>, relative: &Path, exists: bool) -> TreeResult<()> {
        let error = system(relative);
        let source = beneath::open_name(from.directory, from.path(), OFlags::RDONLY | CAUTIOUS);
        let source = File::from(source.map_err(&error)?);
        let metadata = Metadata::from(&fstat(&source).map_err(&error)?);
        if metadata.kind != FileKind::File {
            return Err(TreeError::System(relative.to_owned(), Errno::INVAL));
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = if exists { flags } else { flags | OFlags::CREATE | OFlags::EXCL };
        let target = openat(to.directory, to.path(), flags, Mode::RUSR | Mode::WUSR).map_err(&error)?;
        let target = File::from(target);
        self.content(&source, &target, metadata.size, relative)?;
        if metadata.nlink > 1 && self.manner == Manner::Move {
            self.copied.note("files with several names (hard links) became separate files".to_owned());
        }
        self.attributes(&source, &metadata, &target).map_err(error)?;
        self.copied.files += 1;
        Ok(())
    }

    fn content(&mut self, from: &File, to: &File, size: u64, relative: &Path) -> TreeResult<()> {
        let error = system(relative);
        if clone_blocks(from, to).is_ok() {
            self.copied.bytes += size;
            self.copied.cloned += 1;
            return (self.progress)(&self.copied).map_err(TreeError::Visit);
        }
        let mut offset = 0;
        while let Some((data, end)) = next_data(from, offset).map_err(&error)? {
            offset = data;
            while offset < end {
                let want = CHUNK.min(usize::try_from(end - offset).unwrap_or(CHUNK));
                let count = copy_some(from, to, offset, want).map_err(&error)?;
                if count == 0 {
                    break;
                }
                offset += count as u64;
                self.copied.bytes += count as u64;
                (self.progress)(&self.copied).map_err(TreeError::Visit)?;
            }
            if offset < end {
                break;
            }
        }
        // What is left out was a hole.
        let length = Metadata::from(&fstat(from).map_err(&error)?).size;
        ftruncate(to, length).map_err(error)
    }

    fn attributes(&mut self, old: &File, metadata: &Metadata, new: &File) -> Outcome<()> {
        for note in copy_attributes(old, metadata, new)? {
            self.copied.note(note);
        }
        if self.manner != Manner::Copy {
            futimens(new, &times(metadata))?;
        }
        Ok(())
    }
}

fn times(metadata: &Metadata) -> Timestamps {
    let modified = metadata.modified.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time = Timespec {
        tv_sec: i64::try_from(modified.as_secs()).unwrap_or(0),
        tv_nsec: modified.subsec_nanos().into(),
    };
    Timestamps { last_access: time, last_modification: time }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn clone_blocks(from: &File, to: &File) -> Outcome<()> {
    rustix::fs::ioctl_ficlone(to, from)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn clone_blocks(_: &File, _: &File) -> Outcome<()> {
    Err(Errno::NOTSUP)
}

/// The next stretch of content from `offset` on, where a file system says what is a hole.
fn next_data(file: &File, offset: u64) -> Outcome<Option<(u64, u64)>> {
    let whole = || {
        let size = Metadata::from(&fstat(file)?).size;
        Ok((offset < size).then_some((offset, size)))
    };
    match seek(file, SeekFrom::Data(offset)) {
        Ok(data) => Ok(Some((data, seek(file, SeekFrom::Hole(data))?))),
        Err(Errno::NXIO) => Ok(None),
        Err(_) => whole(),
    }
}

/// Copies up to `want` bytes at `offset`, inside the kernel where it can.
fn copy_some(from: &File, to: &File, offset: u64, want: usize) -> Outcome<usize> {
    let (mut read_at, mut write_at) = (offset, offset);
    match copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), want) {
        Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::BADF) => {
            copy_by_hand(from, to, offset, want)
        }
        Err(Errno::INTR) => copy_some(from, to, offset, want),
        other => other,
    }
}

fn copy_by_hand(from: &File, to: &File, offset: u64, want: usize) -> Outcome<usize> {
    use std::os::unix::fs::FileExt;
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut buffer = vec![0; want.min(1 << 20)];
    let count = from.read_at(&mut buffer, offset).map_err(errno)?;
    to.write_all_at(&buffer[..count], offset).map_err(errno)?;
    Ok(count)
}
