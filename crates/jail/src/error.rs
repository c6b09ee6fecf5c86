//! What can go wrong with a root or a path, in words that say what to do next.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::FileKind;

/// Why the configured roots or rules could not be used. The message names the entry by its position, from 0.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// No root was configured.
    #[error("allowed_roots is empty: name at least one directory, for example \".\"")]
    Empty,
    /// One root could not be opened.
    #[error("allowed_roots[{index}] `{configured}`: {reason}")]
    Root {
        /// Position in the configured list, from 0.
        index: usize,
        /// The root as it was configured.
        configured: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A `deny` or `protect` pattern is not a glob.
    #[error("{list}[{index}] `{pattern}`: {reason}")]
    Pattern {
        /// `deny` or `protect`.
        list: &'static str,
        /// Position in the configured list, from 0.
        index: usize,
        /// The pattern as it was configured.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Why an operation on a path was refused or failed. Paths are given as a caller would see them.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The argument is no path at all: empty, too long, or with a NUL in it.
    #[error("`{path}` is not a usable path: {reason}")]
    Invalid {
        /// The argument, shortened where it is long.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The path, or a symbolic link on the way, leads out of every root.
    #[error("`{path}` is outside the allowed roots{}; use a path below {}", via(.link.as_deref()), list_paths(.roots))]
    OutsideRoot {
        /// The path as asked.
        path: String,
        /// The symbolic link that leads out, if that is the reason.
        link: Option<String>,
        /// The roots there are.
        roots: Vec<PathBuf>,
    },
    /// A `deny` pattern covers the path.
    #[error(
        "`{path}` is denied by the configured pattern `{pattern}`; it can be neither read nor written here"
    )]
    Denied {
        /// The path as asked.
        path: String,
        /// The pattern as configured.
        pattern: String,
    },
    /// A `protect` pattern covers the path, and it was to be written.
    #[error(
        "`{path}` is protected by the configured pattern `{pattern}`; it can be read but not changed here"
    )]
    Protected {
        /// The path as asked.
        path: String,
        /// The pattern as configured.
        pattern: String,
    },
    /// A FIFO, socket or device where a file was wanted.
    #[error("`{path}` is a {kind}, not a regular file; it was not opened")]
    SpecialFile {
        /// The path as asked.
        path: String,
        /// What it is.
        kind: FileKind,
    },
    /// A directory where a file was wanted.
    #[error("`{path}` is a directory; use list_directory to see what is in it")]
    IsDirectory {
        /// The path as asked.
        path: String,
    },
    /// Something on the way to the path is not a directory.
    #[error("`{path}` cannot exist: something on the way to it is a file, not a directory")]
    NotADirectory {
        /// The path as asked.
        path: String,
    },
    /// A directory was wanted, and this is none.
    #[error("`{path}` is a {kind}, not a directory")]
    NotDirectory {
        /// The path as asked.
        path: String,
        /// What it is.
        kind: FileKind,
    },
    /// There is nothing at the path.
    #[error("`{path}` does not exist{}", hint(.missing_parent.as_deref(), .nearest))]
    NotFound {
        /// The path as asked.
        path: String,
        /// The first directory on the way that does not exist, if it is not only the last name that is missing.
        missing_parent: Option<String>,
        /// Paths that do exist and are spelled most alike, best first.
        nearest: Vec<String>,
    },
    /// The name does not exist as written, and several names differ from it only in spaces or Unicode form.
    #[error("`{path}` does not exist as written, and several names look the same: {}; give one of them exactly", list(.candidates))]
    AmbiguousName {
        /// The path as asked.
        path: String,
        /// The names that look the same; what cannot be told apart on screen is escaped.
        candidates: Vec<String>,
    },
    /// There is something at the path already.
    #[error("`{path}` exists already")]
    Exists {
        /// The path as asked.
        path: String,
    },
    /// A symbolic link that leads back to itself, or a chain of more than forty.
    #[error("`{path}` passes through too many symbolic links (a loop?); use a path without them")]
    LinkLoop {
        /// The path as asked.
        path: String,
    },
    /// Another program changed the file between reading and writing it.
    #[error(
        "`{path}` was changed by another program while it was being written; nothing was changed: read it again and retry"
    )]
    Changed {
        /// The path as asked.
        path: String,
    },
    /// Another writer held the lock for too long.
    #[error("`{path}` is locked by another program; nothing was changed: retry in a moment")]
    Locked {
        /// The path as asked.
        path: String,
    },
    /// Two paths that were to be two files are one.
    #[error("`{path}` and `{other}` are the same file; name it once")]
    SameFile {
        /// One path as asked.
        path: String,
        /// The other.
        other: String,
    },
    /// Long work was given up by the one who asked for it.
    #[error("stopped at `{path}`")]
    Stopped {
        /// How far it had come.
        path: String,
    },
    /// A root is no longer there, or is no longer a plain directory.
    #[error("the root `{}` is no longer there: {reason}", .root.display())]
    RootGone {
        /// The root.
        root: PathBuf,
        /// What was found in its place.
        reason: String,
    },
    /// The operating system does not let this process do it.
    #[error("cannot {action} `{path}`: {}", reason(.source))]
    Permission {
        /// The path as asked.
        path: String,
        /// What was being done, an imperative.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// Anything else the operating system reported.
    #[error("cannot {action} `{path}`: {}", reason(.source))]
    Io {
        /// The path as asked.
        path: String,
        /// What was being done, an imperative.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

/// What is done with something that goes into a depot.
pub(crate) const KEEP: &str = "keep";

impl PathError {
    /// The stable code of this error, where it has one.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::OutsideRoot { .. } => Some("outside_root"),
            Self::Denied { .. } | Self::Protected { .. } => Some("denied"),
            Self::SpecialFile { .. } => Some("special_file"),
            Self::IsDirectory { .. } => Some("is_directory"),
            Self::AmbiguousName { .. } => Some("ambiguous"),
            Self::Exists { .. } => Some("exists"),
            Self::Changed { .. } => Some("stale"),
            Self::Invalid { .. }
            | Self::NotADirectory { .. }
            | Self::NotDirectory { .. }
            | Self::NotFound { .. }
            | Self::LinkLoop { .. }
            | Self::Locked { .. }
            | Self::RootGone { .. }
            | Self::SameFile { .. }
            | Self::Stopped { .. }
            | Self::Permission { .. }
            | Self::Io { .. } => None,
        }
    }

    /// Whether a depot could not take something in: it has no room for it, or may not be written.
    pub fn is_depot_unusable(&self) -> bool {
        let (Self::Io { action, source, .. } | Self::Permission { action, source, .. }) = self else {
            return false;
        };
        let full = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
            io::ErrorKind::ReadOnlyFilesystem,
        ];
        *action == KEEP && full.contains(&source.kind())
    }

    /// The error for what the operating system said about `path` while this process tried to `action` it.
    pub(crate) fn from_io(path: String, action: &'static str, source: io::Error) -> Self {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT) => Self::NotFound { path, missing_parent: None, nearest: Vec::new() },
            Some(Errno::NOTDIR) => Self::NotADirectory { path },
            Some(Errno::ISDIR) => Self::IsDirectory { path },
            Some(Errno::EXIST) => Self::Exists { path },
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Self::Permission { path, action, source },
            _ => Self::Io { path, action, source },
        }
    }

    /// The same, for an error number.
    pub(crate) fn from_errno(path: String, action: &'static str, errno: Errno) -> Self {
        Self::from_io(path, action, io::Error::from(errno))
    }
}

fn via(link: Option<&str>) -> String {
    link.map(|link| format!(" (the symbolic link `{link}` leads out of them)")).unwrap_or_default()
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn list_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(" or ")
}

fn hint(missing_parent: Option<&str>, nearest: &[String]) -> String {
    let parent = missing_parent.map(|parent| format!(" (its directory `{parent}` does not exist either)"));
    let nearest = (!nearest.is_empty()).then(|| format!("; nearest names there: {}", list(nearest)));
    format!("{}{}", parent.unwrap_or_default(), nearest.unwrap_or_default())
}

/// The operating system's words without the error number, which says nothing to a reader.
fn reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "permission denied by the operating system".to_owned(),
        io::ErrorKind::StorageFull => "no space left on the file system; the old content is kept".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        _ => {
            let text = source.to_string();
            text.split_once(" (os error").map(|(words, _)| words.to_lowercase()).unwrap_or(text)
        }
    }
}
