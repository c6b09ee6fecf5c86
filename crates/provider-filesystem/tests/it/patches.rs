//! Patches and several edits at once: all or nothing, and every place named.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, refused};

fn envelope(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")})
}

#[tokio::test]
async fn a_patch_of_which_one_hunk_does_not_apply_changes_nothing() {
    let sandbox = Sandbox::new().await;
    for name in ["a", "b", "c"] {
        sandbox.put(name, format!("one\n{name}\n"));
    }
    let patch = envelope(
        "*** Update File: a\n@@\n-a\n+A\n*** Update File: b\n@@\n-b\n+B\n*** Update File: c\n@@\n-wrong\n+C\n*** Add File: d\n+d\n",
    );
    let message = refused(&sandbox.change_all("apply_patch", patch).await, "execution_failed", "no_match");
    contains(&message, &["c: change 1", "line 11 of the patch", "nothing was changed", "3 of 4"]);
}

#[tokio::test]
async fn partial_applies_the_rest_and_reports_each_hunk() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "1\n2\n2\n3\n");
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n@@ -9 +9 @@\n-2\n+two\n@@ -9 +9 @@\n-4\n+four\n@@ -4 +4 @@\n-3\n+three\n";
    let outcome = sandbox.change_all("apply_patch", json!({"patch": patch, "partial": true})).await;
    let payload = outcome.payload();
    assert_eq!(payload["applied"], false);
    let hunks = payload["files"][0]["hunks"].as_array().unwrap();
    let statuses: Vec<_> = hunks.iter().map(|hunk| hunk["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["applied", "ambiguous", "not_found", "applied"]);
    assert_eq!(
        hunks[1]["lines"],
        json!([{"start_line": 2, "end_line": 2}, {"start_line": 3, "end_line": 3}])
    );
    contains(&notes(&outcome), &["left out", "change 2", "change 3"]);
    assert_eq!(sandbox.bytes("a"), b"one\n2\n2\nthree\n");
}

#[tokio::test]
async fn every_operation_of_an_envelope_is_done_and_undone_in_one_piece() {
    let sandbox = Sandbox::new().await;
    sandbox.put("update", "x\r\ny\r\n");
    sandbox.put("script", "#!/bin/sh\nold\n");
    std::fs::set_permissions(sandbox.at("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.put("gone", "bye\n");
    sandbox.put("real", "r\n");
    symlink("real", sandbox.at("link")).unwrap();
    let before = sandbox.tree();
    let patch = envelope(
        "*** Update File: update\n@@\n x\n-y\n+Y\n+z\n*** Update File: script\n*** Move to: bin/script\n@@\n-old\n+new\n*** Delete File: gone\n*** Add File: deep/er/new\n+n\n*** Update File: link\n@@\n-r\n+R\n",
    );
    let outcome = sandbox.change_all("apply_patch", patch).await;
    let payload = outcome.payload();
    let actions: Vec<_> =
        payload["files"].as_array().unwrap().iter().map(|file| file["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["update", "move", "delete", "add", "update"]);
    assert_eq!(payload["files"][1]["path"], "bin/script");
    assert_eq!(sandbox.bytes("update"), b"x\r\nY\r\nz\r\n");
    assert_eq!(sandbox.bytes("bin/script"), b"#!/bin/sh\nnew\n");
    assert_eq!(sandbox.at("bin/script").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert!(!sandbox.at("gone").exists() && !sandbox.at("script").exists());
    assert_eq!((sandbox.bytes("deep/er/new"), sandbox.bytes("real")), (b"n\n".to_vec(), b"R\n".to_vec()));
    assert!(sandbox.at("link").is_symlink());
    let after = sandbox.tree();

    let undo = sandbox.change_all("undo_change", json!({})).await;
    assert_eq!(sandbox.tree(), before, "{}", undo.terminal());
    let redo =
        sandbox.another().await.call("undo_change", json!({"change_id": undo.payload()["change_id"]})).await;
    assert_eq!(sandbox.tree(), after, "{}", redo.terminal());
    let back = sandbox.another().await.call("undo_change", json!({})).await;
    assert_eq!(sandbox.tree(), before, "{}", back.terminal());
}

#[tokio::test]
async fn the_reverse_patch_gives_the_file_back() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\r\nb\r\nc");
    sandbox.change_all("apply_patch", envelope("*** Update File: f\n@@\n a\n+new\n b\n")).await.payload();
    assert_eq!(sandbox.bytes("f"), b"a\r\nnew\r\nb\r\nc");
    sandbox.change_all("apply_patch", envelope("*** Update File: f\n@@\n a\n-new\n b\n")).await.payload();
    assert_eq!(sandbox.bytes("f"), b"a\r\nb\r\nc");
}

#[tokio::test]
async fn git_patches_create_remove_rename_and_change_modes() {
    let sandbox = Sandbox::new().await;
    sandbox.put("old", "a\nb\n");
    sandbox.put("gone", "x\n");
    sandbox.put("tool", "t\n");
    let patch = "diff --git a/old b/sub/new\nsimilarity index 50%\nrename from old\nrename to sub/new\n--- a/old\n+++ b/sub/new\n@@ -1,2 +1,2 @@\n a\n-b\n+B\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\ndiff --git a/tool b/tool\nold mode 100644\nnew mode 100755\ndiff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+r\n\\ No newline at end of file\n";
    let before = sandbox.tree();
    let outcome = sandbox.change_all("apply_patch", json!({"patch": patch})).await;
    assert_eq!(outcome.payload()["applied"], true);
    assert_eq!((sandbox.bytes("sub/new"), sandbox.bytes("run")), (b"a\nB\n".to_vec(), b"r".to_vec()));
    let mode = |name| sandbox.at(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("tool"), mode("run")), (0o755, 0o755));
    assert!(!sandbox.at("gone").exists() && !sandbox.at("old").exists());
    sandbox.call("undo_change", json!({})).await.payload();
    assert_eq!(sandbox.tree(), before);
}

#[tokio::test]
async fn existing_files_are_not_added_over_nor_moved_over() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "same\n");
    sandbox.put("b", "other content\n");
    let message = refused(
        &sandbox.change_all("apply_patch", envelope("*** Add File: b\n+new\n")).await,
        "execution_failed",
        "exists",
    );
    contains(&message, &["4 bytes", "14 bytes"]);
    let patch = envelope("*** Update File: a\n*** Move to: b\n@@\n-same\n+changed\n");
    let message = refused(&sandbox.change_all("apply_patch", patch).await, "execution_failed", "exists");
    contains(&message, &["b", "5 bytes", "14 bytes"]);
    let outcome = sandbox.change_all("apply_patch", envelope("*** Add File: a\n+same\n")).await;
    assert_eq!(outcome.payload()["files"][0]["hunks"][0]["status"], "already_applied");
    assert_eq!(outcome.payload().get("change_id"), None);
}

#[tokio::test]
async fn a_patch_that_was_applied_says_so_and_changes_nothing() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\nc\n");
    let patch = envelope("*** Update File: f\n@@\n a\n-b\n+B\n c\n");
    assert_eq!(sandbox.change_all("apply_patch", patch.clone()).await.payload()["applied"], true);
    let before = sandbox.tree();
    let outcome = sandbox.change_all("apply_patch", patch).await;
    assert_eq!(outcome.payload()["files"][0]["hunks"][0]["status"], "already_applied");
    contains(&notes(&outcome), &["there already", "no change"]);
    assert_eq!(sandbox.tree(), before);
}

#[tokio::test]
async fn a_file_that_is_removed_by_a_diff_must_have_what_the_diff_says() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nmore\n");
    let patch = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    let message = refused(
        &sandbox.change_all("apply_patch", json!({"patch": patch})).await,
        "execution_failed",
        "no_match",
    );
    contains(&message, &["f", "more in it"]);
}

