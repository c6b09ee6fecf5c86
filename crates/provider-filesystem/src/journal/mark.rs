//! What something was, so that it is known again: content, mode, owner; not its times, nor where it is.

use std::fmt::Write as _;
use std::io::{self, Read};

use provider_core::jail::{FileKind, JailPath, Metadata, PathError, TreeEntry};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::staleness::sha256;

/// Trees with more content, in bytes, are known by the inodes, sizes and times of their files.
const MOST_HASHED: u64 = 64 << 20;

/// What something was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Mark {
    /// A regular file, by its content.
    File {
        /// In lower-case hex.
        sha256: String,
        size: u64,
        mode: u32,
        uid: u32,
        gid: u32,
    },
    /// Anything else, and files too large to be read for this.
    Tree {
        /// Over every entry.
        digest: String,
        /// Entries that are no directories.
        files: u64,
        /// Bytes in them.
        bytes: u64,
        /// Whether the contents took part, not only sizes, times and inodes.
        by_content: bool,
        /// Whether it is a directory.
        directory: bool,
    },
}

impl Mark {
    /// A file with this content.
    pub(crate) fn of_file(content: &[u8], metadata: &Metadata) -> Self {
        Self::of_hash(&sha256(content), content.len() as u64, metadata)
    }

    /// A file of `size` bytes whose content has this hash.
    pub(crate) fn of_hash(sha256: &str, size: u64, metadata: &Metadata) -> Self {
        let sha256 = sha256.to_owned();
        Self::File { sha256, size, mode: metadata.mode, uid: metadata.uid, gid: metadata.gid }
    }

    /// Whatever is at `path`, itself if it is a symbolic link, with everything beneath.
    pub(crate) fn of(path: &JailPath) -> Result<Self, PathError> {
        let (_, bytes) = count(path)?;
        Self::read(path, bytes <= MOST_HASHED)
    }

    /// Whether `path` is this still, or again.
    pub(crate) fn is_at(&self, path: &JailPath) -> Result<bool, PathError> {
        let by_content = match self {
            Self::File { size, .. } => {
                if path.symlink_metadata().is_ok_and(|found| found.size != *size) {
                    return Ok(false);
                }
                true
            }
            Self::Tree { by_content, .. } => *by_content,
        };
        match Self::read(path, by_content) {
            Ok(found) => Ok(found == *self),
            Err(PathError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How many files, and how many bytes in them.
    pub(crate) fn size(&self) -> (u64, u64) {
        match self {
            Self::File { size, .. } => (1, *size),
            Self::Tree { files, bytes, .. } => (*files, *bytes),
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Tree { directory: true, .. })
    }

    /// The hash of a file's content in lower-case hex.
    pub(crate) fn sha256(&self) -> Option<&str> {
        match self {
            Self::File { sha256, .. } => Some(sha256),
            Self::Tree { .. } => None,
        }
    }

    fn read(path: &JailPath, by_content: bool) -> Result<Self, PathError> {
        let metadata = path.symlink_metadata()?;
        let mut hasher = Sha256::new();
        let (mut files, mut bytes, mut content) = (0, 0, None);
        path.walk(&mut |entry| {
            let line = line(entry, by_content).map_err(|source| PathError::Io {
                path: path.to_string(),
                action: "read",
                source,
            })?;
            hasher.update(line.as_bytes());
            if entry.metadata().kind != FileKind::Directory {
                files += 1;
            }
            if entry.metadata().kind == FileKind::File {
                bytes += entry.metadata().size;
                content = Some(line);
            }
            Ok(())
        })?;
        if let (FileKind::File, true, Some(line)) = (metadata.kind, by_content, content) {
            let sha256 = line.rsplit(' ').next().unwrap_or_default().trim_end().to_owned();
            let Metadata { mode, uid, gid, .. } = metadata;
            return Ok(Self::File { sha256, size: bytes, mode, uid, gid });
        }
        let directory = metadata.kind == FileKind::Directory;
        Ok(Self::Tree { digest: hex(&hasher.finalize()), files, bytes, by_content, directory })
    }
}

/// How many entries that are no directories are at and beneath `path`, and the bytes in them.
pub(crate) fn count(path: &JailPath) -> Result<(u64, u64), PathError> {
    let (mut files, mut bytes) = (0, 0);
    path.walk(&mut |entry| {
        files += u64::from(entry.metadata().kind != FileKind::Directory);
        bytes += if entry.metadata().kind == FileKind::File { entry.metadata().size } else { 0 };
        Ok(())
    })?;
    Ok((files, bytes))
}

/// One entry as a line of text: where it is, what it is, and what is in it.
fn line(entry: &TreeEntry<'_>, by_content: bool) -> io::Result<String> {
    let metadata = entry.metadata();
    let name = provider_core::jail::escape_bytes(entry.relative().as_os_str());
    let Metadata { kind, mode, uid, gid, .. } = metadata;
    // The mode of a symbolic link is nobody's choice.
    let mode = if *kind == FileKind::Symlink { 0 } else { *mode };
    let mut line = format!("{}:{name} {} {mode:o} {uid}:{gid} ", name.len(), kind.name());
    let content = match kind {
        FileKind::File if by_content => hash(&mut entry.open()?)?,
        FileKind::File => format!("{} {:?} {:?}", metadata.size, metadata.modified, metadata.id()),
        FileKind::Symlink => provider_core::jail::escape_bytes(entry.read_link()?.as_os_str()),
        FileKind::Directory => String::new(),
        _ => format!("{:?}", metadata.id()),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(line, "{content}");
    Ok(line)
}

fn hash(file: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
