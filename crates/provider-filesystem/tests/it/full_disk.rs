//! A file system that is full, and state that cannot be kept.

use std::path::Path;

use provider_core::jail::is_temp_name;
use provider_core::testing::Outcome;
use provider_core::testing::tree::Tree;
use serde_json::{Value, json};

use crate::confined::{Confined, Shortage, shortages};
use crate::sandbox::{Sandbox, contains, notes, refused};

/// More than there is room for.
fn too_much() -> String {
    "0123456789abcde\n".repeat(900 << 6)
}

/// What there is room for, but not twice.
fn much() -> String {
    format!("head\n{}", "old content....\n".repeat(300 << 6))
}

#[track_caller]
fn no_temporary_files(tree: &Tree) {
    let stray = tree.keys().find(|name| is_temp_name(Path::new(name).file_name().unwrap()));
    assert_eq!(stray, None, "a temporary file is left");
}

/// Checks that a call was refused for want of room, in words that name the file.
#[track_caller]
fn for_want_of_room(outcome: &Outcome, name: &str) {
    let message = refused(outcome, "execution_failed", "");
    contains(&message, &[name]);
    let reasons = ["no space left on the file system", "file too large"];
    assert!(reasons.iter().any(|reason| message.contains(reason)), "{message}");
}

#[tokio::test]
async fn a_full_file_system_leaves_all_as_it_was_and_says_so() {
    for shortage in shortages(1024, 300) {
        let provider = Confined::new(shortage, &["small/root", "large"], "state").await;
        provider.put("small/root/f", much());
        provider.put("small/root/g", "one\ntwo\n");
        provider.put("small/root/h", "linked\n");
        std::fs::hard_link(provider.at("small/root/h"), provider.at("small/root/second")).unwrap();
        provider.put("large/big", too_much());
        provider.put("large/dir/big", too_much());
        let (big, dir) = (provider.named("large/big"), provider.named("large/dir"));
        let edit = |path: &str, old: &str, new: &str| json!({"path": path, "old_str": old, "new_str": new});
        let patch = |lines: &str| {
            let body: String = too_much().lines().map(|line| format!("+{line}\n")).collect();
            json!({"patch": format!("*** Begin Patch\n{lines}*** Add File: new\n{body}*** End Patch\n")})
        };
        let before = (provider.tree("small/root"), provider.tree("large"));
        let mut calls: Vec<(&str, Value, &str)> = vec![
            ("write_file", json!({"path": "f", "content": too_much()}), "f"),
            ("write_file", json!({"path": "new", "content": too_much()}), "new"),
            (
                "write_file",
                json!({"path": "p/q/new", "content": too_much(), "create_parents": true}),
                "p/q/new",
            ),
            ("write_file", json!({"path": "h", "content": too_much()}), "h"),
            ("edit_file", edit("g", "two", &too_much()), "g"),
            (
                "multi_edit",
                json!({"edits": [edit("g", "one", "1"), edit("f", "head", &too_much())], "force": true}),
                "f",
            ),
            ("apply_patch", patch("*** Update File: g\n@@\n-one\n+1\n"), "new"),
            ("copy_path", json!({"from": big, "to": "copy"}), "big"),
            ("copy_path", json!({"from": dir, "to": "copy"}), "dir"),
            ("copy_path", json!({"from": big, "to": "g", "overwrite": true}), "big"),
        ];
        if matches!(shortage, Shortage::FileSystem(_)) {
            // To another file system, so that it has to be copied.
            calls.push(("move_path", json!({"from": big, "to": "moved"}), "big"));
            calls.push(("move_path", json!({"from": dir, "to": "moved"}), "dir"));
        }
        for (tool, arguments, name) in calls {
            let outcome = provider.call("small/root", tool, arguments).await;
            for_want_of_room(&outcome, name);
            let after = (provider.tree("small/root"), provider.tree("large"));
            assert!(after == before, "{tool} of {name} changed something, {shortage:?}");
        }
        // What needs little room still works, and can be taken back.
        let outcome = provider.call("small/root", "edit_file", edit("g", "one", "1")).await;
        assert!(outcome.payload()["change_id"].is_string(), "{}", outcome.terminal());
        assert_eq!(provider.bytes("small/root/g"), b"1\ntwo\n");
        provider.call("small/root", "undo_change", json!({})).await.payload();
        assert!(provider.tree("small/root") == before.0, "undo gives something else");
        // Removing frees room, so it must not need any.
        provider.call("small/root", "delete_path", json!({"path": "f"})).await.payload();
        assert!(!provider.at("small/root/f").exists());
    }
}

