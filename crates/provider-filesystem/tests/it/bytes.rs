//! An edit changes its own span and not one byte more.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes};

/// Edits `before` and expects exactly `after` on disk.
async fn check(before: &str, old_str: &str, new_str: &str, after: &str) {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", before);
    let outcome = sandbox.edit("f", old_str, new_str).await;
    outcome.payload();
    assert_eq!(String::from_utf8(sandbox.bytes("f")).unwrap(), after);
}

#[tokio::test]
async fn one_line_edit_keeps_crlf() {
    check("const a = 1;\r\nconst b = 2;\r\n", "b = 2", "b = 3", "const a = 1;\r\nconst b = 3;\r\n").await;
}

#[tokio::test]
async fn one_line_edit_shows_a_diff_of_one_line() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "const a = 1;\r\nconst b = 2;\r\n");
    let outcome = sandbox.edit("f", "b = 2", "b = 3").await;
    let diff = outcome.payload()["diff"].as_str().unwrap();
    let changed = diff.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).count();
    assert_eq!(changed, 2, "{diff}");
}

#[tokio::test]
async fn crlf_given_by_the_caller_keeps_the_endings_of_the_file() {
    for (before, after) in [
        ("line one\r\nline two\r\nend\r\n", "x\r\ny\r\nend\r\n"),
        ("line one\nline two\nend\n", "x\ny\nend\n"),
    ] {
        check(before, "line one\r\nline two", "x\r\ny", after).await;
    }
}

#[tokio::test]
async fn lines_put_into_a_crlf_file_are_crlf() {
    check("a\r\nb\r\n", "a\nb", "a\nnew\nb", "a\r\nnew\r\nb\r\n").await;
    check("a\r\nb\r\n", "a", "a\r\nnew", "a\r\nnew\r\nb\r\n").await;
}

#[tokio::test]
async fn no_carriage_return_is_doubled() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\r\nb\r\n");
    sandbox.edit("f", "a\r\n", "one\r\ntwo\r\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"one\r\ntwo\r\nb\r\n");
    for eol in ["exact", "keep", "crlf"] {
        let arguments = json!({"path": "f", "content": "p\r\nq\r\n", "eol": eol});
        sandbox.change("write_file", arguments).await.payload();
        assert_eq!(sandbox.bytes("f"), b"p\r\nq\r\n", "{eol}");
    }
}

#[tokio::test]
async fn write_gives_exactly_the_bytes_and_says_when_line_endings_change() {
    let sandbox = Sandbox::new().await;
    sandbox.write("new", "a\nb").await.payload();
    assert_eq!(sandbox.bytes("new"), b"a\nb");
    sandbox.put("f", "a\r\nb\r\n");
    let outcome = sandbox.write("f", "a\nb\n").await;
    assert_eq!(sandbox.bytes("f"), b"a\nb\n");
    contains(&notes(&outcome), &["eol changed crlf→lf"]);
}

#[tokio::test]
async fn write_converts_line_endings_when_told_to() {
    for (before, content, eol, after) in [
        ("a\r\n", "x\ny\n", "keep", "x\r\ny\r\n"),
        ("a\n", "x\r\ny\r\n", "keep", "x\ny\n"),
        ("a\r\nb\n", "x\r\ny\n", "keep", "x\r\ny\n"),
        ("a\n", "x\ny\r\n", "crlf", "x\r\ny\r\n"),
        ("a\r\n", "x\ny\r\n", "lf", "x\ny\n"),
    ] {
        let sandbox = Sandbox::new().await;
        sandbox.put("f", before);
        let arguments = json!({"path": "f", "content": content, "eol": eol});
        sandbox.change("write_file", arguments).await.payload();
        assert_eq!(String::from_utf8(sandbox.bytes("f")).unwrap(), after, "{before:?} {eol}");
    }
}

#[tokio::test]
async fn a_missing_final_newline_stays_missing() {
    check("a\nb", "a", "A", "A\nb").await;
}

#[tokio::test]
async fn an_edit_of_the_last_line_decides_its_end() {
    check("a\nb", "b", "B\n", "a\nB\n").await;
    check("a\nb\n", "b\n", "B", "a\nB").await;
}

