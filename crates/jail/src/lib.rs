//! Files below open directory handles: paths that cannot leave their root, atomic writes, locks.
//!
//! [`Roots`] are opened once, from configuration. A path that a caller wrote becomes a [`JailPath`] through
//! [`Roots::resolve`], and every operation on files is a method of that value: there is no function here that takes a
//! bare path. A `JailPath` is a *place* below a root, not a promise about what is there; each operation walks to it
//! anew, below the root's open handle, and what it acts on is what it opened.
//!
//! Writing goes through [`JailPath::lock_for_write`]: the lock is taken on the opened file, so it holds across
//! processes and needs no lock files, and [`WriteLock::replace`] puts new content in place in one step.

mod beneath;
mod directory;
mod error;
mod follow;
mod lock;
mod metadata;
mod path;
mod preserve;
mod replace;
mod roots;
mod rules;
mod spelling;
mod suggest;
mod temporary;

pub use directory::{DirEntry, Directory};
pub use error::{PathError, RootError};
pub use lock::WriteLock;
pub use metadata::{FileKind, Metadata};
pub use path::{JailPath, OpenFile};
pub use replace::Replaced;
pub use roots::{Root, Roots};
pub use rules::Rules;
pub use spelling::{escape_bytes, unescape_bytes};
pub use temporary::{is_temp_name, remove_stale_temps};
