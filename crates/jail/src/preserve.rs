//! Giving a new file the owner, extended attributes and mode of the one it replaces.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{
    Gid, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr, fremovexattr, fsetxattr, fstat,
};
use rustix::io::Result;

use crate::Metadata;
use crate::metadata::permissions;

/// The access control list, which a new file may inherit from its directory.
const ACL: &str = "system.posix_acl_access";

/// The largest value or list of names that Linux has.
const MAX_XATTR: usize = 64 * 1024;

/// Set-user-id and set-group-id.
const SET_ID: u32 = 0o6000;

/// Makes `new` like `old` in all but content. Returns what could not be kept, one sentence each.
pub(crate) fn copy_attributes(old: &File, metadata: &Metadata, new: &File) -> Result<Vec<String>> {
    let mut lost = Vec::new();
    let owner_kept = copy_owner(metadata, new, &mut lost)?;
    copy_xattrs(old, new, &mut lost);
    let mut mode = metadata.mode;
    if !owner_kept && mode & SET_ID != 0 {
        mode &= !SET_ID;
        lost.push("the set-id bits were dropped, because the owner could not be kept".to_owned());
    }
    // Last: changing the owner clears the set-id bits, and an access control list changes the mode.
    fchmod(new, permissions(mode))?;
    Ok(lost)
}

/// Whether both owner and group are as they were.
fn copy_owner(wanted: &Metadata, new: &File, lost: &mut Vec<String>) -> Result<bool> {
    let actual = Metadata::from(&fstat(new)?);
    if (actual.uid, actual.gid) == (wanted.uid, wanted.gid) {
        return Ok(true);
    }
    let (uid, gid) = (Uid::from_raw(wanted.uid), Gid::from_raw(wanted.gid));
    if fchown(new, Some(uid), Some(gid)).is_ok() {
        return Ok(true);
    }
    // Only root gives files away, but a group one is a member of can be kept.
    let group_kept = actual.gid == wanted.gid || fchown(new, None, Some(gid)).is_ok();
    if actual.uid != wanted.uid {
        lost.push(format!("the owner (uid {}) could not be kept; it is now uid {}", wanted.uid, actual.uid));
    }
    if !group_kept {
        lost.push(format!("the group (gid {}) could not be kept; it is now gid {}", wanted.gid, actual.gid));
    }
    Ok(false)
}

fn copy_xattrs(old: &File, new: &File, lost: &mut Vec<String>) {
    let names = xattr_names(old);
    for name in &names {
        if let Err(errno) = copy_xattr(old, new, name) {
            let reason = std::io::Error::from(errno);
            lost.push(format!("the extended attribute {name} could not be kept: {reason}"));
        }
    }
    let inherited = |name: &String| name == ACL && !names.contains(name);
    if xattr_names(new).iter().any(inherited) && fremovexattr(new, ACL).is_err() {
        lost.push("the access control list of the directory was added".to_owned());
    }
}

fn copy_xattr(old: &File, new: &File, name: &str) -> Result<()> {
    let value = xattr(old, name)?;
    // A security label is often given by the system, rightly, and may not be set by us.
    if xattr(new, name).is_ok_and(|known| known == value) {
        return Ok(());
    }
    fsetxattr(new, name, &value, XattrFlags::empty())
}

fn xattr(file: impl AsFd, name: &str) -> Result<Vec<u8>> {
    let mut value = vec![0; MAX_XATTR];
    let length = fgetxattr(file, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(value)
}

/// Empty where the file system has no extended attributes.
fn xattr_names(file: &File) -> Vec<String> {
    let mut list = vec![0; MAX_XATTR];
    let length = flistxattr(file, list.as_mut_slice()).unwrap_or(0);
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
