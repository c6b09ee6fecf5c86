//! Jobs that are ended, and what they do against it.

use std::time::Duration;

use supervisor::{Event, Limit, Limits, Status};

use crate::support::{
    events, files, gone, job, mark, start, status, supervisor, survivors, until, with_mark,
};

const TERM: i32 = 15;

#[tokio::test]
async fn survivors_are_named_and_end_with_the_job() {
    let supervisor = supervisor();
    let mark = mark();
    let (mut running, _output) = start(&supervisor, &format!("sleep {mark} & sleep 0.3; exit 4")).await;
    let first = running.event().await.unwrap();
    assert_eq!(status(std::slice::from_ref(&first)), Some(Status::Exited(4)));
    let left = survivors(&[first]);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].command, format!("sleep {mark}"));
    assert_eq!(with_mark(&mark), [left[0].pid]);
    assert_eq!(running.processes().await, left);
    running.end(TERM, Duration::from_secs(20));
    let events = events(&mut running).await;
    assert_eq!(events, [Event::Ending { asked: 1, killed: 0 }, Event::Over { unkillable: vec![] }]);
    gone(&mark).await;
}

#[tokio::test]
async fn what_ignores_the_signal_is_killed_after_the_grace() {
    let supervisor = supervisor();
    let mark = mark();
    let script = format!("trap '' TERM INT HUP; sleep {mark}; true");
    let (mut running, _output) = start(&supervisor, &script).await;
    until("the job does not begin", || with_mark(&mark).len() == 2).await;
    running.end(TERM, Duration::from_millis(50));
    let events = events(&mut running).await;
    assert_eq!(status(&events), Some(Status::Signaled(9)), "{events:?}");
    assert!(matches!(events[0], Event::Ending { asked: 2, killed: 2 }), "{events:?}");
    gone(&mark).await;
}

/// Trees that try to get away from a signal to the process group.
fn nasty(mark: &str) -> Vec<String> {
    vec![
        format!("setsid sh -c 'while :; do sleep 0.01; : {mark}; done' & wait"),
        format!(
            "python3 -c 'import os,time\nif os.fork(): time.sleep(9)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(1000) # {mark}' & wait"
        ),
        format!("trap '' TERM; (trap '' TERM; sleep {mark}) | cat"),
        // Forks a new session, which forks a new session, and so on.
        format!(
            "f() {{ (exec setsid bash -c \"$1\" x \"$1\") & }}; bash -c '(exec setsid bash -c \"$0\" \"$0\" {mark}) & : {mark}' '(sleep 0.002; exec setsid bash -c \"$0\" \"$0\" {mark}) & : {mark}' & sleep 1000; : {mark}"
        ),
        format!("for i in 1 2 3 4 5 6 7 8; do sleep {mark} & done; wait"),
        format!("kill -STOP $$; : {mark}"),
    ]
}

#[tokio::test]
async fn no_tree_escapes_an_end() {
    let supervisor = supervisor();
    for grace in [0, 30] {
        let mark = mark();
        for script in nasty(&mark) {
            let (mut running, _output) = start(&supervisor, &script).await;
            tokio::time::sleep(Duration::from_millis(30)).await;
            running.end(TERM, Duration::from_millis(grace));
            let events = events(&mut running).await;
            assert!(status(&events).is_some(), "{script}: {events:?}");
            assert_eq!(with_mark(&mark), Vec::<u32>::new(), "{script}: {events:?}");
        }
    }
}

#[tokio::test]
async fn no_tree_escapes_a_dropped_job() {
    let supervisor = supervisor();
    let mark = mark();
    for script in nasty(&mark) {
        let (running, _output) = start(&supervisor, &script).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        drop(running);
    }
    tokio::time::timeout(Duration::from_secs(30), supervisor.idle()).await.unwrap();
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
}

#[tokio::test]
async fn no_tree_escapes_the_death_of_its_guard() {
    let supervisor = supervisor();
    let mark = mark();
    for script in nasty(&mark) {
        let (mut running, _output) = start(&supervisor, &script).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).unwrap();
        let guard: i32 = stat.rsplit(')').next().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(guard), nix::sys::signal::SIGKILL).unwrap();
        let events = events(&mut running).await;
        assert_eq!(events.last(), Some(&Event::GuardLost), "{script}");
        assert_eq!(with_mark(&mark), Vec::<u32>::new(), "{script}");
    }
}

#[tokio::test]
async fn a_limit_on_processes_ends_a_fork_bomb() {
    let supervisor = supervisor();
    let mark = mark();
    // It ends by itself, so that a machine survives a limit that does not hold: after about a thousand processes.
    let bomb = "f() { [ $1 -gt 8 ] && sleep 1000; f $(($1 + 1)) | f $(($1 + 1)) & }; f 0; wait";
    let mut job = job(&format!("{bomb}; : {mark}"));
    job.limits = Limits { processes: Some(20), memory_bytes: None };
    let mut running = supervisor.start(&job, files().0).await.unwrap();
    let events = events(&mut running).await;
    assert!(events.contains(&Event::LimitPassed(Limit::Processes)), "{events:?}");
    gone(&mark).await;
}

#[tokio::test]
async fn a_limit_on_memory_ends_a_hog() {
    let supervisor = supervisor();
    let mut job = job("python3 -c 'a = b\"x\" * (300 << 20); import time; time.sleep(1000)'");
    job.limits = Limits { memory_bytes: Some(100 << 20), processes: None };
    let mut running = supervisor.start(&job, files().0).await.unwrap();
    let events = events(&mut running).await;
    assert!(events.contains(&Event::LimitPassed(Limit::Memory)), "{events:?}");
    assert_eq!(status(&events), Some(Status::Signaled(9)));
}
