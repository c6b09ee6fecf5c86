//! The kernel's word on which directories have changed.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// What is told of a watched directory: its entries come, go and change their names, or it does itself. What is written
/// into files is not.
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR);

/// Bytes of events that one system call may bring.
const BUFFER: usize = 64 * 1024;

/// A directory that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct WatchId(i32);

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Something that is no directory came or went.
    Entry(WatchId),
    /// A directory of this name came or went.
    Directory(WatchId, Box<[u8]>),
    /// The directory itself is no longer where, or what, it was.
    Itself(WatchId),
    /// More happened than the kernel could remember, or the file systems themselves are not where they were.
    Everything,
}

/// An inotify instance, and the table of mounts.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: OwnedFd,
    mounts: OwnedFd,
    buffer: Vec<u8>,
}

impl Watch {
    /// # Errors
    ///
    /// What the operating system says: the user has too many instances, or there is no `/proc`.
    pub(super) fn new() -> rustix::io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let mounts = rustix::fs::open("/proc/self/mountinfo", flags, rustix::fs::Mode::empty())?;
        Ok(Self { inotify, mounts, buffer: Vec::new() })
    }

    /// Watches an open directory. From here on every change of it will be told.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when the user has no watches left.
    pub(super) fn add(&self, directory: impl AsFd) -> rustix::io::Result<WatchId> {
        // By way of the handle, so that it is this directory whatever has its name by now.
        let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        inotify::add_watch(&self.inotify, path, WANTED).map(WatchId)
    }

    pub(super) fn remove(&self, watch: WatchId) {
        // It may be gone by itself, with its directory.
        let _ = inotify::remove_watch(&self.inotify, watch.0);
    }

    /// What happened since the last call, in order.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        if self.mounts_changed() {
            return vec![Change::Everything];
        }
        let mut changes = Vec::new();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.reserve(BUFFER);
        let mut events = inotify::Reader::new(&self.inotify, buffer.spare_capacity_mut());
        loop {
            match events.next() {
                Ok(event) => changes.extend(change(&event)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    changes.push(Change::Everything);
                    break;
                }
            }
        }
        self.buffer = buffer;
        changes
    }

    /// A directory that something is mounted on is another one, and inotify says nothing of it.
    fn mounts_changed(&self) -> bool {
        let mut mounts = [PollFd::new(&self.mounts, PollFlags::PRI)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut mounts, Some(&now)) {
            Ok(0) | Err(Errno::INTR) => false,
            Ok(_) => mounts[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }
}

fn change(event: &inotify::Event<'_>) -> Option<Change> {
    let (what, watch) = (event.events(), WatchId(event.wd()));
    if what.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Change::Everything);
    }
    let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED;
    if what.intersects(gone) {
        return Some(Change::Itself(watch));
    }
    match event.file_name() {
        // Its mode may have changed, and with it what can be read.
        None => Some(Change::Itself(watch)),
        Some(_) if what.contains(ReadFlags::ATTRIB) => None,
        Some(name) if what.contains(ReadFlags::ISDIR) => {
            Some(Change::Directory(watch, name.to_bytes().into()))
        }
        Some(_) => Some(Change::Entry(watch)),
    }
}
