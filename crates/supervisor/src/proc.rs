//! What `/proc` says about processes.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::job::ProcessName;

/// Longest command line in a report, in characters. A report of many processes still fits into one message.
const LONGEST_COMMAND: usize = 160;

/// The open `/proc`. Held open, so that a changed root directory of a guard leads nowhere else.
#[derive(Debug)]
pub(crate) struct Proc {
    root: OwnedFd,
    /// The kernel lists the children of a process; otherwise all processes are looked at.
    lists_children: bool,
}

/// One process at one moment. The start time tells it from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// `R`, `S`, `D`, `T`, `Z` and so on.
    pub(crate) state: u8,
    pub(crate) start: u64,
}

impl Stat {
    /// It has ended and waits to be collected.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

impl Proc {
    pub(crate) fn open() -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/proc", flags, Mode::empty())?;
        let own = std::process::id();
        let list = format!("{own}/task/{own}/children");
        let lists_children = openat(&root, list, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).is_ok();
        Ok(Self { root, lists_children })
    }

    pub(crate) fn open_file(&self, path: &str) -> Result<File, Errno> {
        openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map(File::from)
    }

    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let mut content = Vec::new();
        let read = self.open_file(path)?.read_to_end(&mut content);
        read.map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
        Ok(content)
    }

    /// Where the link `path` leads.
    pub(crate) fn read_link(&self, path: &str) -> Result<Vec<u8>, Errno> {
        rustix::fs::readlinkat(&self.root, path, Vec::new()).map(std::ffi::CString::into_bytes)
    }

    pub(crate) fn stat(&self, pid: Pid) -> Option<Stat> {
        parse_stat(pid, &self.read(&format!("{}/stat", pid.as_raw_nonzero())).ok()?)
    }

    /// The children of all threads of a process.
    pub(crate) fn children(&self, pid: Pid) -> Vec<Pid> {
        let number = pid.as_raw_nonzero();
        let mut children = Vec::new();
        if !self.lists_children {
            let is_child = |child: &Pid| self.stat(*child).is_some_and(|stat| stat.parent == number.get());
            return self.numbers_in(".").into_iter().filter_map(Pid::from_raw).filter(is_child).collect();
        }
        // Nearly every process has one thread, and that has its number.
        match Some(self.numbers_in(&format!("{number}/task"))).filter(|threads| !threads.is_empty()) {
            Some(threads) => {
                threads.iter().for_each(|thread| self.children_of(number.get(), *thread, &mut children))
            }
            None => self.children_of(number.get(), number.get(), &mut children),
        }
        children
    }

    fn children_of(&self, pid: i32, thread: i32, children: &mut Vec<Pid>) {
        let Ok(list) = self.read(&format!("{pid}/task/{thread}/children")) else { return };
        children.extend(numbers(&list).filter_map(Pid::from_raw));
    }

    /// The entries of a directory that are numbers: processes or threads.
    fn numbers_in(&self, directory: &str) -> Vec<i32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.root, directory, flags, Mode::empty()).and_then(rustix::fs::Dir::new);
        let entries = opened.into_iter().flatten().filter_map(Result::ok);
        entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).collect()
    }

    /// Bytes of memory that a process does not share with others.
    pub(crate) fn private_memory(&self, pid: Pid) -> u64 {
        let statm = self.read(&format!("{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
        let pages: Vec<u64> = numbers(&statm).collect();
        match pages.as_slice() {
            [_, resident, shared, ..] => resident.saturating_sub(*shared) * rustix::param::page_size() as u64,
            _ => 0,
        }
    }

    /// The process with its command line.
    pub(crate) fn name(&self, pid: Pid) -> ProcessName {
        let number = pid.as_raw_nonzero();
        let line = self.read(&format!("{number}/cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
        let command = match words.is_empty() {
            true => {
                let name = self.read(&format!("{number}/comm")).unwrap_or_default();
                format!("[{}]", String::from_utf8_lossy(&name).trim_end())
            }
            false => words.join(" "),
        };
        // Line ends and other control characters have no place in a name.
        let command = command.replace(char::is_control, " ");
        ProcessName { pid: number.get().unsigned_abs(), command: cut(command) }
    }
}

fn cut(mut text: String) -> String {
    if let Some((index, _)) = text.char_indices().nth(LONGEST_COMMAND) {
        text.truncate(index);
        text.push('…');
    }
    text
}

fn numbers<T: std::str::FromStr>(text: &[u8]) -> impl Iterator<Item = T> {
    text.split(u8::is_ascii_whitespace).filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

fn parse_stat(pid: Pid, line: &[u8]) -> Option<Stat> {
    // The name stands in parentheses and may hold anything, also parentheses and blanks.
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(line.get(after_name..)?).ok()?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Stat {
        pid,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) b (c)) S 7 42 41 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1000 10 0";
        let pid = Pid::from_raw(42).unwrap();
        let expected = Stat { pid, parent: 7, group: 42, session: 41, state: b'S', start: 12_345 };
        assert_eq!(parse_stat(pid, line), Some(expected));
    }

    #[test]
    fn children_are_found_without_a_list_of_them() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let own = rustix::process::getpid();
        let listed = Proc::open().unwrap();
        let scanned = Proc { lists_children: false, ..Proc::open().unwrap() };
        assert!(listed.children(own).contains(&pid));
        assert!(scanned.children(own).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn this_process_is_found_among_its_parents_children() {
        let proc = Proc::open().unwrap();
        let own = rustix::process::getpid();
        let stat = proc.stat(own).unwrap();
        let parent = Pid::from_raw(stat.parent).unwrap();
        assert!(proc.children(parent).contains(&own));
        assert!(!stat.is_dead());
        assert!(proc.private_memory(own) > 0);
        assert_eq!(proc.name(own).pid, std::process::id());
    }
}
