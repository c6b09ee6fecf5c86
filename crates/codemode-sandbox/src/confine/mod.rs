//! What the process gives up, in this order: its privileges, what it has inherited, resources, namespaces, files and
//! network, and last of all every system call that it does not need.
//!
//! Only the filter of system calls is required. What else there is makes a hole in the filter, or in the kernel, worth
//! less; where the kernel has none of it, the parent is told so.

mod files;
mod filter;
mod limits;
mod namespaces;

use std::io;

use rustix::process::{DumpableBehavior, Signal, getppid};

use crate::frames::Confinement;
use crate::{Part, Setting};

/// Why the process may not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSandbox {
    /// System calls cannot be filtered.
    #[error("this system cannot filter system calls: {0}")]
    Filter(io::Error),
    /// What must always work did not.
    #[error("{0}: {1}")]
    Refused(&'static str, io::Error),
    /// The parent is gone already.
    #[error("the process that asked for a sandbox is gone")]
    Orphan,
}

/// All but the filter. What still has to be opened or asked for is done between this and [`shut`].
///
/// # Errors
/// Why the process may not go on.
pub(crate) fn give_up(parent: i32, settings: &[Setting]) -> Result<Confinement, NoSandbox> {
    let must =
        |what, result: rustix::io::Result<()>| result.map_err(|error| NoSandbox::Refused(what, error.into()));
    must("no_new_privs", rustix::thread::set_no_new_privs(true))?;
    close_inherited();
    read_time_zone();
    let surroundings = surroundings();
    let limits = limits::lower().map_err(|error| NoSandbox::Refused("resource limits", error))?;
    let namespaces = match settings.contains(&Setting::Without(Part::Namespaces)) {
        true => Err(io::ErrorKind::Unsupported.into()),
        false => namespaces::leave(),
    };
    let landlock = match settings.contains(&Setting::Without(Part::Landlock)) {
        true => Err("switched off".to_owned()),
        false => files::deny(),
    };
    limits::no_more_files().map_err(|error| NoSandbox::Refused("resource limits", error))?;
    // Changes of credentials, which namespaces bring, reset both of these.
    must("dumpable", rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable))?;
    must("parent death signal", rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))?;
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return Err(NoSandbox::Orphan);
    }
    Ok(Confinement {
        landlock: landlock.unwrap_or_else(|reason| format!("not enforced: {reason}")),
        seccomp: false,
        namespaces: namespaces.unwrap_or_else(|error| format!("none: {error}")),
        limits,
        surroundings,
    })
}

/// Denies every system call that is not needed from here on. Says whether it did.
///
/// # Errors
/// There is no filter, and `settings` do not allow to go on without.
pub(crate) fn shut(settings: &[Setting]) -> Result<bool, NoSandbox> {
    let shut = match settings.contains(&Setting::Without(Part::Seccomp)) {
        true => Err(io::ErrorKind::Unsupported.into()),
        false => filter::apply(),
    };
    match shut {
        Ok(()) => Ok(true),
        Err(_) if settings.contains(&Setting::AllowWeak) => Ok(false),
        Err(error) => Err(NoSandbox::Filter(error)),
    }
}

/// What is left of the parent's, for people.
fn surroundings() -> String {
    let directory =
        std::env::current_dir().map_or_else(|error| error.to_string(), |path| path.display().to_string());
    // The listing itself is one of them.
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count).saturating_sub(1);
    format!("{} variables, directory {directory}, {open} descriptors", std::env::vars_os().count())
}

/// Reads the time zone while files can be read: the C library does so when a local time is first asked for, and not again.
#[allow(unsafe_code)] // There is no other way to ask for it.
fn read_time_zone() {
    let now: libc::time_t = 0;
    // SAFETY: all fields of the structure are plain data, for which zeros are right; there is one thread, so nobody
    // changes the variables that are read.
    unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const now, &raw mut local);
    }
}

/// Closes everything but the three standard descriptors.
#[allow(unsafe_code)] // Called before anything of this process is open.
fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor above 2 yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if closed != 0 {
        let highest = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(65_536);
        for descriptor in 3..i32::try_from(highest.min(65_536)).unwrap_or(65_536) {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
    }
}
