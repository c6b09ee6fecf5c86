//! What a release of the catalog is, and how it is installed.
//!
//! A [`Release`] is a folder of archives with a [`Manifest`]: per provider and [`Platform`] one reproducible
//! [`archive`], and the hash of the program inside it. That hash, not the archive's, is what the kernel compares
//! before it trusts a program. An [`Installation`] puts programs where the kernel looks for them
//! ([`PluginCache`]) and records their hashes in the project's [`LockFile`]; it is planned, shown, and then applied.
//!
//! Programs go in first and the lock file last, each by a rename: whoever is killed in between leaves the old lock
//! file, whose programs are all still there.

pub mod archive;
mod atomic;
mod builder;
mod cache;
mod hash;
mod install;
mod lock_file;
mod manifest;
mod platform;
pub mod project_file;
mod source;

pub use builder::{Builder, Described};
pub use cache::PluginCache;
pub use hash::{Sha256, WrongHash};
pub use install::{Change, InstallError, Installation, Request};
pub use lock_file::{LockFile, LockFileError, Row, hcl_string};
pub use manifest::{Artifact, FORMAT_VERSION, Manifest, Provider};
pub use platform::{Platform, PlatformError};
pub use source::{Files, Index, Release, ReleaseError};
