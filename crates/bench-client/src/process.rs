//! What the kernel tells of other processes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// The memory of a process in bytes, from the line of the kernel's account of it that begins with `what`.
pub(crate) fn memory(pid: u32, what: &'static str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).context(what)?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

/// The most memory that each of the children of a process has had so far, of those that run the same program: guards.
pub(crate) fn guards_memory(pid: u32) -> u64 {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let is_guard = |child: &u32| fs::read_link(format!("/proc/{child}/exe")).ok() == program;
    children(pid)
        .into_iter()
        .filter(is_guard)
        .filter_map(|child| memory(child, "VmHWM:").ok())
        .max()
        .unwrap_or(0)
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread =
        |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|child| child.parse().ok()).collect()
}

/// The time that the threads of a process have spent on a processor, in nanoseconds; threads called `but` aside.
/// It goes down when a thread ends, so what it tells is whether it stays the same.
pub(crate) fn time_spent(pid: u32, but: Option<&str>) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let spent = |thread: &Path| {
        let is_other = but.is_some_and(|but| {
            fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.trim_end() == but)
        });
        let account = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        account.split_whitespace().next().filter(|_| !is_other).and_then(|spent| spent.parse::<u64>().ok())
    };
    threads.filter_map(|thread| spent(&thread.path())).sum()
}

/// Waits until a process has no thread of this name.
///
/// # Errors
/// It still has one after a minute.
pub(crate) fn without_thread(pid: u32, name: &str) -> anyhow::Result<()> {
    let limit = Instant::now() + Duration::from_secs(60);
    let is_it = |thread: fs::DirEntry| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    // The thread may be about to begin.
    std::thread::sleep(Duration::from_millis(20));
    while fs::read_dir(format!("/proc/{pid}/task"))?.flatten().any(is_it) {
        ensure!(Instant::now() < limit, "the thread {name} does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Waits until a process has done nothing for `quiet`; answers when it last did something.
pub(crate) fn settled(pid: u32, but: Option<&str>, quiet: Duration) -> Instant {
    let (mut spent, mut since) = (time_spent(pid, but), Instant::now());
    while since.elapsed() < quiet {
        std::thread::sleep(Duration::from_micros(500));
        let now = time_spent(pid, but);
        if now != spent {
            (spent, since) = (now, Instant::now());
        }
    }
    since
}
