//! A control group for the job, where one can be made. The kernel kills all its members at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

/// Names of our groups begin with this; the number of the guard follows.
const PREFIX: &str = "job-guard-";

pub(crate) struct Cgroup {
    parent: OwnedFd,
    name: String,
    group: OwnedFd,
}

impl Cgroup {
    /// A group of this guard's own below the one it is in; `None` where that is not permitted.
    pub(super) fn create() -> Option<Self> {
        let read = |path| std::fs::read_to_string(path).ok();
        let mount = mount_point(&read("/proc/self/mountinfo")?)?;
        let groups = read("/proc/self/cgroup")?;
        let own = own_group(&groups)?;
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(mount.join(own), directory, Mode::empty()).ok()?;
        let name = format!("{PREFIX}{}", std::process::id());
        rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755)).ok()?;
        let group = openat(&parent, &name, directory, Mode::empty());
        let cgroup = group.ok().map(|group| Self { parent, name, group })?;
        // Without this file the group is of no use; it is younger than control groups are.
        cgroup.file("cgroup.kill").is_ok().then_some(cgroup)
    }

    fn file(&self, name: &str) -> Result<OwnedFd, Errno> {
        openat(&self.group, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The directory of the group, for a process to be born in.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
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
        let _ = unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
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
    use super::*;

    #[test]
    fn the_second_version_is_found_beside_the_first() {
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:3 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
        assert_eq!(own_group("5:cpu:/a\n0::/user.slice/x\n"), Some(Path::new("user.slice/x")));
    }
}
