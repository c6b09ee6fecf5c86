//! What is known about a file without opening it.

use std::fmt;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Mode, RawMode, Stat};

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl FileKind {
    /// One lower-case word, as listings show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharDevice => "char_device",
            Self::BlockDevice => "block_device",
        }
    }

    /// `None` where a file system does not say, as some do in directory listings.
    pub(crate) fn from_type(file_type: FileType) -> Option<Self> {
        match file_type {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => Some(Self::Symlink),
            FileType::Fifo => Some(Self::Fifo),
            FileType::Socket => Some(Self::Socket),
            FileType::CharacterDevice => Some(Self::CharDevice),
            FileType::BlockDevice => Some(Self::BlockDevice),
            _ => None,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "FIFO (named pipe)",
            Self::Symlink => "symbolic link",
            Self::CharDevice => "character device",
            Self::BlockDevice => "block device",
            other => other.name(),
        })
    }
}

/// What `stat` says about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The type of the file.
    pub kind: FileKind,
    /// Size in bytes; for a symbolic link, of its target's text.
    pub size: u64,
    /// Permission bits with set-user-id, set-group-id and sticky: at most `0o7777`.
    pub mode: u32,
    /// When the content last changed.
    pub modified: SystemTime,
    /// When anything, content or attributes, last changed; a program cannot put it back.
    pub changed: SystemTime,
    /// Number of names (hard links).
    pub nlink: u64,
    /// Inode number, unique within `dev`.
    pub ino: u64,
    /// The device the file is on.
    pub dev: u64,
    /// Owning user.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
}

impl Metadata {
    /// What a file is the same as itself by, whatever its name.
    pub fn id(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

// The widths of these fields differ between platforms; what is a no-op here is needed there.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
impl From<&Stat> for Metadata {
    fn from(stat: &Stat) -> Self {
        // A type that is none of the seven does not occur; what cannot be opened is the safe reading.
        let kind =
            FileKind::from_type(FileType::from_raw_mode(stat.st_mode as _)).unwrap_or(FileKind::CharDevice);
        Self {
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode as u32 & 0o7777,
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
            nlink: stat.st_nlink as u64,
            ino: stat.st_ino as u64,
            dev: stat.st_dev as u64,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
        }
    }
}

/// Permission bits as the system calls take them.
#[allow(clippy::unnecessary_cast)] // Not everywhere as wide as here.
pub(crate) fn permissions(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as RawMode)
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = match seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(whole),
        false => SystemTime::UNIX_EPOCH.checked_add(whole),
    };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanoseconds)))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
