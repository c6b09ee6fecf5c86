//! What processes hold on to: memory, descriptors, threads, children; and what is left of them.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::LIMIT;
use super::crew::{Crew, MARK};

/// Descriptors that may come and go beside what is leaked: connections that are being closed.
const SPARE_DESCRIPTORS: usize = 8;
/// Threads of the pool that have not gone to rest yet.
const SPARE_THREADS: usize = 8;
/// Memory that an allocator may keep of what was busy once: a part of what was there, and some.
const SPARE_MEMORY: u64 = 24 << 20;

/// What one process holds.
#[derive(Clone, Copy, Debug)]
struct Figures {
    descriptors: usize,
    threads: usize,
    children: usize,
    memory: u64,
}

impl Figures {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("it has ended")?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or_default()
        };
        Ok(Self {
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            threads: fs::read_dir(format!("/proc/{pid}/task"))?.count(),
            children: children(pid),
            memory: number("RssAnon:") * 1024,
        })
    }

    /// What of this is more than a process that had `before` may have.
    fn excess(self, before: Self) -> Option<String> {
        let memory = before.memory + before.memory / 2 + SPARE_MEMORY;
        let found = [
            (
                "descriptors",
                before.descriptors as u64,
                self.descriptors as u64,
                (before.descriptors + SPARE_DESCRIPTORS) as u64,
            ),
            ("threads", before.threads as u64, self.threads as u64, (before.threads + SPARE_THREADS) as u64),
            ("children", before.children as u64, self.children as u64, before.children as u64),
            ("bytes of memory", before.memory, self.memory, memory),
        ];
        let worse = found.iter().find(|(_, _, now, most)| now > most);
        worse.map(|(what, before, now, _)| format!("{before} {what} became {now}"))
    }
}

fn children(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.map(|list| list.split_whitespace().count()).sum()
}

/// What every provider of the steady crew held when it had warmed up.
pub(super) struct Held(BTreeMap<&'static str, Figures>);

impl Held {
    pub(super) fn by(crew: &Crew) -> anyhow::Result<Self> {
        let held = crew.steady().map(|(name, member)| {
            let pid = member.provider.pid().context("no number")?;
            Ok((name, Figures::of(pid).with_context(|| name.to_owned())?))
        });
        Ok(Self(held.collect::<anyhow::Result<_>>()?))
    }

    /// Waits until nobody holds more than at first, and says what the largest growth was.
    pub(super) async fn compare(&self, crew: &Crew) -> anyhow::Result<String> {
        let until = Instant::now() + LIMIT / 4;
        loop {
            let now = Self::by(crew)?;
            let worse = now.0.iter().find_map(|(name, figures)| {
                figures.excess(self.0[name]).map(|excess| format!("{name}: {excess}"))
            });
            match worse {
                None => return Ok(self.growth(&now)),
                Some(worse) if Instant::now() > until => bail!("a leak in {worse}"),
                Some(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn growth(&self, now: &Self) -> String {
        let each = self.0.iter().map(|(name, before)| {
            let after = now.0[name];
            format!(
                "{name} {:.1} to {:.1} MB, {} to {} descriptors, {} to {} threads",
                before.memory as f64 / 1e6,
                after.memory as f64 / 1e6,
                before.descriptors,
                after.descriptors,
                before.threads,
                after.threads
            )
        });
        format!("held after {} rounds and at the end: {}", super::WARM, each.collect::<Vec<_>>().join("; "))
    }
}

/// What this process holds itself.
pub(super) struct Own(Figures);

impl Own {
    pub(super) fn now() -> anyhow::Result<Self> {
        Ok(Self(Figures::of(std::process::id())?))
    }

    /// Nothing of the run is held any more. Other tests may run in this process, so children are not counted here.
    pub(super) async fn compare(&self) -> anyhow::Result<()> {
        let spare = if cfg!(test) { 200 } else { SPARE_DESCRIPTORS };
        let until = Instant::now() + LIMIT;
        loop {
            let now = Figures::of(std::process::id())?;
            if now.descriptors <= self.0.descriptors + spare {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "the host had {} descriptors and has {}",
                self.0.descriptors,
                now.descriptors
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Waits until no process of the run is left.
pub(super) async fn no_process_left(mark: &str) -> anyhow::Result<()> {
    let until = Instant::now() + LIMIT;
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < until, "processes are left: {left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The processes of a run.
pub(super) fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let is_marked = |path: &std::path::PathBuf| {
        let all = fs::read(path.join("environ")).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes())
    };
    let named = |path: std::path::PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        format!("{} {}", path.display(), String::from_utf8_lossy(&line).replace('\0', " "))
    };
    entries.map(|entry| entry.path()).filter(is_marked).map(named).collect()
}
