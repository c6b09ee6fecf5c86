//! Following symbolic links, and walking to a place that then has none.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, readlinkat, statat};
use rustix::io::Errno;

use crate::beneath;
use crate::roots::{Place, Roots, join};
use crate::rules::{Access, Forbidden};
use crate::spelling::escape_bytes;
use crate::{FileKind, Metadata, PathError};

/// As many links in one path as Linux allows.
const MAX_LINKS: usize = 40;

/// How often a place is walked to again after something on the way turned into a link in between.
const ATTEMPTS: usize = 64;

/// What to do with a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

/// A place that was walked to: its directory is open, and no link was passed on the way.
pub(crate) struct Found {
    /// The place without links.
    pub(crate) place: Place,
    /// The open directory that has, or would have, the entry. For walking, not for reading.
    pub(crate) directory: OwnedFd,
    /// The entry's name in it; `.` for a root itself.
    pub(crate) name: OsString,
    /// `None` if there is no such entry.
    pub(crate) metadata: Option<Metadata>,
}

impl Roots {
    /// Walks to `start` and looks at what is there.
    ///
    /// # Errors
    ///
    /// [`PathError::NotFound`] if the directory it would be in is missing; a missing last name is no error.
    pub(crate) fn find(
        &self,
        start: &Place,
        last: Last,
        access: Access,
        shown: &str,
    ) -> Result<Found, PathError> {
        self.check_rules(start, access, shown)?;
        let mut place = start.clone();
        for _ in 0..ATTEMPTS {
            match self.look(&place) {
                Ok(found) if last == Last::Follow && found.is_symlink() => {}
                Ok(found) => return Ok(found),
                Err(Errno::LOOP) => {}
                Err(errno) => return Err(PathError::from_errno(shown.to_owned(), "open", errno)),
            }
            place = self.follow(start, last, shown)?;
            self.check_rules(&place, access, shown)?;
        }
        Err(PathError::Changed { path: shown.to_owned() })
    }

    /// Where `start` leads once its links are followed; what does not exist is kept as it is written.
    pub(crate) fn follow(&self, start: &Place, last: Last, shown: &str) -> Result<Place, PathError> {
        let pending = start.relative.iter().rev().map(OsStr::to_owned).collect();
        let position = Position::Inside { root: start.root, resolved: PathBuf::new() };
        Walk { roots: self, position, pending, links: 0, last_link: None, last, shown }.run()
    }

    /// Refuses a place that a rule covers under either name of its root.
    pub(crate) fn check_rules(&self, place: &Place, access: Access, shown: &str) -> Result<(), PathError> {
        if self.rules().allow_all(access) {
            return Ok(());
        }
        for name in self.root(place.root).names() {
            match self.rules().forbids(access, &join(name, &place.relative)) {
                None => {}
                Some(Forbidden::Denied(pattern)) => {
                    return Err(PathError::Denied { path: shown.to_owned(), pattern: pattern.to_owned() });
                }
                Some(Forbidden::Protected(pattern)) => {
                    return Err(PathError::Protected { path: shown.to_owned(), pattern: pattern.to_owned() });
                }
            }
        }
        Ok(())
    }

    /// Whether the entry at `place` is itself a link. No rule is asked, and nothing but this answer is given.
    pub(crate) fn is_symlink(&self, place: &Place, shown: &str) -> bool {
        let directory = match self.look(place) {
            Ok(found) => return found.is_symlink(),
            Err(Errno::LOOP) => self.follow(place, Last::Keep, shown),
            Err(_) => return false,
        };
        directory.is_ok_and(|place| self.look(&place).is_ok_and(|found| found.is_symlink()))
    }

    /// One walk, without following anything: `ELOOP` if a link is on the way.
    fn look(&self, place: &Place) -> rustix::io::Result<Found> {
        let (parent, name) = match (place.relative.parent(), place.relative.file_name()) {
            (Some(parent), Some(name)) => (parent, name.to_owned()),
            _ => (Path::new(""), OsString::from(".")),
        };
        let directory = beneath::open_directory(place.directory.as_fd(), parent)?;
        let metadata = match statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(Metadata::from(&stat)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno),
        };
        Ok(Found { place: place.clone(), directory, name, metadata })
    }
}

impl Found {
    pub(crate) fn is_symlink(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.kind == FileKind::Symlink)
    }

    pub(crate) fn name(&self) -> &Path {
        Path::new(&self.name)
    }
}

/// Where a walk stands. Outside the roots nothing is looked at: names are only put together.
enum Position {
    Inside { root: usize, resolved: PathBuf },
    Outside(PathBuf),
}