#[tokio::test]
async fn paths_of_a_patch_stay_in_the_roots_and_stand_once() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\n");
    sandbox.put(".git/config", "c\n");
    let outside = sandbox.outside().join("x").display().to_string();
    for (body, category, code) in [
        (format!("*** Add File: {outside}\n+x\n"), "permission_denied", "outside_root"),
        (
            "*** Update File: f\n*** Move to: ../f\n@@\n-a\n+b\n".to_owned(),
            "permission_denied",
            "outside_root",
        ),
        ("*** Update File: .git/config\n@@\n-c\n+d\n".to_owned(), "permission_denied", "denied"),
        ("*** Update File: none\n@@\n-a\n+b\n".to_owned(), "not_found", ""),
        ("*** Update File: f\n@@\n-a\n+b\n*** Delete File: ./f\n".to_owned(), "invalid_arguments", ""),
    ] {
        let outcome = sandbox.change_all("apply_patch", envelope(&body)).await;
        let error = outcome.error();
        assert_eq!((error.category.as_str(), error.code.as_str()), (category, code), "{body}: {error:?}");
    }
    refused(&sandbox.change_all("apply_patch", json!({"patch": "what"})).await, "invalid_arguments", "");
}

#[tokio::test]
async fn a_patch_follows_an_outside_change_only_where_its_places_are_certain() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\n");
    sandbox.read(json!({"path": "f"})).await;
    sandbox.put("f", "new\na\nb\n");
    let outcome = sandbox.call("apply_patch", envelope("*** Update File: f\n@@\n-b\n+B\n")).await;
    contains(&notes(&outcome), &["changed by something else"]);
    sandbox.put("f", "a\na\n");
    let patch = json!({"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n"});
    refused(&sandbox.call("apply_patch", patch).await, "concurrency_conflict", "stale");
    refused(
        &sandbox.call("apply_patch", envelope("*** Delete File: f\n")).await,
        "concurrency_conflict",
        "stale",
    );
}

