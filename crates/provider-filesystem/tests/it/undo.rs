//! Taking changes back: every kind of change, in the same process and in a later one.

use std::os::unix::fs::{PermissionsExt, symlink};

use provider_core::testing::Outcome;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, refused};
use provider_core::testing::tree::{Tree, snapshot};

/// The id that a change answered.
#[track_caller]
fn id_of(outcome: &Outcome) -> Value {
    let id = outcome.payload()["change_id"].clone();
    assert!(id.is_string(), "{}", outcome.terminal());
    id
}

/// Something of everything below the root.
async fn furnished() -> Sandbox {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", b"one\r\ntwo\n\xff");
    sandbox.put("script", "#!/bin/sh\n");
    std::fs::set_permissions(sandbox.at("script"), std::fs::Permissions::from_mode(0o750)).unwrap();
    sandbox.put("dir/a", "a\n");
    sandbox.put("dir/below/b", "b\n");
    std::fs::create_dir(sandbox.at("dir/empty")).unwrap();
    symlink("below/b", sandbox.at("dir/link")).unwrap();
    xattr::set(sandbox.at("dir/a"), "user.mark", b"kept").unwrap();
    sandbox
}

/// Makes a change and takes it back, does it again and takes that back, in this process and in another.
async fn check(tool: &str, arguments: Value) {
    let sandbox = furnished().await;
    let before = sandbox.tree();
    let change = sandbox.call(tool, arguments.clone()).await;
    let id = id_of(&change);
    let after = sandbox.tree();
    assert_ne!(before, after, "{tool} {arguments}");

    let undo = sandbox.change_all("undo_change", json!({"change_id": id})).await;
    assert_eq!(sandbox.tree(), before, "{tool} {arguments}: {}", undo.terminal());
    let redo = sandbox.another().await.call("undo_change", json!({"change_id": id_of(&undo)})).await;
    assert_eq!(sandbox.tree(), after, "{tool} {arguments}: {}", redo.terminal());
    let back = sandbox.another().await.call("undo_change", json!({})).await;
    assert_eq!(back.payload()["undone"], id_of(&redo));
    assert_eq!(sandbox.tree(), before, "{tool} {arguments}: {}", back.terminal());
    assert_eq!(pending(&sandbox), 0);
    let value = xattr::get(sandbox.at("dir/a"), "user.mark").unwrap();
    assert_eq!(value.as_deref(), Some(&b"kept"[..]));
}

/// How many changes have been begun and neither made nor taken back.
pub fn pending(sandbox: &Sandbox) -> usize {
    let roots = std::fs::read_dir(sandbox.state().join("filesystem")).unwrap();
    let pending = roots.map(|root| root.unwrap().path().join("pending"));
    pending.map(|pending| std::fs::read_dir(pending).unwrap().count()).sum()
}

#[tokio::test]
async fn every_kind_of_change_is_undone_and_done_again_byte_for_byte() {
    check("write_file", json!({"path": "f", "content": "other"})).await;
    check("write_file", json!({"path": "script", "content": ""})).await;
    check("write_file", json!({"path": "new", "content": "n"})).await;
    check("write_file", json!({"path": "x/y/new", "content": "n", "create_parents": true})).await;
    check("edit_file", json!({"path": "script", "old_str": "sh", "new_str": "bash"})).await;
    check("edit_file", json!({"path": "dir/link", "old_str": "b", "new_str": "c"})).await;
    check("create_directory", json!({"path": "x"})).await;
    check("create_directory", json!({"path": "x/y/z"})).await;
    check("delete_path", json!({"path": "f"})).await;
    check("delete_path", json!({"path": "dir/link"})).await;
    check("delete_path", json!({"path": "dir/empty"})).await;
    check("delete_path", json!({"path": "dir", "recursive": true})).await;
    check("move_path", json!({"from": "f", "to": "g"})).await;
    check("move_path", json!({"from": "f", "to": "dir/f"})).await;
    check("move_path", json!({"from": "dir", "to": "other"})).await;
    check("move_path", json!({"from": "dir/link", "to": "dir/other"})).await;
    check("move_path", json!({"from": "f", "to": "script", "overwrite": true})).await;
    check("copy_path", json!({"from": "f", "to": "g"})).await;
    check("copy_path", json!({"from": "dir", "to": "other"})).await;
    check("copy_path", json!({"from": "f", "to": "script", "overwrite": true})).await;
}

#[tokio::test]
async fn each_undo_without_an_id_goes_one_change_further_back() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "0");
    let mut trees: Vec<Tree> = vec![sandbox.tree()];
    for n in 1..=4 {
        sandbox.call("write_file", json!({"path": "f", "content": n.to_string()})).await.payload();
        trees.push(sandbox.tree());
    }
    for tree in trees.iter().rev().skip(1) {
        sandbox.call("undo_change", json!({})).await.payload();
        assert_eq!(sandbox.tree(), *tree);
    }
    let message = refused(&sandbox.call("undo_change", json!({})).await, "not_found", "");
    contains(&message, &["no change"]);
}

