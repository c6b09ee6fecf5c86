//! Files in other encodings than UTF-8 are read as text and edited byte for byte.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, refused};

fn utf16le(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn marked(text: &str) -> Vec<u8> {
    [b"\xff\xfe".as_slice(), &utf16le(text)].concat()
}

const LATIN: &[u8] = b"caf\xe9 = 1\nx = 2\n";

/// Japanese text in Shift_JIS: `// これは日本語の文章です。` and `print(1)`.
const SHIFT_JIS: &[u8] = b"// \x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7\x81\x42\nprint(1)\n";

#[tokio::test]
async fn bytes_elsewhere_in_a_latin_1_file_stay() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", LATIN);
    let page = sandbox.read(json!({"path": "f"})).await;
    assert_eq!((&page["content"], &page["encoding"]), (&json!("café = 1\nx = 2\n"), &json!("windows-1252")));
    let outcome = sandbox.edit("f", "x = 2", "x = 3").await;
    contains(outcome.payload()["diff"].as_str().unwrap(), &[" café = 1\n-x = 2\n+x = 3\n"]);
    assert_eq!(sandbox.bytes("f"), b"caf\xe9 = 1\nx = 3\n");
    sandbox.edit("f", "café", "thé").await.payload();
    assert_eq!(sandbox.bytes("f"), b"th\xe9 = 1\nx = 3\n");
}

#[tokio::test]
async fn new_text_takes_the_encoding_of_the_file_or_is_refused() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", SHIFT_JIS);
    assert_eq!(sandbox.read(json!({"path": "f"})).await["encoding"], "shift_jis");
    sandbox.edit("f", "print(1)", "print(\"表\")").await.payload();
    let expected = [&SHIFT_JIS[..SHIFT_JIS.len() - 3], b"\"\x95\x5c\")\n"].concat();
    assert_eq!(sandbox.bytes("f"), expected);
    let outcome = sandbox.edit("f", "表", "📝").await;
    contains(&refused(&outcome, "execution_failed", "unencodable"), &["shift_jis", "📝", "U+1F4DD"]);
    assert_eq!(sandbox.bytes("f"), expected);
}

#[tokio::test]
async fn a_file_of_ascii_takes_every_character() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "abc\n");
    sandbox.edit("f", "b", "é📝").await.payload();
    assert_eq!(sandbox.bytes("f"), "aé📝c\n".as_bytes());
}

#[tokio::test]
async fn utf16_is_read_as_lines_and_stays_utf16() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", marked("hello\r\nworld\r\n"));
    let page = sandbox.read(json!({"path": "f"})).await;
    assert_eq!((&page["content"], &page["total_lines"]), (&json!("hello\r\nworld\r\n"), &json!(2)));
    assert_eq!(
        (&page["encoding"], &page["bom"], &page["eol"], &page["total_bytes"]),
        (&json!("utf-16le"), &json!(true), &json!("crlf"), &json!(30))
    );
    let outcome = sandbox.edit("f", "world", "wörld\nagain").await;
    assert_eq!(sandbox.bytes("f"), marked("hello\r\nwörld\r\nagain\r\n"));
    contains(outcome.payload()["diff"].as_str().unwrap(), &["-world\r\n+wörld\r\n+again\r\n"]);
    sandbox.write("f", "new\r\n").await.payload();
    assert_eq!(sandbox.bytes("f"), marked("new\r\n"));
}

#[tokio::test]
async fn utf16_without_a_mark_is_told_from_binary() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", utf16le("// a\n"));
    sandbox.put("b", b"\x01\0\0\x02ab\0\0\0c\0d");
    sandbox.edit("f", "a", "b").await.payload();
    assert_eq!(sandbox.bytes("f"), utf16le("// b\n"));
    let outcome = sandbox.edit("b", "ab", "c").await;
    contains(&refused(&outcome, "execution_failed", "binary"), &["NUL"]);
    assert_eq!(sandbox.read(json!({"path": "b"})).await["kind"], "binary");
}

#[tokio::test]
async fn text_in_any_script_is_written_as_it_is() {
    let sandbox = Sandbox::new().await;
    sandbox.write("f", "张三 – ok").await.payload();
    assert_eq!(sandbox.bytes("f"), "张三 – ok".as_bytes());
}

