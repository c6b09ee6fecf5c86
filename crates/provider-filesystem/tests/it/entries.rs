//! Moving, copying, removing and making directories.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use crate::sandbox::{Sandbox, contains, refused};

#[tokio::test]
async fn moving_over_a_file_is_refused_unless_asked_for() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "from here");
    sandbox.put("b", "was there");
    let outcome = sandbox.change("move_path", json!({"from": "a", "to": "b"})).await;
    let message = refused(&outcome, "execution_failed", "exists");
    contains(&message, &["b", "9 bytes", "overwrite: true"]);

    let id = sandbox.harness.next_id();
    let arguments = json!({"from": "a", "to": "b", "overwrite": true});
    let preview = format!("{:?}", sandbox.preview(&id, "move_path", arguments.clone()).await.unwrap());
    contains(&preview, &["replaces a file of 9 bytes", "was there"]);
    let outcome = sandbox.harness.call_as(&id, "move_path", arguments, None).await;
    assert_eq!(outcome.payload()["atomic"], true);
    assert_eq!(sandbox.bytes("b"), b"from here");
    assert!(!sandbox.at("a").exists());
}

#[tokio::test]
async fn a_directory_is_never_replaced_and_the_error_names_the_name_to_use() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a", "x");
    sandbox.put("dir/f", "y");
    for tool in ["move_path", "copy_path"] {
        let outcome = sandbox.change(tool, json!({"from": "a", "to": "dir", "overwrite": true})).await;
        contains(&refused(&outcome, "execution_failed", "exists"), &["dir/a"]);
        let outcome = sandbox.change(tool, json!({"from": "dir", "to": "a", "overwrite": true})).await;
        contains(&refused(&outcome, "execution_failed", "exists"), &["a directory cannot replace"]);
        let outcome = sandbox.change(tool, json!({"from": "dir", "to": "dir/below"})).await;
        contains(&refused(&outcome, "invalid_arguments", ""), &["to:", "into itself"]);
        let outcome = sandbox.change(tool, json!({"from": "a", "to": "none/a"})).await;
        contains(&refused(&outcome, "not_found", ""), &["none", "create_directory"]);
        let outcome = sandbox.change(tool, json!({"from": "a", "to": "./a"})).await;
        contains(&refused(&outcome, "invalid_arguments", ""), &["the same"]);
        let outcome = sandbox.change(tool, json!({"from": "nothing", "to": "b"})).await;
        contains(&refused(&outcome, "not_found", ""), &["from:", "nothing"]);
        let outcome = sandbox.change(tool, json!({"from": ".", "to": "b"})).await;
        refused(&outcome, "invalid_arguments", "");
        let outcome = sandbox.change(tool, json!({"from": "a", "to": "/etc/a"})).await;
        refused(&outcome, "permission_denied", "outside_root");
    }
}

