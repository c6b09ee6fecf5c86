//! A job that runs by itself to its end.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use supervisor::{Event, Status};

use crate::support::{events, files, job, start, status, supervisor, survivors, text};

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let supervisor = supervisor();
    let (mut running, output) = start(&supervisor, "echo out; echo err >&2; exit 7").await;
    assert!(running.pid() > 1);
    let events = events(&mut running).await;
    assert_eq!(status(&events), Some(Status::Exited(7)));
    assert_eq!(text(output).await, "out\nerr\n");
    assert_eq!(survivors(&events), []);
    assert!(running.is_over());
}

#[tokio::test]
async fn a_signal_is_told_from_an_exit_code() {
    let supervisor = supervisor();
    let (mut running, _output) = start(&supervisor, "kill -SEGV $$").await;
    let ended = status(&events(&mut running).await).unwrap();
    assert_eq!(ended, Status::Signaled(11));
    assert_eq!((ended.code(), ended.signal_name().as_deref()), (139, Some("SIGSEGV")));
}

#[tokio::test]
async fn the_last_directory_is_known_without_touching_the_command() {
    let supervisor = supervisor();
    let check = async |script: &str, expected: &str, gone: bool| {
        let (mut running, _output) = start(&supervisor, script).await;
        let events = events(&mut running).await;
        let Some(Event::Exited { directory: Some(directory), .. }) = events.first() else {
            panic!("{script}: {events:?}")
        };
        assert_eq!((directory.path.clone(), directory.deleted), (PathBuf::from(expected), gone), "{script}");
    };
    check("true", "/tmp", false).await;
    check("cd /usr; exit 3", "/usr", false).await;
    check("(cd /usr)", "/tmp", false).await;
    check("cd /usr; exec true", "/usr", false).await;
    check("trap 'cd /' EXIT; cd /usr", "/", false).await;
    check("cd /usr; kill -9 $$", "/usr", false).await;
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let place = place.path().display().to_string();
    check(
        &format!("mkdir '{place}/a b'; cd '{place}/a b'; rmdir '{place}/a b'"),
        &format!("{place}/a b"),
        true,
    )
    .await;
}

#[tokio::test]
async fn a_guard_is_used_again_and_carries_nothing_over() {
    let supervisor = supervisor();
    supervisor.warm().unwrap();
    let parent = async || {
        let (mut running, output) = start(&supervisor, "umask; pwd; echo $PPID; umask 077; cd /usr").await;
        events(&mut running).await;
        text(output).await
    };
    let first = parent().await;
    assert!(first.starts_with("0022\n/tmp\n"), "{first}");
    assert_eq!(first, parent().await);
}

/// What takes longer has another guard made behind it, rightly.
const SHORT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn short_jobs_one_after_another_share_one_guard() {
    let supervisor = supervisor();
    let (mut guards, mut long) = (std::collections::BTreeSet::new(), 0);
    for _ in 0..60 {
        let begun = Instant::now();
        let (mut running, output) = start(&supervisor, "echo $PPID").await;
        events(&mut running).await;
        drop(running);
        long += usize::from(begun.elapsed() >= SHORT);
        guards.insert(text(output).await);
    }
    assert!(guards.len() <= 1 + long, "{} guards, though only {long} jobs took their time", guards.len());
}

#[tokio::test]
async fn several_jobs_run_at_once() {
    let supervisor = supervisor();
    let one = async |number: i32| {
        let (mut running, _output) = start(&supervisor, &format!("sleep 0.2; exit {number}")).await;
        status(&events(&mut running).await)
    };
    let all = tokio::join!(one(1), one(2), one(3));
    let exited = |code| Some(Status::Exited(code));
    assert_eq!(all, (exited(1), exited(2), exited(3)));
}

#[tokio::test]
async fn a_program_that_cannot_run_is_refused_by_name_and_the_guard_stays_useful() {
    let supervisor = supervisor();
    let mut missing = job("");
    missing.program = "/nonexistent/shell".into();
    let error = supervisor.start(&missing, files().0).await.err().unwrap().to_string();
    assert_eq!(
        error,
        "the command could not be started: run /nonexistent/shell: No such file or directory (os error 2)"
    );
    let (mut running, _output) = start(&supervisor, "exit 3").await;
    assert_eq!(status(&events(&mut running).await), Some(Status::Exited(3)));
}

#[tokio::test]
async fn a_job_begins_with_default_signals_its_own_session_and_no_other_files() {
    let supervisor = supervisor();
    let script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ps -o sid= -p $$ | tr -d ' '; echo $$; ls /proc/self/fd";
    let (mut running, output) = start(&supervisor, script).await;
    events(&mut running).await;
    let text = text(output).await;
    let lines: Vec<&str> = text.lines().collect();
    let signals = |line: &str| u64::from_str_radix(line.split('\t').nth(1).unwrap(), 16).unwrap();
    // Above 31 are those that the C library keeps for itself.
    let ordinary = (1 << 31) - 1;
    assert_eq!((signals(lines[0]) & ordinary, signals(lines[1]) & ordinary), (0, 0), "{text}");
    assert_eq!(lines[3], lines[4], "{text}");
    // The fourth is the directory that `ls` reads.
    assert_eq!(lines[5..], ["0", "1", "2", "3"], "{text}");
}

#[tokio::test]
async fn an_extra_file_is_found_at_its_number() {
    let supervisor = supervisor();
    let (mut files, output) = files();
    let script = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut &script, b"echo from the file").unwrap();
    std::io::Seek::rewind(&mut &script).unwrap();
    files.extra = Some(OwnedFd::from(script));
    let mut job = job("");
    job.arguments = vec!["bash".into(), format!("/proc/self/fd/{}", supervisor::EXTRA_DESCRIPTOR).into()];
    let mut running = supervisor.start(&job, files).await.unwrap();
    assert_eq!(status(&events(&mut running).await), Some(Status::Exited(0)));
    assert_eq!(text(output).await, "from the file\n");
}