#[tokio::test]
async fn a_file_that_changed_since_is_not_put_back() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "one");
    type Spoil = fn(&std::path::Path);
    let spoil: [(&str, Spoil); 4] = [
        ("content", |path| std::fs::write(path, "own").unwrap()),
        ("mode", |path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap()),
        ("kind", |path| {
            std::fs::remove_file(path).unwrap();
            symlink("elsewhere", path).unwrap();
        }),
        ("gone", |path| std::fs::remove_file(path).unwrap()),
    ];
    for (what, spoil) in spoil {
        let _ = std::fs::remove_file(&path);
        sandbox.put("f", "one");
        let id =
            id_of(&sandbox.call("write_file", json!({"path": "f", "content": "two", "force": true})).await);
        spoil(&path);
        let outcome = sandbox.change("undo_change", json!({"change_id": id})).await;
        let message = refused(&outcome, "concurrency_conflict", "stale");
        contains(&message, &["f", "nothing was changed"]);
        assert!(outcome.terminal()["retryable"] == true, "{what}");
    }
}

#[tokio::test]
async fn what_was_touched_or_rewritten_with_the_same_bytes_is_put_back() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "one");
    let id = id_of(&sandbox.write("f", "two").await);
    sandbox.put("f", "two");
    sandbox.change("undo_change", json!({"change_id": id})).await.payload();
    assert_eq!(sandbox.bytes("f"), b"one");
}

#[tokio::test]
async fn what_has_its_name_again_is_not_overwritten_by_what_comes_back() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "one");
    let id = id_of(&sandbox.call("delete_path", json!({"path": "f"})).await);
    sandbox.put("f", "somebody else's");
    let message = refused(
        &sandbox.change("undo_change", json!({"change_id": id})).await,
        "concurrency_conflict",
        "stale",
    );
    contains(&message, &["f", "there again"]);
    std::fs::remove_file(sandbox.at("f")).unwrap();
    sandbox.change("undo_change", json!({"change_id": id})).await.payload();
    assert_eq!(sandbox.bytes("f"), b"one");
}

#[tokio::test]
async fn a_directory_that_is_in_use_by_now_stays() {
    let sandbox = Sandbox::new().await;
    let id = id_of(&sandbox.call("create_directory", json!({"path": "dir"})).await);
    sandbox.put("dir/f", "x");
    let message = refused(
        &sandbox.call("undo_change", json!({"change_id": id})).await,
        "concurrency_conflict",
        "stale",
    );
    contains(&message, &["dir", "`f`"]);

    let arguments = json!({"path": "a/b/f", "content": "x", "create_parents": true});
    let id = id_of(&sandbox.call("write_file", arguments).await);
    sandbox.put("a/other", "x");
    let outcome = sandbox.call("undo_change", json!({"change_id": id})).await;
    contains(&notes(&outcome), &["a stays", "`other`"]);
    assert!(sandbox.at("a/other").exists() && !sandbox.at("a/b").exists());
}

#[tokio::test]
async fn an_unknown_change_says_what_to_do() {
    let sandbox = Sandbox::new().await;
    for id in ["", "../../etc/passwd", "01ARZ3NDEKTSV4RRFFQ69G5FAV"] {
        let message = refused(&sandbox.call("undo_change", json!({"change_id": id})).await, "not_found", "");
        contains(&message, &[id, "Without change_id"]);
    }
}

#[tokio::test]
async fn the_change_of_another_session_is_only_taken_where_there_is_none_of_its_own() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "0");
    sandbox.call("write_file", json!({"path": "f", "content": "1"})).await.payload();
    let other = sandbox.another().await.in_session("another");
    other.call("write_file", json!({"path": "g", "content": "g"})).await.payload();
    sandbox.call("undo_change", json!({})).await.payload();
    assert_eq!((sandbox.bytes("f"), sandbox.bytes("g")), (b"0".to_vec(), b"g".to_vec()));
    let outcome = sandbox.another().await.in_session("third").call("undo_change", json!({})).await;
    contains(&notes(&outcome), &["another", "write_file"]);
    assert!(!sandbox.at("g").exists());
}

#[tokio::test]
async fn nothing_changed_leaves_nothing_to_undo() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "same");
    let outcome = sandbox.write("f", "same").await;
    assert_eq!(outcome.payload().get("change_id"), None);
    refused(&sandbox.call("undo_change", json!({})).await, "not_found", "");
}

