//! A root with something outside it, and ways to run as someone else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jail::{JailPath, PathError, Roots, Rules};
use rustix::process::{Gid, Uid, geteuid};

/// What no test may ever read or change.
pub(crate) const SECRET: &str = "outside secret\n";

/// `repo/` is the root; `outside/` beside it has `secret.txt`.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    pub(crate) roots: Roots,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with_rules(&Rules::default())
    }

    pub(crate) fn with_rules(rules: &Rules) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Others may enter: some tests go on as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("repo")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret.txt"), SECRET).unwrap();
        let home = folder.path().join("repo/home");
        let roots = Roots::open_with_home(&["repo".to_owned()], folder.path(), Some(&home)).unwrap();
        Self { roots: roots.with_rules(rules).unwrap(), folder }
    }

    /// The temporary folder that has both.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the root, for the test's own hands.
    pub(crate) fn repo(&self, path: &str) -> PathBuf {
        self.folder.path().join("repo").join(path)
    }

    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.folder.path().join("outside").join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.repo(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.repo(path)).unwrap();
    }

    /// As a caller in the root directory asks.
    pub(crate) fn ask(&self, path: &str) -> Result<JailPath, PathError> {
        self.roots.resolve(path, Path::new(""))
    }

    pub(crate) fn read(&self, path: &str) -> Result<String, PathError> {
        let bytes = self.ask(path)?.read()?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn replace(&self, path: &str, content: &str) -> Result<jail::Replaced, PathError> {
        self.ask(path)?.lock_for_write()?.replace(content.as_bytes())
    }

    /// The names in a directory of the root, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        names(&self.repo(path))
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Nobody, by number: there need be no such account.
pub(crate) const NOBODY: u32 = 65_534;

/// Runs `check` as a user whom permissions stop. Credentials belong to a thread, so no other test is affected.
pub(crate) fn unprivileged<T: Send>(check: impl FnOnce() -> T + Send) -> T {
    if !geteuid().is_root() {
        return check();
    }
    on_own_thread(|| {
        let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        check()
    })
}

/// Gives the tree to the user that [`unprivileged`] becomes.
pub(crate) fn give_away(path: &Path) {
    if geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        if path.is_dir() && !path.is_symlink() {
            for entry in fs::read_dir(path).unwrap() {
                give_away(&entry.unwrap().path());
            }
        }
    }
}

pub(crate) fn on_own_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(body).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
