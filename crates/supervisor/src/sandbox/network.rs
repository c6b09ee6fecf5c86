//! Keeping the network away.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Added to the number of a system call by programs of the x32 kind.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Denies every socket that is not a local one, of whatever protocol. Rings, through which sockets could be made
/// unseen, are denied too.
///
/// # Errors
/// The kernel refused.
pub(super) fn filter() -> io::Result<()> {
    let other = |error: &dyn std::fmt::Display| io::Error::other(format!("seccomp: {error}"));
    let program = program().map_err(|error| other(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| other(&error))
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let local = u64::try_from(libc::AF_UNIX).unwrap_or_default();
    let not_local = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, local)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (call, rule) in
        [(libc::SYS_socket, vec![SeccompRule::new(vec![not_local])?]), (libc::SYS_io_uring_setup, Vec::new())]
    {
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | X32, rule.clone());
        rules.insert(call, rule);
    }
    let denied = SeccompAction::Errno(u32::try_from(libc::EACCES).unwrap_or_default());
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture)?.try_into()
}

/// Turns the loopback device of a fresh network namespace on.
///
/// # Errors
/// The kernel refused.
pub(super) fn loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    set_up(&socket)
}

#[allow(unsafe_code)] // No wrapper knows these two requests.
fn set_up(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: all fields of the structure are plain numbers, for which zeros are right.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = libc::c_char::try_from(*byte).unwrap_or_default();
    }
    let number = socket.as_raw_fd();
    // SAFETY: the request is a whole `ifreq` whose name ends in a zero; both calls read and write only it.
    let got = unsafe { libc::ioctl(number, libc::SIOCGIFFLAGS as _, &raw mut request) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the flags are what the first call has filled in; as above.
    let set = unsafe {
        request.ifr_ifru.ifru_flags |= libc::c_short::try_from(libc::IFF_UP).unwrap_or_default();
        libc::ioctl(number, libc::SIOCSIFFLAGS as _, &raw mut request)
    };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
