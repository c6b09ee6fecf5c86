//! One change as it is written down: what was where, and what is needed to put it back.
//!
//! The file is one line with the length of the description and a hash over everything, the description as JSON, and
//! the bytes that it points into. What does not hash to what it says was never finished, and counts for nothing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::delta::Delta;
use super::mark::Mark;
use crate::staleness::sha256;

/// The first word of every journal file, with the version of the format.
const MAGIC: &str = "pluggable-harness-change-1";

/// What is known of one change without its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The change's id.
    pub(crate) id: String,
    /// The tool that made it, as on the wire.
    pub(crate) tool: String,
    /// The session that asked for it. May be empty.
    pub(crate) session: String,
    /// When, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// The change that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<String>,
    /// What is done, in this order.
    pub(crate) steps: Vec<Step>,
}

/// One thing that is done to one or two names, and all that is needed to tell whether it was, and to take it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(crate) enum Step {
    /// A file gets another content or mode.
    Content {
        #[serde(with = "spelled")]
        path: PathBuf,
        before: Mark,
        after: Mark,
        /// What makes the content before of the content after.
        delta: Delta,
        /// Whether a kill can leave the file half written. Then `delta` has the whole content.
        in_place: bool,
    },
    /// Something appears where nothing was.
    Create {
        #[serde(with = "spelled")]
        path: PathBuf,
        after: Mark,
    },
    /// Something is taken away, and kept in a slot of this change.
    Remove {
        #[serde(with = "spelled")]
        path: PathBuf,
        before: Mark,
        /// Its device and inode.
        id: (u64, u64),
        slot: String,
    },
    /// Something that another change took away comes back.
    Restore {
        #[serde(with = "spelled")]
        path: PathBuf,
        after: Mark,
        /// The change in whose slot it is.
        change: String,
        slot: String,
    },
    /// Something gets another name, which nothing has.
    Rename {
        #[serde(with = "spelled")]
        from: PathBuf,
        #[serde(with = "spelled")]
        to: PathBuf,
        mark: Mark,
        /// Its device and inode, where it was there before the change began.
        id: (u64, u64),
    },
    /// Two things get each other's name.
    Exchange {
        #[serde(with = "spelled")]
        one: PathBuf,
        #[serde(with = "spelled")]
        other: PathBuf,
        /// What `one` was, and `other` is then.
        one_mark: Mark,
        one_id: (u64, u64),
        other_mark: Mark,
    },
    /// A directory is made.
    MakeDirectory {
        #[serde(with = "spelled")]
        path: PathBuf,
    },
    /// An empty directory is removed.
    RemoveDirectory {
        #[serde(with = "spelled")]
        path: PathBuf,
    },
}

impl Step {
    /// Whether it is done or not whatever happens, and nothing is lost by it that only the journal can bring back
    /// whole. Such a step by itself needs no journal after a power failure.
    pub(crate) fn is_whole_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Content { in_place: false, .. } | Self::Create { .. } | Self::MakeDirectory { .. }
        )
    }

    /// The names it is about.
    pub(crate) fn paths(&self) -> Vec<&PathBuf> {
        match self {
            Self::Content { path, .. }
            | Self::Create { path, .. }
            | Self::Remove { path, .. }
            | Self::Restore { path, .. }
            | Self::MakeDirectory { path }
            | Self::RemoveDirectory { path } => vec![path],
            Self::Rename { from, to, .. } => vec![from, to],
            Self::Exchange { one, other, .. } => vec![one, other],
        }
    }
}

/// A change with its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) header: Header,
    /// The bytes that the deltas point into.
    pub(crate) bytes: Vec<u8>,
}

/// Why a journal file says nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    /// It was never finished, or is damaged.
    #[error("the journal file is incomplete or damaged")]
    Damaged,
    /// It was written by another version.
    #[error("the journal file is of another version: {0}")]
    Unknown(#[from] serde_json::Error),
}

impl Entry {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, EntryError> {
        let mut body = serde_json::to_vec(&self.header)?;
        let length = body.len();
        body.extend_from_slice(&self.bytes);
        let mut file = format!("{MAGIC} {length} {}\n", sha256(&body)).into_bytes();
        file.append(&mut body);
        Ok(file)
    }

    pub(crate) fn parse(file: &[u8]) -> Result<Self, EntryError> {
        let (length, hash, body) = split(file).ok_or(EntryError::Damaged)?;
        let header = body.get(..length).ok_or(EntryError::Damaged)?;
        if sha256(body) != hash {
            return Err(EntryError::Damaged);
        }
        let header = serde_json::from_slice(header)?;
        Ok(Self { header, bytes: body.get(length..).unwrap_or_default().to_vec() })
    }
}

impl Header {
    /// The description alone, from the beginning of a file that may go on.
    pub(crate) fn parse(beginning: &[u8]) -> Result<Self, EntryError> {
        let (length, _, body) = split(beginning).ok_or(EntryError::Damaged)?;
        Ok(serde_json::from_slice(body.get(..length).ok_or(EntryError::Damaged)?)?)
    }

    /// How much of a file has to be read for [`Header::parse`], once its first line is known.
    pub(crate) fn length(beginning: &[u8]) -> Option<usize> {
        let (length, _, body) = split(beginning)?;
        (beginning.len() - body.len()).checked_add(length)
    }
}

/// The length of the description, the hash over all that follows the first line, and what follows it.
fn split(file: &[u8]) -> Option<(usize, &str, &[u8])> {
    let newline = memchr::memchr(b'\n', file)?;
    let line = std::str::from_utf8(file.get(..newline)?).ok()?;
    let mut words = line.split(' ');
    let (magic, length, hash) = (words.next()?, words.next()?, words.next()?);
    let body = file.get(newline + 1..)?;
    (magic == MAGIC && words.next().is_none()).then_some((length.parse().ok()?, hash, body))
}

/// Paths as text where they are, else as a list of their bytes.
mod spelled {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Spelled {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        let spelled = match path.to_str() {
            Some(text) => Spelled::Text(text.to_owned()),
            None => Spelled::Bytes(path.as_os_str().as_bytes().to_vec()),
        };
        spelled.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match Spelled::deserialize(deserializer)? {
            Spelled::Text(text) => PathBuf::from(text),
            Spelled::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn entry() -> Entry {
        let path = PathBuf::from(OsStr::from_bytes(b"/r/\xff name"));
        Entry {
            header: Header {
                id: "01".to_owned(),
                tool: "edit_file".to_owned(),
                session: String::new(),
                at_ms: 7,
                undoes: None,
                steps: vec![Step::MakeDirectory { path }, Step::RemoveDirectory { path: "/r/b".into() }],
            },
            bytes: b"\0\n bytes".to_vec(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let file = entry().to_bytes().unwrap();
        assert_eq!(Entry::parse(&file).unwrap(), entry());
        let needed = Header::length(&file[..100]).unwrap();
        assert_eq!(Header::parse(&file[..needed]).unwrap(), entry().header);
    }

    #[test]
    fn a_file_that_was_cut_or_changed_counts_for_nothing() {
        let file = entry().to_bytes().unwrap();
        for end in 0..file.len() {
            assert!(Entry::parse(&file[..end]).is_err(), "{end}");
        }
        for at in 0..file.len() {
            let mut other = file.clone();
            other[at] ^= 1;
            assert!(Entry::parse(&other).is_err(), "{at}");
        }
    }
}
