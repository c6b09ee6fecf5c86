//! `grep`: what is found, what is shown of it, and what is said about the rest.

use std::os::unix::fs::symlink;

use provider_core::testing::Outcome;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes, paths, refused};

async fn grep(sandbox: &Sandbox, arguments: Value) -> Value {
    sandbox.payload("grep", arguments).await
}

/// `path:line` of each match.
fn places(payload: &Value) -> Vec<String> {
    let matches = payload["matches"].as_array().unwrap();
    matches.iter().map(|found| format!("{}:{}", found["path"].as_str().unwrap(), found["line"])).collect()
}

#[tokio::test]
async fn a_hit_has_path_line_column_and_text() {
    let sandbox = Sandbox::new().await;
    sandbox.put("src/a.rs", "fn main() {\n    let needle = 1;\n}\n");
    sandbox.put("src/b.rs", "nothing\n");
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    let found = &payload["matches"][0];
    for (key, value) in [
        ("path", json!("src/a.rs")),
        ("line", json!(2)),
        ("column", json!(9)),
        ("match_length", json!(6)),
        ("text", json!("    let needle = 1;")),
        ("before", json!(["fn main() {"])),
        ("after", json!(["}"])),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
    for (key, value) in [
        ("total_matches", json!(1)),
        ("total_files", json!(1)),
        ("searched_files", json!(2)),
        ("truncated", json!(false)),
        ("timed_out", json!(false)),
        ("errors", json!([])),
        ("incomplete", Value::Null),
        ("notes", Value::Null),
    ] {
        assert_eq!(payload[key], value, "{key}");
    }
}

#[tokio::test]
async fn a_pattern_that_looks_like_an_option_is_a_pattern() {
    let sandbox = Sandbox::new().await;
    let trap = sandbox.outside().join("ran");
    let script = sandbox.outside().join("p.sh");
    std::fs::write(&script, format!("#!/bin/sh\ntouch {}\n", trap.display())).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let pre = format!("--pre={}", script.display());
    sandbox.put("a.txt", format!("{pre}\n-f/etc/passwd\n--search-zip\n"));
    for pattern in [&*pre, "-f/etc/passwd", "--search-zip"] {
        let payload = grep(&sandbox, json!({"pattern": pattern})).await;
        assert_eq!(payload["total_matches"], 1, "{pattern}");
    }
    let outcome = sandbox.call("grep", json!({"pattern": "x", "path": pre})).await;
    refused(&outcome, "not_found", "");
    assert_eq!(grep(&sandbox, json!({"pattern": "x", "glob": "--x"})).await["total_matches"], 0);
    assert!(!trap.exists(), "a process was started");
}

#[tokio::test]
async fn a_wrong_pattern_is_an_error_that_says_where() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", "foo(\n");
    for (pattern, position) in [("(", 1), ("foo(", 4), ("[z-a]", 2), ("*x", 1)] {
        let outcome = sandbox.call("grep", json!({"pattern": pattern})).await;
        let message = refused(&outcome, "invalid_arguments", "");
        contains(&message, &["pattern", &format!("character {position}"), pattern, "fixed_strings"]);
        let literal = grep(&sandbox, json!({"pattern": pattern, "fixed_strings": true})).await;
        assert_eq!(literal["total_matches"], u64::from("foo(".contains(pattern)), "{pattern}");
    }
    refused(&sandbox.call("grep", json!({"pattern": ""})).await, "invalid_arguments", "");
    let outcome = sandbox.call("grep", json!({"pattern": "x", "glob": "a[b"})).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["glob", "a[b"]);
    let outcome = sandbox.call("grep", json!({"pattern": "x", "type": "pyton"})).await;
    contains(&refused(&outcome, "invalid_arguments", ""), &["type", "pyton", "python"]);
    refused(
        &sandbox.call("grep", json!({"pattern": "x", "path": "../"})).await,
        "permission_denied",
        "outside_root",
    );
}

