//! A path whose parts are swapped for links to the outside while it is used.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use jail::PathError;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

use crate::support::{Fixture, SECRET, names};

/// How often the two are exchanged at least, and how often the operation is tried.
const FLIPS: usize = 5_000;
const TRIES: usize = 2_000;

/// How often a program without locks replaces a file.
const VERSIONS: usize = 3_000;

/// When to give up on meeting both states.
const MOST_TRIES: usize = 500_000;

/// Ends the flipping, also when an assertion fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Exchanges two names, over and over, while `body` runs: `TRIES` times, and on until `FLIPS` is reached and the body
/// has met both states. A race in which only one side ever wins shows nothing.
fn while_flipping(one: &Path, other: &Path, mut body: impl FnMut(&mut Outcomes)) {
    let done = AtomicBool::new(false);
    let flips = AtomicUsize::new(0);
    let mut outcomes = Outcomes::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                flips.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _done = Done(&done);
        for tries in 0.. {
            let enough = tries >= TRIES && flips.load(Ordering::Relaxed) >= FLIPS;
            if enough && outcomes.done > 0 && outcomes.refused > 0 {
                break;
            }
            assert!(tries < MOST_TRIES, "{outcomes:?}");
            body(&mut outcomes);
        }
    });
}

/// Counts what came of an operation: inside, or a refusal that has to do with the swap.
#[derive(Debug, Default)]
struct Outcomes {
    done: usize,
    refused: usize,
}

impl Outcomes {
    fn count<T>(&mut self, result: Result<T, PathError>) {
        match result {
            Ok(_) => self.done += 1,
            Err(
                PathError::OutsideRoot { .. }
                | PathError::Changed { .. }
                | PathError::NotFound { .. }
                | PathError::SpecialFile { .. }
                | PathError::Locked { .. },
            ) => self.refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// `a/b/dir` is a directory, `link` a link to the outside that has the same names.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("a/b/dir/secret.txt", "inside\n");
    fixture.link(fixture.outside(""), "link");
    fixture
}

fn check_outside(fixture: &Fixture) {
    assert_eq!(fs::read_to_string(fixture.outside("secret.txt")).unwrap(), SECRET);
    assert_eq!(names(&fixture.outside("")), ["secret.txt"]);
}

#[test]
fn a_directory_that_turns_into_a_link_never_leads_a_read_outside() {
    let fixture = fixture();
    while_flipping(&fixture.repo("a/b/dir"), &fixture.repo("link"), |outcomes| {
        let read = fixture.read("a/b/dir/secret.txt");
        if let Ok(text) = &read {
            assert_eq!(text, "inside\n");
        }
        outcomes.count(read);
    });
}

#[test]
fn a_path_resolved_before_the_swap_never_leads_outside() {
    let fixture = fixture();
    let path = fixture.ask("a/b/dir/secret.txt").unwrap();
    let directory = path.parent().unwrap();
    while_flipping(&fixture.repo("a/b/dir"), &fixture.repo("link"), |outcomes| {
        let read = path.read();
        if let Ok(bytes) = &read {
            assert_eq!(bytes, b"inside\n");
        }
        outcomes.count(read);
        if let Ok(open) = directory.open_dir() {
            assert_eq!(open.path().to_string(), "a/b/dir");
        }
    });
}

#[test]
fn a_directory_that_turns_into_a_link_never_leads_a_write_outside() {
    let fixture = fixture();
    let mut number = 0;
    while_flipping(&fixture.repo("a/b/dir"), &fixture.repo("link"), |outcomes| {
        number += 1;
        outcomes.count(fixture.replace("a/b/dir/secret.txt", "inside\n"));
        outcomes.count(fixture.replace(&format!("a/b/dir/new-{}", number % 7), "new"));
        outcomes.count(
            fixture.ask(&format!("a/b/dir/made-{}/x", number % 5)).and_then(|path| path.create_dir_all()),
        );
    });
    check_outside(&fixture);
}

#[test]
fn a_file_that_turns_into_a_link_is_not_followed_outside() {
    let fixture = Fixture::new();
    fixture.write("file", "inside\n");
    fixture.link(fixture.outside("secret.txt"), "link");
    while_flipping(&fixture.repo("file"), &fixture.repo("link"), |outcomes| {
        let read = fixture.read("file");
        if let Ok(text) = &read {
            assert_eq!(text, "inside\n");
        }
        outcomes.count(read);
    });
    check_outside(&fixture);
}

#[test]
fn a_file_that_turns_into_a_fifo_is_not_waited_for() {
    let fixture = Fixture::new();
    fixture.write("file", "inside\n");
    mknodat(CWD, fixture.repo("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    while_flipping(&fixture.repo("file"), &fixture.repo("fifo"), |outcomes| {
        outcomes.count(fixture.read("file"));
    });
}

/// The other program renames its versions into place, one after the other, and takes no lock. It must find each
/// version still there, or something made from it, when it comes to the next.
#[test]
fn a_program_without_locks_never_loses_what_it_wrote() {
    let fixture = Fixture::new();
    let path = fixture.write("file", "0\n");
    let draft = fixture.repo("draft");
    let done = AtomicBool::new(false);
    let survives = |version: usize| {
        let first_line = format!("{version}\n");
        // Ours may be there for a moment before it is taken back.
        (0..2_000).any(|_| {
            let found = fs::read_to_string(&path).is_ok_and(|text| text.starts_with(&first_line));
            found || {
                thread::sleep(Duration::from_millis(1));
                false
            }
        })
    };
    let (mut written, mut stale) = (0, 0);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _done = Done(&done);
            for version in 1..=VERSIONS {
                fs::write(&draft, format!("{version}\n")).unwrap();
                assert!(survives(version - 1), "version {} was lost", version - 1);
                fs::rename(&draft, &path).unwrap();
                if version % 100 == 0 {
                    // Long enough for ours to come through.
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        while !done.load(Ordering::Acquire) || written == 0 {
            let mut lock = fixture.ask("file").unwrap().lock_for_write().unwrap();
            let mut text = lock.contents().unwrap().unwrap();
            text.truncate(20);
            text.extend_from_slice(b"ours\n");
            match lock.replace(&text) {
                Ok(_) => written += 1,
                Err(error) => {
                    assert_eq!(error.code(), Some("stale"), "{error}");
                    stale += 1;
                }
            }
        }
        other.join().unwrap();
    });
    assert!(survives(VERSIONS));
    assert!(stale > 0, "{written} {stale}");
    assert_eq!(fixture.names(""), ["file"]);
}

#[test]
fn a_link_that_changes_its_target_never_leads_outside() {
    let fixture = Fixture::new();
    fixture.write("dir/secret.txt", "inside\n");
    fixture.link("dir", "one");
    fixture.link("../outside", "two");
    while_flipping(&fixture.repo("one"), &fixture.repo("two"), |outcomes| {
        let read = fixture.read("one/secret.txt");
        if let Ok(text) = &read {
            assert_eq!(text, "inside\n");
        }
        outcomes.count(read);
        outcomes.count(fixture.replace("one/secret.txt", "inside\n"));
        let climbing = fixture.read("one/../dir/secret.txt");
        outcomes.count(climbing);
    });
    check_outside(&fixture);
}
