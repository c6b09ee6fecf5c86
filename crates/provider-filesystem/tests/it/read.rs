//! Pages of files of any shape.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, refused};

/// Reads a file page by page, following what each page says.
async fn rebuild(sandbox: &Sandbox, mut arguments: Value) -> (String, usize) {
    let key = if arguments.get("byte_offset").is_some() { "byte_offset" } else { "offset" };
    let (mut content, mut pages) = (String::new(), 0);
    loop {
        let page = sandbox.read(arguments.clone()).await;
        content.push_str(page["content"].as_str().unwrap());
        pages += 1;
        assert!(pages < 1_000, "the pages do not end");
        assert_eq!(page["truncated"], page.get("next_offset").is_some());
        match page.get("next_offset") {
            Some(next) => arguments[key] = next.clone(),
            None => return (content, pages),
        }
    }
}

#[tokio::test]
async fn following_the_pages_rebuilds_the_file() {
    let sandbox = Sandbox::new().await;
    let text: String = (0..1_403).map(|n| format!("{n:04} {}\r\n", "é".repeat(n % 70))).collect();
    assert!(text.len() > 100_000);
    sandbox.put("f", &text);
    let (content, pages) = rebuild(&sandbox, json!({"path": "f"})).await;
    assert_eq!(content, text);
    assert!(pages > 2);
    let first = sandbox.read(json!({"path": "f"})).await;
    assert!(first["content"].as_str().unwrap().ends_with("\r\n"));
    assert_eq!((&first["start_line"], &first["total_lines"]), (&json!(1), &json!(1_403)));
    assert_eq!(first["next_offset"].as_u64().unwrap(), first["end_line"].as_u64().unwrap() + 1);
}

#[tokio::test]
async fn a_large_file_is_answered_with_its_first_page() {
    let sandbox = Sandbox::new().await;
    let text = "0123456789\n".repeat(300_000);
    sandbox.put("f", &text);
    let page = sandbox.read(json!({"path": "f"})).await;
    assert_eq!((&page["end_line"], &page["total_lines"]), (&json!(2_000), &json!(300_000)));
    let tail = sandbox.read(json!({"path": "f", "offset": -2})).await;
    assert_eq!(tail["content"], "0123456789\n0123456789\n");
    assert_eq!(tail["start_line"], 299_999);
}

/// Reads ten lines, `line 1` to `line 10`, from `offset`.
async fn check_offset(offset: Value, content: &str, start_line: Option<u64>) {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", (1..=10).map(|n| format!("line {n}\n")).collect::<String>());
    let page = sandbox.read(json!({"path": "f", "offset": offset, "limit": 3})).await;
    assert_eq!(page["content"], content, "{offset}");
    assert_eq!(page["start_line"].as_u64(), start_line, "{offset}");
    assert_eq!(page["total_lines"], 10);
}

#[tokio::test]
async fn every_offset_has_one_meaning() {
    check_offset(json!(0), "line 1\nline 2\nline 3\n", Some(1)).await;
    check_offset(json!(1), "line 1\nline 2\nline 3\n", Some(1)).await;
    check_offset(json!(10), "line 10\n", Some(10)).await;
    check_offset(json!(-3), "line 8\nline 9\nline 10\n", Some(8)).await;
    check_offset(json!(-99), "line 1\nline 2\nline 3\n", Some(1)).await;
    check_offset(json!(11), "", None).await;
    check_offset(json!(1_000_000_000_000_u64), "", None).await;
    check_offset(json!(1e12), "", None).await;
}

#[tokio::test]
async fn a_page_past_the_end_says_how_long_the_file_is() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\n");
    let outcome = sandbox.call("read_file", json!({"path": "f", "offset": 3})).await;
    contains(&notes(&outcome), &["2 lines"]);
    assert_eq!(outcome.payload()["truncated"], false);
}

#[tokio::test]
async fn empty_files_are_read() {
    let sandbox = Sandbox::new().await;
    for (bytes, total_lines, empty) in
        [("", 0, json!(true)), ("\u{feff}", 0, json!(true)), ("\n", 1, Value::Null), ("a", 1, Value::Null)]
    {
        sandbox.put("f", bytes);
        let page = sandbox.read(json!({"path": "f"})).await;
        assert_eq!((&page["total_lines"], &page["empty"]), (&json!(total_lines), &empty), "{bytes:?}");
        assert_eq!(page["kind"], "text");
    }
}

