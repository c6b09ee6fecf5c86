//! Namespaces of its own, in which there is no network, no other process to talk to, and nobody to be.

use std::io;

use rustix::thread::UnshareFlags;

/// Leaves all namespaces that can be left together. Answers which, for people.
///
/// # Errors
/// The system does not let an ordinary process do that, as in most containers.
#[allow(unsafe_code)] // The wrapper is unsafe because of shared descriptors, which are not touched.
pub(super) fn leave() -> io::Result<String> {
    let flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    // SAFETY: the descriptors stay shared with nobody, for there is one thread.
    unsafe { rustix::thread::unshare_unsafe(flags)? };
    Ok("user, net, mount, ipc, uts, cgroup".to_owned())
}
