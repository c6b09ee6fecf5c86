//! Giving a locked file new content, all at once.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, fallocate, fchmod, fstat, fsync, renameat,
    renameat_with, statat,
};
use rustix::io::Errno;

use crate::lock::{Stamp, Target, WriteLock};
use crate::metadata::permissions;
use crate::path::{ATTEMPTS, CAUTIOUS};
use crate::preserve::copy_attributes;
use crate::temporary::{Temporary, anonymous, is_named, sweep};
use crate::{JailPath, Metadata, PathError, beneath};

/// What [`WriteLock::replace`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// Whether there was no file before.
    pub created: bool,
    /// Whether the file was written in place, where readers can see it half written, because it could not be swapped.
    pub in_place: bool,
    /// The file as it is now.
    pub metadata: Metadata,
    /// What a caller should know: what could not be kept, and why something was done otherwise than usual.
    pub notes: Vec<String>,
}

/// New content for a locked file, complete and durable, that has not taken its place yet. Dropped, it is gone.
#[derive(Debug)]
pub struct Staged {
    content: Content,
    metadata: Metadata,
    in_place: bool,
    notes: Vec<String>,
}

impl Staged {
    /// The file as it will be, though its inode may be another.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Gives the file other permission bits than it would have, at most `0o7777`.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn set_mode(&mut self, mode: u32) -> io::Result<()> {
        if self.in_place {
            self.metadata.mode = mode;
        } else if let Content::Beside(temporary) = &mut self.content {
            let file = temporary.file()?;
            fchmod(&*file, permissions(mode))?;
            fsync(&*file)?;
            self.metadata = Metadata::from(&fstat(&*file)?);
        }
        Ok(())
    }

    /// Whether readers, and whoever looks after a kill, may see the file half written.
    pub fn in_place(&self) -> bool {
        self.in_place
    }
}

/// Where new content waits.
#[derive(Debug)]
enum Content {
    /// Beside the target, ready to take its place.
    Beside(Temporary),
    /// Somewhere else, to be copied into the target.
    Elsewhere(File),
}

/// Why new content could not be swapped in.
enum SwapError {
    /// Not possible here; it can still be copied.
    Impossible(Temporary, Errno),
    Failed(PathError),
}

impl WriteLock {
    /// Gives the file the content `bytes`, or creates it with that.
    ///
    /// Readers see the old content or the new. Owner, extended attributes with access control list, and mode stay; a
    /// new file gets what the process's umask (or the directory's default list) leaves of 0666. A file with several
    /// names, or in a directory that takes no new files, is written in place. The lock is held on, on the new file.
    ///
    /// # Errors
    ///
    /// The old content is untouched then. [`PathError::Changed`] if a program that takes no locks changed the file
    /// since it was locked or read; [`PathError::Exists`] if such a program created it.
    pub fn replace(&mut self, bytes: &[u8]) -> Result<Replaced, PathError> {
        self.replace_with(|file| file.write_all(bytes))
    }

    /// [`WriteLock::replace`] with content that `write` puts into an empty file.
    ///
    /// # Errors
    ///
    /// As [`WriteLock::replace`]; what `write` fails with becomes [`PathError::Io`].
    pub fn replace_with(
        &mut self,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<Replaced, PathError> {
        let staged = self.stage_with(write)?;
        self.put(staged)
    }

    /// The first half of [`WriteLock::replace`]: all that can fail for want of space or rights. The second is
    /// [`WriteLock::put`].
    ///
    /// # Errors
    ///
    /// As [`WriteLock::replace`].
    pub fn stage(&self, bytes: &[u8]) -> Result<Staged, PathError> {
        self.stage_with(|file| file.write_all(bytes))
    }

    /// [`WriteLock::stage`] with content that `write` puts into an empty file.
    ///
    /// # Errors
    ///
    /// As [`WriteLock::replace_with`].
    pub fn stage_with(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Staged, PathError> {
        let task = self.task();
        match &self.target {
            Target::Missing { .. } => task.stage_new(write),
            Target::Existing { file, seen, .. } => task.stage_over(write, file, *seen),
        }
    }

    /// Puts what was staged for this file in its place, all at once.
    ///
    /// # Errors
    ///
    /// As [`WriteLock::replace`].
    pub fn put(&mut self, staged: Staged) -> Result<Replaced, PathError> {
        let Self { asked, directory, name, target, notes, .. } = self;
        let task = Replacement { asked, directory, name: Path::new(name) };
        let mut replaced = match target {
            Target::Missing { .. } => task.create(staged, target)?,
            Target::Existing { .. } => task.overwrite(staged, target)?,
        };
        task.settle_directory();
        replaced.notes.append(notes);
        Ok(replaced)
    }

    fn task(&self) -> Replacement<'_> {
        Replacement { asked: &self.asked, directory: &self.directory, name: Path::new(&self.name) }
    }
}

struct Replacement<'a> {
    asked: &'a JailPath,
    directory: &'a Arc<OwnedFd>,
    name: &'a Path,
}

