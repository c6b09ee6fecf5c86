//! Files below open directory handles: paths that cannot leave their root, atomic writes, locks.
//!
//! [`Roots`] are opened once, from configuration. A path that a caller wrote becomes a [`JailPath`] through
//! [`Roots::resolve`], and every operation on files is a method of that value: there is no function here that takes a
//! bare path. A `JailPath` is a *place* below a root, not a promise about what is there; each operation walks to it
//! again from the root's open handle, and what it acts on is what it opened.
//!
//! # How a path stays inside
//!
//! The kernel is only ever asked for paths in which **no** component is a symbolic link (`openat2` with
//! `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`; elsewhere a walk with `O_NOFOLLOW`). Links are followed by this crate, one
//! at a time, as text: a target inside any root is walked to from that root's handle, any other target is
//! [`PathError::OutsideRoot`]. So the place is spelled out in full before it is opened, which is also what makes
//! [`Rules`] exact: they are matched against the very names that the kernel then walks.
//!
//! # How a file is written
//!
//! [`JailPath::lock_for_write`] locks the file itself, and checks after the wait that its name still means that file;
//! no lock files are left anywhere. [`WriteLock::replace`] writes a temporary file beside it, copies owner, extended
//! attributes and mode, and exchanges the two. Readers see the old bytes or the new; two writers take turns, in one
//! process or in many; a program that knows nothing of locks is noticed and not overwritten.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use jail::Roots;
//! use std::path::Path;
//!
//! let roots = Roots::open(&[".".to_owned()], folder.path())?;
//! let path = roots.resolve("notes.txt", Path::new(""))?;
//! path.lock_for_write()?.replace(b"hello\n")?;
//! assert_eq!(path.read()?, b"hello\n");
//!
//! let outside = roots.resolve("../notes.txt", Path::new("")).unwrap_err();
//! assert_eq!(outside.code(), Some("outside_root"));
//! # Ok(())
//! # }
//! ```

mod beneath;
mod copy;
mod depot;
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
mod tree;
mod walk;

pub use copy::{Copied, Progress, StagedCopy};
pub use depot::Depot;
pub use directory::{DirEntry, Directory};
pub use error::{PathError, RootError};
pub use lock::{Held, WriteLock, lock_all};
pub use metadata::{FileKind, Metadata};
pub use path::{JailPath, OpenFile};
pub use replace::{Replaced, Staged};
pub use roots::{Root, Roots};
pub use rules::Rules;
pub use spelling::{escape_bytes, unescape_bytes};
pub use temporary::{is_temp_name, remove_stale_temps};
pub use tree::{TreeEntry, Visit};
pub use walk::{Denied, Listing, WalkHandle};
