//! Nasty trees of processes, ended at random moments in every way there is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tool_host::{Call, Provider};

use super::process::{built, call, object, started};
use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "exec-trees",
    about: "process trees that try to get away, ended at random moments: no process is left",
    short_rounds: 24,
    run,
};

/// The variable by which processes of a round are recognised, whatever they call themselves.
const MARK: &str = "EXEC_TREES_ROUND";
/// How long the end of a tree may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// The latest moment at which a tree is ended, in milliseconds.
const LATEST: usize = 250;

/// Trees that do not want to end.
const TREES: &[&str] = &[
    "sleep 1000",
    "trap '' TERM INT HUP; sleep 1000; true",
    "trap '' TERM; (trap '' TERM; sleep 1000; true) | tee /dev/null",
    "setsid sh -c 'while :; do sleep 0.01; done' & wait",
    "setsid setsid sleep 1000 & sleep 1000",
    "(setsid sh -c 'trap \"\" TERM; sleep 1000; true' >/dev/null 2>&1 &); sleep 1000",
    "python3 -c 'import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\ntime.sleep(1000)'",
    "chain() { (sleep 0.005; chain) & }; chain; sleep 1000",
    "chain='(sleep 0.003; exec setsid bash -c \"$0\" \"$0\") &'; bash -c \"$chain\" \"$chain\"; sleep 1000",
    "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait",
    "exec > >(cat); sleep 1000 & echo begun; sleep 1000",
    "yes",
    "kill -STOP $$",
    "bash -c 'kill -STOP $$' & sleep 1000",
    "nohup sleep 1000 >/dev/null 2>&1 & disown; sleep 1000 & echo done",
];

/// What ends a tree.
#[derive(Clone, Copy, Debug)]
enum End {
    Cancel,
    GiveUp,
    Timeout,
    JobKill,
    StopProvider,
    KillProvider,
    KillGuard,
}

const ENDS: &[End] = &[
    End::Cancel,
    End::GiveUp,
    End::Timeout,
    End::JobKill,
    End::StopProvider,
    End::KillProvider,
    End::KillGuard,
];

fn run(run: &Run) -> anyhow::Result<String> {
    let binary = built("provider-exec")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let mut trees = Trees { binary, folder, provider: None };
        let mut longest = Duration::ZERO;
        while let Some(mut random) = run.next_round() {
            longest = longest.max(trees.round(run.rounds(), &mut random).await?);
        }
        if let Some(provider) = trees.provider.take() {
            provider.stop().await;
        }
        Ok(format!("no process left; the longest end took {} ms", longest.as_millis()))
    })
}

struct Trees {
    binary: PathBuf,
    folder: tempfile::TempDir,
    provider: Option<Provider>,
}

impl Trees {
    async fn provider(&mut self) -> anyhow::Result<Provider> {
        if let Some(provider) = &self.provider {
            return Ok(provider.clone());
        }
        let config = json!({ "root": self.folder.path(), "state_dir": self.folder.path().join("state"), "grace_ms": 60 });
        let provider = started(&self.binary, config).await?;
        self.provider = Some(provider.clone());
        Ok(provider)
    }

    /// Ends one tree; answers how long it took until nothing of it was left.
    async fn round(&mut self, number: u64, random: &mut Random) -> anyhow::Result<Duration> {
        let tree = TREES[random.below(TREES.len())];
        let end = ENDS[random.below(ENDS.len())];
        let pty = random.below(5) == 0;
        let moment = Duration::from_millis(random.below(LATEST) as u64);
        let mark = format!("{}-{number}", std::process::id());
        let provider = self.provider().await?;
        let mut arguments = json!({ "command": tree, "pty": pty, "env": { MARK: mark } });
        match end {
            End::Timeout => arguments["timeout_ms"] = json!(moment.as_millis().max(1) as u64),
            End::JobKill => arguments["background"] = json!(true),
            _ => {}
        }
        let call = call(self.folder.path(), "bash", arguments)?;
        let mut invocation = provider.invoke(call);
        // The tree exists from its first event on; without one there is nothing to end.
        let _ = tokio::time::timeout(LIMIT, invocation.next()).await;
        if !matches!(end, End::Timeout) {
            tokio::time::sleep(moment).await;
        }
        let begun = Instant::now();
        let what = format!("{end:?} after {moment:?}, pty {pty}: {tree}");
        match end {
            End::Cancel => {
                invocation.canceller().cancel();
                finished(invocation, &what).await?;
            }
            End::GiveUp => drop(invocation),
            End::Timeout => finished(invocation, &what).await?,
            End::JobKill => finished(invocation, &what).await?,
            End::StopProvider => {
                self.provider = None;
                provider.stop().await;
            }
            End::KillProvider => {
                self.provider = None;
                provider.kill();
            }
            End::KillGuard => kill_guard(&mark),
        }
        let provider = (!matches!(end, End::StopProvider | End::KillProvider)).then_some(provider);
        nothing_left(&mark, &what, provider.as_ref()).await?;
        Ok(begun.elapsed())
    }
}

async fn finished(invocation: tool_host::Invocation, what: &str) -> anyhow::Result<()> {
    let outcome = tokio::time::timeout(LIMIT, invocation.outcome()).await;
    outcome.map(drop).with_context(|| format!("the call does not end: {what}"))
}

/// Ends what went on as a job.
async fn kill_jobs(provider: &Provider) -> anyhow::Result<()> {
    let call =
        |tool: &str, arguments: Value| Ok::<_, anyhow::Error>(Call::new(tool, object(arguments)?, "s"));
    let list = provider.invoke(call("job_list", json!({}))?).outcome().await;
    let Ok(list) = list else { return Ok(()) };
    let jobs = list.get("jobs").and_then(Value::as_array).cloned().unwrap_or_default();
    for job in jobs.iter().filter(|job| job["status"] == "running") {
        let kill = call("job_kill", json!({ "job_id": job["job_id"] }))?;
        let _ = tokio::time::timeout(LIMIT, provider.invoke(kill).outcome()).await;
    }
    Ok(())
}

/// Kills the guard of the round: the parent of the oldest marked process.
fn kill_guard(mark: &str) {
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split(' ').nth(2)?.parse().ok()
    };
    let is_guard = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"job-guard\0")
    };
    let guards = marked(mark).into_iter().filter_map(parent).filter(is_guard);
    for guard in guards.collect::<std::collections::BTreeSet<_>>() {
        let _ = Command::new("kill").args(["-KILL", &guard.to_string()]).status();
    }
}

/// The processes of a round.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &i32| {
        let all = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes())
    };
    numbers.filter(is_marked).collect()
}

/// Waits until no process of the round is left. A call that was given up in the moment of its end may have become a
/// job, so jobs are ended again each time.
async fn nothing_left(mark: &str, what: &str, provider: Option<&Provider>) -> anyhow::Result<()> {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(provider) = provider {
            kill_jobs(provider).await?;
        }
        // Two looks: a process that forks and ends between two reads of the list may be in neither.
        let left: Vec<i32> = marked(mark).into_iter().chain(marked(mark)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > limit {
            let command =
                |pid: &i32| std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("cmdline"));
            let names: Vec<_> =
                left.iter().map(|pid| format!("{pid} {}", command(pid).unwrap_or_default())).collect();
            bail!("{} processes are left ({what}): {names:?}", left.len());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