impl Replacement<'_> {
    fn stage_new(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Staged, PathError> {
        // The mode of a new file from the start: the kernel takes umask and default access control list off it.
        let temporary = Temporary::create(self.directory, Mode::from_raw_mode(0o666));
        let mut temporary = temporary.map_err(|errno| self.error("create", errno))?;
        let file = temporary.file().map_err(|errno| self.error("create", errno))?;
        self.fill(file, write)?;
        fsync(&*file).map_err(|errno| self.error("create", errno))?;
        let metadata = self.inspect(file)?;
        Ok(Staged { content: Content::Beside(temporary), metadata, in_place: false, notes: Vec::new() })
    }

    fn stage_over(
        &self,
        write: impl FnOnce(&mut File) -> io::Result<()>,
        old: &File,
        seen: Option<Stamp>,
    ) -> Result<Staged, PathError> {
        let mut content = self.new_content()?;
        let file = match &mut content {
            Content::Beside(temporary) => temporary.file().map_err(|errno| self.error("write", errno))?,
            Content::Elsewhere(file) => file,
        };
        self.fill(file, write)?;
        let before = self.unchanged(old, seen)?;
        let in_place = matches!(content, Content::Elsewhere(_)) || before.nlink > 1;
        if in_place {
            return Ok(Staged { content, metadata: before, in_place, notes: Vec::new() });
        }
        let Content::Beside(temporary) = &mut content else { return Err(self.error("write", Errno::BADF)) };
        let new = temporary.file().map_err(|errno| self.error("write", errno))?;
        let notes = copy_attributes(old, &before, new)
            .map_err(|errno| self.error("keep the attributes of", errno))?;
        fsync(&*new).map_err(|errno| self.error("write", errno))?;
        let metadata = self.inspect(new)?;
        Ok(Staged { content, metadata, in_place, notes })
    }

    fn create(&self, staged: Staged, target: &mut Target) -> Result<Replaced, PathError> {
        let Content::Beside(temporary) = staged.content else {
            return Err(self.error("create", Errno::BADF));
        };
        self.put_new(temporary.name()).map_err(|errno| self.error("create", errno))?;
        let file = temporary.keep().map_err(|errno| self.error("create", errno))?;
        let metadata = self.inspect(&file)?;
        *target = Target::Existing { file, metadata: metadata.clone(), seen: None };
        Ok(Replaced { created: true, in_place: false, metadata, notes: Vec::new() })
    }

    /// Gives the temporary file its name, unless that is taken.
    fn put_new(&self, temporary: &Path) -> rustix::io::Result<()> {
        match renameat_with(self.directory, temporary, self.directory, self.name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // A second name is as exclusive, where the file system cannot rename so.
                rustix::fs::linkat(self.directory, temporary, self.directory, self.name, AtFlags::empty())?;
                rustix::fs::unlinkat(self.directory, temporary, AtFlags::empty())
            }
            other => other,
        }
    }

    fn overwrite(&self, staged: Staged, target: &mut Target) -> Result<Replaced, PathError> {
        let Target::Existing { file: old, seen, .. } = &*target else {
            return Err(self.error("write", Errno::BADF));
        };
        let links = self.inspect(old)?.nlink;
        let mut temporary = match staged.content {
            Content::Elsewhere(mut file) => {
                let note = "its directory takes no new files, so it was written in place: a reader may have seen it half written";
                return self.overwrite_in_place(&mut file, note.to_owned(), staged.metadata.mode, target);
            }
            Content::Beside(temporary) => temporary,
        };
        let mode = staged.metadata.mode;
        if staged.in_place || links > 1 {
            let note = format!(
                "it has {links} names (hard links), which were kept by writing in place: a reader may have seen it half written"
            );
            let file = temporary.file().map_err(|errno| self.error("write", errno))?;
            return self.overwrite_in_place(file, note, mode, target);
        }
        match self.swap(temporary, old, *seen) {
            Ok(file) => {
                let metadata = self.inspect(&file)?;
                *target = Target::Existing { file, metadata: metadata.clone(), seen: None };
                Ok(Replaced { created: false, in_place: false, metadata, notes: staged.notes })
            }
            Err(SwapError::Failed(error)) => Err(error),
            Err(SwapError::Impossible(mut temporary, errno)) => {
                let note = format!(
                    "it could not be swapped for a new file ({}), so it was written in place: a reader may have seen it half written",
                    io::Error::from(errno)
                );
                let file = temporary.file().map_err(|errno| self.error("write", errno))?;
                self.overwrite_in_place(file, note, mode, target)
            }
        }
    }

    fn new_content(&self) -> Result<Content, PathError> {
        match Temporary::create(self.directory, Mode::from_raw_mode(0o600)) {
            Ok(temporary) => Ok(Content::Beside(temporary)),
            Err(Errno::ACCESS | Errno::PERM) => match anonymous() {
                Ok(file) => Ok(Content::Elsewhere(file)),
                Err(source) => Err(self.io_error("make a temporary file for", source)),
            },
            Err(errno) => Err(self.error("make a temporary file beside", errno)),
        }
    }

    fn fill(
        &self,
        file: &mut File,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), PathError> {
        write(file).map_err(|source| self.io_error("write", source))
    }

    /// Exchanges the two files, looks at what came out, and puts it back if it is not what was read.
    fn swap(&self, temporary: Temporary, old: &File, seen: Option<Stamp>) -> Result<File, SwapError> {
        let failed = |errno| SwapError::Failed(self.error("write", errno));
        let before = self.unchanged(old, seen).map_err(SwapError::Failed)?;
        match self.exchange(&temporary) {
            Ok(()) => {
                let displaced = statat(self.directory, temporary.name(), AtFlags::SYMLINK_NOFOLLOW);
                match displaced.is_ok_and(|stat| is_same(&Metadata::from(&stat), &before, seen)) {
                    true => temporary.keep_without_name().map_err(failed),
                    false => Err(SwapError::Failed(self.put_back(temporary))),
                }
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match renameat(self.directory, temporary.name(), self.directory, self.name) {
                    Ok(()) => temporary.keep().map_err(failed),
                    Err(errno) => Err(self.impossible(temporary, errno)),
                }
            }
            Err(errno) => Err(self.impossible(temporary, errno)),
        }
    }

    fn exchange(&self, temporary: &Temporary) -> rustix::io::Result<()> {
        renameat_with(self.directory, temporary.name(), self.directory, self.name, RenameFlags::EXCHANGE)
    }

    /// Gives the name back to a file of some other program that was displaced. If that program, or a third, put the
    /// next file there meanwhile, that one comes out instead of what we had put there, and is given the name in turn:
    /// the newest wins, as it would have without us.
    fn put_back(&self, temporary: Temporary) -> PathError {
        let mut at_name = temporary.handle();
        for _ in 0..ATTEMPTS {
            // Held open, so that its inode number cannot come to mean another file.
            let theirs = beneath::open_name(self.directory.as_fd(), temporary.name(), beneath::PINNED);
            match self.exchange(&temporary) {
                // The file was removed: there is nothing to give back.
                Err(Errno::NOENT) => return self.changed(),
                Err(errno) => {
                    // Better a file too many than the only copy of theirs lost.
                    let _ = temporary.keep();
                    return self.error("put back", errno);
                }
                Ok(()) => {}
            }
            let came_out = |file| is_named(self.directory.as_fd(), temporary.name(), file).unwrap_or(false);
            if at_name.is_ok_and(came_out) {
                return self.changed();
            }
            at_name = theirs;
        }
        let _ = temporary.keep();
        self.changed()
    }

    fn impossible(&self, temporary: Temporary, errno: Errno) -> SwapError {
        match errno {
            // A sticky directory, or a file that is mounted on.
            Errno::ACCESS | Errno::PERM | Errno::BUSY => SwapError::Impossible(temporary, errno),
            Errno::NOENT => SwapError::Failed(self.changed()),
            other => SwapError::Failed(self.error("write", other)),
        }
    }

    /// Copies the new content over the old, after making sure that there is room for it.
    fn overwrite_in_place(
        &self,
        staged: &mut File,
        note: String,
        mode: u32,
        target: &mut Target,
    ) -> Result<Replaced, PathError> {
        let Target::Existing { file: old, seen, metadata } = target else {
            return Err(self.error("write", Errno::BADF));
        };
        let before = self.unchanged(old, *seen)?;
        let flags = OFlags::RDWR | CAUTIOUS;
        let opened = match beneath::open_name(self.directory.as_fd(), self.name, flags) {
            Err(Errno::ACCESS) => {
                beneath::open_name(self.directory.as_fd(), self.name, OFlags::WRONLY | CAUTIOUS)
            }
            other => other,
        };
        let mut file = File::from(opened.map_err(|errno| self.error("write", errno))?);
        if Metadata::from(&fstat(&file).map_err(|errno| self.error("inspect", errno))?).id() != before.id() {
            return Err(self.changed());
        }
        let size = self.inspect(staged)?.size;
        reserve(&file, before.size, size).map_err(|errno| self.error("write", errno))?;
        let backup = backup(&mut file).ok();
        if let Err(source) = copy_over(staged, &mut file) {
            if let Some(mut backup) = backup {
                // The first error is the one to report; if this fails too, there is nothing left to try.
                let _ = copy_over(&mut backup, &mut file);
            }
            return Err(self.io_error("write", source));
        }
        let mut notes = vec![note];
        *metadata = self.inspect(&file)?;
        if metadata.mode != mode {
            // The kernel takes the set-id bits off a file that is written.
            if fchmod(&file, permissions(mode)).is_err() {
                notes.push(format!("its mode {mode:o} could not be kept; it is now {:o}", metadata.mode));
            }
            *metadata = self.inspect(&file)?;
        }
        *seen = None;
        Ok(Replaced { created: false, in_place: true, metadata: metadata.clone(), notes })
    }

    /// The file as it is now, if its name and content are still what was locked and read.
    fn unchanged(&self, old: &File, seen: Option<Stamp>) -> Result<Metadata, PathError> {
        let now = self.inspect(old)?;
        let named =
            is_named(self.directory.as_fd(), self.name, old).map_err(|errno| self.error("inspect", errno))?;
        match named && seen.is_none_or(|seen| seen == Stamp::of(&now)) {
            true => Ok(now),
            false => Err(self.changed()),
        }
    }

    /// Makes the new name survive a power failure, and removes what killed writers left beside it. Where the
    /// directory cannot be read, neither can be done, and the file is as it should be all the same.
    fn settle_directory(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
        if let Ok(directory) = beneath::open_name(self.directory.as_fd(), Path::new("."), flags) {
            let _ = fsync(&directory);
            let _ = sweep(&directory);
        }
    }

    fn inspect(&self, file: &File) -> Result<Metadata, PathError> {
        fstat(file).map(|stat| Metadata::from(&stat)).map_err(|errno| self.error("inspect", errno))
    }

    fn changed(&self) -> PathError {
        PathError::Changed { path: self.asked.to_string() }
    }

    fn error(&self, action: &'static str, errno: Errno) -> PathError {
        self.asked.error(action, errno)
    }

    fn io_error(&self, action: &'static str, source: io::Error) -> PathError {
        PathError::from_io(self.asked.to_string(), action, source)
    }
}

/// Whether what was displaced is the file that was locked, with the content that was read. Renaming changes `changed`.
fn is_same(displaced: &Metadata, before: &Metadata, seen: Option<Stamp>) -> bool {
    let content = |seen: Stamp| displaced.size == seen.size && displaced.modified == seen.modified;
    displaced.id() == before.id() && seen.is_none_or(content)
}

/// Takes the space a longer content needs before a byte of the old one is lost.
fn reserve(file: &File, old_size: u64, new_size: u64) -> rustix::io::Result<()> {
    if new_size <= old_size {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::empty(), old_size, new_size - old_size) {
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        Err(errno) => {
            let _ = rustix::fs::ftruncate(file, old_size);
            Err(errno)
        }
        Ok(()) => Ok(()),
    }
}

fn backup(file: &mut File) -> io::Result<File> {
    let mut copy = anonymous()?;
    file.rewind()?;
    io::copy(file, &mut copy)?;
    Ok(copy)
}

fn copy_over(from: &mut File, to: &mut File) -> io::Result<()> {
    from.rewind()?;
    to.rewind()?;
    let size = io::copy(from, to)?;
    to.set_len(size)?;
    to.sync_all()
}
