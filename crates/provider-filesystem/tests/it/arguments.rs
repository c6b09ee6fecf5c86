//! What models really send, and what a provider refuses to be configured with.

use provider_core::testing::Harness;
use provider_filesystem::Filesystem;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, refused};

#[tokio::test]
async fn numbers_and_booleans_in_quotes_are_understood_and_reported() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\nc\n");
    for offset in [json!("2"), json!(" 2 "), json!("+2"), json!("2.0"), json!(2.0)] {
        let page = sandbox.read(json!({"path": "f", "offset": offset, "line_numbers": "False"})).await;
        assert_eq!(page["content"], "b\nc\n", "{offset}");
        contains(&page["notes"].to_string(), &["line_numbers: "]);
    }
    for (field, value) in
        [("offset", json!("abc")), ("offset", json!(1.5)), ("line_numbers", json!("perhaps"))]
    {
        let outcome = sandbox.call("read_file", json!({"path": "f", field: value})).await;
        contains(&refused(&outcome, "invalid_arguments", ""), &[field]);
    }
}

#[tokio::test]
async fn other_names_of_a_field_are_understood_and_conflicts_refused() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\n");
    let arguments = json!({"file_path": "f", "old_string": "a", "new_string": "b"});
    sandbox.change("edit_file", arguments).await.payload();
    assert_eq!(sandbox.bytes("f"), b"b\n");
    let arguments = json!({"path": "f", "file_path": "g", "old_str": "b", "new_str": "c"});
    let outcome = sandbox.change("edit_file", arguments).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["path: given twice"]);
}

#[tokio::test]
async fn a_missing_content_is_not_an_empty_file() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\n");
    for arguments in [json!({"path": "f"}), json!({"path": "f", "content": null})] {
        let outcome = sandbox.change("write_file", arguments).await;
        contains(&refused(&outcome, "invalid_arguments", ""), &["content"]);
    }
    let outcome = sandbox.change("edit_file", json!({})).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["path", "old_str", "new_str"]);
    sandbox.write("f", "").await.payload();
    assert_eq!(sandbox.bytes("f"), b"");
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_nearest_name() {
    let sandbox = Sandbox::new().await;
    let outcome = sandbox.call("readfile", json!({"path": "f"})).await;
    contains(&refused(&outcome, "not_found", ""), &["read_file"]);
}

#[tokio::test]
async fn fifty_megabytes_are_written() {
    let sandbox = Sandbox::new().await;
    let content = "0123456789abcde\n".repeat(50 << 16);
    let call = sandbox.harness.call("write_file", json!({"path": "f", "content": content}));
    assert_eq!(call.await.payload()["bytes"], 50 << 20);
    assert!(sandbox.bytes("f") == content.as_bytes());
}

#[tokio::test]
async fn a_read_only_provider_reads_and_changes_nothing() {
    let sandbox = Sandbox::with(json!({"read_only": true})).await;
    sandbox.put("f", "a\n");
    assert_eq!(sandbox.read(json!({"path": "f"})).await["content"], "a\n");
    contains(&refused(&sandbox.edit("f", "a", "b").await, "permission_denied", "denied"), &["read_only"]);
    refused(&sandbox.write("new", "b").await, "permission_denied", "denied");
}

/// Configures a provider and expects a refusal that has every part.
async fn check_refused(config: Value, parts: &[&str]) {
    let status = Harness::start::<Filesystem>(config).await.err().expect("the configuration was accepted");
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    contains(status.message(), parts);
}

#[tokio::test]
async fn everything_wrong_with_a_configuration_is_said_at_once() {
    check_refused(json!({}), &["allowed_roots"]).await;
    check_refused(json!({"allowed_roots": []}), &["allowed_roots"]).await;
    check_refused(
        json!({"allowed_roots": 5, "read_only": "perhaps", "stale": "never", "medium": 1}),
        &["read_only", "stale", "unique", "medium"],
    )
    .await;
    check_refused(
        json!({"allowed_roots": ["/tmp", "/no/such/root", "/dev/null"], "deny": ["[", "ok"], "protect": ["{a"]}),
        &["/no/such/root", "there is no such directory", "/dev/null", "not a directory", "`[`", "`{a`"],
    )
    .await;
}

#[tokio::test]
async fn a_model_that_sends_every_value_as_text_is_understood() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\nc\n");
    let page = sandbox.read(json!({"path": "f", "offset": "2", "limit": "1", "line_numbers": "true"})).await;
    assert_eq!(page["content"], "     2\tb\n");
    let edit = json!({
        "path": "f", "old_str": "b", "new_str": "B", "replace_all": "false", "near_line": "2", "force": "False",
    });
    sandbox.change("edit_file", edit).await.payload();
    let edits = json!([{"path": "f", "old_str": "c", "new_str": "C\\n\t\"q\"", "expected_count": "1"}]);
    sandbox.change_all("multi_edit", json!({"edits": edits.to_string()})).await.payload();
    assert_eq!(sandbox.bytes("f"), b"a\nB\nC\\n\t\"q\"\n");
    let outcome =
        sandbox.change_all("multi_edit", json!({"edits": "[{\"path\": \"f\", \"old_str\": "})).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["edits"]);
}

#[tokio::test]
async fn what_is_wrong_is_named_by_its_field_and_what_was_wanted() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\n");
    for (tool, arguments, parts) in [
        ("read_file", json!({"path": "f", "limit": 0}), &["limit", "1"][..]),
        ("read_file", json!({"path": "f", "limit": -5}), &["limit"]),
        ("read_file", json!({"path": "f", "ofset": 1}), &["ofset", "offset"]),
        ("edit_file", json!({"path": "f", "old_str": "a", "new_str": 5}), &["new_str"]),
        ("edit_file", json!({"path": "f", "old_str": "a", "new_str": "b", "near_line": 0}), &["near_line"]),
        (
            "edit_file",
            json!({"path": "f", "old_str": "a", "new_str": "b", "expected_count": 0}),
            &["expected_count"],
        ),
        (
            "edit_file",
            json!({"path": "f", "old_str": "a", "new_str": "b", "near_line": 1, "replace_all": true}),
            &["near_line", "replace_all"],
        ),
        (
            "write_file",
            json!({"path": "f", "content": "x", "eol": "cr"}),
            &["eol", "lf", "crlf", "keep", "exact"],
        ),
        ("write_file", json!({"path": "f", "content": ["x"]}), &["content"]),
        ("multi_edit", json!({"edits": [{"path": "f", "old_str": "a"}]}), &["edits[0]", "new_str"]),
        ("multi_edit", json!({"edits": {"path": "f"}}), &["edits"]),
        ("apply_patch", json!({"patch": {}}), &["patch"]),
        ("move_path", json!({"from": "f"}), &["to"]),
        ("delete_path", json!({"path": "f", "recursive": "perhaps"}), &["recursive"]),
        ("list_directory", json!({"depth": "deep"}), &["depth"]),
        ("undo_change", json!({"change_id": ["a", "b"]}), &["change_id"]),
    ] {
        let outcome = sandbox.change_all_or_call(tool, arguments.clone()).await;
        let error = outcome.error();
        assert_eq!(error.category, "invalid_arguments", "{tool} {arguments}: {}", error.message);
        contains(&error.message, parts);
    }
    assert_eq!(sandbox.bytes("f"), b"a\n");
}
