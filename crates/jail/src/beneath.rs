//! Opening a path below a directory without following any symbolic link. The one place that differs by platform.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, Result};

/// Flags for a handle that is only walked from, never read.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Flags for a handle that is only walked from, never read.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const HANDLE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags for a handle that only keeps a file from being forgotten.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const PINNED: OFlags = OFlags::PATH;
/// Flags for a handle that only keeps a file from being forgotten.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const PINNED: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// Opens the directory `relative` below `root` for walking. `relative` has plain names only; empty is `root` itself.
///
/// # Errors
///
/// `ELOOP` where any component, the last included, is a symbolic link.
pub(crate) fn open_directory(root: BorrowedFd<'_>, relative: &Path) -> Result<OwnedFd> {
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    platform::open(root, relative, HANDLE)
}

/// Opens one name in a directory, refusing a symbolic link (`ELOOP`).
pub(crate) fn open_name(directory: BorrowedFd<'_>, name: &Path, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_interrupted(|| openat(directory, name, flags, Mode::empty())).map_err(|errno| match errno {
        // A link where a directory was wanted is reported as "not a directory" by some kernels.
        Errno::NOTDIR if is_symlink(directory, name) => Errno::LOOP,
        // FreeBSD and others.
        Errno::MLINK => Errno::LOOP,
        other => other,
    })
}

/// Opens the directory an absolute path names, following symbolic links but not the kernel's magic ones.
pub(crate) fn open_outside(absolute: &Path) -> Result<OwnedFd> {
    platform::open_outside(absolute)
}

/// Opens an absolute path in which nothing may be a symbolic link.
pub(crate) fn open_absolute(absolute: &Path) -> Result<OwnedFd> {
    let top = openat(rustix::fs::CWD, "/", HANDLE, Mode::empty())?;
    let relative: std::path::PathBuf =
        absolute.components().filter(|component| matches!(component, Component::Normal(_))).collect();
    open_directory(std::os::fd::AsFd::as_fd(&top), &relative)
}

/// Whether `name` in `directory` is a link that only the kernel can follow, such as `/proc/self/root`.
pub(crate) fn is_magic_link(directory: BorrowedFd<'_>, name: &Path) -> bool {
    platform::is_magic_link(directory, name)
}

fn is_symlink(directory: BorrowedFd<'_>, name: &Path) -> bool {
    rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink)
}

pub(crate) fn retry_interrupted<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// The portable way: one component at a time, none of them a link.
fn walk(root: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd> {
    let mut current = openat(root, ".", HANDLE, Mode::empty())?;
    let mut components = relative.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => Path::new(name),
            Component::CurDir => continue,
            _ => return Err(Errno::XDEV),
        };
        let flags = if components.peek().is_some() { HANDLE } else { flags };
        current = open_name(std::os::fd::AsFd::as_fd(&current), name, flags)?;
    }
    Ok(current)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod platform {
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs, openat2};
    use rustix::io::{Errno, Result};

    /// `EAGAIN` says that a rename elsewhere made the kernel unsure; it passes.
    const ATTEMPTS: usize = 64;

    /// Set once the kernel (or a seccomp filter) has shown that it has no `openat2`.
    static MISSING: AtomicBool = AtomicBool::new(false);

    pub(super) fn open(root: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd> {
        if MISSING.load(Ordering::Relaxed) {
            return super::walk(root, relative, flags);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match retried(root, relative, flags, resolve) {
            Err(Errno::NOSYS) => {
                MISSING.store(true, Ordering::Relaxed);
                super::walk(root, relative, flags)
            }
            // Old container runtimes answer EPERM for calls they do not know; opening for walking never gives it.
            Err(Errno::PERM) => super::walk(root, relative, flags),
            other => other,
        }
    }

    pub(super) fn open_outside(absolute: &Path) -> Result<OwnedFd> {
        retried(CWD, absolute, super::HANDLE, ResolveFlags::NO_MAGICLINKS)
    }

    pub(super) fn is_magic_link(directory: BorrowedFd<'_>, name: &Path) -> bool {
        fstatfs(directory).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC)
            && retried(directory, name, OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_MAGICLINKS)
                .is_err_and(|errno| errno == Errno::LOOP)
    }

    fn retried(
        directory: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<OwnedFd> {
        let mut last = Errno::AGAIN;
        for _ in 0..ATTEMPTS {
            match openat2(directory, path, flags, Mode::empty(), resolve) {
                Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
                other => return other,
            }
        }
        Err(last)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod platform {
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::path::Path;

    use rustix::fs::{CWD, Mode, OFlags, openat};
    use rustix::io::Result;

    pub(super) fn open(root: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd> {
        super::walk(root, relative, flags)
    }

    pub(super) fn open_outside(absolute: &Path) -> Result<OwnedFd> {
        openat(CWD, absolute, super::HANDLE, Mode::empty())
    }

    /// Only Linux has magic links.
    pub(super) fn is_magic_link(_directory: BorrowedFd<'_>, _name: &Path) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use super::*;

    /// What opening a path gives: the inode, or the error.
    fn outcome(result: Result<OwnedFd>) -> Result<u64> {
        result.map(|opened| rustix::fs::fstat(opened).unwrap().st_ino)
    }

    #[test]
    fn the_portable_walk_opens_and_refuses_what_the_kernel_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("dir/sub")).unwrap();
        fs::write(at("dir/file"), "").unwrap();
        symlink("dir", at("inside")).unwrap();
        symlink("/", at("outside")).unwrap();
        symlink("../dir/sub", at("dir/up")).unwrap();
        let root = rustix::fs::open(folder.path(), HANDLE, Mode::empty()).unwrap();
        let check = |path: &str, expected: std::result::Result<&str, Errno>| {
            let expected =
                expected.map(|path| outcome(rustix::fs::open(at(path), HANDLE, Mode::empty())).unwrap());
            let path = Path::new(path);
            assert_eq!(outcome(walk(root.as_fd(), path, HANDLE)), expected, "{path:?}");
            assert_eq!(outcome(platform::open(root.as_fd(), path, HANDLE)), expected, "{path:?}");
        };
        check(".", Ok("."));
        check("dir", Ok("dir"));
        check("dir/sub", Ok("dir/sub"));
        check("./dir/./sub", Ok("dir/sub"));
        check("missing", Err(Errno::NOENT));
        check("dir/missing/x", Err(Errno::NOENT));
        check("dir/file", Err(Errno::NOTDIR));
        check("dir/file/x", Err(Errno::NOTDIR));
        check("inside", Err(Errno::LOOP));
        check("inside/sub", Err(Errno::LOOP));
        check("outside/etc", Err(Errno::LOOP));
        check("dir/up", Err(Errno::LOOP));
        check("..", Err(Errno::XDEV));
        check("/", Err(Errno::XDEV));
    }
}