#[tokio::test]
async fn a_hit_in_a_long_line_is_shown_with_what_is_around_it() {
    let sandbox = Sandbox::new().await;
    let line = format!("{}needle{}", "x".repeat(4199), "y".repeat(795));
    sandbox.put("a.txt", &line);
    let found = grep(&sandbox, json!({"pattern": "needle"})).await["matches"][0].clone();
    assert_eq!((&found["column"], &found["line_length"]), (&json!(4200), &json!(5000)));
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("xneedley") && text.len() <= 500, "{text}");
    let at = usize::try_from(found["text_offset"].as_u64().unwrap()).unwrap();
    assert_eq!(&text[at..at + 6], "needle");
}

#[tokio::test]
async fn each_hit_in_an_enormous_line_has_its_own_excerpt() {
    let sandbox = Sandbox::new().await;
    let mut line = vec![b'x'; 5_000_000];
    for at in [1_000_000, 2_000_000, 4_000_000] {
        line[at..at + 6].copy_from_slice(b"needle");
    }
    sandbox.put("big.json", &line);
    let outcome = sandbox.call("grep", json!({"pattern": "needle", "limit": 1})).await;
    assert_eq!(outcome.payload()["matches"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&outcome.payload()["total_matches"], &outcome.payload()["total_lines"]),
        (&json!(3), &json!(1))
    );
    assert!(json!(outcome.events).to_string().len() < 3_000);
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    let columns: Vec<_> =
        payload["matches"].as_array().unwrap().iter().map(|found| &found["column"]).collect();
    assert_eq!(json!(columns), json!([1_000_001, 2_000_001, 4_000_001]));
    for found in payload["matches"].as_array().unwrap() {
        assert!(found["text"].as_str().unwrap().contains("needle"));
    }
}

/// 250 hits in 30 files.
fn many(sandbox: &Sandbox) {
    for n in 0..30 {
        let hits = if n < 10 { 9 } else { 8 };
        sandbox.put(&format!("d{}/f{n:02}.txt", n % 4), "needle\nother\n".repeat(hits));
    }
}

#[tokio::test]
async fn pages_neither_skip_nor_repeat_and_totals_are_exact() {
    let sandbox = Sandbox::new().await;
    many(&sandbox);
    let all = grep(&sandbox, json!({"pattern": "needle", "limit": 10_000})).await;
    assert_eq!((&all["total_matches"], &all["total_files"]), (&json!(250), &json!(30)));
    let mut found = Vec::new();
    for page in 0..3 {
        let payload = grep(&sandbox, json!({"pattern": "needle", "limit": 100, "offset": page * 100})).await;
        assert_eq!(payload["total_matches"], 250);
        assert_eq!(payload["truncated"], page < 2);
        assert_eq!(payload["next_offset"], if page < 2 { json!((page + 1) * 100) } else { Value::Null });
        found.extend(places(&payload));
    }
    assert_eq!(found, places(&all));
    let mut sorted = paths(&all["matches"]);
    sorted.sort();
    assert_eq!(paths(&all["matches"]), sorted);
    let past = grep(&sandbox, json!({"pattern": "needle", "limit": 100, "offset": 300})).await;
    assert_eq!((&past["matches"], &past["total_matches"]), (&json!([]), &json!(250)));
    contains(&notes(&past), &["offset 300 ≥ 250"]);
}

#[tokio::test]
async fn files_and_counts_are_pages_of_files() {
    let sandbox = Sandbox::new().await;
    many(&sandbox);
    let files = grep(&sandbox, json!({"pattern": "needle", "mode": "files", "limit": 20})).await;
    assert_eq!((files["matches"].as_array().unwrap().len(), &files["next_offset"]), (20, &json!(20)));
    assert_eq!((&files["total_matches"], &files["total_files"]), (&json!(250), &json!(30)));
    assert_eq!(files["matches"][0], json!({"path": "d0/f00.txt"}));
    let rest = grep(&sandbox, json!({"pattern": "needle", "mode": "files", "limit": 20, "offset": 20})).await;
    assert_eq!((rest["matches"].as_array().unwrap().len(), &rest["truncated"]), (10, &json!(false)));
    let counts = grep(&sandbox, json!({"pattern": "needle", "mode": "count"})).await;
    let sum: u64 =
        counts["matches"].as_array().unwrap().iter().map(|file| file["count"].as_u64().unwrap()).sum();
    assert_eq!(sum, 250);
}

