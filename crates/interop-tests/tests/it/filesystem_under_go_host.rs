//! The catalog's filesystem provider under the Go host.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::go_host::{events, run};
use crate::programs;

/// Big enough that reading it whole takes far longer than the pause before the cancellation.
const BIG_FILE_BYTES: usize = 32 << 20;

fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes.txt"), "one\r\ntwo\nthree").unwrap();
    fs::write(directory.path().join("big.txt"), "a line of text\n".repeat(BIG_FILE_BYTES / 15)).unwrap();
    directory
}

fn script(root: &Path, calls: Value, log_sessions: &[&str]) -> Value {
    json!({"config": {"allowed_roots": [root]}, "calls": calls, "want_log_sessions": log_sessions})
}

#[test]
fn real_host_reads_edits_previews_and_renders() {
    let directory = workspace();
    let root = directory.path();
    let calls = json!([
        {"tool": "read_file", "arguments": {"path": "notes.txt"}, "session": "first", "directory": root,
         "render": true, "want": "result"},
        {"tool": "edit_file",
         "arguments": {"path": root.join("notes.txt"), "old_str": "two", "new_str": "2"},
         "session": "first", "directory": root, "preview": true, "render": true, "want": "result"},
        {"tool": "read_file", "arguments": {"path": "missing.txt"}, "session": "first", "directory": root,
         "want": "NOT_FOUND"},
        {"tool": "read_file", "arguments": {"path": "../../etc/passwd"}, "session": "first", "directory": root,
         "want": "PERMISSION_DENIED"},
        {"tool": "edit_file", "arguments": {"path": 1, "old_str": null}, "session": "first", "directory": root,
         "want": "INVALID_ARGUMENTS"},
        {"tool": "no_such_tool", "arguments": {}, "session": "first", "directory": root, "want": "NOT_FOUND"},
    ]);
    let report = run(&programs::filesystem_provider(), &script(root, calls, &[]), &[]).passed();

    assert_eq!(report["producer"]["name"], "filesystem");
    let read = &report["calls"][0];
    assert_eq!(read["result"]["content"], "one\r\ntwo\nthree");
    assert!(read["render"].as_str().unwrap().contains("three"), "{read}");
    let edit = &report["calls"][1];
    assert!(edit["preview"].as_str().unwrap().contains("DIFF_LINE_OP_REMOVE"), "{edit}");
    assert!(edit["render"].as_str().unwrap().contains("DIFF_LINE_OP_ADD"), "{edit}");
    assert_eq!(events(&report, 1), ["result"]);
    assert_eq!(fs::read(root.join("notes.txt")).unwrap(), b"one\r\n2\nthree");
    let offered = report["preview_offered"].as_array().unwrap();
    assert!(offered.contains(&json!("edit_file")) && !offered.contains(&json!("read_file")), "{offered:?}");
}

#[test]
fn cancelled_calls_are_logged_for_their_own_session_and_the_provider_lives_on() {
    let directory = workspace();
    let root = directory.path();
    let calls = json!([
        {"tool": "read_file", "arguments": {"path": "big.txt"}, "session": "reset", "directory": root,
         "cancel": {"by": "reset", "after_ms": 20}, "want": "cancelled"},
        {"tool": "read_file", "arguments": {"path": "big.txt"}, "session": "control", "directory": root,
         "cancel": {"by": "control", "after_ms": 20}, "want": "cancelled"},
        {"tool": "read_file", "arguments": {"path": "notes.txt"}, "session": "after", "directory": root,
         "want": "result"},
    ]);
    let script = script(root, calls, &["reset", "control"]);
    let report = run(&programs::filesystem_provider(), &script, &[]).passed();

    assert_eq!(report["calls"][0]["status"], "Canceled");
    assert_eq!(report["calls"][1]["status"], "OK");
    for entry in report["log"].as_array().unwrap() {
        let expected = match entry["session"].as_str().unwrap() {
            "reset" => json!("call-0"),
            "control" => json!("call-1"),
            "after" => json!("call-2"),
            _ => continue,
        };
        assert_eq!(entry["fields"]["call"], expected, "{entry}");
    }
}

#[test]
fn automatic_mutual_tls_is_refused_in_words() {
    let verdict =
        run(&programs::filesystem_provider(), &json!({"config": {"allowed_roots": ["/"]}}), &["-mtls"]);
    assert_eq!(verdict.exit_code, Some(1));
    assert!(verdict.stderr.contains("FAIL: launch: "), "{}", verdict.stderr);
    assert!(verdict.report["calls"].as_array().unwrap().is_empty());
}

#[test]
fn wrong_configuration_is_refused_by_configure() {
    let verdict = run(&programs::filesystem_provider(), &json!({"config": {"allowed_roots": 5}}), &[]);
    verdict.failed(&["Configure: rpc error: code = InvalidArgument"]);
}
