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

/// Requests to a session of the exec provider, one at a time, with everything that was ever answered.
struct Talk {
    host: Child,
    stdin: std::process::ChildStdin,
    stdout: std::io::BufReader<std::process::ChildStdout>,
    heard: String,
}

impl Talk {
    fn begin(mut command: std::process::Command) -> Self {
        let mut host = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let stdin = host.stdin.take().unwrap();
        let stdout = std::io::BufReader::new(host.stdout.take().unwrap());
        Self { host, stdin, stdout, heard: String::new() }
    }

    fn send(&mut self, request: &serde_json::Value) {
        use std::io::Write as _;
        writeln!(self.stdin, "{request}").unwrap();
    }

    /// Reads until `last` comes under `id`, and answers that event.
    fn until(&mut self, id: &str, last: &[&str]) -> serde_json::Value {
        use std::io::BufRead as _;
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the session has ended: {}", self.heard);
            self.heard += &line;
            let event: serde_json::Value = serde_json::from_str(&line).unwrap();
            if event["id"] == id && last.contains(&event["event"].as_str().unwrap()) {
                return event;
            }
        }
    }

    fn call(&mut self, id: &str, tool: &str, arguments: serde_json::Value) -> serde_json::Value {
        self.send(&serde_json::json!({"id": id, "tool": tool, "args": arguments}));
        self.until(id, &["result", "error"])
    }

    /// Ends the session; answers all that was said on both streams.
    fn end(self) -> String {
        let Self { host, stdin, mut stdout, mut heard } = self;
        drop(stdin);
        std::io::Read::read_to_string(&mut stdout, &mut heard).unwrap();
        let output = host.wait_with_output().unwrap();
        heard + &String::from_utf8_lossy(&output.stderr)
    }
}

/// Every byte of every file below a folder.
fn everything_in(folder: &std::path::Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => everything_in(&entry.path()),
            Ok(kind) if kind.is_file() => std::fs::read(entry.path()).unwrap_or_default(),
            _ => Vec::new(),
        })
        .collect()
}

/// Three secrets: one that commands do not get, one that is passed on, and one that is configured.
#[test]
fn no_secret_of_the_environment_is_told_whatever_is_done() {
    use serde_json::json;
    const CANARY: &str = "canary-c0ffee";
    let bench = Bench::new(&[]);
    let config = bench.path().join("exec.json");
    let state = bench.path().join("kept");
    let settings = json!({
        "env": {"CONFIGURED_TOKEN": format!("{CANARY}-configured")},
        "env_pass": ["PASSED_TOKEN"],
        "state_dir": &state,
        "max_output_bytes": 2_048,
        "grace_ms": 200,
    });
    std::fs::write(&config, settings.to_string()).unwrap();
    let configured = format!("@{}", config.display());
    let arguments = ["session", "exec", "--yes", "--verbose", "--config-json", &configured];
    let mut command = bench.command(&arguments);
    for name in ["X_API_KEY", "PASSED_TOKEN"] {
        command.args(["--env", name]).env(name, format!("{CANARY}-{name}"));
    }
    let mut talk = Talk::begin(command);
    let check = |talk: &mut Talk, id: &str, command: &str, status: &str| {
        let event = talk.call(id, "bash", json!({"command": command, "timeout_ms": 20_000}));
        assert_eq!(event["payload"]["status"], status, "{command}: {event}");
        event
    };
    // The secrets are there, to begin with.
    let length = "echo ${#X_API_KEY} ${#PASSED_TOKEN} ${#CONFIGURED_TOKEN}";
    let lengths = check(&mut talk, "there", length, "exited")["payload"]["output"].clone();
    assert_eq!(lengths, "0 26 24\n");
    check(&mut talk, "names", "env | cut -d= -f1; seq 1 5000; ls /nowhere; exit 3", "exited");
    check(&mut talk, "bomb", "kill -SEGV $$", "exited");
    check(&mut talk, "missing", "no-such-program-anywhere", "exited");
    let timed_out = talk.call("time", "bash", json!({"command": "sleep 1000", "timeout_ms": 200}));
    assert_eq!(timed_out["payload"]["status"], "timed_out");
    for (id, tool, arguments) in [
        ("e1", "bash", json!({"command": "true", "cwd": "/"})),
        ("e2", "bash", json!({"command": "true", "env": {"A=B": "x"}})),
        ("e3", "bash", json!({"comand": "true"})),
        ("e4", "bash", json!({"command": "true", "timeout_ms": "soon"})),
        ("e5", "shell_read", json!({"argv": ["env"]})),
        ("e6", "job_kill", json!({"job_id": "job-99"})),
        ("e7", "nothing", json!({})),
    ] {
        assert_eq!(talk.call(id, tool, arguments)["event"], "error", "{id}");
    }
    talk.call("read", "shell_read", json!({"argv": ["jq", "-n", "env"]}));
    talk.send(&json!({"id": "p", "tool": "bash", "args": {"command": "echo $X_API_KEY"}, "preview": true}));
    talk.until("p", &["preview"]);
    let mark = format!("7{:07}.9", std::process::id());
    let job = talk.call("job", "bash", json!({"command": format!("sleep {mark}"), "background": true}));
    talk.send(&json!({"id": "given-up", "tool": "bash", "args": {"command": format!("sleep 1{mark}")}}));
    until("the command does not run", || with_mark(&format!("sleep\01{mark}")).len() == 1);
    for line in std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.unwrap().path().join("cmdline")).ok())
    {
        let line = String::from_utf8_lossy(&line).into_owned();
        assert!(!line.contains(CANARY), "{line}");
    }
    talk.send(&json!({"cancel": "given-up"}));
    talk.until("given-up", &["error"]);
    for tool in ["job_output", "job_kill"] {
        talk.call(tool, tool, json!({"job_id": job["payload"]["job_id"]}));
    }
    talk.call("list", "job_list", json!({}));
    let kept = everything_in(&state);
    assert!(String::from_utf8_lossy(&kept).contains("\n4999\n"), "no output was kept on disk");
    assert!(!String::from_utf8_lossy(&kept).contains(CANARY));
    let said = talk.end();
    assert!(said.contains("X_API_KEY"), "what is left out is not named: {said}");
    assert!(!said.contains(CANARY), "{said}");
}
