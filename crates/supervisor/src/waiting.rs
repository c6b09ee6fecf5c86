//! Whether a process waits for a terminal, by the system call it is in.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::libc;
use rustix::process::Pid;

use crate::proc::Proc;

/// Most descriptors that one call may name; calls that name more are not looked into.
const MOST: u64 = 4096;
/// The bit for "can be read" in `poll` and `epoll`.
const READABLE: u64 = 1;

/// Whether the process is in a call that reads the terminal `name`, or waits until it can be read.
pub(crate) fn reads(proc: &Proc, pid: Pid, name: &[u8]) -> bool {
    let number = pid.as_raw_nonzero().get();
    let is_terminal = |descriptor: &u64| {
        let link = proc.read_link(&format!("{number}/fd/{descriptor}"));
        link.is_ok_and(|link| link == name || link == b"/dev/tty")
    };
    let call = proc.read(&format!("{number}/syscall")).unwrap_or_default();
    let Some(call) = std::str::from_utf8(&call).ok().and_then(Call::parse) else { return false };
    call.descriptors(proc, number).iter().any(is_terminal)
}

/// A system call that a process is in, as far as it concerns reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read {
        descriptor: u64,
    },
    /// An array of `struct pollfd`.
    Poll {
        array: u64,
        length: u64,
    },
    /// A bit for each descriptor below `end`.
    Select {
        end: u64,
        bits: u64,
    },
    Epoll {
        descriptor: u64,
    },
}

impl Call {
    /// The form of `/proc/PID/syscall`: the number, then the arguments in hexadecimal.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let number: libc::c_long = words.next()?.parse().ok()?;
        let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (first, second) = (argument()?, argument()?);
        let is = |known: libc::c_long| number == known;
        if is(libc::SYS_read) || is(libc::SYS_readv) {
            return Some(Self::Read { descriptor: first });
        }
        if is(libc::SYS_ppoll) {
            return Some(Self::Poll { array: first, length: second });
        }
        if is(libc::SYS_pselect6) {
            return Some(Self::Select { end: first, bits: second });
        }
        if is(libc::SYS_epoll_pwait) {
            return Some(Self::Epoll { descriptor: first });
        }
        #[cfg(target_arch = "x86_64")]
        {
            if is(libc::SYS_poll) {
                return Some(Self::Poll { array: first, length: second });
            }
            if is(libc::SYS_select) {
                return Some(Self::Select { end: first, bits: second });
            }
            if is(libc::SYS_epoll_wait) {
                return Some(Self::Epoll { descriptor: first });
            }
        }
        None
    }

    /// The descriptors whose becoming readable the call waits for.
    fn descriptors(self, proc: &Proc, pid: i32) -> Vec<u64> {
        match self {
            Self::Read { descriptor } => vec![descriptor],
            Self::Poll { array, length } => {
                memory(proc, pid, array, length.min(MOST) * 8).map_or_else(Vec::new, |array| polled(&array))
            }
            Self::Select { end, bits } => {
                let bytes = end.min(MOST).div_ceil(64) * 8;
                memory(proc, pid, bits, bytes).map_or_else(Vec::new, |bits| selected(&bits))
            }
            Self::Epoll { descriptor } => {
                let list = proc.read(&format!("{pid}/fdinfo/{descriptor}")).unwrap_or_default();
                watched(&String::from_utf8_lossy(&list))
            }
        }
    }
}

/// Bytes of another process's memory.
fn memory(proc: &Proc, pid: i32, address: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let file: File = proc.open_file(&format!("{pid}/mem")).ok()?;
    file.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

fn polled(array: &[u8]) -> Vec<u64> {
    let (entries, _) = array.as_chunks::<8>();
    let descriptor = |[a, b, c, d, low, high, ..]: &[u8; 8]| {
        let readable = u64::from(u16::from_ne_bytes([*low, *high])) & READABLE != 0;
        u64::try_from(i32::from_ne_bytes([*a, *b, *c, *d])).ok().filter(|_| readable)
    };
    entries.iter().filter_map(descriptor).collect()
}

fn selected(bits: &[u8]) -> Vec<u64> {
    let bit = |index: &u64| bits[(index / 8) as usize] & (1 << (index % 8)) != 0;
    (0..bits.len() as u64 * 8).filter(bit).collect()
}

/// The readable ones among the lines `tfd: 0 events: 19 data: …`.
fn watched(list: &str) -> Vec<u64> {
    let descriptor = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let descriptor = words.next()?.parse().ok()?;
        let events = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        (events & READABLE != 0).then_some(descriptor)
    };
    list.lines().filter_map(descriptor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_read_are_told_from_others() {
        let line = |number: libc::c_long| format!("{number} 0x5 0x7ffd 0x400 0x0 0x0 0x0 0x7ffd 0x7f0a");
        assert_eq!(Call::parse(&line(libc::SYS_read)), Some(Call::Read { descriptor: 5 }));
        assert_eq!(Call::parse(&line(libc::SYS_ppoll)), Some(Call::Poll { array: 5, length: 0x7ffd }));
        assert_eq!(Call::parse(&line(libc::SYS_write)), None);
        assert_eq!(Call::parse("running\n"), None);
        assert_eq!(Call::parse("-1 0x7ffd 0x7f0a"), None);
    }

    #[test]
    fn what_is_waited_for_is_read_from_every_form() {
        let mut array = Vec::new();
        for (descriptor, events) in [(0_i32, 1_u16), (1, 4), (-1, 1), (7, 5)] {
            array.extend_from_slice(&descriptor.to_ne_bytes());
            array.extend_from_slice(&events.to_ne_bytes());
            array.extend_from_slice(&[0, 0]);
        }
        assert_eq!(polled(&array), [0, 7]);
        assert_eq!(selected(&[0b101, 0, 0b1, 0, 0, 0, 0, 0]), [0, 2, 16]);
        let list = "pos:\t0\ntfd:        0 events:       19 data: 0\ntfd: 9 events: 4 data: 9\n";
        assert_eq!(watched(list), [0]);
    }
}