#[tokio::test]
async fn a_byte_order_mark_is_kept() {
    check("\u{feff}a\r\nb\r\n", "a", "A", "\u{feff}A\r\nb\r\n").await;
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "\u{feff}a\n");
    sandbox.write("f", "b\n").await.payload();
    assert_eq!(sandbox.bytes("f"), "\u{feff}b\n".as_bytes());
}

#[tokio::test]
async fn new_text_is_literal() {
    let new_str = r"$& $' $$ $1 \1 ${0} %s";
    check("price = X\ntail\n", "X", new_str, &format!("price = {new_str}\ntail\n")).await;
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "X X\n");
    let arguments = json!({"path": "f", "old_str": "X", "new_str": new_str, "replace_all": true});
    sandbox.change("edit_file", arguments).await.payload();
    assert_eq!(sandbox.bytes("f"), format!("{new_str} {new_str}\n").as_bytes());
}

#[tokio::test]
async fn a_backslash_and_an_n_stay_two_characters() {
    let line = r#"print("Hello\nworld")"#;
    check("x\n", "x", line, &format!("{line}\n")).await;
    let sandbox = Sandbox::new().await;
    sandbox.write("f", line).await.payload();
    assert_eq!(sandbox.bytes("f"), line.as_bytes());
}

#[tokio::test]
async fn curly_quotes_stay_curly() {
    check("“a” ‘b’ word\nother\n", "word", "term", "“a” ‘b’ term\nother\n").await;
    check("“a” ‘b’ word\nother\n", "other", "else", "“a” ‘b’ word\nelse\n").await;
}

#[tokio::test]
async fn a_far_line_is_not_normalised() {
    let filler = "filler\n".repeat(48);
    let first = "oﬃce cafe\u{301}  \n";
    let before = format!("{first}{filler}a\u{a0}b\n");
    let sandbox = Sandbox::new().await;
    sandbox.put("f", &before);
    let outcome = sandbox.edit("f", "a b", "c").await;
    contains(&outcome.error().message, &["U+00A0"]);
    sandbox.edit("f", "a\u{a0}b", "c").await.payload();
    assert_eq!(sandbox.bytes("f"), format!("{first}{filler}c\n").as_bytes());
}

#[tokio::test]
async fn only_the_line_that_is_edited_changes_in_an_unformatted_file() {
    check("fn  main( ) {\n\tlet x=1 ;\n        }\n", "x=1", "x=2", "fn  main( ) {\n\tlet x=2 ;\n        }\n")
        .await;
}

