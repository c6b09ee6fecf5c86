//! Watches directories for anything that is more than reading.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// What happened to a path, in a word.
pub(crate) type Touched = BTreeMap<PathBuf, &'static str>;

/// A watch on a tree of directories as it was when the watch began. Directories that are made meanwhile are
/// reported themselves.
#[derive(Debug)]
pub(crate) struct Watch {
    inotify: OwnedFd,
    directories: BTreeMap<i32, PathBuf>,
}

impl Watch {
    /// Watches `top` and every directory below it.
    pub(crate) fn on(top: &Path) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let mut directories = BTreeMap::new();
        let mut open = vec![top.to_owned()];
        while let Some(directory) = open.pop() {
            let descriptor = inotify::add_watch(&inotify, &directory, wanted)?;
            for entry in fs::read_dir(&directory)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    open.push(entry.path());
                }
            }
            directories.insert(descriptor, directory);
        }
        Ok(Self { inotify, directories })
    }

    /// What was touched since the watch began; the first thing that happened to each path.
    pub(crate) fn touched(&self) -> io::Result<Touched> {
        let mut buffer = [MaybeUninit::uninit(); 8 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut out = Touched::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(out),
                Err(error) => return Err(error.into()),
            };
            let Some(directory) = self.directories.get(&event.wd()) else { continue };
            let path = match event.file_name() {
                Some(name) => directory.join(name.to_string_lossy().as_ref()),
                None => directory.clone(),
            };
            out.entry(path).or_insert_with(|| in_a_word(event.events()));
        }
    }
}

fn in_a_word(events: ReadFlags) -> &'static str {
    match () {
        () if events.contains(ReadFlags::CREATE) => "was made",
        () if events.contains(ReadFlags::DELETE) => "was removed",
        () if events.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO) => "was renamed",
        () if events.contains(ReadFlags::MODIFY) => "was written to",
        () if events.contains(ReadFlags::ATTRIB) => "was given other attributes",
        () => "was opened for writing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(act: impl FnOnce(&Path), expected: &[(&str, &str)]) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("d/a"), "text").unwrap();
        let watch = Watch::on(dir.path()).unwrap();
        act(dir.path());
        let touched = watch.touched().unwrap();
        let found: Vec<_> = touched
            .iter()
            .map(|(path, word)| (path.strip_prefix(dir.path()).unwrap().to_str().unwrap(), *word))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn reading_is_not_seen_and_everything_else_is() {
        check(|top| _ = fs::read(top.join("d/a")).unwrap(), &[]);
        let open = |top: &Path| drop(fs::File::options().write(true).open(top.join("d/a")).unwrap());
        check(open, &[("d/a", "was opened for writing")]);
        check(|top| fs::write(top.join("d/a"), "other").unwrap(), &[("d/a", "was written to")]);
        let for_a_moment = |top: &Path| {
            fs::write(top.join("d/b"), "").unwrap();
            fs::remove_file(top.join("d/b")).unwrap();
        };
        check(for_a_moment, &[("d/b", "was made")]);
    }
}