#[tokio::test]
async fn a_full_state_folder_lets_the_tools_work_and_is_said() {
    for shortage in shortages(160, 60) {
        let provider = Confined::new(shortage, &["large"], "small").await;
        let fill = || {
            for name in ["f", "g", "dir/below"] {
                provider.put(&format!("large/{name}"), much());
            }
        };
        fill();
        let write = provider.call("large", "write_file", json!({"path": "f", "content": "new\n"})).await;
        not_kept(&write);
        assert_eq!(provider.bytes("large/f"), b"new\n");

        // Files may be as long as they like there: what is taken away has to be copied to where it is kept.
        if matches!(shortage, Shortage::FileSystem(_)) {
            fill();
            take_away_with_nowhere_to_keep_it(&provider).await;
        }
        provider.put("large/g", "n\n");
        let small =
            provider.call("large", "edit_file", json!({"path": "g", "old_str": "n", "new_str": "N"})).await;
        assert!(small.payload()["change_id"].is_string(), "{}", small.terminal());
        provider.call("large", "undo_change", json!({})).await.payload();
        assert_eq!(provider.bytes("large/g"), b"n\n");
        no_temporary_files(&provider.tree("large"));
        nothing_half_kept(&provider);
    }
}

async fn take_away_with_nowhere_to_keep_it(provider: &Confined) {
    provider.put("large/h", much());
    let patch = "*** Begin Patch\n*** Add File: new\n+n\n*** Delete File: f\n*** Delete File: h\n*** Update File: g\n*** Move to: moved\n\
                 @@\n-head\n+first\n*** End Patch\n";
    not_kept(&provider.call("large", "apply_patch", json!({"patch": patch, "force": true})).await);
    assert_eq!(provider.bytes("large/moved"), much().replacen("head", "first", 1).into_bytes());
    assert!(["f", "g", "h"].iter().all(|name| !provider.at(&format!("large/{name}")).exists()));

    provider.put("large/g", much());
    let arguments = json!({"from": "new", "to": "g", "overwrite": true});
    not_kept(&provider.call("large", "move_path", arguments).await);
    assert_eq!(provider.bytes("large/g"), b"n\n");
    assert!(!provider.at("large/new").exists());

    not_kept(&provider.call("large", "delete_path", json!({"path": "dir", "recursive": true})).await);
    assert!(!provider.at("large/dir").exists());
}

/// Checks that a change was made, cannot be taken back, and says so.
#[track_caller]
fn not_kept(outcome: &Outcome) {
    assert_eq!(outcome.payload().get("change_id"), None, "{}", outcome.terminal());
    contains(&notes(outcome), &["cannot be undone"]);
}

/// Nothing in the journal that no change owns.
fn nothing_half_kept(provider: &Confined) {
    let tree = provider.tree("small");
    let id = |name: &str| Path::new(name).file_stem().unwrap().to_str().unwrap().to_owned();
    let changes: Vec<String> =
        tree.keys().filter(|name| name.contains("/changes/")).map(|name| id(name)).collect();
    for name in tree.keys() {
        assert!(!name.contains("/pending/"), "{name}");
        let kept = name.split_once("/kept/").map(|(_, kept)| kept.split(['.', '/']).next().unwrap());
        assert!(kept.is_none_or(|kept| changes.iter().any(|id| id == kept)), "{name}");
    }
}