#[tokio::test]
async fn edits_are_made_in_order_each_on_what_the_last_one_left() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "one\ntwo\n");
    sandbox.put("b", "b\r\n");
    let edits = json!({"edits": [
        {"path": "a", "old_str": "one", "new_str": "1\n1"},
        {"path": "b", "old_str": "b", "new_str": "B"},
        {"path": "./a", "old_str": "two", "new_str": "2"},
        {"path": "a", "old_str": "1\n1", "new_str": "0\n0\n0"},
        {"path": "a", "old_str": "0", "new_str": "x", "replace_all": true},
    ]});
    let outcome = sandbox.change_all("multi_edit", edits).await;
    let payload = outcome.payload();
    assert_eq!(payload["files"].as_array().unwrap().len(), 2);
    assert_eq!((sandbox.bytes("a"), sandbox.bytes("b")), (b"x\nx\nx\n2\n".to_vec(), b"B\r\n".to_vec()));
    let last = &payload["files"][0]["replacements"];
    assert!(last.as_array().unwrap().contains(&json!({"start_line": 4, "end_line": 4})), "{last}");
    sandbox.change_all("undo_change", json!({})).await.payload();
    assert_eq!((sandbox.bytes("a"), sandbox.bytes("b")), (b"one\ntwo\n".to_vec(), b"b\r\n".to_vec()));
}

#[tokio::test]
async fn one_edit_that_fails_is_named_and_none_is_made() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "one\n");
    sandbox.put("b", "b\nb\n");
    let both = |second: Value| json!({"edits": [{"path": "a", "old_str": "one", "new_str": "1"}, second]});
    for (second, category, code) in [
        (json!({"path": "b", "old_str": "none", "new_str": "x"}), "execution_failed", "no_match"),
        (json!({"path": "b", "old_str": "b", "new_str": "x"}), "execution_failed", "ambiguous"),
        (
            json!({"path": "b", "old_str": "b", "new_str": "x", "expected_count": 3}),
            "execution_failed",
            "count_mismatch",
        ),
        (json!({"path": "b", "old_str": "", "new_str": "x"}), "invalid_arguments", ""),
        (json!({"path": "../out", "old_str": "b", "new_str": "x"}), "permission_denied", "outside_root"),
    ] {
        let outcome = sandbox.change_all("multi_edit", both(second)).await;
        contains(&refused(&outcome, category, code), &["edits[1]", "None of the edits was made"]);
    }
    let missing = both(json!({"path": "none", "old_str": "b", "new_str": "x"}));
    contains(&refused(&sandbox.change_all("multi_edit", missing).await, "not_found", ""), &["none"]);
    refused(&sandbox.change_all("multi_edit", json!({"edits": []})).await, "invalid_arguments", "");
}

#[tokio::test]
async fn two_names_of_one_file_are_one_file_or_refused() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "one\ntwo\n");
    symlink("a", sandbox.at("link")).unwrap();
    let edits = |other: &str| {
        json!({"edits": [
            {"path": "a", "old_str": "one", "new_str": "1"},
            {"path": other, "old_str": "two", "new_str": "2"},
        ]})
    };
    let outcome = sandbox.change_all("multi_edit", edits("link")).await;
    assert_eq!(outcome.payload()["files"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.bytes("a"), b"1\n2\n");
    sandbox.put("a", "one\ntwo\n");
    std::fs::hard_link(sandbox.at("a"), sandbox.at("hard")).unwrap();
    let outcome = sandbox
        .call("multi_edit", {
            let mut edits = edits("hard");
            edits["force"] = json!(true);
            edits
        })
        .await;
    contains(&outcome.error().message, &["same file"]);
    assert_eq!(sandbox.bytes("a"), b"one\ntwo\n");
}

#[tokio::test]
async fn a_call_whose_files_changed_since_its_preview_changes_none() {
    let sandbox = Sandbox::new().await;
    for name in ["a", "b"] {
        sandbox.put(name, format!("{name}\n"));
    }
    let edits = json!({"edits": [
        {"path": "a", "old_str": "a", "new_str": "A"},
        {"path": "b", "old_str": "b", "new_str": "B"},
    ]});
    let patch = envelope("*** Update File: a\n@@\n-a\n+A\n*** Update File: b\n@@\n-b\n+B\n");
    for (tool, arguments) in [("multi_edit", edits), ("apply_patch", patch)] {
        sandbox.put("b", "b\n");
        let id = sandbox.harness.next_id();
        sandbox.preview(&id, tool, arguments.clone()).await.unwrap();
        sandbox.put("b", "more\nb\n");
        let outcome = sandbox.harness.call_as(&id, tool, arguments, None).await;
        refused(&outcome, "concurrency_conflict", "stale");
        assert_eq!((sandbox.bytes("a"), sandbox.bytes("b")), (b"a\n".to_vec(), b"more\nb\n".to_vec()));
    }
}

