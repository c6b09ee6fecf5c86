//! `toolctl` over Go providers, one good and several wrong.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::programs;

/// What one run of `toolctl` came to.
struct Run {
    exit_code: Option<i32>,
    lines: Vec<Value>,
    stderr: String,
}

/// A command whose temporary directory is its own, so that what it leaves behind can be seen.
fn toolctl(scratch: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs::toolctl());
    command
        .args(arguments)
        .current_dir(scratch)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scratch)
        .env("TMPDIR", scratch.join("temporary"))
        .stdin(Stdio::null());
    command
}

fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("temporary")).unwrap();
    scratch
}

#[track_caller]
fn assert_nothing_left_behind(scratch: &Path) {
    let left: Vec<_> =
        fs::read_dir(scratch.join("temporary")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn ndjson(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[track_caller]
fn run(scratch: &Path, arguments: &[&str]) -> Run {
    let output = toolctl(scratch, arguments).output().unwrap();
    assert_nothing_left_behind(scratch);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Run { exit_code: output.status.code(), lines: ndjson(&output.stdout), stderr }
}

fn call(conduct: &str, rest: &[&str]) -> Run {
    let provider = programs::go_provider(conduct);
    let mut arguments = vec!["call", provider.to_str().unwrap()];
    arguments.extend(rest);
    arguments.push("--json");
    run(scratch().path(), &arguments)
}

/// What a host makes of `echo` from a provider with one conduct.
#[track_caller]
fn check_echo(conduct: &str, exit_code: i32, events: &[&str]) -> Run {
    let run = call(conduct, &["echo", "text=abc"]);
    let names: Vec<_> = run.lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(
        (names.as_slice(), run.exit_code),
        (events, Some(exit_code)),
        "{:?}\n{}",
        run.lines,
        run.stderr
    );
    run
}

#[test]
fn good_provider_answers() {
    let run = check_echo("good", 0, &["result"]);
    assert_eq!(run.lines, [json!({"event": "result", "payload": {"text": "abc", "length": 3}})]);
}

#[test]
fn progress_is_passed_on_in_order() {
    let run = call("good", &["count", "to=3"]);
    let messages: Vec<_> = run.lines.iter().map(|line| line["message"].as_str()).collect();
    assert_eq!(messages, [Some("1"), Some("2"), Some("3"), None]);
    assert_eq!(run.lines[3], json!({"event": "result", "payload": {"counted": 3}}));
}

#[test]
fn change_needs_approval_and_happens_with_it() {
    let scratch = scratch();
    let provider = programs::go_provider("good");
    let mut arguments =
        vec!["call", provider.to_str().unwrap(), "write_note", "name=note.txt", "text=kept", "--json"];
    let refused = run(scratch.path(), &arguments);
    assert_eq!((refused.exit_code, &refused.lines[0]["details"]["code"]), (Some(4), &json!("no_human")));
    assert!(!scratch.path().join("note.txt").exists());

    arguments.push("--yes");
    assert_eq!(run(scratch.path(), &arguments).exit_code, Some(0));
    assert_eq!(fs::read(scratch.path().join("note.txt")).unwrap(), b"kept\n");
}

#[test]
fn preview_of_a_go_provider_is_its_diff_and_changes_nothing() {
    let scratch = scratch();
    let provider = programs::go_provider("good");
    let arguments =
        ["preview", provider.to_str().unwrap(), "write_note", "name=note.txt", "text=kept", "--json"];
    let run = run(scratch.path(), &arguments);
    assert_eq!(run.exit_code, Some(0), "{}", run.stderr);
    let line = &run.lines[0]["preview"]["root"]["diff"]["hunks"][0]["lines"][0];
    assert_eq!(line, &json!({"op": "DIFF_LINE_OP_ADD", "text": "kept"}));
    assert!(!scratch.path().join("note.txt").exists());
}

#[test]
fn missing_terminal_is_an_unknown_error() {
    let run = check_echo("no-terminal", 1, &["output_chunk", "error"]);
    assert_eq!(run.lines[1]["category"], "unknown");
}

#[test]
fn second_terminal_is_ignored_with_a_warning() {
    let run = check_echo("two-terminals", 0, &["result"]);
    assert!(run.stderr.contains("after its terminal one"), "{}", run.stderr);
}

#[test]
fn chunk_after_the_terminal_is_ignored_with_a_warning() {
    let run = check_echo("chunk-after-terminal", 0, &["result"]);
    assert!(run.stderr.contains("after its terminal one"), "{}", run.stderr);
}

#[test]
fn exit_mid_stream_is_a_crash() {
    let run = call("exit-mid-stream", &["echo", "text=abc"]);
    let last = run.lines.last().unwrap();
    assert_eq!((run.exit_code, &last["category"]), (Some(3), &json!("process_crashed")), "{}", run.stderr);
    assert!(last["message"].as_str().unwrap().contains("code 3"), "{last}");
}

#[test]
fn null_field_is_an_unknown_error_that_names_it() {
    let run = check_echo("null-field", 1, &["error"]);
    assert_eq!(run.lines[0]["category"], "unknown");
    assert!(run.lines[0]["message"].as_str().unwrap().contains("null"), "{:?}", run.lines);
}

#[test]
fn missing_field_is_an_unknown_error_that_names_it() {
    let run = check_echo("missing-field", 1, &["error"]);
    assert_eq!(run.lines[0]["category"], "unknown");
    assert!(run.lines[0]["message"].as_str().unwrap().contains("text"), "{:?}", run.lines);
}

/// Six lines of 70 KiB are far more than a pipe and a line buffer hold together: a host that stops reading standard
/// output hangs at the second call.
#[test]
fn long_lines_on_standard_output_never_block_the_provider() {
    let scratch = scratch();
    let provider = programs::go_provider("long-stdout-line");
    let request = |id: usize| {
        json!({"id": id.to_string(), "provider": provider, "tool": "echo", "args": {"text": "abc"}})
            .to_string()
    };
    let requests: Vec<_> = (1..=6).map(request).collect();
    let mut session = toolctl(scratch.path(), &["session", provider.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    session.stdin.take().unwrap().write_all((requests.join("\n") + "\n").as_bytes()).unwrap();
    let output = session.wait_with_output().unwrap();

    assert_eq!(output.status.code(), Some(0));
    let lines = ndjson(&output.stdout);
    let mut answered: Vec<_> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ["1", "2", "3", "4", "5", "6"]);
    assert!(lines.iter().all(|line| line["event"] == "result"), "{lines:?}");
    assert_nothing_left_behind(scratch.path());
}

#[test]
fn cancelled_call_ends_and_the_session_goes_on() {
    let scratch = scratch();
    let provider = programs::go_provider("good");
    let mut session = toolctl(scratch.path(), &["session", provider.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = session.stdin.take().unwrap();
    let mut answers = BufReader::new(session.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&answers.next().unwrap().unwrap()).unwrap();

    let count = json!({"id": "count", "provider": provider, "tool": "count",
                       "args": {"to": 100_000, "pause_ms": 10}});
    writeln!(requests, "{count}").unwrap();
    assert_eq!(next()["event"], "progress");
    writeln!(requests, "{}", json!({"cancel": "count"})).unwrap();
    let ended = loop {
        let event = next();
        if event["event"] != "progress" {
            break event;
        }
    };
    assert_eq!((&ended["id"], &ended["category"]), (&json!("count"), &json!("cancelled")));

    let echo = json!({"id": "echo", "provider": provider, "tool": "echo", "args": {"text": "still here"}});
    writeln!(requests, "{echo}").unwrap();
    assert_eq!(next()["payload"]["text"], "still here");
    drop(requests);
    assert_eq!(session.wait().unwrap().code(), Some(0));
    assert_nothing_left_behind(scratch.path());
}

#[test]
fn call_that_outlasts_its_time_is_a_timeout() {
    let run = call("good", &["count", "to=100000", "pause_ms=10", "--timeout", "300ms"]);
    assert_eq!(run.exit_code, Some(124), "{}", run.stderr);
    assert_eq!(run.lines.last().unwrap()["category"], "timeout");
}
