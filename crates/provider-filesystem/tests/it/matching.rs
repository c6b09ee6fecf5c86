//! What an edit says when its text is not there, or is there more than once.

use serde_json::json;

use crate::sandbox::{Sandbox, contains, notes, refused};

/// Edits `before` and expects a refusal whose message has every part.
async fn check_no_match(before: &str, old_str: &str, parts: &[&str]) {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", before);
    let outcome = sandbox.edit("f", old_str, "new").await;
    contains(&refused(&outcome, "execution_failed", "no_match"), parts);
}

#[tokio::test]
async fn spaces_for_tabs_are_explained_with_the_exact_text() {
    check_no_match(
        "\tif x {\n\t\treturn 1\n\t}\n",
        "    if x {\n        return 1\n    }",
        &["line 1", "→", "·", "\tif x {"],
    )
    .await;
}

#[tokio::test]
async fn trailing_blanks_are_explained() {
    check_no_match("foo()  \nbar()\n", "foo()\nbar()", &["line 1", "2 trailing spaces"]).await;
}

#[tokio::test]
async fn two_spaces_for_one_are_explained() {
    check_no_match(
        "\ndef foo():\n    print(\"hello\")\n",
        "def  foo():\n    print(\"hello\")",
        &["line 2", "def foo():"],
    )
    .await;
}

#[tokio::test]
async fn invented_middle_lines_are_refused_with_the_real_block() {
    let before = "head\nstart {\n  a\n  b\n  c\n  d\n  e\n  f\n}\ntail\n";
    let invented = "start {\n  u\n  v\n  w\n  x\n  y\n  z\n}\n";
    check_no_match(before, invented, &["2", "start {", "  c"]).await;
}

#[tokio::test]
async fn line_numbers_in_old_str_are_named() {
    check_no_match("\nfoo()\nbar()\n", "    12\tfoo()\n    13\tbar()", &["line numbers", "foo()\nbar()"])
        .await;
}

#[tokio::test]
async fn a_doubled_bracket_is_the_callers_to_see() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "f(() => {\n  a()\n})\n");
    sandbox.edit("f", "f(() => {\n  a()\n", "f(() => {\n  b()\n})").await.payload();
    assert_eq!(sandbox.bytes("f"), b"f(() => {\n  b()\n})})\n");
}

#[tokio::test]
async fn an_edit_without_effect_says_so_and_does_not_write() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "same\n");
    let before = path.metadata().unwrap();
    let outcome = sandbox.edit("f", "same", "same").await;
    assert_eq!(outcome.payload()["changed"], false);
    contains(&notes(&outcome), &["no change"]);
    use std::os::unix::fs::MetadataExt;
    let after = path.metadata().unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
}

#[tokio::test]
async fn a_write_of_the_same_content_does_not_write() {
    use std::os::unix::fs::MetadataExt;
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "same\n");
    let before = path.metadata().unwrap();
    assert_eq!(sandbox.write("f", "same\n").await.payload()["changed"], false);
    let after = path.metadata().unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
}

#[tokio::test]
async fn several_places_are_listed_and_none_is_changed() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "x = 1\ny\nx = 1\n");
    let outcome = sandbox.edit("f", "x = 1", "x = 2").await;
    let message = refused(&outcome, "execution_failed", "ambiguous");
    contains(&message, &["2", "1", "3", "near_line", "replace_all"]);
}

#[tokio::test]
async fn near_line_chooses_the_nearest_place() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "x\ny\nx\ny\nx\n");
    let arguments = json!({"path": "f", "old_str": "x", "new_str": "z", "near_line": 5});
    let outcome = sandbox.change("edit_file", arguments).await;
    assert_eq!(outcome.payload()["replacements"], json!([{"start_line": 5, "end_line": 5}]));
    assert_eq!(sandbox.bytes("f"), b"x\ny\nx\ny\nz\n");
}

#[tokio::test]
async fn expected_count_replaces_all_or_nothing() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "x\nx\nx\n");
    let arguments =
        |count: u64| json!({"path": "f", "old_str": "x", "new_str": "z", "expected_count": count});
    let outcome = sandbox.change("edit_file", arguments(2)).await;
    contains(&refused(&outcome, "execution_failed", "count_mismatch"), &["2", "3"]);
    let outcome = sandbox.change("edit_file", arguments(3)).await;
    assert_eq!(outcome.payload()["replacements"].as_array().unwrap().len(), 3);
    assert_eq!(sandbox.bytes("f"), b"z\nz\nz\n");
}

#[tokio::test]
async fn replace_all_replaces_every_place() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "aXaX\nX\n");
    let arguments = json!({"path": "f", "old_str": "X", "new_str": "long", "replace_all": true});
    sandbox.change("edit_file", arguments).await.payload();
    assert_eq!(sandbox.bytes("f"), b"along".iter().chain(b"along\nlong\n").copied().collect::<Vec<_>>());
}

#[tokio::test]
async fn empty_text_is_no_place() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\n");
    refused(&sandbox.edit("f", "", "x").await, "invalid_arguments", "");
}

#[tokio::test]
async fn a_binary_file_is_not_edited() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", b"a\0\0\x01\xff\xfeb");
    refused(&sandbox.edit("f", "a", "x").await, "execution_failed", "binary");
}