/// State folders that nobody can write, whoever they are.
fn unusable(folder: &Path) -> Vec<String> {
    std::fs::write(folder.join("file"), "").unwrap();
    let below_a_file = folder.join("file/state").display().to_string();
    vec![below_a_file, "/dev/null".to_owned(), "/proc/self/state".to_owned()]
}

#[tokio::test]
async fn without_a_usable_state_folder_every_change_works_and_says_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    for state in unusable(folder.path()) {
        let sandbox = Sandbox::with(json!({"state_dir": state})).await;
        sandbox.put("f", "one\ntwo\n");
        sandbox.put("g", "one\n");
        sandbox.put("dir/h", "h");
        let edit = |path: &str| json!({"path": path, "old_str": "one", "new_str": "1"});
        let patch = "*** Begin Patch\n*** Update File: f\n@@\n-two\n+2\n*** Delete File: g\n*** Add File: k\n+k\n\
                     *** End Patch\n";
        for (tool, arguments, several) in [
            ("write_file", json!({"path": "new", "content": "n"}), false),
            ("edit_file", edit("f"), false),
            ("multi_edit", json!({"edits": [edit("g")]}), false),
            ("apply_patch", json!({"patch": patch}), true),
            ("move_path", json!({"from": "k", "to": "l"}), false),
            ("move_path", json!({"from": "l", "to": "new", "overwrite": true}), true),
            ("copy_path", json!({"from": "dir", "to": "copy"}), false),
            ("copy_path", json!({"from": "f", "to": "dir/h", "overwrite": true}), true),
            ("create_directory", json!({"path": "made/below"}), false),
            ("delete_path", json!({"path": "dir", "recursive": true}), false),
        ] {
            let outcome = sandbox.call(tool, arguments.clone()).await;
            not_kept(&outcome);
            let part = notes(&outcome).contains("a part of it could have been left done");
            assert_eq!(part, several, "{tool} {arguments}: {}", notes(&outcome));
        }
        assert_eq!((sandbox.bytes("f"), sandbox.bytes("new")), (b"1\n2\n".to_vec(), b"k\n".to_vec()));
        assert!(!sandbox.at("dir").exists() && !sandbox.at("g").exists());
        refused(&sandbox.call("undo_change", json!({})).await, "not_found", "");
        no_temporary_files(&sandbox.tree());
    }
}

#[tokio::test]
async fn a_preview_says_that_what_is_removed_could_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    // The last shows only when it is tried.
    for state in unusable(folder.path()).into_iter().take(2) {
        let sandbox = Sandbox::with(json!({"state_dir": state})).await;
        sandbox.put("f", "f");
        sandbox.put("g", "g");
        for (tool, arguments, lost) in [
            ("delete_path", json!({"path": "f"}), true),
            ("move_path", json!({"from": "f", "to": "g", "overwrite": true}), true),
            ("move_path", json!({"from": "f", "to": "new"}), false),
        ] {
            let id = sandbox.harness.next_id();
            let shown = format!("{:?}", sandbox.preview(&id, tool, arguments).await.unwrap());
            assert_eq!(shown.contains("cannot be undone"), lost, "{tool}, {state}: {shown}");
        }
    }
}

#[tokio::test]
async fn a_state_folder_that_comes_to_be_full_or_gone_is_noticed() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "one\n");
    sandbox.call("write_file", json!({"path": "f", "content": "two\n"})).await.payload();
    std::fs::remove_dir_all(sandbox.state().join("filesystem")).unwrap();
    std::fs::write(sandbox.state().join("filesystem"), "").unwrap();
    not_kept(&sandbox.call("write_file", json!({"path": "f", "content": "three\n"})).await);
    std::fs::remove_file(sandbox.state().join("filesystem")).unwrap();
    let outcome = sandbox.call("write_file", json!({"path": "f", "content": "four\n"})).await;
    assert!(outcome.payload()["change_id"].is_string());
    sandbox.call("undo_change", json!({})).await.payload();
    assert_eq!(sandbox.bytes("f"), b"three\n");
}