struct Walk<'a> {
    roots: &'a Roots,
    position: Position,
    /// Names still to be walked, the next one last.
    pending: Vec<OsString>,
    links: usize,
    /// The link followed last, for the error if the walk ends outside.
    last_link: Option<String>,
    last: Last,
    shown: &'a str,
}

impl Walk<'_> {
    fn run(mut self) -> Result<Place, PathError> {
        loop {
            while let Some(name) = self.pending.pop() {
                if name == ".." {
                    self.up();
                } else {
                    self.down(name)?;
                }
            }
            match self.position {
                Position::Inside { root, resolved } => return self.roots.place_in(root, resolved),
                Position::Outside(ref path) => match self.roots.containing_alias(path) {
                    Some((root, relative)) => self.enter(root, relative)?,
                    None => return Err(self.roots.outside(self.shown, self.last_link)),
                },
            }
        }
    }

    /// Goes on inside a root that was reached by a name of its own that nobody configured.
    fn enter(&mut self, root: usize, relative: PathBuf) -> Result<(), PathError> {
        self.count_link()?;
        self.pending = relative.iter().rev().map(OsStr::to_owned).collect();
        self.position = Position::Inside { root, resolved: PathBuf::new() };
        Ok(())
    }

    fn up(&mut self) {
        match &mut self.position {
            Position::Inside { root, resolved } => {
                if !resolved.pop() {
                    let mut above = self.roots.root(*root).real_path().to_owned();
                    above.pop();
                    self.position = self.at(above);
                }
            }
            Position::Outside(path) => {
                path.pop();
            }
        }
    }

    fn down(&mut self, name: OsString) -> Result<(), PathError> {
        match &mut self.position {
            Position::Outside(path) => {
                let mut below = std::mem::take(path);
                below.push(name);
                self.position = self.at(below);
                Ok(())
            }
            Position::Inside { resolved, .. } if self.last == Last::Keep && self.pending.is_empty() => {
                resolved.push(name);
                Ok(())
            }
            Position::Inside { .. } => self.step(name),
        }
    }

    /// One name inside a root, which may be a link.
    fn step(&mut self, name: OsString) -> Result<(), PathError> {
        let Position::Inside { root, resolved } = &self.position else { return Ok(()) };
        let (root, mut here) = (*root, resolved.clone());
        let target = self.read_link(root, &here, &name)?;
        here.push(name);
        let Some(target) = target else {
            self.position = Position::Inside { root, resolved: here };
            return Ok(());
        };
        self.count_link()?;
        let link = self.roots.place_in(root, here)?;
        self.roots.check_rules(&link, Access::Read, self.shown)?;
        self.last_link = Some(escape_bytes(self.roots.absolute(&link).as_os_str()));
        if target.as_bytes().starts_with(b"/") {
            self.position = self.at(PathBuf::from("/"));
        } else {
            let mut directory = link.relative;
            directory.pop();
            self.position = Position::Inside { root, resolved: directory };
        }
        let names = target.as_bytes().split(|byte| *byte == b'/').rev();
        self.pending.extend(
            names.filter(|name| !matches!(*name, b"" | b".")).map(|name| OsStr::from_bytes(name).to_owned()),
        );
        Ok(())
    }

    /// The target of `name` in a directory without links on the way to it; `None` if it is no link, or not there.
    fn read_link(&self, root: usize, directory: &Path, name: &OsStr) -> Result<Option<OsString>, PathError> {
        let handle = self.roots.place_in(root, PathBuf::new())?.directory;
        let error = |errno| PathError::from_errno(self.shown.to_owned(), "follow", errno);
        let directory = match beneath::open_directory(handle.as_fd(), directory) {
            Ok(directory) => directory,
            // Missing, or swapped since it was looked at: the walk that follows this one finds out.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(error(errno)),
        };
        match readlinkat(&directory, name, Vec::new()) {
            Ok(_) if beneath::is_magic_link(directory.as_fd(), Path::new(name)) => {
                Err(self.roots.outside(self.shown, Some(escape_bytes(name))))
            }
            Ok(target) => Ok(Some(OsStr::from_bytes(target.as_bytes()).to_owned())),
            Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(error(errno)),
        }
    }

    fn count_link(&mut self) -> Result<(), PathError> {
        self.links += 1;
        match self.links > MAX_LINKS {
            true => Err(PathError::LinkLoop { path: self.shown.to_owned() }),
            false => Ok(()),
        }
    }

    /// The position that an absolute path without `..` stands for.
    fn at(&self, path: PathBuf) -> Position {
        match self.roots.containing(&path) {
            Some((root, resolved)) if resolved.as_os_str().is_empty() => Position::Inside { root, resolved },
            _ => Position::Outside(path),
        }
    }
}
