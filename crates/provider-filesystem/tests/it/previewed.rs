//! A call that was previewed does what was shown, or nothing.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::sandbox::{LIMIT, Sandbox, contains, diffs_of, refused};

/// Something of everything, as far as a change with these arguments may need it.
async fn furnished(arguments: &Value) -> Sandbox {
    let sandbox = Sandbox::with(json!({"stale": "off"})).await;
    sandbox.put("f", "one\r\ntwo\r\n");
    sandbox.put("g", "g\n");
    if arguments["path"] == "large" {
        sandbox.put("large", "a line of a large file\n".repeat(400_000) + "the only one\n");
    }
    sandbox.put("dir/a", "a\n");
    sandbox.put("dir/below/b", "b\n");
    symlink("f", sandbox.at("link")).unwrap();
    std::fs::set_permissions(sandbox.at("dir/a"), std::fs::Permissions::from_mode(0o751)).unwrap();
    sandbox.call("write_file", json!({"path": "undoable", "content": "1\n"})).await.payload();
    sandbox
}

type Meddle = fn(&Sandbox);

fn append(sandbox: &Sandbox, name: &str) {
    let mut content = sandbox.bytes(name);
    content.extend(b"more\n");
    sandbox.put(name, content);
}

fn remove(sandbox: &Sandbox, name: &str) {
    std::fs::remove_file(sandbox.at(name)).unwrap();
}

/// Each change, and what others may do to it between its preview and the call.
fn changes() -> Vec<(&'static str, Value, Vec<Meddle>)> {
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-two\n+2\n*** Update File: g\n*** Move to: h\n@@\n-g\n+G\n*** Delete File: dir/a\n*** Add File: new/n\n+n\n*** End Patch\n";
    vec![
        (
            "write_file",
            json!({"path": "f", "content": "new\n"}),
            vec![|it| append(it, "f"), |it| remove(it, "f"), |it| {
                remove(it, "f");
                std::fs::create_dir(it.at("f")).unwrap();
            }],
        ),
        (
            "write_file",
            json!({"path": "new", "content": "new\n"}),
            vec![|it| drop(it.put("new", "theirs\n"))],
        ),
        (
            "write_file",
            json!({"path": "new", "content": "new\n", "overwrite": false}),
            vec![|it| drop(it.put("new", "theirs\n"))],
        ),
        (
            "write_file",
            json!({"path": "x/y/new", "content": "n", "create_parents": true}),
            vec![|it| drop(it.put("x/y/new", "n"))],
        ),
        (
            "write_file",
            json!({"path": "link", "content": "new\n"}),
            vec![|it| append(it, "f"), |it| {
                remove(it, "link");
                symlink("g", it.at("link")).unwrap();
            }],
        ),
        (
            "edit_file",
            json!({"path": "f", "old_str": "two", "new_str": "2"}),
            vec![|it| append(it, "f"), |it| drop(it.put("f", "gone\n")), |it| remove(it, "f")],
        ),
        (
            "edit_file",
            json!({"path": "large", "old_str": "the only one", "new_str": "it"}),
            vec![
                |it| append(it, "large"),
                |it| drop(it.put("large", "a line of a large file\n".repeat(400_000))),
                |it| drop(it.put("large", "the only one\n")),
            ],
        ),
        (
            "multi_edit",
            json!({"edits": [
                {"path": "f", "old_str": "two", "new_str": "2"}, {"path": "g", "old_str": "g", "new_str": "G"},
            ]}),
            vec![|it| append(it, "g"), |it| drop(it.put("g", "gone\n")), |it| remove(it, "g")],
        ),
        (
            "apply_patch",
            json!({"patch": patch}),
            vec![
                |it| append(it, "f"),
                |it| append(it, "g"),
                |it| append(it, "dir/a"),
                |it| drop(it.put("h", "theirs\n")),
                |it| drop(it.put("new/n", "theirs\n")),
                |it| drop(it.put("new/n", "n\n")),
                |it| remove(it, "dir/a"),
            ],
        ),
        (
            "move_path",
            json!({"from": "dir", "to": "there"}),
            vec![
                |it| append(it, "dir/below/b"),
                |it| drop(it.put("dir/later", "x")),
                |it| drop(it.put("there", "theirs")),
                |it| std::fs::remove_dir_all(it.at("dir")).unwrap(),
            ],
        ),
        (
            "move_path",
            json!({"from": "f", "to": "g", "overwrite": true}),
            vec![|it| append(it, "f"), |it| append(it, "g"), |it| remove(it, "g")],
        ),
        (
            "copy_path",
            json!({"from": "dir", "to": "there"}),
            vec![|it| append(it, "dir/a"), |it| drop(it.put("there", "theirs")), |it| {
                let mode = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(it.at("dir/a"), mode).unwrap();
            }],
        ),
        (
            "copy_path",
            json!({"from": "f", "to": "g", "overwrite": true}),
            vec![|it| append(it, "g"), |it| remove(it, "f")],
        ),
        (
            "delete_path",
            json!({"path": "dir", "recursive": true}),
            vec![|it| append(it, "dir/a"), |it| drop(it.put("dir/later", "x")), |it| {
                std::fs::remove_dir_all(it.at("dir")).unwrap();
            }],
        ),
        (
            "delete_path",
            json!({"path": "link"}),
            vec![|it| {
                remove(it, "link");
                symlink("g", it.at("link")).unwrap();
            }],
        ),
        (
            "create_directory",
            json!({"path": "x/y"}),
            vec![
                |it| std::fs::create_dir(it.at("x")).unwrap(),
                |it| std::fs::create_dir_all(it.at("x/y")).unwrap(),
                |it| drop(it.put("x", "a file")),
            ],
        ),
        ("undo_change", json!({}), vec![|it| append(it, "undoable"), |it| remove(it, "undoable")]),
    ]
}