#[tokio::test]
async fn without_a_state_folder_everything_works_with_a_note_and_cannot_be_undone() {
    let sandbox = Sandbox::with(json!({"state_dir": "/dev/null/none"})).await;
    sandbox.put("a", "one\n");
    sandbox.put("b", "one\n");
    sandbox.put("dir/f", "x");
    for (tool, arguments) in [
        ("write_file", json!({"path": "new", "content": "n"})),
        ("edit_file", json!({"path": "a", "old_str": "one", "new_str": "two"})),
        (
            "multi_edit",
            json!({"edits": [
                {"path": "a", "old_str": "two", "new_str": "2"}, {"path": "b", "old_str": "one", "new_str": "2"},
            ]}),
        ),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: a\n@@\n-2\n+3\n*** Delete File: b\n*** End Patch"}),
        ),
        ("create_directory", json!({"path": "x/y"})),
        ("move_path", json!({"from": "a", "to": "x/a"})),
        ("move_path", json!({"from": "new", "to": "x/a", "overwrite": true})),
        ("copy_path", json!({"from": "dir", "to": "copy"})),
        ("copy_path", json!({"from": "dir/f", "to": "x/a", "overwrite": true})),
        ("delete_path", json!({"path": "dir", "recursive": true})),
    ] {
        let outcome = sandbox.call(tool, arguments).await;
        assert_eq!(outcome.payload().get("change_id"), None, "{tool}");
        contains(&notes(&outcome), &["cannot be undone", "state folder"]);
    }
    let left: Vec<_> = sandbox.tree().into_keys().collect();
    assert_eq!(left, ["root", "root/copy", "root/copy/f", "root/x", "root/x/a", "root/x/y"]);
    assert_eq!(sandbox.bytes("x/a"), b"x");
    refused(&sandbox.call("undo_change", json!({})).await, "not_found", "");
}

#[tokio::test]
async fn a_failed_step_takes_back_the_steps_before_it() {
    for state in [json!({}), json!({"state_dir": "/dev/null/none"})] {
        let sandbox = Sandbox::with(state).await;
        sandbox.put("a", "one\n");
        sandbox.put("b", "one\n");
        // Nothing can take the place of a directory: the last step fails.
        let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** Update File: b\n*** Move to: dir/f\n@@\n-one\n+two\n*** End Patch";
        sandbox.put("dir/f/in the way", "x");
        let outcome = sandbox.change_all("apply_patch", json!({"patch": patch})).await;
        assert_eq!(outcome.error().code, "exists");
        assert_eq!((sandbox.bytes("a"), sandbox.bytes("b")), (b"one\n".to_vec(), b"one\n".to_vec()));
    }
}

#[tokio::test]
async fn what_is_on_another_file_system_than_the_journal_is_kept_and_comes_back() {
    let shared = std::path::Path::new("/dev/shm");
    let here = tempfile::tempdir().unwrap();
    let device = |path: &std::path::Path| std::os::unix::fs::MetadataExt::dev(&path.metadata().unwrap());
    if !shared.is_dir() || device(shared) == device(here.path()) {
        assert!(std::env::var_os("CI").is_none(), "this test needs /dev/shm on another file system");
        return;
    }
    let other = tempfile::tempdir_in(shared).unwrap();
    let config = json!({
        "allowed_roots": [here.path(), other.path()],
        "state_dir": here.path().with_extension("state"),
    });
    let harness = provider_core::testing::Harness::start::<provider_filesystem::Filesystem>(config)
        .await
        .unwrap()
        .in_directory(here.path());
    let there = |name: &str| other.path().join(name);
    std::fs::create_dir(there("dir")).unwrap();
    std::fs::write(there("dir/f"), "content").unwrap();
    std::fs::set_permissions(there("dir/f"), std::fs::Permissions::from_mode(0o751)).unwrap();
    symlink("f", there("dir/link")).unwrap();
    let before = snapshot(other.path());
    for (tool, arguments) in [
        ("delete_path", json!({"path": there("dir"), "recursive": true})),
        ("move_path", json!({"from": there("dir"), "to": "moved"})),
        ("move_path", json!({"from": there("dir/f"), "to": "alone"})),
    ] {
        let change = harness.call(tool, arguments.clone()).await;
        let id = change.payload()["change_id"].clone();
        if tool == "move_path" {
            assert_eq!(change.payload()["atomic"], false);
            contains(&notes(&change), &["different file systems"]);
        }
        assert_ne!(snapshot(other.path()), before);
        let undo = harness.call("undo_change", json!({"change_id": id})).await;
        assert_eq!(snapshot(other.path()), before, "{tool} {arguments}: {}", undo.terminal());
        assert!(snapshot(here.path()).is_empty());
        let redo = harness.call("undo_change", json!({"change_id": undo.payload()["change_id"]})).await;
        redo.payload();
        harness.call("undo_change", json!({})).await.payload();
        assert_eq!(snapshot(other.path()), before, "{tool} {arguments}, done again and undone");
    }
    std::fs::remove_dir_all(here.path().with_extension("state")).unwrap();
}