#[tokio::test]
async fn the_order_under_a_limit_is_always_the_same() {
    let sandbox = Sandbox::new().await;
    for n in 0..1000 {
        sandbox.put(&format!("{}/{}/f{n}.txt", n % 7, n % 31), "needle\n");
    }
    let first = grep(&sandbox, json!({"pattern": "needle", "limit": 20})).await;
    for _ in 0..10 {
        assert_eq!(grep(&sandbox, json!({"pattern": "needle", "limit": 20})).await, first);
    }
    let second = grep(&sandbox, json!({"pattern": "needle", "limit": 20, "offset": 20})).await;
    let whole = grep(&sandbox, json!({"pattern": "needle", "limit": 40})).await;
    assert_eq!([places(&first), places(&second)].concat(), places(&whole));
    assert_eq!(first["total_matches"], 1000);
}

#[tokio::test]
async fn a_page_ends_before_it_grows_too_large_and_the_next_goes_on() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", format!("needle {}\n", "z".repeat(480)).repeat(300));
    let (mut lines, mut offset, mut pages) = (Vec::new(), json!(0), 0);
    loop {
        let page = grep(&sandbox, json!({"pattern": "needle", "limit": 1000, "offset": offset})).await;
        assert!(page.to_string().len() < 80_000);
        lines.extend(page["matches"].as_array().unwrap().iter().map(|found| found["line"].as_u64().unwrap()));
        pages += 1;
        match page.get("next_offset") {
            Some(next) => offset = next.clone(),
            None => break,
        }
    }
    assert_eq!(lines, (1..=300).collect::<Vec<_>>());
    assert!(pages > 2);
}

#[tokio::test]
async fn other_encodings_are_searched_and_said() {
    let sandbox = Sandbox::new().await;
    let utf_16: Vec<u8> =
        "\u{feff}first\r\nwith a needle é\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    sandbox.put("utf16.txt", utf_16);
    let big: Vec<u8> = "\u{feff}a needle\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    sandbox.put("utf16be.txt", big);
    sandbox.put("latin.txt", b"d\xe9j\xe0 vu, needle, caf\xe9\n");
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    assert_eq!(paths(&payload["matches"]), ["latin.txt", "utf16.txt", "utf16be.txt"]);
    let field = |index: usize, key: &str| payload["matches"][index][key].clone();
    assert_eq!(field(0, "text"), "déjà vu, needle, café");
    assert_eq!((field(0, "lossy"), field(0, "encoding")), (json!(true), json!("windows-1252")));
    assert_eq!((field(1, "text"), field(1, "encoding")), (json!("with a needle é"), json!("utf-16le")));
    assert_eq!((field(1, "line"), field(2, "encoding")), (json!(2), json!("utf-16be")));
}

#[tokio::test]
async fn letters_beyond_ascii_are_found_in_every_encoding() {
    let sandbox = Sandbox::new().await;
    sandbox.put("utf8.txt", "un café\n");
    sandbox.put("latin.txt", b"d\xe9j\xe0 vu au\nun caf\xe9 noir\n");
    let utf_16: Vec<u8> = "\u{feff}café\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    sandbox.put("utf16.txt", utf_16);
    let payload = grep(&sandbox, json!({"pattern": "café"})).await;
    assert_eq!(places(&payload), ["latin.txt:2", "utf16.txt:1", "utf8.txt:1"]);
    assert_eq!(payload["matches"][0]["text"], "un café noir");
}

