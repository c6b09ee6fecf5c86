//! Many writers of one file, in threads and in processes.

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use jail::{PathError, Roots, is_temp_name, remove_stale_temps};

use crate::support::Fixture;

const THREADS: usize = 4;
const PROCESSES: usize = 3;
const EDITS: usize = 20;

/// Where a writing process finds the root; the number of the process follows.
const ROOT: &str = "JAIL_TEST_ROOT";
const NUMBER: &str = "JAIL_TEST_NUMBER";

/// A process that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs one of the ignored tests below in a process of its own.
fn start(test: &str, fixture: &Fixture, number: usize) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--quiet"])
        .env(ROOT, fixture.repo(""))
        .env(NUMBER, number.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Appends a line, so that the length changes with every edit.
fn append(roots: &Roots, spelling: &str, line: &str) {
    let path = roots.resolve(spelling, roots.first().path()).unwrap();
    let mut lock = path.lock_for_write().unwrap();
    let mut bytes = lock.contents().unwrap().unwrap_or_default();
    bytes.extend_from_slice(line.as_bytes());
    bytes.push(b'\n');
    lock.replace(&bytes).unwrap();
}

fn write_from_threads(roots: &Roots, process: usize) {
    thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                let spelling = ["file", "./sub/../file", "link", "sub/link"][number % 4];
                for edit in 0..EDITS {
                    append(roots, spelling, &format!("{process} {number} {edit}"));
                }
            });
        }
    });
}

/// Not a check of its own: what [`every_edit_of_many_threads_and_processes_lands`] starts again as a process.
#[test]
#[ignore = "started by every_edit_of_many_threads_and_processes_lands"]
fn writing_process() {
    let root = env::var(ROOT).unwrap();
    let number = env::var(NUMBER).unwrap().parse().unwrap();
    write_from_threads(&Roots::open(&[root], &PathBuf::from("/")).unwrap(), number);
}

#[test]
fn every_edit_of_many_threads_and_processes_lands() {
    let fixture = Fixture::new();
    fixture.write("sub/x", "");
    fixture.link("file", "link");
    fixture.link("../file", "sub/link");
    // The file does not exist yet: the first edit of each process may be the one that creates it.
    let start = |number| Killed(start("concurrency::writing_process", &fixture, number));
    let children: Vec<_> = (1..PROCESSES).map(start).collect();
    write_from_threads(&fixture.roots, 0);
    for mut child in children {
        assert!(child.0.wait().unwrap().success());
    }
    let text = fs::read_to_string(fixture.repo("file")).unwrap();
    let mut actual: Vec<&str> = text.lines().collect();
    actual.sort_unstable();
    let mut expected = Vec::new();
    for process in 0..PROCESSES {
        for number in 0..THREADS {
            expected.extend((0..EDITS).map(|edit| format!("{process} {number} {edit}")));
        }
    }
    expected.sort_unstable();
    assert_eq!(actual, expected);
    assert_eq!(fixture.names(""), ["file", "link", "sub"]);
}

/// Not a check of its own: what [`a_writer_that_is_killed_leaves_the_old_content`] starts and kills.
#[test]
#[ignore = "started by a_writer_that_is_killed_leaves_the_old_content"]
fn stuck_process() {
    let root = env::var(ROOT).unwrap();
    let roots = Roots::open(&[root], &PathBuf::from("/")).unwrap();
    let mut lock = roots.resolve("file", roots.first().path()).unwrap().lock_for_write().unwrap();
    lock.replace_with(|file| {
        file.write_all(b"half of the new con")?;
        fs::write(roots.first().path().join("ready"), "")?;
        loop {
            thread::park();
        }
    })
    .unwrap();
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_content() {
    let fixture = Fixture::new();
    fixture.write("file", "old");
    let mut child = Killed(start("concurrency::stuck_process", &fixture, 0));
    while !fixture.repo("ready").exists() {
        assert!(child.0.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(1));
    }
    let asked = fixture.ask("file").unwrap();
    assert!(matches!(asked.lock_for_write_within(Duration::ZERO), Err(PathError::Locked { .. })));
    let root = fixture.ask(".").unwrap();
    assert_eq!(remove_stale_temps(&root).unwrap(), 0);
    drop(child);
    let left = fixture.names("");
    assert!(left.len() == 3 && is_temp_name(left[0].as_ref()), "{left:?}");
    assert_eq!(fixture.read("file").unwrap(), "old");
    assert_eq!(remove_stale_temps(&root).unwrap(), 1);
    fixture.replace("file", "new").unwrap();
    assert_eq!(fixture.names(""), ["file", "ready"]);
}

#[test]
fn readers_see_whole_files_only() {
    let fixture = Fixture::new();
    fixture.write("file", &"0\n".repeat(1000));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..200 {
                let digit = round % 10;
                fixture.replace("file", &format!("{digit}\n").repeat(1000 + digit * 500)).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let text = fixture.read("file").unwrap();
            let digit: usize = text[..1].parse().unwrap();
            assert_eq!(text, format!("{digit}\n").repeat(1000 + digit * 500));
        }
    });
}

#[test]
fn one_of_many_creators_wins() {
    let fixture = Fixture::new();
    for round in 0..20 {
        let name = format!("file-{round}");
        let create = &|number: usize| {
            let mut lock = fixture.ask(&name).unwrap().lock_for_write().unwrap();
            let first = !lock.exists();
            if first {
                assert!(lock.replace(number.to_string().as_bytes()).unwrap().created);
            }
            first.then_some(number)
        };
        let winners: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || create(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(winners.len(), 1);
        assert_eq!(fixture.read(&name).unwrap(), winners[0].to_string());
    }
}
