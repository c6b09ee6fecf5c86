//! Commands through the program: what it prints, and what a killed host leaves behind.

use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::Bench;

const LIMIT: Duration = Duration::from_secs(60);

/// The numbers of processes whose command line has `mark` in it, besides the program's own.
fn with_mark(mark: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    numbers.filter(is_marked).collect()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_is_run_and_its_result_shown() {
    let bench = Bench::new(&[("notes.txt", "one\n")]);
    let ran = bench.run(&["call", "exec", "bash", "command=cat notes.txt; exit 3", "--yes", "--json"]);
    let lines = ran.json_lines();
    let last = lines.last().unwrap();
    assert_eq!((ran.code, &last["payload"]["exit_code"]), (0, &serde_json::json!(3)), "{}", ran.stderr);
    assert_eq!(last["payload"]["output"], "one\n");
    let refused = bench.run(&["call", "exec", "bash", "command=true"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
}

fn begin(bench: &Bench, mark: &str) -> Child {
    let command = format!("command=setsid sh -c 'trap \"\" TERM; sleep {mark}; true' & wait");
    let child = bench.command(&["call", "exec", "bash", &command, "--yes"]).spawn().unwrap();
    let sleeping = format!("sleep\0{mark}");
    until("the command does not run", || !with_mark(&sleeping).is_empty());
    child
}

#[test]
fn nothing_survives_a_killed_or_interrupted_host() {
    for (number, signal) in [(1, "-KILL"), (2, "-INT")] {
        let bench = Bench::new(&[]);
        let mark = format!("7{:07}.{number}", std::process::id());
        let mut host = begin(&bench, &mark);
        let host_id = host.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &host_id]).status().unwrap().success());
        host.wait().unwrap();
        until(&format!("{signal}: processes are left"), || with_mark(&mark).is_empty());
    }
}