#[tokio::test]
async fn a_copy_has_the_mode_the_attributes_and_the_links_of_the_original() {
    let sandbox = Sandbox::new().await;
    sandbox.put("dir/tool", "#!\n");
    sandbox.put("dir/below/f", "x".repeat(100_000));
    std::fs::set_permissions(sandbox.at("dir/tool"), std::fs::Permissions::from_mode(0o751)).unwrap();
    std::fs::set_permissions(sandbox.at("dir/below"), std::fs::Permissions::from_mode(0o500)).unwrap();
    xattr::set(sandbox.at("dir/tool"), "user.a", b"1").unwrap();
    symlink("/etc/passwd", sandbox.at("dir/link")).unwrap();
    let outcome = sandbox.change("copy_path", json!({"from": "dir", "to": "copy"})).await;
    let payload = outcome.payload();
    assert_eq!((&payload["files"], &payload["bytes"]), (&json!(3), &json!(100_003)));
    let tree = sandbox.tree();
    for name in ["tool", "below", "below/f", "link"] {
        assert_eq!(tree[&format!("root/dir/{name}")], tree[&format!("root/copy/{name}")], "{name}");
    }
    assert_eq!(xattr::get(sandbox.at("copy/tool"), "user.a").unwrap().unwrap(), b"1");
    std::fs::set_permissions(sandbox.at("dir/below"), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(sandbox.at("copy/below"), std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn holes_stay_holes_in_a_copy() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("sparse", "");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"end", (100 << 20) - 3).unwrap();
    sandbox.change("copy_path", json!({"from": "sparse", "to": "copy"})).await.payload();
    let (one, other) = (path.metadata().unwrap(), sandbox.at("copy").metadata().unwrap());
    assert_eq!(one.len(), other.len());
    assert!(other.blocks() <= one.blocks() + 64, "{} blocks became {}", one.blocks(), other.blocks());
    assert!(sandbox.bytes("copy") == sandbox.bytes("sparse"));
}

#[tokio::test]
async fn special_files_are_refused_by_their_kind_and_can_be_moved_and_removed() {
    let sandbox = Sandbox::new().await;
    sandbox.put("dir/f", "x");
    nix::unistd::mkfifo(&sandbox.at("dir/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for from in ["dir", "dir/pipe"] {
        let outcome = sandbox.call("copy_path", json!({"from": from, "to": "copy"})).await;
        contains(&refused(&outcome, "permission_denied", "special_file"), &["pipe", "FIFO"]);
        assert!(!sandbox.at("copy").exists());
    }
    sandbox.call("move_path", json!({"from": "dir/pipe", "to": "pipe"})).await.payload();
    sandbox.call("delete_path", json!({"path": "pipe"})).await.payload();
    sandbox.call("undo_change", json!({})).await.payload();
    assert!(sandbox.at("pipe").symlink_metadata().is_ok());
}

#[tokio::test]
async fn removing_asks_for_recursive_and_spares_the_targets_of_links() {
    let sandbox = Sandbox::new().await;
    sandbox.put("dir/f", "four");
    sandbox.put("dir/below/g", "five!");
    std::fs::create_dir(sandbox.at("empty")).unwrap();
    symlink("dir", sandbox.at("link")).unwrap();
    let outcome = sandbox.change("delete_path", json!({"path": "dir"})).await;
    contains(
        &refused(&outcome, "execution_failed", "is_directory"),
        &["2 files", "9 bytes", "recursive: true"],
    );
    for root in [".", "/"] {
        assert_eq!(
            sandbox.call("delete_path", json!({"path": root, "recursive": true})).await.terminal()["event"],
            "error"
        );
    }
    let link = sandbox.call("delete_path", json!({"path": "link/", "recursive": true})).await;
    assert_eq!(link.payload()["files"], 1);
    assert!(sandbox.at("dir/f").exists() && !sandbox.at("link").exists());
    assert_eq!(sandbox.call("delete_path", json!({"path": "empty"})).await.payload()["files"], 0);

    let id = sandbox.harness.next_id();
    let arguments = json!({"path": "dir", "recursive": true});
    let preview = format!("{:?}", sandbox.preview(&id, "delete_path", arguments.clone()).await.unwrap());
    contains(&preview, &["2 files (9 bytes)", "below/g", "5 bytes"]);
    sandbox.put("dir/later", "not shown");
    let outcome = sandbox.harness.call_as(&id, "delete_path", arguments, None).await;
    refused(&outcome, "concurrency_conflict", "stale");
    let outcome = sandbox.call("delete_path", json!({"path": "dir", "recursive": true})).await;
    assert_eq!((&outcome.payload()["files"], &outcome.payload()["bytes"]), (&json!(3), &json!(18)));
    assert!(!sandbox.at("dir").exists());
}

#[tokio::test]
async fn what_is_protected_or_denied_is_not_carried_away_with_what_is_above_it() {
    let sandbox = Sandbox::with(json!({"deny": ["secret/**"]})).await;
    sandbox.put("repo/.git/config", "c");
    sandbox.put("secret/key", "k");
    sandbox.put("f", "f");
    for (tool, arguments, code) in [
        ("delete_path", json!({"path": "repo", "recursive": true}), "denied"),
        ("delete_path", json!({"path": "repo/.git/config"}), "denied"),
        ("delete_path", json!({"path": "secret", "recursive": true}), "denied"),
        ("move_path", json!({"from": "secret/key", "to": "key"}), "denied"),
        ("move_path", json!({"from": "f", "to": "repo/.git/f"}), "denied"),
        ("copy_path", json!({"from": "secret", "to": "open"}), "denied"),
        ("copy_path", json!({"from": "repo", "to": "other"}), "denied"),
        ("create_directory", json!({"path": "repo/.git/hooks"}), "denied"),
    ] {
        let outcome = sandbox.change(tool, arguments.clone()).await;
        assert_eq!(outcome.error().code, code, "{tool} {arguments}: {}", outcome.terminal());
    }
    // With its directory it stays as protected as it was.
    sandbox.call("move_path", json!({"from": "repo", "to": "moved"})).await.payload();
}

#[tokio::test]
async fn a_directory_is_made_once_and_found_again() {
    let sandbox = Sandbox::new().await;
    for created in [true, false] {
        let outcome = sandbox.call("create_directory", json!({"path": "a/b/c/"})).await;
        assert_eq!(outcome.payload()["created"], created);
        assert_eq!(outcome.payload().get("change_id").is_some(), created);
    }
    sandbox.put("f", "x");
    symlink("nowhere", sandbox.at("dangling")).unwrap();
    for path in ["f", "dangling"] {
        let outcome = sandbox.change("create_directory", json!({"path": path})).await;
        contains(&refused(&outcome, "execution_failed", "exists"), &[path, "not a directory"]);
    }
    let outcome = sandbox.change("create_directory", json!({"path": "f/below"})).await;
    assert_eq!(outcome.error().category, "execution_failed");
}

#[tokio::test]
async fn of_many_that_make_a_directory_one_does_and_all_succeed() {
    let sandbox = Sandbox::new().await;
    let calls = (0..10).map(|_| sandbox.call("create_directory", json!({"path": "a/b"})));
    let outcomes = futures_util::future::join_all(calls).await;
    let created = outcomes.iter().filter(|outcome| outcome.payload()["created"] == true).count();
    assert!((1..=2).contains(&created), "{created}");
    assert!(sandbox.at("a/b").is_dir());
}

#[tokio::test]
async fn the_journal_itself_is_out_of_reach_below_a_root() {
    let sandbox = Sandbox::new().await;
    let state = sandbox.at("own/state");
    sandbox.harness.configure(json!({"allowed_roots": [sandbox.root()], "state_dir": state})).await.unwrap();
    sandbox.put("f", "secret");
    sandbox.call("delete_path", json!({"path": "f"})).await.payload();
    for (tool, arguments) in [
        ("list_directory", json!({"path": "own/state/filesystem"})),
        ("delete_path", json!({"path": "own", "recursive": true})),
        ("copy_path", json!({"from": "own", "to": "copy"})),
        ("move_path", json!({"from": "own", "to": "moved"})),
    ] {
        assert_eq!(sandbox.call(tool, arguments).await.error().code, "denied", "{tool}");
    }
    sandbox.call("undo_change", json!({})).await.payload();
    assert_eq!(sandbox.bytes("f"), b"secret");
}
