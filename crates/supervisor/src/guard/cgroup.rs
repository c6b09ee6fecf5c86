//! A control group for the job, where one can be made. The kernel kills all its members at once.
//!
//! A guard holds a lock on its group for as long as it lives. A group that can be locked has lost its guard, and the next
//! guard ends what is in it and removes it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::io::Errno;

/// Names of our groups begin with this; the number of the guard follows.
const PREFIX: &str = "guarded-";
/// How often a fresh group may be taken away before it is locked.
const ATTEMPTS: u32 = 4;
/// How long to wait for the last members of a group, which are dead, to be gone.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks at them.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Cgroup {
    parent: OwnedFd,
    name: String,
    /// Holds the lock.
    group: OwnedFd,
}

impl Cgroup {
    /// A group of this guard's own below the one it is in.
    ///
    /// # Errors
    /// There are no groups of version 2 here, or none may be made.
    pub(crate) fn create() -> io::Result<Self> {
        let parent = own_directory()?;
        remove_abandoned(&parent);
        let mut result = Err(io::ErrorKind::NotFound.into());
        for attempt in 0..ATTEMPTS {
            result = Self::create_in(&parent, attempt);
            // Somebody has taken it for an abandoned one before it was locked.
            if !matches!(&result, Err(error) if error.kind() == io::ErrorKind::NotFound) {
                break;
            }
        }
        result
    }

    fn create_in(parent: &OwnedFd, attempt: u32) -> io::Result<Self> {
        // In another process namespace there may be a guard of the same number.
        let name = format!("{PREFIX}{}-{attempt}", std::process::id());
        match rustix::fs::mkdirat(parent, &name, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => return Err(io::ErrorKind::NotFound.into()),
            made => made?,
        }
        let group = locked(parent, &name).ok_or(io::ErrorKind::NotFound)?;
        let cgroup = Self { parent: parent.try_clone()?, name, group };
        // Without this file the group is of no use: it is younger than control groups are, and not there any more when
        // somebody has removed the group.
        cgroup.file("cgroup.kill")?;
        Ok(cgroup)
    }

    fn file(&self, name: &str) -> Result<OwnedFd, Errno> {
        openat(&self.group, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The directory of the group, for a process to be born in.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }

    /// How many processes are in the group, counted no further than to the first beyond `most`.
    pub(super) fn count(&self, most: u64) -> io::Result<u64> {
        let list = openat(&self.group, "cgroup.procs", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut lines = BufReader::new(File::from(list)).lines();
        let mut count = 0;
        while count <= most && lines.next().transpose()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Kills every process in the group.
    pub(super) fn kill(&self) {
        if let Ok(file) = self.file("cgroup.kill") {
            let _ = rustix::io::write(file, b"1");
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let limit = Instant::now() + PATIENCE;
        // Who has been killed is a member until the kernel has taken it apart.
        while unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) == Err(Errno::BUSY)
            && Instant::now() < limit
        {
            // So is, in its way, the group of a guard that was killed inside the job.
            remove_abandoned(&self.group);
            std::thread::sleep(PAUSE);
        }
    }
}

/// The group this process is in, as an open directory.
fn own_directory() -> io::Result<OwnedFd> {
    let missing =
        || io::Error::new(io::ErrorKind::Unsupported, "no control groups of version 2 are mounted here");
    let mount = mount_point(&std::fs::read_to_string("/proc/self/mountinfo")?).ok_or_else(missing)?;
    let groups = std::fs::read_to_string("/proc/self/cgroup")?;
    let own = mount.join(own_group(&groups).ok_or_else(missing)?);
    Ok(rustix::fs::open(own, DIRECTORY, Mode::empty())?)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The group of this name, if nobody else holds it.
fn locked(parent: &OwnedFd, name: impl rustix::path::Arg) -> Option<OwnedFd> {
    let group = openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    flock(&group, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(group)
}

/// Ends what is in groups whose guard was killed, and removes them.
fn remove_abandoned(parent: &OwnedFd) {
    let Ok(entries) = Dir::read_from(parent) else { return };
    for name in entries.flatten().map(|entry| entry.file_name().to_owned()) {
        let is_ours = name.to_bytes().starts_with(PREFIX.as_bytes());
        let Some(group) = is_ours.then(|| locked(parent, &name)).flatten() else { continue };
        let (Ok(parent), Ok(name)) =
            (parent.try_clone(), OsStr::from_bytes(name.to_bytes()).to_owned().into_string())
        else {
            continue;
        };
        let abandoned = Cgroup { parent, name, group };
        abandoned.kill();
    }
}

/// Where control groups of version 2 are mounted.
fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        filesystem.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// The group this process is in, below the mount point.
fn own_group(cgroups: &str) -> Option<&Path> {
    cgroups.lines().find_map(|line| line.strip_prefix("0::/").map(Path::new))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Whether this process may make groups, by an attempt of its own.
    fn may_make_groups() -> bool {
        let Ok(parent) = own_directory() else { return false };
        let name = format!("may-make-{}", std::process::id());
        let made = rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755)).is_ok();
        let _ = unlinkat(&parent, &name, AtFlags::REMOVEDIR);
        made
    }

    #[test]
    fn a_group_without_its_guard_is_ended_by_the_next_and_others_are_left_alone() {
        let living = match Cgroup::create() {
            Ok(living) => living,
            Err(error) => {
                assert!(!may_make_groups(), "groups can be made here, but none was: {error}");
                eprintln!("no control group can be made here: {error}");
                return;
            }
        };
        let parent = own_directory().unwrap();
        let name = format!("{PREFIX}abandoned-{}", std::process::id());
        rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755)).unwrap();
        let mut left = Command::new("sleep").arg("1000").spawn().unwrap();
        let members = openat(&parent, format!("{name}/cgroup.procs"), OFlags::WRONLY, Mode::empty()).unwrap();
        rustix::io::write(members, left.id().to_string().as_bytes()).unwrap();
        let exists = |name: &str| rustix::fs::statat(&parent, name, AtFlags::empty()).is_ok();
        // Another test's guard may be quicker, which is as good.
        remove_abandoned(&parent);
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(left.wait().unwrap().signal(), Some(9));
        let limit = Instant::now() + Duration::from_secs(30);
        while exists(&name) {
            assert!(Instant::now() < limit, "the abandoned group is still there");
            std::thread::sleep(PAUSE);
        }
        assert!(exists(&living.name));
        let name = living.name.clone();
        drop(living);
        assert!(!exists(&name));
    }

    #[test]
    fn the_second_version_is_found_beside_the_first() {
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:3 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
        assert_eq!(own_group("5:cpu:/a\n0::/user.slice/x\n"), Some(Path::new("user.slice/x")));
    }
}