#[tokio::test]
async fn a_call_does_what_its_preview_showed() {
    for (tool, arguments, _) in changes() {
        let (sandbox, twin) = (furnished(&arguments).await, furnished(&arguments).await);
        let id = sandbox.harness.next_id();
        let before = sandbox.tree();
        let preview = sandbox.preview(&id, tool, arguments.clone()).await.unwrap();
        assert_eq!(sandbox.tree(), before, "{tool} {arguments}: the preview changed something");
        let outcome = sandbox.harness.call_as(&id, tool, arguments.clone(), None).await;
        let rendered = sandbox.harness.render(outcome.payload()).await.unwrap();
        if matches!(tool, "write_file" | "edit_file" | "multi_edit" | "apply_patch" | "undo_change") {
            assert!(!diffs_of(&preview).is_empty(), "{tool} {arguments} shows no diff");
            assert_eq!(diffs_of(&preview), diffs_of(&rendered), "{tool} {arguments}");
        }
        // A call without a preview comes to the same.
        twin.call(tool, arguments.clone()).await.payload();
        let (made, plain) = (sandbox.tree(), twin.tree());
        assert_ne!(made, before, "{tool} {arguments}");
        assert!(made == plain, "{tool} {arguments}: a preview makes a difference");
    }
}

#[tokio::test]
async fn what_changed_since_its_preview_is_left_as_it_is() {
    for (tool, arguments, meddlers) in changes() {
        for (number, meddle) in meddlers.iter().enumerate() {
            let sandbox = furnished(&arguments).await;
            let id = sandbox.harness.next_id();
            sandbox.preview(&id, tool, arguments.clone()).await.unwrap();
            meddle(&sandbox);
            let before = sandbox.tree();
            let call = sandbox.harness.call_as(&id, tool, arguments.clone(), None);
            let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs");
            let what = format!("{tool} {arguments}, change {number}: {}", outcome.terminal());
            assert_eq!(outcome.terminal()["event"], "error", "{what}");
            let message = refused(&outcome, "concurrency_conflict", "stale");
            contains(&message, &["nothing was changed"]);
            assert!(sandbox.tree() == before, "{what}");
        }
    }
}

#[tokio::test]
async fn the_preview_of_another_call_binds_nobody() {
    let sandbox = furnished(&json!({})).await;
    let arguments = json!({"path": "f", "old_str": "two", "new_str": "2"});
    sandbox.preview("previewed", "edit_file", arguments.clone()).await.unwrap();
    sandbox.put("f", "other\ntwo\n");
    sandbox.harness.call_as("another", "edit_file", arguments, None).await.payload();
    assert_eq!(sandbox.bytes("f"), b"other\n2\n");
}

#[tokio::test]
async fn the_last_preview_of_a_call_counts() {
    let sandbox = furnished(&json!({})).await;
    let arguments = json!({"path": "f", "old_str": "two", "new_str": "2"});
    sandbox.preview("call", "edit_file", arguments.clone()).await.unwrap();
    sandbox.put("f", "other\ntwo\n");
    sandbox.preview("call", "edit_file", arguments.clone()).await.unwrap();
    sandbox.harness.call_as("call", "edit_file", arguments, None).await.payload();
    assert_eq!(sandbox.bytes("f"), b"other\n2\n");
}

#[tokio::test]
async fn a_call_with_other_arguments_than_its_preview_is_not_made() {
    let sandbox = furnished(&json!({})).await;
    let before = sandbox.tree();
    let edit = |new_str: &str| json!({"path": "f", "old_str": "two", "new_str": new_str});
    sandbox.preview("call", "edit_file", edit("shown")).await.unwrap();
    let outcome = sandbox.harness.call_as("call", "edit_file", edit("another"), None).await;
    refused(&outcome, "concurrency_conflict", "stale");
    assert!(sandbox.tree() == before);
}
