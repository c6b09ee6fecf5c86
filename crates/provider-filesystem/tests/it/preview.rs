//! Previews as the kernel asks for them: without session and working directory.

use provider_core::Catalogue;
use provider_core::testing::Harness;
use provider_filesystem::Filesystem;
use serde_json::json;
use tonic::Code;

use crate::process::STATE;
use crate::sandbox::{Sandbox, diff_of};

fn edit() -> serde_json::Value {
    json!({"path": "f", "old_str": "old", "new_str": "new"})
}

#[tokio::test]
async fn an_only_root_is_where_a_preview_looks() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "old\n");
    let tree = sandbox.harness.preview_as("p", "edit_file", edit()).await.unwrap();
    assert_eq!(diff_of(&tree).unwrap().hunks.len(), 1);
    let outcome = sandbox.harness.call_as("p", "edit_file", edit(), None).await;
    assert_eq!(outcome.payload()["changed"], true);
}

#[tokio::test]
async fn with_several_roots_a_preview_follows_the_directory_of_earlier_calls() {
    let folder = tempfile::tempdir().unwrap();
    let roots = ["one", "two"].map(|name| folder.path().join(name));
    roots.iter().for_each(|root| std::fs::create_dir(root).unwrap());
    std::fs::write(roots[1].join("f"), "old\n").unwrap();
    let harness =
        Harness::start::<Filesystem>(json!({"allowed_roots": roots, "state_dir": STATE})).await.unwrap();
    let undecided = harness.preview_as("p", "edit_file", edit()).await.unwrap();
    assert_eq!(diff_of(&undecided), None);
    assert!(format!("{undecided:?}").contains("several allowed roots"));
    let write = json!({"path": "f", "content": "c"});
    assert_eq!(diff_of(&harness.preview_as("w", "write_file", write).await.unwrap()), None);

    let harness = harness.in_directory(&roots[1]);
    harness.call("read_file", json!({"path": "f"})).await.payload();
    let decided = harness.preview_as("q", "edit_file", edit()).await.unwrap();
    assert_eq!(diff_of(&decided).unwrap().hunks.len(), 1);
}

#[tokio::test]
async fn an_undecided_preview_does_not_bind_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let roots = ["one", "two"].map(|name| folder.path().join(name));
    roots.iter().for_each(|root| std::fs::create_dir(root).unwrap());
    std::fs::write(roots[1].join("f"), "old\n").unwrap();
    let harness =
        Harness::start::<Filesystem>(json!({"allowed_roots": roots, "state_dir": STATE})).await.unwrap();
    harness.preview_as("p", "edit_file", edit()).await.unwrap();
    let harness = harness.in_directory(&roots[1]);
    harness.call_as("p", "edit_file", edit(), None).await.payload();
    assert_eq!(std::fs::read(roots[1].join("f")).unwrap(), b"new\n");
}

#[tokio::test]
async fn a_preview_says_why_the_call_would_fail() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "other\n");
    let status = sandbox.harness.preview_as("p", "edit_file", edit()).await.unwrap_err();
    assert!(status.message().contains("old_str"), "{status}");
    let missing = json!({"path": "none", "old_str": "a", "new_str": "b"});
    let status = sandbox.harness.preview_as("p", "edit_file", missing).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let outside = json!({"path": "/etc/passwd", "content": ""});
    let status = sandbox.harness.preview_as("p", "write_file", outside).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn reading_tools_have_no_preview_and_empty_arguments_are_refused() {
    let sandbox = Sandbox::new().await;
    for tool in ["read_file", "list_directory", "file_info", "unknown"] {
        let status = sandbox.harness.preview_as("p", tool, json!({})).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{tool}");
    }
    for tool in ["write_file", "edit_file", "create_directory", "delete_path"] {
        let status = sandbox.harness.preview_as("p", tool, json!({})).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{tool}");
        assert!(status.message().contains("path"), "{status}");
    }
}

#[tokio::test]
async fn each_result_is_recognised_by_its_own_tool_only() {
    let sandbox = Sandbox::new().await;
    sandbox.put("text", "a\n");
    sandbox.put("empty", "");
    sandbox.put("binary", b"\0\x01\x02");
    std::os::unix::fs::symlink("text", sandbox.at("link")).unwrap();
    let catalogue = Catalogue::<Filesystem>::of().unwrap();
    for (tool, arguments) in [
        ("read_file", json!({"path": "text"})),
        ("read_file", json!({"path": "empty"})),
        ("read_file", json!({"path": "binary"})),
        ("read_file", json!({"path": "text", "offset": "1"})),
        ("read_file", json!({"path": "text", "offset": 99})),
        ("list_directory", json!({})),
        ("list_directory", json!({"limit": 1})),
        ("file_info", json!({"path": "text"})),
        ("file_info", json!({"path": "binary"})),
        ("file_info", json!({"path": "link"})),
        ("file_info", json!({"path": "."})),
        ("write_file", json!({"path": "text", "content": "b\n"})),
        ("write_file", json!({"path": "link", "content": "c\n"})),
        ("edit_file", json!({"path": "text", "old_str": "c", "new_str": "d"})),
        ("multi_edit", json!({"edits": [{"path": "text", "old_str": "d", "new_str": "e"}]})),
        ("apply_patch", json!({"patch": "--- a/text\n+++ b/text\n@@ -1 +1 @@\n-e\n+f\n"})),
        ("apply_patch", json!({"patch": "*** Begin Patch\n*** Add File: added\n+x\n*** End Patch"})),
        ("create_directory", json!({"path": "dir"})),
        ("create_directory", json!({"path": "dir"})),
        ("copy_path", json!({"from": "text", "to": "dir/copy"})),
        ("copy_path", json!({"from": "binary", "to": "dir/copy", "overwrite": true})),
        ("move_path", json!({"from": "text", "to": "dir/text"})),
        ("move_path", json!({"from": "dir/text", "to": "dir/copy", "overwrite": true})),
        ("undo_change", json!({})),
        ("delete_path", json!({"path": "dir", "recursive": true})),
        ("undo_change", json!({})),
    ] {
        let outcome = sandbox.call(tool, arguments).await;
        assert_eq!(catalogue.recognise(outcome.payload()), [tool], "{}", outcome.payload());
        let tree = sandbox.harness.render(outcome.payload()).await.unwrap();
        assert!(tree.root.is_some());
    }
}