#[tokio::test]
async fn look_around_and_back_references_work() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", "foobar\nfoobaz\n#foobar\naa\nab\n");
    for (pattern, lines) in [
        ("foo(?!bar)", json!([2])),
        ("(?<!#)foobar", json!([1])),
        (r"(a)\1", json!([4])),
        (r"(?i)(A)\1", json!([4])),
    ] {
        let payload = grep(&sandbox, json!({"pattern": pattern})).await;
        let found: Vec<_> =
            payload["matches"].as_array().unwrap().iter().map(|found| &found["line"]).collect();
        assert_eq!(json!(found), lines, "{pattern}");
        contains(&notes(&payload), &["second, slower engine"]);
    }
}

#[tokio::test]
async fn a_pattern_that_needs_too_many_steps_never_reads_as_no_matches() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", format!("{}\n", "x".repeat(60)));
    let payload = grep(&sandbox, json!({"pattern": r"(x+x+)+(?=y)\1"})).await;
    assert_eq!((&payload["total_matches"], &payload["incomplete"]), (&json!(0), &json!(true)));
    contains(&notes(&payload), &["given up"]);
}

#[tokio::test]
async fn without_a_path_the_working_directory_is_searched() {
    let sandbox = Sandbox::new().await;
    sandbox.put("sub/a.txt", "needle\n");
    sandbox.put("b.txt", "needle\n");
    assert_eq!(paths(&grep(&sandbox, json!({"pattern": "needle"})).await["matches"]), ["b.txt", "sub/a.txt"]);
    let below = sandbox;
    let harness = below.harness.clone().in_directory(below.at("sub"));
    let outcome = harness.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(paths(&outcome.payload()["matches"]), ["a.txt"]);
    let outcome = harness.call("grep", json!({"pattern": "needle", "path": ".."})).await;
    let top = below.at("b.txt");
    assert_eq!(paths(&outcome.payload()["matches"]), [top.to_str().unwrap(), "a.txt"]);
    let outcome = harness.call("grep", json!({"pattern": "needle", "path": "a.txt"})).await;
    assert_eq!(paths(&outcome.payload()["matches"]), ["a.txt"]);
}

#[tokio::test]
async fn special_files_are_skipped_and_counted() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", "needle\n");
    let fifo = sandbox.at("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.at("socket")).unwrap();
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    assert_eq!((&payload["total_matches"], &payload["skipped"]["special"]), (&json!(1), &json!(2)));
    assert_eq!(payload.get("incomplete"), None);
    refused(
        &sandbox.call("grep", json!({"pattern": "x", "path": "fifo"})).await,
        "permission_denied",
        "special_file",
    );
}

#[tokio::test]
async fn links_that_leave_the_root_are_counted_and_not_followed() {
    let sandbox = Sandbox::new().await;
    std::fs::write(sandbox.outside().join("secret"), "needle\n").unwrap();
    sandbox.put("in.txt", "needle\n");
    symlink("../secret", sandbox.at("out")).unwrap();
    symlink("/etc", sandbox.at("etc")).unwrap();
    symlink("in.txt", sandbox.at("alias")).unwrap();
    symlink(".", sandbox.at("loop")).unwrap();
    symlink("nowhere", sandbox.at("dangling")).unwrap();
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    assert_eq!(paths(&payload["matches"]), ["in.txt"]);
    assert_eq!(payload["skipped"]["outside"], 2);
    refused(
        &sandbox.call("grep", json!({"pattern": "x", "path": "out"})).await,
        "permission_denied",
        "outside_root",
    );
}

