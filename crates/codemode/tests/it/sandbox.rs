//! What native code in the child could do, and what becomes of the child.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode::{Limits, Part, Reason, Sandboxing, Setting};
use codemode_sandbox::frames;

use crate::fx::{Fx, alone, fails, probing, program, reads, run};

async fn probe(name: &str) -> codemode::Report {
    program(&Arc::<Fx>::default(), "return 1").in_sandbox(probing(name)).run().await
}

#[tokio::test]
async fn system_calls_that_are_not_needed_kill_the_process() {
    for name in [
        "open",
        "socket",
        "fork",
        "execve",
        "ptrace",
        "kill",
        "kill_parent",
        "mmap_exec",
        "mprotect_exec",
        "io_uring",
        "memfd",
        "write_elsewhere",
        "read_elsewhere",
    ] {
        let report = probe(name).await;
        fails(&report, Reason::Crashed, &["SIGSYS"]);
    }
    reads(&run("return 'next'").await, "next");
}

#[tokio::test]
async fn a_child_that_lies_is_ended() {
    for (name, said) in [
        ("call_twice", "numbered its calls wrongly"),
        ("call_for_ever", "made more calls at one time than it may"),
        ("line_for_ever", "what is no frame"),
        ("nonsense", "what is no frame"),
    ] {
        fails(&probe(name).await, Reason::Crashed, &[said]);
    }
    let limits = Limits { total: Duration::from_secs(2), ..Limits::default() };
    let talks = program(&Arc::default(), "").within(limits).in_sandbox(probing("log_for_ever")).run().await;
    fails(&talks, Reason::TotalTime, &["again\nagain\n", "[console truncated at 64 KiB]"]);
    reads(&run("return 'next'").await, "next");
}

#[tokio::test]
async fn memory_beyond_the_limit_is_not_given() {
    fails(&probe("mmap_large").await, Reason::Crashed, &["exit code 40"]);
}

#[tokio::test]
async fn a_fault_is_a_crash_and_near_the_memory_limit_it_is_memory() {
    fails(&probe("segfault").await, Reason::Crashed, &["the engine crashed"]);
    fails(&probe("abort").await, Reason::Crashed, &["the engine crashed"]);
    fails(&probe("abort_near_limit").await, Reason::Memory, &[]);
    reads(&run("return 'next'").await, "next");
}

#[tokio::test]
async fn nothing_of_the_parent_is_passed_on() {
    run("1").await;
    let confinement = codemode::probe(&Sandboxing::default()).await.unwrap();
    assert_eq!(confinement.surroundings, "0 variables, directory /, 3 descriptors");
    assert!(confinement.seccomp, "{confinement:?}");
    assert!(confinement.limits.contains(&"nofile=3".to_owned()), "{confinement:?}");
}

