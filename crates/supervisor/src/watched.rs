//! An owned descriptor whose readiness the runtime watches.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// Watches `descriptor` for as long as the answer lives. Needs a runtime.
#[allow(unsafe_code)] // The descriptor is owned, which is all that is asked for.
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, keeps its number, and is closed only when the `AsyncFd` gives it up.
    unsafe { AsyncFd::register(descriptor) }.map_err(Into::into)
}