#[tokio::test]
async fn a_file_is_written_in_the_encoding_that_is_asked_for() {
    for (encoding, content, expected) in [
        ("utf-8", "é\n", "é\n".as_bytes().to_vec()),
        ("utf-8-bom", "é\n", "\u{feff}é\n".as_bytes().to_vec()),
        ("UTF-16LE", "é\n", utf16le("é\n")),
        ("utf-16", "é\n", marked("é\n")),
        ("utf-16le-bom", "\u{feff}é\n", marked("é\n")),
        ("utf-32be-bom", "a", b"\0\0\xfe\xff\0\0\0a".to_vec()),
        ("latin1", "é\n", b"\xe9\n".to_vec()),
        ("Shift_JIS", "表", b"\x95\x5c".to_vec()),
        ("ascii", "é", "é".as_bytes().to_vec()),
    ] {
        let sandbox = Sandbox::new().await;
        let arguments = json!({"path": "f", "content": content, "encoding": encoding});
        sandbox.change("write_file", arguments).await.payload();
        assert_eq!(sandbox.bytes("f"), expected, "{encoding}");
    }
}

/// Writes `content` over `before` and expects a refusal.
async fn check_refused(before: &[u8], arguments: Value, category: &str, parts: &[&str]) {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", before);
    let outcome = sandbox.change("write_file", arguments).await;
    let error = outcome.error();
    assert_eq!(error.category, category);
    contains(&error.message, parts);
    assert_eq!(sandbox.bytes("f"), before);
}

#[tokio::test]
async fn overwriting_keeps_the_encoding_or_says_what_it_has_not() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", LATIN);
    sandbox.write("f", "thé\n").await.payload();
    assert_eq!(sandbox.bytes("f"), b"th\xe9\n");
    check_refused(
        LATIN,
        json!({"path": "f", "content": "ж"}),
        "execution_failed",
        &["windows-1252", "'ж'", "encoding: \"utf-8\""],
    )
    .await;
    check_refused(
        b"",
        json!({"path": "f", "content": "x", "encoding": "klingon"}),
        "invalid_arguments",
        &["klingon", "utf-16le"],
    )
    .await;
}

#[tokio::test]
async fn another_encoding_is_told() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", LATIN);
    let arguments = json!({"path": "f", "content": "café = 1\nx = 2\n", "encoding": "utf-8"});
    let outcome = sandbox.change("write_file", arguments).await;
    contains(&notes(&outcome), &["encoding changed windows-1252→utf-8"]);
    assert_ne!(outcome.payload()["diff"], "", "other bytes are a change");
    assert_eq!(sandbox.bytes("f"), "café = 1\nx = 2\n".as_bytes());
}

#[tokio::test]
async fn damage_is_shown_and_kept() {
    let before = b"gr\xc3\xb6\xc3\x9fe\nbad \xe9 here\nend\n";
    let sandbox = Sandbox::new().await;
    sandbox.put("f", before);
    let outcome = sandbox.call("read_file", json!({"path": "f"})).await;
    assert_eq!(outcome.payload()["content"], "größe\nbad \u{fffd} here\nend\n");
    contains(&notes(&outcome), &["not valid utf-8"]);
    sandbox.edit("f", "end", "END").await.payload();
    assert_eq!(sandbox.bytes("f"), b"gr\xc3\xb6\xc3\x9fe\nbad \xe9 here\nEND\n");
    let outcome = sandbox.edit("f", "bad \u{fffd}", "good \u{fffd}").await;
    contains(&refused(&outcome, "execution_failed", "unencodable"), &["U+FFFD"]);
    check_refused(
        before,
        json!({"path": "f", "content": "größe\nbad \u{fffd} here\n"}),
        "execution_failed",
        &["U+FFFD", "edit_file"],
    )
    .await;
}

#[tokio::test]
async fn a_stateful_encoding_is_read_and_not_edited() {
    let sandbox = Sandbox::new().await;
    // `表` between the escape sequences that begin and end Japanese characters.
    sandbox.put("f", b"a\n\x1b$BI=\x1b(B\nb\n");
    let page = sandbox.read(json!({"path": "f"})).await;
    assert_eq!((&page["content"], &page["encoding"]), (&json!("a\n表\nb\n"), &json!("iso-2022-jp")));
    let outcome = sandbox.edit("f", "b", "c").await;
    contains(&refused(&outcome, "execution_failed", "unencodable"), &["iso-2022-jp", "write_file"]);
}

#[tokio::test]
async fn file_info_knows_the_encoding() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", marked("a\r\nb\r\n"));
    let outcome = sandbox.call("file_info", json!({"path": "f"})).await;
    let info = outcome.payload();
    assert_eq!(
        (&info["encoding"], &info["lines"], &info["eol"]),
        (&json!("utf-16le"), &json!(2), &json!("crlf"))
    );
}

#[tokio::test]
async fn a_page_ends_between_characters() {
    let sandbox = Sandbox::new().await;
    let text = format!("{}\n", "€👩‍👩‍👧".repeat(2_000));
    sandbox.put("f", &text);
    let page = sandbox.read(json!({"path": "f", "byte_offset": 1})).await;
    assert_eq!(page["total_bytes"], text.len());
    let shown = page["content"].as_str().unwrap();
    assert!(text.contains(shown) && shown.starts_with('👩'), "begins at the next character");
}