/// The same replacement of whole lines, in the words of each tool that edits. Neither text has a final newline.
fn replacements(old: &str, new: &str) -> [(&'static str, Value); 4] {
    let edit = json!({"path": "f", "old_str": old, "new_str": new});
    let signed = |sign: &str, text: &str| -> String {
        text.split('\n').map(|line| format!("{sign}{line}\n")).collect()
    };
    let body = signed("-", old) + &signed("+", new);
    let count = |text: &str| text.split('\n').count();
    let header = format!("--- a/f\n+++ b/f\n@@ -1,{} +1,{} @@\n", count(old), count(new));
    [
        ("edit_file", edit.clone()),
        ("multi_edit", json!({"edits": [edit]})),
        (
            "apply_patch",
            json!({"patch": format!("*** Begin Patch\n*** Update File: f\n@@\n{body}*** End Patch\n")}),
        ),
        ("apply_patch", json!({"patch": header + &body})),
    ]
}

/// Replaces lines with every tool that edits, and expects exactly `after` on disk.
async fn check_every_tool(before: &[u8], old: &str, new: &str, after: &[u8]) {
    for (tool, arguments) in replacements(old, new) {
        let sandbox = Sandbox::new().await;
        sandbox.put("f", before);
        sandbox.change_all(tool, arguments.clone()).await.payload();
        let found = sandbox.bytes("f");
        assert_eq!(found.escape_ascii().to_string(), after.escape_ascii().to_string(), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn every_tool_gives_new_lines_the_endings_of_the_place() {
    check_every_tool(b"a\r\nb\r\nc\r\n", "b", "B\nnew", b"a\r\nB\r\nnew\r\nc\r\n").await;
    check_every_tool(b"a\r\nb\r\nc\r\n", "b", "B\r\nnew", b"a\r\nB\r\nnew\r\nc\r\n").await;
    check_every_tool(b"a\nb\r\nc\n", "b", "B\nnew", b"a\nB\r\nnew\r\nc\n").await;
}

#[tokio::test]
async fn every_tool_takes_the_lines_of_a_caller_who_writes_crlf() {
    for (tool, mut arguments) in replacements("b", "B\nnew") {
        for key in ["patch", "edits"] {
            if let Some(patch) = arguments[key].as_str().map(|patch| patch.replace('\n', "\r\n")) {
                arguments[key] = json!(patch);
            }
        }
        let sandbox = Sandbox::new().await;
        for (before, after) in
            [("a\r\nb\r\nc\r\n", "a\r\nB\r\nnew\r\nc\r\n"), ("a\nb\nc\n", "a\nB\nnew\nc\n")]
        {
            sandbox.put("f", before);
            arguments["force"] = json!(true);
            sandbox.change_all(tool, arguments.clone()).await.payload();
            assert_eq!(String::from_utf8(sandbox.bytes("f")).unwrap(), after, "{tool} {arguments}");
        }
    }
}

#[tokio::test]
async fn every_tool_leaves_a_missing_final_newline_missing() {
    check_every_tool(b"a\nb", "a", "A", b"A\nb").await;
    check_every_tool(b"a\r\nb", "a", "A", b"A\r\nb").await;
    check_every_tool(b"a\nb", "b", "B", b"a\nB").await;
}

#[tokio::test]
async fn every_tool_puts_new_text_down_literally() {
    let new = r#"$& $' $$ $1 \1 ${0} %s \n \u0041 “q” &amp;"#;
    check_every_tool(b"price\ntail\n", "price", new, format!("{new}\ntail\n").as_bytes()).await;
}

#[tokio::test]
async fn every_tool_leaves_the_rest_of_a_file_in_another_encoding() {
    check_every_tool(
        b"caf\xe9 \x93x\x94\r\nx = 2\r\n\xfc",
        "x = 2",
        "x = 3",
        b"caf\xe9 \x93x\x94\r\nx = 3\r\n\xfc",
    )
    .await;
    check_every_tool(b"\xff\xfea\0\r\0\n\0b\0\r\0\n\0", "b", "c", b"\xff\xfea\0\r\0\n\0c\0\r\0\n\0").await;
    check_every_tool(b"\xef\xbb\xbfone\nbad \xff\nb", "one", "two", b"\xef\xbb\xbftwo\nbad \xff\nb").await;
}

#[tokio::test]
async fn edits_that_come_to_nothing_do_not_write() {
    use std::os::unix::fs::MetadataExt;
    for (tool, arguments) in [
        ("edit_file", json!({"path": "f", "old_str": "a", "new_str": "a"})),
        (
            "multi_edit",
            json!({"edits": [
                {"path": "f", "old_str": "a", "new_str": "b"}, {"path": "f", "old_str": "b", "new_str": "a"},
            ]}),
        ),
        ("apply_patch", json!({"patch": "*** Begin Patch\n*** Update File: f\n@@\n-a\n+a\n*** End Patch\n"})),
        ("write_file", json!({"path": "f", "content": "a\r\n"})),
    ] {
        let sandbox = Sandbox::new().await;
        let path = sandbox.put("f", "a\r\n");
        let identity = |found: std::fs::Metadata| (found.ino(), found.mtime_nsec(), found.ctime_nsec());
        let before = identity(path.metadata().unwrap());
        let outcome = sandbox.change_all(tool, arguments).await;
        assert_eq!(identity(path.metadata().unwrap()), before, "{tool}");
        contains(&notes(&outcome), &["no change"]);
        assert_eq!(outcome.payload().get("change_id"), None, "{tool}");
    }
}
