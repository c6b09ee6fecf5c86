//! A terminal for a program that wants one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;

use crate::piece::{Piece, Source};
use crate::proc::Proc;
use crate::waiting;
use crate::watched::watched;

/// The longest piece that one read answers.
const PIECE: usize = 16 * 1024;

/// Our end of a terminal.
pub struct Terminal {
    master: AsyncFd<OwnedFd>,
    /// The name of the program's end, `/dev/pts/N`.
    name: Vec<u8>,
    ended: bool,
}

impl Terminal {
    /// A terminal of this size, and the program's end of it. Needs a runtime.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn new(rows: u16, columns: u16) -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?.into_bytes();
        let theirs = ioctl_tiocgptpeer(&master, flags)?;
        tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok((Self { master: watched(master)?, name, ended: false }, theirs))
    }

    /// The next piece; `None` once no program has the terminal open. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Piece> {
        while !self.ended {
            let mut ready = self.master.readable().await.ok()?;
            match read(ready.get_inner()) {
                Ok(Some(piece)) => return Some(piece),
                Ok(None) => self.ended = true,
                Err(_) => ready.clear_ready(),
            }
        }
        None
    }

    /// The next piece that has been written already.
    pub fn try_next(&mut self) -> Option<Piece> {
        match read(self.master.get_ref()) {
            Ok(Some(piece)) if !self.ended => Some(piece),
            Ok(None) => {
                self.ended = true;
                None
            }
            _ => None,
        }
    }

    /// Whether no program has the terminal open any more.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Types `input`; answers how many bytes the terminal took before it was full.
    ///
    /// # Errors
    /// What the operating system says; `WouldBlock` when it took none.
    pub fn write(&self, input: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::write(self.master.get_ref(), input))?)
    }

    /// Whether a process in the foreground of the terminal waits for somebody to type.
    ///
    /// This is what the kernel says the process does, not a guess from what it printed: it is in a call that reads
    /// the terminal, or waits until it can be read.
    pub fn waits_for_input(&self) -> bool {
        let (Ok(group), Ok(proc)) = (rustix::termios::tcgetpgrp(self.master.get_ref()), Proc::open()) else {
            return false;
        };
        members(&proc, group).into_iter().any(|pid| waiting::reads(&proc, pid, &self.name))
    }
}

fn read(master: impl AsFd) -> Result<Option<Piece>, Errno> {
    let mut bytes = Vec::with_capacity(PIECE);
    match rustix::io::retry_on_intr(|| rustix::io::read(&master, spare_capacity(&mut bytes))) {
        // So it says that nobody has the other end.
        Ok(0) | Err(Errno::IO) => Ok(None),
        Ok(_) => Ok(Some(Piece { source: Source::Stdout, bytes })),
        Err(Errno::AGAIN) => Err(Errno::AGAIN),
        Err(_) => Ok(None),
    }
}

/// The processes of a group: its leader and those below it, for that is where a shell's foreground is.
fn members(proc: &Proc, group: Pid) -> Vec<Pid> {
    let in_group = |pid: Pid| rustix::process::getpgid(Some(pid)) == Ok(group);
    let mut members = vec![group];
    let mut index = 0;
    while let Some(&pid) = members.get(index) {
        index += 1;
        members.extend(proc.children(pid).into_iter().filter(|child| in_group(*child)));
    }
    members
}
