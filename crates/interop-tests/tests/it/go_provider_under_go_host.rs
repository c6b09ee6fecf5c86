//! The Go host and the Go provider hold each other straight: what they agree on is the library's own behaviour, and
//! a host that never finds anything wrong would prove nothing about the catalog.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::go_host::{Verdict, events, logged_sessions, run};
use crate::programs;

fn everything(directory: &Path) -> Value {
    json!({
        "config": {"greeting": "good day"},
        "calls": [
            {"tool": "echo", "arguments": {"text": "abc"}, "session": "first", "render": true, "want": "result"},
            {"tool": "write_note", "arguments": {"name": "note.txt", "text": "kept"}, "session": "first",
             "directory": directory, "preview": true, "want": "result"},
            {"tool": "count", "arguments": {"to": 100_000, "pause_ms": 10}, "session": "second",
             "cancel": {"by": "reset", "after_first_event": true}, "want": "cancelled"},
            {"tool": "count", "arguments": {"to": 3}, "session": "first", "want": "result"},
            {"tool": "echo", "arguments": {"text": 5}, "session": "first", "want": "INVALID_ARGUMENTS"},
            {"tool": "no_such_tool", "arguments": {}, "session": "first", "want": "NOT_FOUND"},
        ],
        "want_log_sessions": ["first", "second"],
    })
}

#[track_caller]
fn check_good(flags: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let report = run(&programs::go_provider("good"), &everything(directory.path()), flags).passed();
    assert_eq!(report["tools"], json!(["echo", "write_note", "count"]));
    assert_eq!(report["preview_offered"], json!(["write_note"]));
    assert_eq!(report["calls"][0]["result"], json!({"text": "abc", "length": 3}));
    assert_eq!(report["calls"][2]["status"], "Canceled");
    assert_eq!(events(&report, 3), ["progress", "progress", "progress", "result"]);
    assert_eq!(fs::read(directory.path().join("note.txt")).unwrap(), b"kept\n");
    assert_eq!(logged_sessions(&report), ["", "first", "second"]);
}

#[test]
fn good_provider_passes() {
    check_good(&[]);
}

#[test]
fn good_provider_passes_over_mutual_tls() {
    check_good(&["-mtls"]);
}

fn one_echo(conduct: &str) -> Verdict {
    let script = json!({"calls": [{"tool": "echo", "arguments": {"text": "abc"}, "want": "result"}]});
    run(&programs::go_provider(conduct), &script, &[])
}

#[test]
fn missing_terminal_is_found() {
    one_echo("no-terminal").failed(&[
        "call 0 of echo: 1 events precede the terminal one of a tool that does not stream",
        "call 0 of echo: there is no terminal event",
    ]);
}

#[test]
fn second_terminal_is_found() {
    one_echo("two-terminals").failed(&[
        "call 0 of echo: 1 events follow the terminal one",
        "call 0 of echo: there are 2 terminal events",
    ]);
}

#[test]
fn chunk_after_the_terminal_is_found() {
    one_echo("chunk-after-terminal").failed(&["call 0 of echo: 1 events follow the terminal one"]);
}

#[test]
fn exit_mid_stream_is_found() {
    one_echo("exit-mid-stream").failed(&[
        "call 0 of echo: the stream broke: rpc error: code = Unavailable",
        "ping: rpc error: code = Unavailable",
        "exit: want code 0, got exit status 3",
        "sockets left over: plugin",
    ]);
}

#[test]
fn one_long_line_on_standard_output_does_no_harm() {
    one_echo("long-stdout-line").passed();
}

#[test]
fn null_field_is_found() {
    let broken = "call 0 of echo: the result breaks the output schema: payload.";
    one_echo("null-field").failed(&[broken]);
}

#[test]
fn missing_field_is_found() {
    one_echo("missing-field")
        .failed(&["call 0 of echo: the result breaks the output schema: payload.text is missing"]);
}

#[test]
fn unmet_wish_is_found() {
    let script = json!({
        "calls": [
            {"tool": "echo", "arguments": {"text": "abc"}, "session": "here", "want": "NOT_FOUND"},
            {"tool": "echo", "arguments": {}, "session": "here", "want": "result"},
        ],
        "want_log_sessions": ["elsewhere"],
    });
    run(&programs::go_provider("good"), &script, &[]).failed(&[
        "call 0 of echo: want NOT_FOUND, got",
        "call 1 of echo: want a result, got",
        "Log: no entry came for session \"elsewhere\"",
    ]);
}

#[test]
fn program_that_is_no_provider_is_found() {
    let verdict = run(Path::new("/bin/true"), &json!({}), &[]);
    verdict.failed(&[
        "without the cookie: want exit code 1, got",
        "without the cookie: nothing explains it on standard error",
        "launch: ",
    ]);
}

#[test]
fn go_code_is_clean() {
    let vet = programs::go().args(["vet", "./..."]).output().unwrap();
    assert!(vet.status.success(), "{}", String::from_utf8_lossy(&vet.stderr));
    let format = Command::new("gofmt")
        .args(["-l", "contract", "gohost", "goprovider"])
        .current_dir(programs::go_module())
        .output()
        .unwrap();
    assert!(
        format.status.success() && format.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&format.stdout)
    );
}
