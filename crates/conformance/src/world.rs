//! What one launch of the provider has to itself: a scratch root, a home, a place for state.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use crate::calls::{Calls, File};

/// Directories of one launch, removed with it. What is found in it, or refers to it, belongs to that launch; only the
/// scene that starts two copies for one user lets them share it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    dir: Arc<TempDir>,
}

/// The variable that marks the provider's process, and those that inherit its environment.
pub(crate) const MARK: &str = "CONFORMANCE_RUN";

impl World {
    /// A world with the files of the calls file.
    pub(crate) fn new(calls: Option<&Calls>) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("conformance-").tempdir()?;
        let world = Self { dir: Arc::new(dir) };
        for place in [world.root(), world.state(), world.home(), world.temporary()] {
            fs::create_dir(place)?;
        }
        if let Some(calls) = calls {
            world.fill(&calls.files)?;
        }
        Ok(world)
    }

    /// Everything.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The scratch root: the only place where resources work.
    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// `HOME` of the provider.
    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// `TMPDIR` of the provider.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path().join("tmp")
    }

    /// Tells this world from every other.
    pub(crate) fn mark(&self) -> String {
        self.path().to_string_lossy().into_owned()
    }

    /// What the names in a calls file stand for.
    pub(crate) fn names(&self) -> BTreeMap<String, Value> {
        let text = |path: PathBuf| Value::String(path.to_string_lossy().into_owned());
        BTreeMap::from([
            ("root".to_owned(), text(self.root())),
            ("state".to_owned(), text(self.state())),
            ("home".to_owned(), text(self.home())),
        ])
    }

    fn fill(&self, files: &BTreeMap<String, File>) -> io::Result<()> {
        for (name, file) in files {
            let path = self.root().join(name);
            if name.ends_with('/') {
                fs::create_dir_all(&path)?;
            } else {
                fs::create_dir_all(path.parent().unwrap_or(&path))?;
                match file.symlink() {
                    Some(target) => symlink(target, &path)?,
                    None => fs::write(&path, file.bytes().map_err(io::Error::other)?)?,
                }
            }
            if let Some(mode) = file.mode().map_err(io::Error::other)? {
                fs::set_permissions(&path, Permissions::from_mode(mode))?;
            }
        }
        Ok(())
    }
}
