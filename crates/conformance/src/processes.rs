//! Which processes there are because of a launch, read from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::world::MARK;

/// Tells a process from every other, also from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pid: u32,
    started: u64,
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    parent: u32,
    exe: Option<PathBuf>,
    /// Its arguments, each ended by a zero byte.
    pub(crate) command: Vec<u8>,
    /// The world's mark in its environment, for which it was given all that the provider has.
    mark: Option<Vec<u8>>,
}

impl Process {
    /// Its command line, for people.
    fn in_words(&self) -> String {
        String::from_utf8_lossy(&self.command).trim_end_matches('\0').replace('\0', " ")
    }
}

/// The processes that a launch has brought into the world, without the provider itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    found: BTreeMap<Id, Process>,
    /// The provider's program while it lives: its own helpers may come and go.
    program: Option<PathBuf>,
}

impl Processes {
    /// Those of the provider with that number, in that world: its descendants, those that carry the world's mark,
    /// work in it, or name it on their command line.
    ///
    /// # Errors
    /// Where there is no `/proc`.
    pub(crate) fn of(provider: u32, world: &Path) -> io::Result<Self> {
        let all = everything()?;
        let program = fs::read_link(format!("/proc/{provider}/exe")).ok();
        let mut family = BTreeSet::from([provider]);
        loop {
            let size = family.len();
            family.extend(
                all.iter()
                    .filter(|(_, it)| family.contains(&it.parent))
                    .map(|(id, _)| id.pid)
                    .collect::<Vec<_>>(),
            );
            if family.len() == size {
                break;
            }
        }
        let own = std::process::id();
        let found = all
            .into_iter()
            .filter(|(id, process)| {
                id.pid != provider
                    && id.pid != own
                    && (family.contains(&id.pid) || refers_to(id.pid, process, world))
            })
            .collect();
        Ok(Self { found, program })
    }

    /// Ends what [`beyond`](Self::beyond) names, so that a check leaves nothing behind.
    pub(crate) fn end_beyond(&self, before: &Self) {
        self.beyond_ids(before).for_each(end);
    }

    /// What is here and was not before, leaving out one helper that a living provider keeps ready of its own program.
    pub(crate) fn beyond(&self, before: &Self) -> Vec<String> {
        let words =
            |id: Id| self.found.get(&id).map(|process| format!("{} ({})", process.in_words(), id.pid));
        self.beyond_ids(before).filter_map(words).collect()
    }

    fn beyond_ids<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = Id> + 'a {
        let is_helper = |process: &Process| self.program.is_some() && process.exe == self.program;
        let allowed = before.found.values().filter(|process| is_helper(process)).count().max(1);
        let helpers = self.found.values().filter(|process| is_helper(process)).count();
        let new = self.found.iter().filter(|(id, _)| !before.found.contains_key(id));
        new.filter(move |(_, process)| !is_helper(process) || helpers > allowed).map(|(id, _)| *id)
    }

    /// Whether there is one that was not there before.
    pub(crate) fn has_new(&self, before: &Self) -> bool {
        self.found.keys().any(|id| !before.found.contains_key(id))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.found.values()
    }

    /// Those that run another program than the provider's, in words, and whether each was given its environment.
    /// One that has not come to its own program yet is not among them.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = (String, bool)> {
        let foreign = |it: &&Process| self.program.is_some() && it.exe.is_some() && it.exe != self.program;
        self.found.values().filter(foreign).map(|it| (it.in_words(), it.mark.is_some()))
    }
}

/// Ends a process, but never another that has got its number.
fn end(id: Id) {
    let Some(pid) = i32::try_from(id.pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if read(id.pid).is_some_and(|(now, _)| now == id) {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

fn everything() -> io::Result<BTreeMap<Id, Process>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that has gone meanwhile is of no interest.
        if let Some((id, process)) = read(pid) {
            all.insert(id, process);
        }
    }
    Ok(all)
}

/// The process, unless it is gone or only waits to be reaped.
fn read(pid: u32) -> Option<(Id, Process)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let (state, parent, started) = (*fields.first()?, fields.get(1)?, fields.get(19)?);
    if matches!(state, "Z" | "X") {
        return None;
    }
    // The program first: what is read after it is the program's, even where it has only just been started.
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = format!("{MARK}=").into_bytes();
    let process = Process {
        parent: parent.parse().ok()?,
        exe,
        command: fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default(),
        mark: environment
            .split(|byte| *byte == 0)
            .find_map(|it| it.strip_prefix(&mark[..]).map(<[u8]>::to_vec)),
    };
    Some((Id { pid, started: started.parse().ok()? }, process))
}

fn refers_to(pid: u32, process: &Process, world: &Path) -> bool {
    let text = world.as_os_str().as_encoded_bytes();
    let mentions = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let works_there = || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(world));
    let is_marked = process.mark.as_deref() == Some(text);
    is_marked || works_there() || mentions(&process.command)
}
