//! Modes, attributes, owners and links outlive a change.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use crate::process::STATE;
use crate::sandbox::{Sandbox, contains, notes};
use provider_core::testing::tree::{Entry, entry_at};

/// Changes the file `f` by an edit and then by a write.
async fn change_twice(sandbox: &Sandbox) {
    sandbox.edit("f", "old", "new").await.payload();
    sandbox.write("f", "written\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"written\n");
}

fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap();
    u32::from_str_radix(mask, 8).unwrap()
}

#[tokio::test]
async fn every_mode_is_kept() {
    for mode in [0o755, 0o600, 0o664, 0o2755, 0o4711, 0o444] {
        let sandbox = Sandbox::new().await;
        let path = sandbox.put("f", "old\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        change_twice(&sandbox).await;
        let found = path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{found:o} is not {mode:o}");
    }
}

#[tokio::test]
async fn a_new_file_has_the_mode_that_the_umask_leaves() {
    let sandbox = Sandbox::new().await;
    sandbox.write("f", "x").await.payload();
    let mode = sandbox.at("f").metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o666 & !umask());
}

#[tokio::test]
async fn extended_attributes_are_kept() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "old\n");
    xattr::set(&path, "user.k", b"v").expect("these tests need a file system with user attributes");
    change_twice(&sandbox).await;
    assert_eq!(xattr::get(&path, "user.k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn a_symbolic_link_stays_one_and_its_target_changes() {
    let sandbox = Sandbox::new().await;
    sandbox.put("real.txt", "old\n");
    symlink("real.txt", sandbox.at("f")).unwrap();
    let outcome = sandbox.edit("f", "old", "new").await;
    contains(&notes(&outcome), &["symbolic link", "real.txt"]);
    let outcome = sandbox.write("f", "written\n").await;
    contains(&notes(&outcome), &["symbolic link", "real.txt"]);
    assert_eq!(entry_at(&sandbox.at("f")), Entry::Symlink("real.txt".to_owned()));
    assert_eq!(sandbox.bytes("real.txt"), b"written\n");
}

#[tokio::test]
async fn a_hard_link_keeps_its_other_names_or_says_that_it_does_not() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "old\n");
    std::fs::hard_link(&path, sandbox.at("other")).unwrap();
    let outcome = sandbox.edit("f", "old", "new").await;
    if sandbox.bytes("other") == b"new\n" {
        assert_eq!(path.metadata().unwrap().nlink(), 2);
    } else {
        assert_eq!(sandbox.bytes("other"), b"old\n");
        contains(&notes(&outcome), &["link"]);
    }
}

#[tokio::test]
async fn a_protected_pattern_is_read_and_not_written() {
    let sandbox = Sandbox::new().await;
    sandbox.put(".git/config", "old\n");
    assert_eq!(sandbox.read(json!({"path": ".git/config"})).await["content"], "old\n");
    let outcome = sandbox.edit(".git/config", "old", "new").await;
    crate::sandbox::refused(&outcome, "permission_denied", "denied");
}

#[tokio::test]
async fn missing_directories_are_made_on_request_only() {
    let sandbox = Sandbox::new().await;
    let outcome = sandbox.write("a/b/f", "x").await;
    contains(&crate::sandbox::refused(&outcome, "not_found", ""), &["create_parents"]);
    let arguments = json!({"path": "a/b/f", "content": "x", "create_parents": true});
    assert_eq!(sandbox.change("write_file", arguments).await.payload()["created"], true);
    assert_eq!(sandbox.bytes("a/b/f"), b"x");
}

#[tokio::test]
async fn an_existing_file_is_kept_when_overwrite_is_false() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "old\n");
    let arguments = |path: &str| json!({"path": path, "content": "x", "overwrite": false});
    let outcome = sandbox.change("write_file", arguments("f")).await;
    crate::sandbox::refused(&outcome, "execution_failed", "exists");
    sandbox.change("write_file", arguments("new")).await.payload();
}

#[tokio::test]
async fn a_failed_write_leaves_no_directories_behind() {
    let sandbox = Sandbox::new().await;
    let before = sandbox.tree();
    let name = format!("a/b/{}", "n".repeat(300));
    let outcome =
        sandbox.call("write_file", json!({"path": name, "content": "x", "create_parents": true})).await;
    assert_eq!(outcome.terminal()["event"], "error");
    assert_eq!(sandbox.tree(), before);
}

#[tokio::test]
async fn a_name_kept_for_temporary_files_is_refused() {
    let sandbox = Sandbox::new().await;
    let before = sandbox.tree();
    let arguments = json!({"path": ".ph-0123456789abcdef.tmp", "content": "x"});
    let error = sandbox.call("write_file", arguments).await.error();
    assert_eq!((error.category.as_str(), error.code.as_str()), ("permission_denied", "denied"));
    let error = sandbox.call("write_file", json!({"path": "new/", "content": "x"})).await.error();
    assert_eq!(error.category, "invalid_arguments");
    let arguments = json!({"path": "new", "content": "x", "expected_sha256": "xyz"});
    assert_eq!(sandbox.call("write_file", arguments).await.error().category, "invalid_arguments");
    assert_eq!(sandbox.tree(), before);
}

#[tokio::test]
async fn configuring_removes_what_a_killed_writer_left_in_the_root() {
    let sandbox = Sandbox::new().await;
    sandbox.put(".ph-0123456789abcdef.tmp", "half");
    sandbox.harness.configure(json!({"allowed_roots": [sandbox.root()], "state_dir": STATE})).await.unwrap();
    assert!(!sandbox.at(".ph-0123456789abcdef.tmp").exists());
}
