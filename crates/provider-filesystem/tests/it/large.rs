//! Edits of files that are not held in memory are edits like any other.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::sandbox::{Sandbox, contains, notes, refused};

/// Eleven megabytes of numbered lines.
fn lines(ending: &str) -> String {
    (1..=400_000).map(|n| format!("line {n} of a large file{ending}")).collect()
}

#[tokio::test]
async fn one_place_of_a_large_file_is_edited_and_can_be_taken_back() {
    let state = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::with(json!({"state_dir": state.path()})).await;
    let before = lines("\r\n");
    let path = sandbox.put("f", &before);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let outcome = sandbox.edit("f", "line 300000 of\nx", "").await;
    contains(&refused(&outcome, "execution_failed", "no_match"), &["too large to look for similar text"]);

    let old = "line 300000 of a large file\nline 300001";
    let outcome = sandbox.edit("f", old, "one\ntwo\nthree").await;
    let expected = before.replace(&old.replace('\n', "\r\n"), "one\r\ntwo\r\nthree");
    assert!(sandbox.bytes("f") == expected.as_bytes(), "other bytes changed");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
    let result = outcome.payload();
    assert_eq!(result["replacements"], json!([{"start_line": 300_000, "end_line": 300_002}]));
    contains(&notes(&outcome), &["but for its line endings"]);
    contains(result["diff"].as_str().unwrap(), &["@@ -299997,8 +299997,9 @@", "+two\r\n"]);
    let page = sandbox.read(json!({"path": "f", "limit": 1})).await;
    assert_eq!((&page["sha256"], &page["total_lines"]), (&result["sha256"], &json!(400_001)));

    sandbox.call("undo_change", json!({"change_id": result["change_id"]})).await.payload();
    assert!(sandbox.bytes("f") == before.as_bytes(), "undo gives other bytes");
}

#[tokio::test]
async fn a_large_file_that_changed_since_it_was_read_is_treated_as_any_other() {
    let sandbox = Sandbox::new().await;
    let before = lines("\n");
    sandbox.put("f", &before);
    sandbox.read(json!({"path": "f", "limit": 1})).await;
    sandbox.put("f", before.replace("line 7 of", "line seven of"));
    let outcome = sandbox.edit("f", "line 399999 of", "LINE of").await;
    contains(&notes(&outcome), &["changed by something else"]);
    sandbox.put("f", before.replace("line 8 of", "line eight of"));
    let near = json!({"path": "f", "old_str": "line 9 of", "new_str": "x", "near_line": 9});
    contains(
        &refused(&sandbox.change("edit_file", near).await, "concurrency_conflict", "stale"),
        &["changed"],
    );
    let hash =
        json!({"path": "f", "old_str": "line 9 of", "new_str": "x", "expected_sha256": "0".repeat(64)});
    refused(&sandbox.change("edit_file", hash).await, "concurrency_conflict", "stale");
}

#[tokio::test]
async fn several_places_of_a_large_file_are_found_as_in_a_small_one() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", lines("\n"));
    let outcome = sandbox.edit("f", "line 399999", "x").await;
    outcome.payload();
    let outcome = sandbox.edit("f", "line 39999", "x").await;
    contains(&refused(&outcome, "execution_failed", "ambiguous"), &["lines 39999, 399990"]);
    let arguments = json!({"path": "f", "old_str": "line 399998 of", "new_str": "same", "expected_count": 1});
    sandbox.change("edit_file", arguments).await.payload();
    let count = json!({"path": "f", "old_str": "line 399997 of", "new_str": "same", "expected_count": 2});
    refused(&sandbox.change("edit_file", count).await, "execution_failed", "count_mismatch");
}

#[tokio::test]
async fn a_large_file_with_two_names_keeps_both() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", lines("\n"));
    std::fs::hard_link(&path, sandbox.at("g")).unwrap();
    sandbox.edit("f", "line 250000 of", "changed").await.payload();
    assert!(sandbox.bytes("g") == sandbox.bytes("f"), "the names have parted");
}