#[tokio::test]
async fn a_huge_line_is_read_in_pieces() {
    let sandbox = Sandbox::new().await;
    let line = format!("{{\"é\":\"{}\"}}", "ab→".repeat(15_000));
    sandbox.put("f", &line);
    let outcome = sandbox.call("read_file", json!({"path": "f"})).await;
    assert_eq!(outcome.payload()["truncated"], true);
    contains(&notes(&outcome), &["byte_offset"]);
    let (content, pages) = rebuild(&sandbox, json!({"path": "f", "byte_offset": 0})).await;
    assert_eq!(content, line);
    assert!(pages > 1);
}

#[tokio::test]
async fn line_numbers_are_given_on_request() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "a\nb\n");
    let page = sandbox.read(json!({"path": "f", "line_numbers": true, "offset": 2})).await;
    assert_eq!(page["content"], "     2\tb\n");
}

#[tokio::test]
async fn what_a_file_says_of_itself_is_read() {
    let sandbox = Sandbox::new().await;
    sandbox.put("f", "\u{feff}a\r\nb\r\n");
    let page = sandbox.read(json!({"path": "f"})).await;
    assert_eq!(
        (&page["bom"], &page["eol"], &page["encoding"]),
        (&json!(true), &json!("crlf"), &json!("utf-8"))
    );
    assert_eq!(page["content"], "a\r\nb\r\n");
    assert_eq!(page["total_bytes"], 9);
}

/// A PNG of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

#[tokio::test]
async fn an_image_is_known_by_its_bytes() {
    let sandbox = Sandbox::new().await;
    sandbox.put("photo.jpg", PNG);
    sandbox.put("text.png", "just text\n");
    sandbox.put("picture.svg", "<svg/>\n");
    sandbox.put("cut.png", &PNG[..12]);
    let page = sandbox.read(json!({"path": "photo.jpg"})).await;
    assert_eq!(page["kind"], "image");
    contains(page["content"].as_str().unwrap(), &["PNG", "1 × 1"]);
    assert_eq!(page.get("media"), None);
    assert_eq!(sandbox.read(json!({"path": "text.png"})).await["content"], "just text\n");
    assert_eq!(sandbox.read(json!({"path": "picture.svg"})).await["content"], "<svg/>\n");
    let outcome = sandbox.call("read_file", json!({"path": "cut.png"})).await;
    contains(&refused(&outcome, "execution_failed", "binary"), &["PNG", "12 bytes"]);
}

#[tokio::test]
async fn an_image_is_given_inline_where_that_is_configured() {
    let sandbox = Sandbox::with(json!({"media": "inline"})).await;
    sandbox.put("photo.jpg", PNG);
    let page = sandbox.read(json!({"path": "photo.jpg"})).await;
    assert_eq!(page["media"]["mime_type"], "image/png");
    assert!(page["media"]["data_base64"].as_str().unwrap().starts_with("iVBORw0KGgo"));
}

#[tokio::test]
async fn binary_and_pdf_are_described() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", b"\x7fELF\0\0\0\x01\xff");
    sandbox.put("b.txt", b"%PDF-1.7\n\xff\xfe\0");
    assert_eq!(sandbox.read(json!({"path": "a.txt"})).await["kind"], "binary");
    assert_eq!(sandbox.read(json!({"path": "b.txt"})).await["kind"], "pdf");
}

#[tokio::test]
async fn a_file_that_grows_and_shrinks_is_read_without_harm() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "line\n".repeat(200_000));
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let mut file = std::fs::File::options().append(true).open(&path).unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all(&b"line\n".repeat(2_000)).unwrap();
                if file.metadata().unwrap().len() > 4_000_000 {
                    file.set_len(500_000).unwrap();
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    let mut noticed = 0;
    for offset in [1, -10, 150_000, 1, -1, 1, -1, 1, -1, 1] {
        let page = sandbox.read(json!({"path": "f", "offset": offset, "limit": 10})).await;
        assert!(
            page["content"].as_str().unwrap().split_terminator('\n').all(|line| "line".starts_with(line))
        );
        noticed += usize::from(page["changed_during_read"] == true);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    assert!(noticed > 0, "no read noticed that the file changes all the time");
}