#[tokio::test]
async fn ignored_hidden_and_binary_files_are_left_out_until_asked_for() {
    let sandbox = Sandbox::new().await;
    sandbox.repository("");
    sandbox.put(".gitignore", "*.log\n/target/\n");
    sandbox.put("a.log", "needle\n");
    sandbox.put("target/deep/b.txt", "needle\n");
    sandbox.put(".env", "needle\n");
    sandbox.put("c.bin", b"needle\0\n");
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    assert_eq!(payload["total_matches"], 0);
    assert_eq!(
        payload["skipped"],
        json!({"ignored": 2, "hidden": 3, "binary": 1, "special": 0, "too_large": 0, "outside": 0})
    );
    contains(&notes(&payload), &["2 ignored", "ignored: true", "3 hidden", "1 binary"]);
    let found = async |arguments: Value| paths(&grep(&sandbox, arguments).await["matches"]).join(" ");
    assert_eq!(found(json!({"pattern": "needle", "ignored": true})).await, "a.log target/deep/b.txt");
    assert_eq!(found(json!({"pattern": "needle", "hidden": true})).await, ".env");
    assert_eq!(found(json!({"pattern": "needle", "binary": true})).await, "c.bin");
    let named = grep(&sandbox, json!({"pattern": "needle", "path": "c.bin"})).await;
    assert_eq!((&named["total_matches"], &named["incomplete"]), (&json!(0), &json!(true)));
    contains(&notes(&named), &["binary: true"]);
    assert_eq!(found(json!({"pattern": "needle", "path": "a.log"})).await, "a.log");
}

#[tokio::test]
async fn what_is_denied_is_not_searched() {
    let sandbox = Sandbox::with(json!({"deny": ["**/secret/**", "*.key"]})).await;
    sandbox.put("secret/a.txt", "needle\n");
    sandbox.put("sub/secret/a.txt", "needle\n");
    sandbox.put("b.key", "needle\n");
    sandbox.put("c.txt", "needle\n");
    for arguments in
        [json!({"pattern": "needle"}), json!({"pattern": "needle", "hidden": true, "ignored": true})]
    {
        assert_eq!(paths(&grep(&sandbox, arguments).await["matches"]), ["c.txt"]);
    }
    refused(
        &sandbox.call("grep", json!({"pattern": "x", "path": "b.key"})).await,
        "permission_denied",
        "denied",
    );
}

#[tokio::test]
async fn globs_and_types_choose_files() {
    let sandbox = Sandbox::new().await;
    for name in ["a.rs", "sub/b.rs", "c.py", "sub/d.toml"] {
        sandbox.put(name, "needle\n");
    }
    let found = async |arguments: Value| paths(&grep(&sandbox, arguments).await["matches"]).join(" ");
    assert_eq!(found(json!({"pattern": "needle", "glob": "*.rs"})).await, "a.rs sub/b.rs");
    assert_eq!(found(json!({"pattern": "needle", "glob": "*.{rs,py}"})).await, "a.rs c.py sub/b.rs");
    assert_eq!(found(json!({"pattern": "needle", "glob": "*.rs,!sub/**"})).await, "a.rs");
    assert_eq!(found(json!({"pattern": "needle", "glob": "sub/*"})).await, "sub/b.rs sub/d.toml");
    assert_eq!(found(json!({"pattern": "needle", "type": "rust"})).await, "a.rs sub/b.rs");
    assert_eq!(found(json!({"pattern": "needle", "type": "rust,py"})).await, "a.rs c.py sub/b.rs");
    let none = grep(&sandbox, json!({"pattern": "needle", "glob": "*.go"})).await;
    contains(&notes(&none), &["no file is covered"]);
}

#[tokio::test]
async fn lines_around_hits_are_shown_once() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", "1\n2\nneedle 3\n4\nneedle 5\n6\n7\n8\n");
    let payload = grep(&sandbox, json!({"pattern": "needle", "context": 2})).await;
    assert_eq!(payload["matches"][0]["before"], json!(["1", "2"]));
    assert_eq!(payload["matches"][0]["after"], json!(["4"]));
    assert_eq!(payload["matches"][1].get("before"), None);
    assert_eq!(payload["matches"][1]["after"], json!(["6", "7"]));
    let after = grep(&sandbox, json!({"pattern": "needle 5", "after": 1})).await;
    assert_eq!((after["matches"][0].get("before"), &after["matches"][0]["after"]), (None, &json!(["6"])));
    let none = grep(&sandbox, json!({"pattern": "needle 5", "context": 0})).await;
    assert_eq!(none["matches"][0].get("after"), None);
}

