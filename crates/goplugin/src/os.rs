//! Waiting for processes outside of a runtime's own child handling.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions};

/// How often the fallbacks look where the system cannot tell.
const POLL: Duration = Duration::from_millis(500);

/// Resolves when the process that is our parent now has ended.
pub(crate) fn parent_ended() -> impl Future<Output = ()> {
    let parent = rustix::process::getppid();
    let handle = parent.and_then(|parent| pidfd::open(parent).ok());
    async move {
        match handle {
            // Had the parent ended before its handle was opened, we would have another by now.
            Some(handle) if rustix::process::getppid() == parent => handle.ended().await,
            _ => {
                while rustix::process::getppid() == parent {
                    tokio::time::sleep(POLL).await
                }
            }
        }
    }
}

/// Resolves when our child `pid` has ended and is to be reaped.
///
/// Until it is reaped, its id and its group's id belong to nobody else.
pub(crate) async fn child_ended(pid: Pid) {
    match pidfd::open(pid) {
        Ok(handle) => handle.ended().await,
        Err(_) => {
            while !child_has_ended(pid) {
                tokio::time::sleep(POLL / 10).await;
            }
        }
    }
}

/// Whether our child `pid` has ended and is to be reaped. It stays so: this does not reap it.
pub(crate) fn child_has_ended(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), look), Ok(None))
}

#[cfg(target_os = "linux")]
mod pidfd {
    use super::{Pid, io};
    use tokio::io::{Interest, unix::AsyncFd};

    pub(super) struct Handle(AsyncFd<std::os::fd::OwnedFd>);

    #[allow(unsafe_code)]
    pub(super) fn open(pid: Pid) -> io::Result<Handle> {
        let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK)?;
        // SAFETY: the `OwnedFd` is open, always returns the same descriptor, and stays inside the `AsyncFd`,
        // which is never taken apart, until both are dropped.
        let registered = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
        Ok(Handle(registered?))
    }

    impl Handle {
        pub(super) async fn ended(&self) {
            // An error means that the runtime is shutting down, where nothing is awaited any more.
            if self.0.readable().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod pidfd {
    use super::{Pid, io};

    pub(super) enum Handle {}

    pub(super) fn open(_: Pid) -> io::Result<Handle> {
        Err(io::ErrorKind::Unsupported.into())
    }

    impl Handle {
        pub(super) async fn ended(&self) {
            match *self {}
        }
    }
}