#[tokio::test]
async fn an_edit_of_several_may_name_the_line_it_means() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "x\ny\nx\n");
    let edits = json!({"edits": [
        {"path": "f", "old_str": "y", "new_str": "y\ny\ny"},
        {"path": "f", "old_str": "x", "new_str": "z", "near_line": 4},
    ]});
    sandbox.change_all("multi_edit", edits).await.payload();
    assert_eq!(sandbox.bytes("f"), b"x\ny\ny\ny\nz\n");
    let edits = json!({"edits": [
        {"path": "f", "old_str": "y", "new_str": "x", "near_line": 3, "replace_all": true},
    ]});
    let message = refused(&sandbox.change_all("multi_edit", edits).await, "invalid_arguments", "");
    contains(&message, &["edits[0]", "near_line"]);
}

#[tokio::test]
async fn lines_that_are_there_by_chance_are_not_taken_for_the_change() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "one\nreturn 0\nend\n");
    let patch = envelope("*** Update File: f\n@@\n-return 1\n+return 0\n");
    let message = refused(&sandbox.change_all("apply_patch", patch).await, "execution_failed", "no_match");
    contains(&message, &["not in the file", "new lines stand in line 2 already", "leave it out"]);
    for patch in [
        envelope("*** Update File: f\n@@\n one\n-return 1\n+return 0\n"),
        envelope("*** Update File: f\n@@ one\n-return 1\n+return 0\n"),
        json!({"patch": "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-return 1\n+return 0\n"}),
    ] {
        let outcome = sandbox.change_all("apply_patch", patch).await;
        assert_eq!(outcome.payload()["files"][0]["hunks"][0]["status"], "already_applied");
    }
}

#[tokio::test]
async fn an_edit_that_fails_on_what_an_earlier_one_left_says_so() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "one\n");
    let edits = json!({"edits": [
        {"path": "f", "old_str": "one", "new_str": "1"}, {"path": "f", "old_str": "one", "new_str": "2"},
    ]});
    let message = refused(&sandbox.change_all("multi_edit", edits).await, "execution_failed", "no_match");
    contains(&message, &["edits[1]", "before it in this call had changed the file"]);
    let edits = json!({"edits": [
        {"path": "f", "old_str": "one", "new_str": "1"}, {"path": "non", "old_str": "one", "new_str": "2"},
    ]});
    let message = refused(&sandbox.change_all("multi_edit", edits).await, "not_found", "");
    contains(&message, &["edits[1]", "`non`", "None of the edits was made"]);
}

#[tokio::test]
async fn files_that_are_not_there_are_known_by_their_time_or_by_line_0() {
    let sandbox = Sandbox::new().await;
    sandbox.put("gone", "x\n");
    sandbox.put("empty", "");
    let before = sandbox.tree();
    let patch = "--- a/new\t1970-01-01 00:00:00.000000000 +0000\n+++ b/new\t2024-02-29 12:00:00.000000000 +0000\n@@ -0,0 +1 @@\n+n\n--- a/gone\t2024-02-29 12:00:00.000000000 +0000\n+++ b/gone\t1969-12-31 19:00:00.000000000 -0500\n@@ -1 +0,0 @@\n-x\n--- a/sub/plain\n+++ b/sub/plain\n@@ -0,0 +1,2 @@\n+1\n+2\n--- a/empty\n+++ b/empty\n@@ -0,0 +1 @@\n+e\n";
    let outcome = sandbox.change_all("apply_patch", json!({"patch": patch})).await;
    let actions: Vec<_> =
        outcome.payload()["files"].as_array().unwrap().iter().map(|file| file["action"].clone()).collect();
    assert_eq!(actions, ["add", "delete", "add", "update"]);
    assert!(!sandbox.at("gone").exists());
    assert_eq!((sandbox.bytes("new"), sandbox.bytes("sub/plain")), (b"n\n".to_vec(), b"1\n2\n".to_vec()));
    assert_eq!(sandbox.bytes("empty"), b"e\n");
    sandbox.change_all("undo_change", json!({})).await.payload();
    assert_eq!(sandbox.tree(), before);
    sandbox.put("new", "theirs\n");
    let outcome = sandbox.change_all("apply_patch", json!({"patch": patch})).await;
    contains(&refused(&outcome, "execution_failed", "exists"), &["new", "exists already"]);
}
