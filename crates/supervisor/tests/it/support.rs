//! Starting jobs, and finding what they leave.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use supervisor::sandbox::Policy;
use supervisor::{Event, Files, Job, Limits, ProcessName, Running, Status, Supervisor};

/// More than any step of a test takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn supervisor() -> Supervisor {
    // A test that runs as another user runs copies, because that user may not see where these are.
    let guard = std::env::var_os("TEST_GUARD").unwrap_or_else(|| env!("CARGO_BIN_EXE_guard").into());
    supervisor::set_program(guard);
    Supervisor::default()
}

pub(crate) fn job(script: &str) -> Job {
    Job {
        program: "/bin/bash".into(),
        arguments: vec!["bash".into(), "-c".into(), script.into()],
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        sandbox: Policy::none(),
        limits: Limits::default(),
        terminal: false,
    }
}

/// The files of a job whose output can be read from the other half.
pub(crate) fn files() -> (Files, File) {
    let null = || OwnedFd::from(File::options().read(true).write(true).open("/dev/null").unwrap());
    let (reader, writer) = std::io::pipe().unwrap();
    let directory = OwnedFd::from(File::open("/tmp").unwrap());
    let files = Files {
        directory,
        stdin: null(),
        stdout: OwnedFd::from(writer.try_clone().unwrap()),
        stderr: OwnedFd::from(writer),
        extra: None,
    };
    (files, File::from(OwnedFd::from(reader)))
}

pub(crate) async fn start(supervisor: &Supervisor, script: &str) -> (Running, File) {
    let (files, output) = files();
    let running = supervisor.start(&job(script), files).await.unwrap();
    (running, output)
}

/// All events of a job.
pub(crate) async fn events(running: &mut Running) -> Vec<Event> {
    let mut events = Vec::new();
    let all = async {
        while let Some(event) = running.event().await {
            events.push(event);
        }
    };
    tokio::time::timeout(LIMIT, all).await.expect("the job does not end");
    events
}

pub(crate) fn status(events: &[Event]) -> Option<Status> {
    events.iter().find_map(|event| match event {
        Event::Exited { status, .. } => Some(*status),
        _ => None,
    })
}

pub(crate) fn survivors(events: &[Event]) -> Vec<ProcessName> {
    events
        .iter()
        .find_map(|event| match event {
            Event::Exited { survivors, .. } => Some(survivors.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

pub(crate) async fn text(mut output: File) -> String {
    tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    })
    .await
    .unwrap()
}

/// The numbers of processes whose command line has `mark` in it.
pub(crate) fn with_mark(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark)
        })
        .collect()
}

/// Waits until no process has `mark` in its command line.
pub(crate) async fn gone(mark: &str) {
    until(&format!("processes with {mark} are left"), || with_mark(mark).is_empty()).await;
}

pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A number that no other test has in a command line.
pub(crate) fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("9{:07}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
