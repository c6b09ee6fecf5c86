//! What a job may write, and whether it may use the network.
//!
//! [`Sandbox::choose`] finds out what this machine can enforce, by trying it in a process of its own; a level that
//! lets anything through is not used. A [`Policy`] is what travels to the guard.
//!
//! | | Landlock | mounts |
//! |---|---|---|
//! | write, create, remove, rename elsewhere | denied | denied |
//! | mode, owner, times, attributes of files elsewhere | not known to it | denied |
//! | `protect` within the workspace | not possible | denied |
//! | needs | Linux 6.2 | `CAP_SYS_ADMIN`, or a user namespace |
//!
//! Both are used where both hold. A user namespace makes the files of others belong to nobody, which for example
//! `ssh` takes offence at, so it is entered only where the network is off anyway, where `protect` was asked for, or
//! where there is no Landlock.
//!
//! No network means that no packet leaves, of whatever protocol. Sockets in the file system are not a network: a
//! service that listens on one, such as a container daemon, can still be asked for things.

mod choose;
mod level;
mod paths;
mod probe;

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod privileges;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use landlock::Confinement;

pub use choose::{Finding, Request, Sandbox, Unavailable, Wanted, landlock_version, namespaces, survey};
pub use level::{Level, Mode, NetworkOff, OFF};
pub use paths::default_write_paths;
pub(crate) use probe::PROBE_ARGUMENT;
pub(crate) use probe::main as probe_main;

/// The confinement of one job. It is chosen by the host, travels to the guard with the job's description, and is
/// entered in two steps: [`Policy::prepare`] in the guard, [`Policy::enter`] in the child between the fork and the
/// start of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    namespaces: Namespaces,
    /// Landlock denies changes of files everywhere but below these paths.
    files: Option<Vec<PathBuf>>,
    /// And reading, and running, everywhere but below those.
    reads: Option<Reads>,
    /// Only local sockets can be made.
    filter: bool,
    /// Nothing of the network may be reached, by whatever means.
    network_off: bool,
}

/// The part of a policy that a guard enters for itself and the programs it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Namespaces {
    /// A user namespace, in which this user keeps its number.
    user: bool,
    mounts: Option<Mounts>,
    network: bool,
}

/// What may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Reads {
    /// Files here may be read.
    read: Vec<PathBuf>,
    /// Programs here may be run, too.
    run: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mounts {
    write: Vec<PathBuf>,
    protect: Vec<PathBuf>,
}

impl Policy {
    /// No confinement at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether there is no confinement at all.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Lets the job read only below `read`, and read and run only below `run`. What may be written may be read.
    /// Listing a directory is reading; that something exists can still be found out.
    ///
    /// Only Landlock can do this: without it, nothing is confined further, and the answer is `false`.
    pub fn confine_reads(&mut self, read: &[PathBuf], run: &[PathBuf]) -> bool {
        let resolved = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        if self.files.is_some() {
            self.reads = Some(Reads { read: resolved(read), run: resolved(run) });
        }
        self.files.is_some()
    }

    /// The namespaces that the guard must be in. A guard that is in others, or in any when none are needed, must
    /// not be used for this job.
    #[cfg(target_os = "linux")]
    pub(crate) fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }
}

#[cfg(target_os = "linux")]
impl Policy {
    /// Enters the namespaces, for this process and all it starts, for good. The process has one thread. Files that
    /// were opened before are not affected: a working directory must be entered again, by its path.
    ///
    /// # Errors
    /// The operating system refused; then this process must not be used any more.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        use nix::sched::{CloneFlags, unshare};
        let Namespaces { user, mounts, network } = &self.namespaces;
        let mut flags = CloneFlags::empty();
        flags.set(CloneFlags::CLONE_NEWUSER, *user);
        flags.set(CloneFlags::CLONE_NEWNS, mounts.is_some());
        flags.set(CloneFlags::CLONE_NEWNET, *network);
        if flags.is_empty() {
            return Ok(());
        }
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        unshare(flags)?;
        if *user {
            std::fs::write("/proc/self/setgroups", "deny")?;
            std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1", uid = uid.as_raw()))?;
            std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1", gid = gid.as_raw()))?;
        }
        if *network {
            network::loopback_up()?;
        }
        if let Some(Mounts { write, protect }) = mounts {
            mounts::restrict(write, protect)?;
        }
        Ok(())
    }

    /// Enters a working directory that was opened outside.
    ///
    /// # Errors
    /// It cannot be entered, or not at the place where it was.
    pub(crate) fn enter_directory(&self, directory: impl rustix::fd::AsFd) -> io::Result<()> {
        rustix::process::fchdir(&directory)?;
        if self.namespaces.mounts.is_some() {
            // The open one leads around the mounts here, so the same place is entered by its path.
            let path = rustix::fs::readlink("/proc/self/cwd", Vec::new())?;
            rustix::process::chdir(&path)?;
            let (here, there) = (rustix::fs::stat(".")?, rustix::fs::fstat(&directory)?);
            if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino) {
                return Err(io::Error::other("it was moved or removed meanwhile"));
            }
        }
        Ok(())
    }

    /// Makes what [`Policy::enter`] needs, or keeps what is there if it still is the same. In the namespaces of the job.
    ///
    /// # Errors
    /// The operating system refused.
    pub(crate) fn get_ready(&self, confinement: &mut Confinement) -> io::Result<()> {
        match &self.files {
            Some(write) => confinement.get_ready(write, self.reads.as_ref(), self.network_off),
            None => Ok(()),
        }
    }

    /// Confines this process, and with it all that it starts, for good. The process has one thread, and is a child
    /// of one that is [prepared](Policy::prepare) and where all is [ready](Policy::get_ready).
    ///
    /// # Errors
    /// The operating system refused; then the program must not be started.
    pub(crate) fn enter(&self, confinement: &mut Confinement) -> io::Result<()> {
        if self.is_none() {
            return Ok(());
        }
        rustix::thread::set_no_new_privs(true)?;
        privileges::give_up(self.namespaces.user)?;
        if self.files.is_some() {
            confinement.enter()?;
        }
        if self.filter {
            network::filter()?;
        }
        Ok(())
    }
}

/// Nothing is confined here.
#[cfg(not(target_os = "linux"))]
#[derive(Default)]
pub(crate) struct Confinement;

#[cfg(not(target_os = "linux"))]
impl Policy {
    pub(crate) fn prepare(&self) -> io::Result<()> {
        if self.is_none() { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    pub(crate) fn get_ready(&self, _: &mut Confinement) -> io::Result<()> {
        self.prepare()
    }

    pub(crate) fn enter(&self, _: &mut Confinement) -> io::Result<()> {
        self.prepare()
    }
}
