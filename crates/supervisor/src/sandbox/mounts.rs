//! A view of the file system in which only some paths can be written.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use nix::libc;
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};

/// Makes everything read-only but the `write` paths and what is below them, and the `protect` paths within those
/// read-only again. All paths are absolute and without symbolic links; what does not exist is left out. The process
/// is in a mount namespace of its own.
///
/// # Errors
/// The kernel refused.
pub(super) fn restrict(write: &[PathBuf], protect: &[PathBuf]) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let existing = |path: &&PathBuf| path.symlink_metadata().is_ok();
    for path in write.iter().filter(existing) {
        pin(path)?;
    }
    let text = std::fs::read("/proc/self/mountinfo")?;
    for mount in mount_points(&text).filter(|mount| !write.iter().any(|path| mount.starts_with(path))) {
        match set_read_only(&mount) {
            // Hidden below another mount, so that nothing can reach it by a path.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A mount that others may not see, such as those of FUSE: nobody here can reach it either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !can_reach(&mount) => {}
            result => result?,
        }
    }
    for path in protect.iter().filter(existing) {
        // Where a directory above could be moved away, a fresh one could take its place.
        let above: Vec<&Path> = path.ancestors().skip(1).take_while(|above| is_below(above, write)).collect();
        above.into_iter().rev().try_for_each(pin)?;
        pin(path)?;
        set_read_only(path)?;
    }
    Ok(())
}

fn can_reach(mount: &Path) -> bool {
    mount.symlink_metadata().is_ok()
}

/// Whether a path is strictly below one of the others.
fn is_below(path: &Path, others: &[PathBuf]) -> bool {
    others.iter().any(|other| path != other && path.starts_with(other))
}

/// Makes a path a mount of its own, which can have attributes of its own and cannot be moved.
fn pin(path: impl AsRef<Path>) -> io::Result<()> {
    Ok(mount_bind_recursive(path.as_ref(), path.as_ref())?)
}

/// The mount points in the kernel's list of them.
fn mount_points(mountinfo: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4).map(unescape))
}

/// Blanks, tabs, line ends and backslashes are written as a backslash and three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|digit| matches!(digit, b'0'..=b'7')));
        match digits {
            Some(digits) => {
                bytes.push(
                    digits.iter().fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const READ_ONLY: u64 = 1;

/// Makes one mount read-only and leaves its other attributes alone.
#[allow(unsafe_code)] // No wrapper knows this call.
fn set_read_only(path: &Path) -> io::Result<()> {
    let path = CString::new(OsStr::as_bytes(path.as_os_str()))?;
    let attributes = MountAttributes { set: READ_ONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the path ends in a zero, the structure is as long as is said, and both are only read, during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{is_below, mount_points};

    #[test]
    fn mount_points_are_read_with_their_blanks() {
        let text = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:5 / /mnt/my\\040disk\\134x rw,nosuid shared:2 - tmpfs t rw\n";
        let found: Vec<PathBuf> = mount_points(text).collect();
        assert_eq!(found, [Path::new("/"), Path::new("/mnt/my disk\\x")]);
    }

    #[test]
    fn the_workspace_itself_is_not_below_itself() {
        let write = [PathBuf::from("/w")];
        assert!(is_below(Path::new("/w/.git"), &write));
        assert!(!is_below(Path::new("/w"), &write));
        assert!(!is_below(Path::new("/wx"), &write));
    }
}
