//! `list_directory` and `file_info`.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, contains, notes};

fn names(payload: &Value) -> Vec<&str> {
    payload["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

async fn list(sandbox: &Sandbox, arguments: Value) -> Value {
    sandbox.call("list_directory", arguments).await.payload().clone()
}

#[tokio::test]
async fn entries_have_types_sizes_and_targets_in_the_order_of_names() {
    let sandbox = Sandbox::new().await;
    sandbox.put("b.txt", "12345");
    sandbox.put("sub/inner", "");
    symlink("b.txt", sandbox.at("link")).unwrap();
    symlink("/nowhere", sandbox.at("a-dangling")).unwrap();
    let payload = list(&sandbox, json!({})).await;
    assert_eq!(names(&payload), ["a-dangling", "b.txt", "link", "sub"]);
    let field = |index: usize, key: &str| payload["entries"][index][key].clone();
    assert_eq!((field(0, "type"), field(0, "target")), (json!("symlink"), json!("/nowhere")));
    assert_eq!((field(1, "type"), field(1, "size")), (json!("file"), json!(5)));
    assert_eq!((field(2, "type"), field(2, "target")), (json!("symlink"), json!("b.txt")));
    assert_eq!((field(3, "type"), field(3, "target")), (json!("directory"), Value::Null));
    assert!(field(1, "modified").as_u64().unwrap() > 1_600_000_000_000);
    assert_eq!((&payload["total"], &payload["truncated"]), (&json!(4), &json!(false)));
}

#[tokio::test]
async fn pages_add_up_to_the_whole_listing() {
    let sandbox = Sandbox::new().await;
    for n in 0..25 {
        sandbox.put(&format!("{n:02}/f"), "");
    }
    let whole = list(&sandbox, json!({"depth": 2})).await;
    assert_eq!(whole["total"], 50);
    let (mut found, mut offset) = (Vec::new(), json!(0));
    loop {
        let page = list(&sandbox, json!({"depth": 2, "limit": 7, "offset": offset})).await;
        found.extend(page["entries"].as_array().unwrap().clone());
        assert_eq!(page["total"], 50);
        match page.get("next_offset") {
            Some(next) => offset = next.clone(),
            None => break,
        }
    }
    assert_eq!(json!(found), whole["entries"]);
    assert_eq!(list(&sandbox, json!({"offset": 1_000})).await["entries"], json!([]));
}

#[tokio::test]
async fn depth_says_how_far_down() {
    let sandbox = Sandbox::new().await;
    sandbox.put("a/b/c/d", "");
    assert_eq!(names(&list(&sandbox, json!({})).await), ["a"]);
    assert_eq!(names(&list(&sandbox, json!({"depth": 2})).await), ["a", "a/b"]);
    assert_eq!(names(&list(&sandbox, json!({"depth": 64})).await), ["a", "a/b", "a/b/c", "a/b/c/d"]);
    assert_eq!(names(&list(&sandbox, json!({"path": "a/b", "depth": 2})).await), ["a/b/c", "a/b/c/d"]);
}

#[tokio::test]
async fn a_link_to_a_directory_is_not_descended_into() {
    let sandbox = Sandbox::new().await;
    sandbox.put("real/f", "");
    symlink("real", sandbox.at("link")).unwrap();
    symlink(".", sandbox.at("real/self")).unwrap();
    let payload = list(&sandbox, json!({"depth": 64})).await;
    assert_eq!(names(&payload), ["link", "real", "real/f", "real/self"]);
}

#[tokio::test]
async fn ignored_entries_are_left_out_below_the_first_level_and_counted() {
    let sandbox = Sandbox::new().await;
    sandbox.put(".gitignore", "*.log\n/build/\n");
    sandbox.put("a.log", "");
    sandbox.put("build/out", "");
    sandbox.put("src/build/kept", "");
    sandbox.put("src/.gitignore", "!keep.log\n");
    sandbox.put("src/keep.log", "");
    sandbox.put("src/other.log", "");
    assert_eq!(names(&list(&sandbox, json!({})).await), [".gitignore", "a.log", "build", "src"]);
    let outcome = sandbox.call("list_directory", json!({"depth": 3})).await;
    assert_eq!(
        names(outcome.payload()),
        [".gitignore", "src", "src/.gitignore", "src/build", "src/build/kept", "src/keep.log"]
    );
    contains(&notes(&outcome), &["3 entries", "ignored: true"]);
    assert_eq!(list(&sandbox, json!({"depth": 3, "ignored": true})).await["total"], 10);
    assert_eq!(names(&list(&sandbox, json!({"ignored": false})).await), [".gitignore", "src"]);
}

#[tokio::test]
async fn ignore_rules_of_directories_above_count() {
    let sandbox = Sandbox::new().await;
    sandbox.put(".gitignore", "*.log\n");
    sandbox.put("sub/a.log", "");
    sandbox.put("sub/b/c.log", "");
    let payload = list(&sandbox, json!({"path": "sub", "depth": 2})).await;
    assert_eq!(names(&payload), ["sub/b"]);
}

#[tokio::test]
async fn denied_and_temporary_names_are_not_shown() {
    let sandbox = Sandbox::with(json!({"deny": ["**/.env"]})).await;
    sandbox.put(".env", "");
    sandbox.put("sub/.env", "");
    sandbox.put(".ph-abc123.tmp", "");
    sandbox.put(".phone.tmp", "");
    let payload = list(&sandbox, json!({"depth": 2})).await;
    assert_eq!(names(&payload), [".phone.tmp", "sub"]);
    assert_eq!(payload["total"], 2);
}

#[tokio::test]
async fn names_are_those_on_the_disk() {
    let sandbox = Sandbox::new().await;
    for name in ["cafe\u{301}", "caf\u{e9}", "a b", "ひ", "\"q\""] {
        sandbox.put(name, "");
    }
    let payload = list(&sandbox, json!({})).await;
    for entry in names(&payload) {
        assert_eq!(sandbox.read(json!({"path": entry})).await["empty"], true, "{entry:?}");
    }
    assert_eq!(payload["total"], 5);
}

#[tokio::test]
async fn names_that_are_no_text_can_be_listed_and_read() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new().await;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(sandbox.root().join(name), "latin").unwrap();
    let payload = list(&sandbox, json!({})).await;
    let shown = names(&payload)[0];
    assert_eq!(sandbox.read(json!({"path": shown})).await["content"], "latin");
}

#[tokio::test]
async fn file_info_describes_what_is_there() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("run.sh", "#!/bin/sh\r\necho\r\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o2755)).unwrap();
    symlink("run.sh", sandbox.at("link")).unwrap();
    let info = async |path: &str| sandbox.call("file_info", json!({"path": path})).await.payload().clone();
    let file = info("run.sh").await;
    for (key, value) in [
        ("path", json!("run.sh")),
        ("type", json!("file")),
        ("size", json!(17)),
        ("mode", json!("2755")),
        ("encoding", json!("utf-8")),
        ("eol", json!("crlf")),
        ("lines", json!(2)),
    ] {
        assert_eq!(file[key], value, "{key}");
    }
    assert_eq!(file["sha256"], sandbox.read(json!({"path": "run.sh"})).await["sha256"]);
    let link = info("link").await;
    assert_eq!((&link["type"], &link["target"]), (&json!("symlink"), &json!("run.sh")));
    assert_eq!(info(".").await["type"], "directory");
}