#[tokio::test]
async fn hits_go_over_line_ends_where_the_pattern_does() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", "zero\nfn a(\n    x,\n) {}\nfn b() {}\nfn c(\n) {}\n");
    let payload = grep(&sandbox, json!({"pattern": r"fn \w\(\n"})).await;
    assert_eq!(places(&payload), ["a.txt:2", "a.txt:6"]);
    contains(&notes(&payload), &["across lines"]);
    let payload = grep(&sandbox, json!({"pattern": r"(?s)fn a\(.*?\)", "context": 0})).await;
    assert_eq!(payload["matches"][0]["text"], "fn a(\n    x,\n) {}");
    let asked = grep(&sandbox, json!({"pattern": r"a\(\s+x", "multiline": true})).await;
    assert_eq!((places(&asked), asked.get("notes")), (vec!["a.txt:2".to_owned()], None));
    let not_asked = grep(&sandbox, json!({"pattern": r"a\(\s+x"})).await;
    assert_eq!(not_asked["total_matches"], 0);
}

#[tokio::test]
async fn hits_come_as_partial_results_before_the_result() {
    let sandbox = Sandbox::new().await;
    many(&sandbox);
    let Outcome { events } = sandbox.call("grep", json!({"pattern": "needle", "limit": 5})).await;
    let (last, before) = events.split_last().unwrap();
    assert!(!before.is_empty(), "nothing came before the result");
    let hits = |event: &Value| event["payload"]["matches"].as_array().unwrap().clone();
    let parts: Vec<_> = before.iter().flat_map(hits).collect();
    assert!(before.iter().all(|event| event["event"] == "partial_result"));
    assert!(!parts.is_empty() && parts.len() <= 5, "{}", parts.len());
    assert_eq!(hits(last).len(), 5);
}

#[tokio::test]
async fn a_stored_result_is_shown_by_file_with_the_hits_marked() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a.txt", "one\na needle here\nthree\n");
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    let shown = format!("{:?}", sandbox.harness.render(&payload).await.unwrap());
    contains(
        &shown,
        &["a.txt", "     1- one", "     2: a «needle» here", "     3- three", "1 matches in 1 files"],
    );
    let nothing = grep(&sandbox, json!({"pattern": "absent"})).await;
    contains(
        &format!("{:?}", sandbox.harness.render(&nothing).await.unwrap()),
        &["no matches, 1 files searched"],
    );
    let mut partly = nothing.clone();
    partly["incomplete"] = json!(true);
    let shown = format!("{:?}", sandbox.harness.render(&partly).await.unwrap());
    assert!(!shown.contains("no matches"), "{shown}");
}

#[tokio::test]
async fn names_that_are_no_text_are_shown_escaped_and_can_be_given_back() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new().await;
    std::fs::write(sandbox.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt")), "needle\n").unwrap();
    let payload = grep(&sandbox, json!({"pattern": "needle"})).await;
    assert_eq!(paths(&payload["matches"]), [r"caf\xe9.txt"]);
    let again = grep(&sandbox, json!({"pattern": "needle", "path": r"caf\xe9.txt"})).await;
    assert_eq!(again["total_matches"], 1);
}

#[tokio::test]
async fn a_pattern_too_long_to_be_meant_is_refused_before_it_is_made_ready() {
    let sandbox = Sandbox::new().await;
    let outcome = sandbox.call("grep", json!({"pattern": "x".repeat(8 << 20)})).await;
    let message = refused(&outcome, "invalid_arguments", "");
    contains(&message, &["pattern", "8388608 bytes", "at most 65536"]);
    let payload = grep(&sandbox, json!({"pattern": "x".repeat(64 << 10)})).await;
    assert_eq!(payload["total_matches"], 0);
}
