//! Where a walk starts: an open directory, its name, and the rules around it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use provider_core::jail::{Denied, JailPath, Listing, PathError, WalkHandle};

use super::walk::as_path;
use crate::engine::ignore_rules::IgnoreRules;

/// The directory that a walk starts in.
pub(crate) struct Start {
    place: JailPath,
    handle: WalkHandle,
    /// Its path without links, with a slash after it.
    full: Vec<u8>,
    /// The same by the name that `deny` patterns are matched against.
    named: Vec<u8>,
    root_length: usize,
    denied: Option<Denied>,
    rules: Arc<IgnoreRules>,
    free: bool,
}

impl Start {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    ///
    /// [`PathError::NotDirectory`] and every error of finding it.
    pub(crate) fn open(path: &JailPath) -> Result<Self, PathError> {
        let directory = path.open_dir()?;
        let place = directory.path().clone();
        let full = with_slash(place.root().real_path().join(place.relative()));
        let rules = IgnoreRules::above(&place);
        let handle = WalkHandle::from(directory);
        // A repository of its own is not excluded by what is around it.
        let repository = [".git", ".jj"].iter().any(|name| handle.metadata(OsStr::new(name)).is_ok());
        let free = !repository && rules.exclude_start(&full);
        Ok(Self {
            handle,
            root_length: with_slash(place.root().real_path()).len(),
            named: with_slash(place.absolute()),
            denied: place.denied(),
            full,
            rules,
            free,
            place,
        })
    }

    /// Its path without links, with a slash after it.
    pub(crate) fn full(&self) -> &[u8] {
        &self.full
    }

    /// How many bytes of [`Start::full`] name the root, with the slash after it.
    pub(crate) fn root_length(&self) -> usize {
        self.root_length
    }

    /// Where it is, behind every link.
    pub(crate) fn place(&self) -> &JailPath {
        &self.place
    }

    /// The rules of the directories above.
    pub(crate) fn rules(&self) -> &Arc<IgnoreRules> {
        &self.rules
    }

    /// Whether ignore files exclude the start itself: who named it all the same wants what is in it.
    pub(crate) fn is_free(&self) -> bool {
        self.free
    }

    /// Opens the directory at `path` from the start, which ends in a slash unless it is empty.
    pub(crate) fn open_beneath(&self, path: &[u8]) -> io::Result<WalkHandle> {
        self.handle.open_directory_beneath(as_path(path))
    }

    /// Whether a `deny` pattern covers the entry at `path` from the start.
    pub(crate) fn denies(&self, path: &[u8]) -> bool {
        let Some(denied) = &self.denied else { return false };
        denied.covers(as_path(&[&self.named, path].concat()))
    }

    /// The rules in the directory at `path` from the start, which was just listed, perhaps in part.
    pub(crate) fn descend(
        &self,
        above: &Arc<IgnoreRules>,
        handle: &WalkHandle,
        listing: &Listing,
        in_part: bool,
        path: &[u8],
    ) -> Arc<IgnoreRules> {
        let has = |name: &str| match in_part {
            false => listing.contains(name),
            true => handle.metadata(OsStr::new(name)).is_ok(),
        };
        above.descend_by(handle, has, self.full.len() + path.len(), || self.place_beneath(path))
    }

    /// The directory at `path` from the start, in the jail.
    pub(crate) fn place_beneath(&self, path: &[u8]) -> Option<JailPath> {
        as_path(path).iter().try_fold(self.place.clone(), |place, name| place.join(name).ok())
    }

    /// Whether the symbolic link `name` in the directory at `path` from the start leads out of the roots. It is
    /// not followed: what it says is all that counts.
    pub(crate) fn leads_outside(&self, handle: &WalkHandle, name: &OsStr, path: &[u8]) -> bool {
        let Ok(target) = handle.read_link(name) else { return false };
        let from = PathBuf::from(OsStr::from_bytes(&self.full)).join(as_path(path));
        link_leads_outside(&self.place, from, &target)
    }
}

/// Whether a link in the directory `from`, with this text, leads out of the roots that `place` is in.
pub(crate) fn link_leads_outside(place: &JailPath, mut from: PathBuf, target: &Path) -> bool {
    for component in target.components() {
        match component {
            Component::RootDir => from = PathBuf::from("/"),
            Component::ParentDir => drop(from.pop()),
            Component::Normal(name) => from.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    !place.shares_roots_with(&from)
}

/// The path with a slash after it.
pub(crate) fn with_slash(path: impl AsRef<Path>) -> Vec<u8> {
    let mut bytes = path.as_ref().as_os_str().as_bytes().to_vec();
    if !bytes.ends_with(b"/") {
        bytes.push(b'/');
    }
    bytes
}
