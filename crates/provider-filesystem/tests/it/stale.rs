//! Changes that something else made since a session read a file.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, refused};

async fn sandbox(policy: &str) -> Sandbox {
    Sandbox::with(json!({"stale": policy})).await
}

fn set_modified(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// Writes other content of the same length under the old time of change.
fn rewrite_unseen(path: &Path, bytes: &[u8]) {
    let time = path.metadata().unwrap().modified().unwrap();
    std::fs::write(path, bytes).unwrap();
    set_modified(path, time);
}

fn edit(old_str: &str, new_str: &str) -> Value {
    json!({"path": "f", "old_str": old_str, "new_str": new_str})
}

fn with(mut arguments: Value, key: &str, value: impl Into<Value>) -> Value {
    arguments[key] = value.into();
    arguments
}

#[tokio::test]
async fn a_touched_file_with_the_same_bytes_is_not_stale() {
    let sandbox = sandbox("strict").await;
    let path = sandbox.put("f", "a\nb\n");
    sandbox.read(json!({"path": "f"})).await;
    std::fs::write(&path, "a\nb\n").unwrap();
    set_modified(&path, SystemTime::now() + Duration::from_secs(60));
    let outcome = sandbox.edit("f", "a", "A").await;
    assert_eq!(outcome.payload().get("notes"), None);
    sandbox.write("f", "whole\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"whole\n");
}

#[tokio::test]
async fn a_change_of_the_same_length_and_time_is_stale() {
    let sandbox = sandbox("strict").await;
    let path = sandbox.put("f", "alpha\nbeta\n");
    sandbox.read(json!({"path": "f"})).await;
    rewrite_unseen(&path, b"alpha\nBETA\n");
    let message = refused(&sandbox.edit("f", "alpha", "x").await, "concurrency_conflict", "stale");
    contains(&message, &["-beta", "+BETA"]);
    let message = refused(&sandbox.write("f", "x\n").await, "concurrency_conflict", "stale");
    contains(&message, &["-beta", "+BETA"]);
}

#[tokio::test]
async fn an_edit_whose_text_is_still_unique_applies_with_a_note() {
    let sandbox = sandbox("unique").await;
    let path = sandbox.put("f", "alpha\nbeta\n");
    sandbox.read(json!({"path": "f"})).await;
    rewrite_unseen(&path, b"alpha\nBETA\n");
    let outcome = sandbox.edit("f", "alpha", "x").await;
    contains(&notes(&outcome), &["changed by something else", "exactly once"]);
    assert_eq!(sandbox.bytes("f"), b"x\nBETA\n");
}

#[tokio::test]
async fn a_changed_file_is_not_edited_in_several_places() {
    let sandbox = sandbox("unique").await;
    let path = sandbox.put("f", "a\nb\n");
    sandbox.read(json!({"path": "f"})).await;
    std::fs::write(&path, "a\nb\na\n").unwrap();
    let arguments = with(edit("a", "x"), "replace_all", true);
    refused(&sandbox.change("edit_file", arguments.clone()).await, "concurrency_conflict", "stale");
    sandbox.change("edit_file", with(arguments, "force", true)).await.payload();
    assert_eq!(sandbox.bytes("f"), b"x\nb\nx\n");
}

#[tokio::test]
async fn a_write_over_an_external_change_is_refused_with_what_changed() {
    for policy in ["unique", "strict"] {
        let sandbox = sandbox(policy).await;
        let path = sandbox.put("f", "fn a() {}\n");
        sandbox.read(json!({"path": "f"})).await;
        std::fs::write(&path, "fn a() {}\nfn b() {}\n").unwrap();
        let message = refused(&sandbox.write("f", "fn a() {}\n").await, "concurrency_conflict", "stale");
        contains(&message, &["+fn b() {}", "force"]);
        let arguments = json!({"path": "f", "content": "fn a() {}\n", "force": true});
        sandbox.change("write_file", arguments).await.payload();
        assert_eq!(sandbox.bytes("f"), b"fn a() {}\n");
    }
}

#[tokio::test]
async fn an_edit_of_a_changed_file_does_not_make_the_rest_of_it_known() {
    let sandbox = sandbox("unique").await;
    let path = sandbox.put("f", "alpha\nbeta\n");
    sandbox.read(json!({"path": "f"})).await;
    std::fs::write(&path, "alpha\nbeta\nexternal\n").unwrap();
    sandbox.edit("f", "alpha", "ALPHA").await.payload();
    let outcome = sandbox.write("f", "ALPHA\nbeta\n").await;
    refused(&outcome, "concurrency_conflict", "stale");
    assert_eq!(sandbox.bytes("f"), b"ALPHA\nbeta\nexternal\n");
}

#[tokio::test]
async fn a_file_read_in_part_is_not_overwritten() {
    let sandbox = sandbox("unique").await;
    let lines: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    sandbox.put("f", &lines);
    let page = sandbox.read(json!({"path": "f", "limit": 100})).await;
    let content = page["content"].as_str().unwrap();
    let message = refused(&sandbox.write("f", content).await, "concurrency_conflict", "stale");
    contains(&message, &["100", "5000"]);
    assert_eq!(sandbox.bytes("f"), lines.as_bytes());
}

#[tokio::test]
async fn a_file_read_page_by_page_may_be_overwritten() {
    let sandbox = sandbox("unique").await;
    sandbox.put("f", "a\nb\nc\n");
    for offset in 1..=3 {
        sandbox.read(json!({"path": "f", "offset": offset, "limit": 1})).await;
    }
    sandbox.write("f", "new\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"new\n");
}

#[tokio::test]
async fn a_line_read_in_pieces_is_known_once_all_pieces_were_read() {
    let sandbox = sandbox("unique").await;
    sandbox.put("f", "x".repeat(120_000));
    // The diff of such a line is too long for a result, and so not compared with that of a preview.
    let write = async || sandbox.call("write_file", json!({"path": "f", "content": "new"})).await;
    let page = sandbox.read(json!({"path": "f", "byte_offset": 100_000})).await;
    assert_eq!(page["truncated"], false);
    refused(&write().await, "concurrency_conflict", "stale");
    let mut page = sandbox.read(json!({"path": "f"})).await;
    while page["truncated"] == true {
        refused(&write().await, "concurrency_conflict", "stale");
        page = sandbox.read(json!({"path": "f", "byte_offset": page["next_offset"]})).await;
    }
    write().await.payload();
    assert_eq!(sandbox.bytes("f"), b"new");
}

#[tokio::test]
async fn what_a_session_wrote_it_knows() {
    let sandbox = sandbox("strict").await;
    sandbox.write("f", "a\nb\n").await.payload();
    sandbox.edit("f", "a", "A").await.payload();
    sandbox.write("f", "end\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"end\n");
}

#[tokio::test]
async fn an_edit_of_an_unread_file_does_not_stand_in_the_way_of_a_write() {
    let sandbox = sandbox("unique").await;
    sandbox.put("f", "a\nb\n");
    sandbox.edit("f", "a", "A").await.payload();
    sandbox.write("f", "whole\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"whole\n");
}

#[tokio::test]
async fn in_strict_mode_a_forced_edit_is_no_reading() {
    let sandbox = sandbox("strict").await;
    sandbox.put("f", "a\nb\n");
    sandbox.change("edit_file", with(edit("a", "A"), "force", true)).await.payload();
    let message = refused(&sandbox.write("f", "whole\n").await, "concurrency_conflict", "stale");
    contains(&message, &["has not been read"]);
}

#[tokio::test]
async fn strict_wants_a_file_read_first() {
    let sandbox = sandbox("strict").await;
    sandbox.put("f", "a\n");
    let message = refused(&sandbox.edit("f", "a", "b").await, "concurrency_conflict", "stale");
    contains(&message, &["has not been read", "force"]);
    refused(&sandbox.write("f", "b\n").await, "concurrency_conflict", "stale");
    sandbox.change("edit_file", with(edit("a", "b"), "force", true)).await.payload();
    assert_eq!(sandbox.bytes("f"), b"b\n");
}

#[tokio::test]
async fn what_one_session_read_another_has_not() {
    let sandbox = sandbox("strict").await;
    sandbox.put("f", "a\n");
    sandbox.read(json!({"path": "f"})).await;
    let other = sandbox.harness.clone().in_session("session-2");
    refused(&other.call("edit_file", edit("a", "b")).await, "concurrency_conflict", "stale");
}

#[tokio::test]
async fn off_looks_at_the_expected_hash_only() {
    let sandbox = sandbox("off").await;
    let path = sandbox.put("f", "a\nb\n");
    let sha256 = sandbox.read(json!({"path": "f"})).await["sha256"].clone();
    std::fs::write(&path, "a\nb\nc\n").unwrap();
    let write = json!({"path": "f", "content": "w\n", "expected_sha256": sha256});
    refused(&sandbox.change("write_file", write).await, "concurrency_conflict", "stale");
    sandbox.write("f", "w\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"w\n");
}

#[tokio::test]
async fn the_expected_hash_is_held_even_with_force() {
    let sandbox = sandbox("unique").await;
    sandbox.put("f", "a\n");
    let sha256 = sandbox.read(json!({"path": "f"})).await["sha256"].as_str().unwrap().to_uppercase();
    let arguments = with(edit("a", "b"), "expected_sha256", sha256);
    sandbox.change("edit_file", arguments.clone()).await.payload();
    let outcome = sandbox.change("edit_file", with(arguments, "force", true)).await;
    contains(&refused(&outcome, "concurrency_conflict", "stale"), &["expected_sha256"]);
    assert_eq!(sandbox.bytes("f"), b"b\n");
}

#[tokio::test]
async fn a_change_between_preview_and_call_is_refused() {
    let sandbox = sandbox("off").await;
    let path = sandbox.put("f", "a\nb\n");
    sandbox.preview("call-p", "edit_file", edit("a", "x")).await.unwrap();
    std::fs::write(&path, "a\nB\n").unwrap();
    let outcome = sandbox.harness.call_as("call-p", "edit_file", edit("a", "x"), None).await;
    contains(&refused(&outcome, "concurrency_conflict", "stale"), &["between the preview and the call"]);
    assert_eq!(sandbox.bytes("f"), b"a\nB\n");
}