/// Only what an attacker in the child could see shows whether a descriptor is closed. So the filter is off here, which
/// would end the attempt whatever the descriptor is.
#[test]
fn what_a_parent_left_open_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left-open");
    let mut child = Command::new("sh")
        .args(["-c", r#"exec 5>"$0"; exec "$@""#])
        .arg(&file)
        .args([
            env!("CARGO_BIN_EXE_codemode-child"),
            codemode::SANDBOX_ARGUMENT,
            &std::process::id().to_string(),
        ])
        .args([Setting::Without(Part::Seccomp), Setting::AllowWeak].map(Setting::as_argument))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let run = frames::Run {
        code: String::new(),
        tools: BTreeMap::new(),
        limits: frames::Limits::default(),
        probe: Some("write_elsewhere".to_owned()),
    };
    let line = serde_json::to_string(&frames::ToChild::Run(run)).unwrap();
    child.stdin.take().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("3 descriptors") && said.contains(r#""seccomp":false"#), "{said}");
    // The attempt came back, and wrote nothing: an open file would have ended it with SIGXFSZ.
    assert_eq!(output.status.code(), Some(99), "{output:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

async fn without(parts: &[Part], more: &[Setting]) -> Result<codemode::Confinement, String> {
    run("1").await;
    let settings = parts.iter().map(|part| Setting::Without(*part)).chain(more.iter().copied()).collect();
    codemode::probe(&Sandboxing { settings, probe: None }).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn without_landlock_or_namespaces_it_runs_and_says_so() {
    let confinement = without(&[Part::Landlock, Part::Namespaces], &[]).await.unwrap();
    assert!(confinement.landlock.starts_with("not enforced"), "{confinement:?}");
    assert!(confinement.namespaces.starts_with("none"), "{confinement:?}");
    let settings = vec![Setting::Without(Part::Landlock), Setting::Without(Part::Namespaces)];
    let sandboxing = Sandboxing { settings, probe: None };
    reads(&program(&Arc::default(), "return 1").in_sandbox(sandboxing).run().await, "1");
}

#[tokio::test]
async fn without_a_filter_nothing_runs_unless_it_is_allowed() {
    let settings = vec![Setting::Without(Part::Seccomp)];
    let report =
        program(&Arc::default(), "return 1").in_sandbox(Sandboxing { settings, probe: None }).run().await;
    fails(&report, Reason::SandboxUnavailable, &["cannot filter system calls"]);
    assert!(without(&[Part::Seccomp], &[]).await.is_err());
    let weak = without(&[Part::Seccomp], &[Setting::AllowWeak]).await.unwrap();
    assert!(!weak.seccomp);
}

/// A child whose parent this process is not sees that at once.
#[test]
fn a_child_that_is_not_its_parents_refuses() {
    let output = Command::new(env!("CARGO_BIN_EXE_codemode-child"))
        .args([codemode::SANDBOX_ARGUMENT, "1"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("sandbox-unavailable"), "{output:?}");
}

/// With a parent that says nothing, the child has not one byte to read until it has locked itself up: its first frame,
/// which says so, comes before any input.
#[test]
fn the_child_locks_itself_up_before_it_reads() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_codemode-child"))
        .args([codemode::SANDBOX_ARGUMENT, &std::process::id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert!(line.starts_with(r#"{"ready":"#) && line.contains(r#""seccomp":true"#), "{line}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_child_dies_with_its_parent() {
    // Another run of this binary is the parent, so that it can be killed.
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::a_parent_that_waits", "--ignored"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let child = until("a sandbox", || sandboxes_of(parent.id()).into_iter().next());
    parent.kill().unwrap();
    parent.wait().unwrap();
    let killed = Instant::now();
    until("the end of the sandbox", || (!is_alive(child)).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(30));
}

/// Run by the test above, in a process of its own, until it is killed.
#[tokio::test]
#[ignore = "run by the_child_dies_with_its_parent"]
async fn a_parent_that_waits() {
    run("await tools.fx.stuck()").await;
}

#[test]
fn a_child_that_is_killed_is_reported() {
    alone("sandbox::killed_from_outside");
}

/// Run by the test above, in a process of its own: there the only child is the one that is meant.
#[tokio::test]
#[ignore = "run by a_child_that_is_killed_is_reported"]
async fn killed_from_outside() {
    let fx = Arc::<Fx>::default();
    let running = tokio::spawn(program(&fx, "await tools.fx.stuck()").run());
    let began = Instant::now();
    while fx.called().is_empty() {
        assert!(began.elapsed() < PATIENCE, "the program does not begin");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let [child] = sandboxes_of(std::process::id()).try_into().unwrap();
    assert!(Command::new("kill").args(["-KILL", &child.to_string()]).status().unwrap().success());
    let report = running.await.unwrap();
    fails(&report, Reason::Crashed, &["signal 9", "fx.stuck running (cancelled)"]);
    until("the end of the sandbox", || (!is_alive(child)).then_some(()));
}

/// How long things may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The sandboxes that a process has started.
fn sandboxes_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n"))
            && String::from_utf8_lossy(&line)
                .split('\0')
                .any(|argument| argument == codemode::SANDBOX_ARGUMENT)
    };
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn nothing_but_the_engine_is_linked() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "-p",
            "codemode-sandbox",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--offline",
            "--locked",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // However this test was built, the crate is looked at by itself.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .env_remove("CARGO_UNSTABLE_FEATURE_UNIFICATION")
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8_lossy(&tree.stdout);
    assert!(tree.contains("rquickjs-sys"), "{tree}");
    for heavy in ["tokio", "hyper", "tonic", "rustls", "openssl", "ring", "reqwest", "mio"] {
        let linked =
            tree.lines().any(|line| line.split(' ').next().is_some_and(|name| name.starts_with(heavy)));
        assert!(!linked, "{heavy} is linked:\n{tree}");
    }
}
