//! A place below a root, and what can be done there.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fstat, mkdirat, readlinkat, unlinkat};
use rustix::io::Errno;

use crate::follow::{Found, Last};
use crate::roots::{Place, Root, Roots};
use crate::rules::Access;
use crate::spelling::escape_bytes;
use crate::{Directory, FileKind, Metadata, PathError, beneath, suggest};

/// How often an operation starts over because what it found changed before it could be used.
pub(crate) const ATTEMPTS: usize = 64;

/// Flags for opening something of which the type is not known for sure: never wait, never take a terminal.
pub(crate) const CAUTIOUS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A place below a root. Only [`Roots`] can make one.
///
/// It shows itself (`Display`) as a caller should see it: relative to the working directory if beneath it, else
/// absolute, bytes that are not UTF-8 as `\xNN`.
#[derive(Clone)]
pub struct JailPath {
    roots: Roots,
    place: Place,
    /// The working directory, as an absolute path by its root's configured name.
    base: Arc<Path>,
    note: Option<Arc<str>>,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    metadata: Metadata,
    resolved: JailPath,
}

impl JailPath {
    pub(crate) fn new(roots: Roots, place: Place, base: Arc<Path>) -> Self {
        Self { roots, place, base, note: None }
    }

    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.note = Some(note.into());
        self
    }

    pub(crate) fn base(&self) -> &Arc<Path> {
        &self.base
    }

    pub(crate) fn at(&self, place: Place) -> Self {
        Self::new(self.roots.clone(), place, self.base.clone())
    }

    pub(crate) fn roots(&self) -> &Roots {
        &self.roots
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// What was done to the spelling to find this, for the result's notes; `None` if it exists as it was written.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The root it is below.
    pub fn root(&self) -> &Root {
        self.roots.root(self.place.root)
    }

    /// The names from the root to here; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.place.relative
    }

    /// The whole path, beginning with the name its root was configured with.
    pub fn absolute(&self) -> PathBuf {
        self.roots.absolute(&self.place)
    }

    /// The whole path, beginning with its root's name without symbolic links: the same in every process, however the
    /// root is configured there.
    pub fn real_absolute(&self) -> PathBuf {
        crate::roots::join(self.root().real_path(), &self.place.relative)
    }

    /// The last name; `None` for a root.
    pub fn file_name(&self) -> Option<&OsStr> {
        self.place.relative.file_name()
    }

    /// The directory this is in; `None` for a root.
    pub fn parent(&self) -> Option<Self> {
        let relative = self.place.relative.parent()?.to_owned();
        Some(self.at(Place { relative, ..self.place.clone() }))
    }

    /// One name further down.
    ///
    /// # Errors
    ///
    /// [`PathError::Invalid`] for anything that is not one plain name.
    pub fn join(&self, name: impl AsRef<OsStr>) -> Result<Self, PathError> {
        let name = name.as_ref();
        let bytes = name.as_bytes();
        if matches!(bytes, b"" | b"." | b"..") || bytes.iter().any(|byte| matches!(byte, b'/' | 0)) {
            return Err(PathError::Invalid {
                path: escape_bytes(name),
                reason: "it is not the name of one directory entry".to_owned(),
            });
        }
        Ok(self.at(Place { relative: self.place.relative.join(name), ..self.place.clone() }))
    }

    /// What `path` names for someone in this directory: absolute, or relative to it.
    ///
    /// # Errors
    ///
    /// As [`Roots::resolve`].
    pub fn resolve(&self, path: &str) -> Result<Self, PathError> {
        self.roots.resolve(path, &self.absolute())
    }

    /// Whether a `deny` pattern covers the path as it is spelled. Opening asks about the place behind links as well.
    pub fn is_denied(&self) -> bool {
        self.roots.check_rules(&self.place, Access::Read, "").is_err()
    }

    /// Whether a `deny` or `protect` pattern covers the path as it is spelled.
    pub fn is_protected(&self) -> bool {
        self.roots.check_rules(&self.place, Access::Write, "").is_err()
    }

    /// The place behind every symbolic link, the last included; what does not exist stays as it is.
    ///
    /// # Errors
    ///
    /// [`PathError::OutsideRoot`], [`PathError::Denied`], [`PathError::LinkLoop`].
    pub fn resolved(&self) -> Result<Self, PathError> {
        let shown = self.to_string();
        let place = self.roots.follow(&self.place, Last::Follow, &shown)?;
        self.roots.check_rules(&place, Access::Read, &shown)?;
        Ok(self.at(place))
    }

    /// What is known about the file, following symbolic links.
    ///
    /// # Errors
    ///
    /// Any [`PathError`] of finding it.
    pub fn metadata(&self) -> Result<Metadata, PathError> {
        self.existing(Last::Follow, Access::Read).map(|(_, metadata)| metadata)
    }

    /// What is known about the entry itself, which may be a symbolic link.
    ///
    /// # Errors
    ///
    /// Any [`PathError`] of finding it.
    pub fn symlink_metadata(&self) -> Result<Metadata, PathError> {
        self.existing(Last::Keep, Access::Read).map(|(_, metadata)| metadata)
    }

    /// Whether there is an entry of this name, were it a symbolic link that leads nowhere.
    ///
    /// # Errors
    ///
    /// Any [`PathError`] of finding it but [`PathError::NotFound`] and [`PathError::NotADirectory`].
    pub fn exists(&self) -> Result<bool, PathError> {
        match self.find(Last::Keep, Access::Read) {
            Ok(found) => Ok(found.metadata.is_some()),
            Err(PathError::NotFound { .. } | PathError::NotADirectory { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// The text of a symbolic link, wherever that leads.
    ///
    /// # Errors
    ///
    /// [`PathError::Io`] if it is no link; any [`PathError`] of finding it.
    pub fn read_link(&self) -> Result<PathBuf, PathError> {
        let (found, _) = self.existing(Last::Keep, Access::Read)?;
        let target = readlinkat(&found.directory, found.name(), Vec::new())
            .map_err(|e| self.error("read the link", e))?;
        Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
    }

    /// Opens a regular file for reading, following symbolic links. Anything else is refused by its type, without
    /// waiting and without opening it.
    ///
    /// # Errors
    ///
    /// [`PathError::SpecialFile`], [`PathError::IsDirectory`], any [`PathError`] of finding it.
    pub fn open_read(&self) -> Result<OpenFile, PathError> {
        for _ in 0..ATTEMPTS {
            let (found, metadata) = self.existing(Last::Follow, Access::Read)?;
            self.require_file(metadata.kind)?;
            let file =
                match beneath::open_name(found.directory.as_fd(), found.name(), OFlags::RDONLY | CAUTIOUS) {
                    Ok(file) => file,
                    // Swapped for something else since it was looked at.
                    Err(Errno::LOOP | Errno::NXIO) => continue,
                    Err(errno) => return Err(self.error("open", errno)),
                };
            let metadata = Metadata::from(&fstat(&file).map_err(|errno| self.error("inspect", errno))?);
            self.require_file(metadata.kind)?;
            return Ok(OpenFile { file: File::from(file), metadata, resolved: self.at(found.place) });
        }
        Err(PathError::Changed { path: self.to_string() })
    }

    /// The whole content of a regular file.
    ///
    /// # Errors
    ///
    /// As [`JailPath::open_read`].
    pub fn read(&self) -> Result<Vec<u8>, PathError> {
        let mut bytes = Vec::new();
        let mut file = self.open_read()?;
        file.read_to_end(&mut bytes)
            .map_err(|source| PathError::from_io(self.to_string(), "read", source))?;
        Ok(bytes)
    }

    /// Opens a directory for listing, following symbolic links.
    ///
    /// # Errors
    ///
    /// [`PathError::NotDirectory`], any [`PathError`] of finding it.
    pub fn open_dir(&self) -> Result<Directory, PathError> {
        for _ in 0..ATTEMPTS {
            let (found, metadata) = self.existing(Last::Follow, Access::Read)?;
            if metadata.kind != FileKind::Directory {
                return Err(PathError::NotDirectory { path: self.to_string(), kind: metadata.kind });
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
            match beneath::open_name(found.directory.as_fd(), found.name(), flags) {
                Ok(handle) => return Ok(Directory::new(handle, self.at(found.place))),
                Err(Errno::LOOP | Errno::NOTDIR) => {}
                Err(errno) => return Err(self.error("list", errno)),
            }
        }
        Err(PathError::Changed { path: self.to_string() })
    }

    /// The entries of a directory, in no particular order, without `.` and `..`.
    ///
    /// # Errors
    ///
    /// As [`JailPath::open_dir`].
    pub fn read_dir(&self) -> Result<impl Iterator<Item = io::Result<crate::DirEntry>> + use<>, PathError> {
        self.open_dir()?.entries()
    }

    /// Makes one directory, with the mode the process's umask leaves.
    ///
    /// # Errors
    ///
    /// [`PathError::Exists`], [`PathError::NotFound`] if its parent is missing, any [`PathError`] of finding that.
    pub fn create_dir(&self) -> Result<(), PathError> {
        let found = self.find_for_new(Last::Keep)?;
        if found.metadata.is_some() {
            return Err(PathError::Exists { path: self.to_string() });
        }
        mkdirat(&found.directory, found.name(), Mode::from_raw_mode(0o777))
            .map_err(|e| self.error("create", e))
    }

    /// Makes a directory and those above it that are missing. Returns what was made, outermost first.
    ///
    /// # Errors
    ///
    /// [`PathError::NotADirectory`] if a file is in the way, any [`PathError`] of finding the place.
    pub fn create_dir_all(&self) -> Result<Vec<Self>, PathError> {
        let shown = self.to_string();
        self.roots.check_rules(&self.place, Access::Write, &shown)?;
        let mut made = Unwanted(Vec::new());
        let mut last = Errno::LOOP;
        for _ in 0..ATTEMPTS {
            let place = self.roots.follow(&self.place, Last::Follow, &shown)?;
            self.roots.check_rules(&place, Access::Write, &shown)?;
            match self.make_each(&place, &mut made.0) {
                Ok(()) => return Ok(std::mem::take(&mut made.0)),
                // A link, or what some kernels report for one; if it is a file, it is one the next time too.
                Err(errno @ (Errno::LOOP | Errno::NOTDIR)) => last = errno,
                Err(errno) => return Err(self.error("create", errno)),
            }
        }
        match last {
            Errno::NOTDIR => Err(PathError::NotADirectory { path: shown }),
            _ => Err(PathError::Changed { path: shown }),
        }
    }

    fn make_each(&self, place: &Place, made: &mut Vec<Self>) -> rustix::io::Result<()> {
        let mut current = beneath::open_directory(place.directory.as_fd(), Path::new(""))?;
        let mut relative = PathBuf::new();
        for name in &place.relative {
            relative.push(name);
            let below = match beneath::open_name(current.as_fd(), Path::new(name), beneath::HANDLE) {
                Err(Errno::NOENT) => {
                    match mkdirat(&current, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) => made.push(self.at(Place { relative: relative.clone(), ..place.clone() })),
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    beneath::open_name(current.as_fd(), Path::new(name), beneath::HANDLE)
                }
                other => other,
            };
            current = below?;
        }
        Ok(())
    }

    /// Removes a file, or a symbolic link itself.
    ///
    /// # Errors
    ///
    /// [`PathError::IsDirectory`], any [`PathError`] of finding it.
    pub fn remove_file(&self) -> Result<(), PathError> {
        let (found, metadata) = self.existing(Last::Keep, Access::Write)?;
        if metadata.kind == FileKind::Directory {
            return Err(PathError::IsDirectory { path: self.to_string() });
        }
        unlinkat(&found.directory, found.name(), AtFlags::empty())
            .map_err(|errno| self.error("remove", errno))
    }

    /// Removes an empty directory. A root cannot be removed.
    ///
    /// # Errors
    ///
    /// [`PathError::Invalid`] for a root, [`PathError::Io`] if it is not empty, any [`PathError`] of finding it.
    pub fn remove_dir(&self) -> Result<(), PathError> {
        self.refuse_root("remove")?;
        let (found, _) = self.existing(Last::Keep, Access::Write)?;
        unlinkat(&found.directory, found.name(), AtFlags::REMOVEDIR)
            .map_err(|errno| self.error("remove", errno))
    }

    /// Gives the entry (a symbolic link itself, not its target) another name on the same file system. With `overwrite`
    /// an existing file there is replaced, else it is [`PathError::Exists`], with no time between check and rename.
    ///
    /// # Errors
    ///
    /// [`PathError::Io`] across file systems; [`PathError::Denied`] or [`PathError::Protected`] also for a directory
    /// with something beneath that a pattern covers here and would not cover there; any [`PathError`] of finding
    /// either.
    pub fn rename(&self, to: &Self, overwrite: bool) -> Result<(), PathError> {
        self.refuse_root("rename")?;
        to.refuse_root("replace")?;
        let (from, metadata) = self.existing(Last::Keep, Access::Write)?;
        let target = to.find_for_new(Last::Keep)?;
        if metadata.kind == FileKind::Directory && !self.roots.rules().allow_all(Access::Write) {
            self.check_rules_beneath(&self.at(from.place.clone()), &to.at(target.place.clone()))?;
        }
        let flags = if overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        rustix::fs::renameat_with(&from.directory, from.name(), &target.directory, target.name(), flags)
            .map_err(|errno| match errno {
                Errno::EXIST => PathError::Exists { path: to.to_string() },
                other => self.error("rename", other),
            })
    }

    /// Gives two entries each other's name, with no moment in which either is missing.
    ///
    /// # Errors
    ///
    /// As [`JailPath::rename`]; [`PathError::Io`] where the file system cannot.
    pub fn exchange(&self, other: &Self) -> Result<(), PathError> {
        self.refuse_root("exchange")?;
        other.refuse_root("exchange")?;
        let (one, _) = self.existing(Last::Keep, Access::Write)?;
        let (two, _) = other.existing(Last::Keep, Access::Write)?;
        rustix::fs::renameat_with(
            &one.directory,
            one.name(),
            &two.directory,
            two.name(),
            RenameFlags::EXCHANGE,
        )
        .map_err(|errno| self.error("exchange", errno))
    }

    /// Whether this place is `other` or beneath it, as both are spelled.
    pub fn is_below(&self, other: &Self) -> bool {
        self.absolute().starts_with(other.absolute())
    }

    /// The place behind every symbolic link but the last name, which is kept.
    ///
    /// # Errors
    ///
    /// Any [`PathError`] of finding its directory.
    pub fn with_real_parent(&self) -> Result<Self, PathError> {
        self.find(Last::Keep, Access::Read).map(|found| self.at(found.place))
    }

    /// A name in the same directory that nothing has, that listings leave out, and that no other writer clears away:
    /// for what is about to be exchanged.
    pub fn spare(&self) -> Self {
        self.sibling(&crate::temporary::spare_name())
    }

    /// Makes the last change of names in this entry's directory survive a power failure, where that can be done.
    pub fn settle(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CAUTIOUS;
        if let Ok(found) = self.find(Last::Keep, Access::Read)
            && let Ok(directory) = beneath::open_name(found.directory.as_fd(), Path::new("."), flags)
        {
            let _ = rustix::fs::fsync(&directory);
        }
    }

    /// The entry itself, which exists.
    pub(crate) fn find_entry(&self, access: Access) -> Result<Found, PathError> {
        let (mut found, metadata) = self.existing(Last::Keep, access)?;
        found.metadata = Some(metadata);
        Ok(found)
    }

    /// Names further down, as a walk found them.
    pub(crate) fn beneath(&self, relative: &Path) -> Self {
        let relative = crate::roots::join(&self.place.relative, relative);
        self.at(Place { relative, ..self.place.clone() })
    }

    /// Another name in the same directory.
    pub(crate) fn sibling(&self, name: &OsStr) -> Self {
        self.at(Place { relative: self.place.relative.with_file_name(name), ..self.place.clone() })
    }

    /// Refuses the place if a pattern covers it.
    pub(crate) fn check(&self, access: Access) -> Result<(), PathError> {
        if self.roots.rules().allow_all(access) {
            return Ok(());
        }
        self.roots.check_rules(&self.place, access, &self.to_string())
    }

    /// Refuses to carry anything out of reach of a pattern by renaming a directory above it.
    fn check_rules_beneath(&self, from: &Self, to: &Self) -> Result<(), PathError> {
        for entry in from.read_dir()? {
            let entry = entry.map_err(|source| PathError::from_io(self.to_string(), "list", source))?;
            let (from, to) = (from.join(&entry.name)?, to.join(&entry.name)?);
            let escapes =
                (from.is_denied() && !to.is_denied()) || (from.is_protected() && !to.is_protected());
            if escapes {
                self.roots.check_rules(&from.place, Access::Write, &from.to_string())?;
            }
            if !from.is_protected() {
                self.roots.check_rules(&to.place, Access::Write, &to.to_string())?;
            }
            // What is denied cannot be listed, and all beneath it is denied as well.
            if entry.kind == FileKind::Directory && !from.is_denied() {
                self.check_rules_beneath(&from, &to)?;
            }
        }
        Ok(())
    }

    pub(crate) fn refuse_root(&self, action: &str) -> Result<(), PathError> {
        match self.place.relative.as_os_str().is_empty() {
            true => Err(PathError::Invalid {
                path: self.to_string(),
                reason: format!("it is a root itself, which there is no way to {action}"),
            }),
            false => Ok(()),
        }
    }

    fn require_file(&self, kind: FileKind) -> Result<(), PathError> {
        match kind {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(PathError::IsDirectory { path: self.to_string() }),
            kind => Err(PathError::SpecialFile { path: self.to_string(), kind }),
        }
    }

    pub(crate) fn find(&self, last: Last, access: Access) -> Result<Found, PathError> {
        self.roots.find(&self.place, last, access, &self.to_string())
    }

    /// As [`JailPath::find`] for writing; if the directory is missing, the error says which.
    pub(crate) fn find_for_new(&self, last: Last) -> Result<Found, PathError> {
        match self.find(last, Access::Write) {
            Err(PathError::NotFound { .. }) => Err(suggest::not_found(self)),
            other => other,
        }
    }

    /// As [`JailPath::find`], but a missing entry is an error that suggests names which exist.
    fn existing(&self, last: Last, access: Access) -> Result<(Found, Metadata), PathError> {
        match self.find(last, access) {
            Ok(mut found) => match found.metadata.take() {
                Some(metadata) => Ok((found, metadata)),
                None => Err(suggest::not_found(self)),
            },
            Err(PathError::NotFound { .. }) => Err(suggest::not_found(self)),
            Err(other) => Err(other),
        }
    }

    pub(crate) fn error(&self, action: &'static str, errno: Errno) -> PathError {
        PathError::from_errno(self.to_string(), action, errno)
    }
}

impl fmt::Display for JailPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let absolute = self.absolute();
        match absolute.strip_prefix(&*self.base) {
            Ok(rest) if rest.as_os_str().is_empty() => f.write_str("."),
            Ok(rest) => f.write_str(&escape_bytes(rest.as_os_str())),
            Err(_) => f.write_str(&escape_bytes(absolute.as_os_str())),
        }
    }
}

impl fmt::Debug for JailPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JailPath").field(&self.absolute()).finish()
    }
}

/// Equal if they name the same spot below the same root, whatever is there.
impl PartialEq for JailPath {
    fn eq(&self, other: &Self) -> bool {
        self.absolute() == other.absolute()
    }
}

impl Eq for JailPath {}

impl OpenFile {
    /// What `fstat` said when it was opened.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Where it really is, behind every symbolic link.
    pub fn resolved(&self) -> &JailPath {
        &self.resolved
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The open file, without what is known about it.
    pub fn into_file(self) -> File {
        self.file
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
/// Directories that were made on the way to one that could not be.
struct Unwanted(Vec<JailPath>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.iter().rev().for_each(|directory| drop(directory.remove_dir()));
    }
}
