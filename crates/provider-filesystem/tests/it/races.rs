//! Many calls at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use serde_json::json;

use crate::sandbox::Sandbox;

const LINES: usize = 100;
const EDITED: [usize; 22] =
    [1, 2, 3, 10, 11, 12, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90, 97, 98, 99, 100];

fn numbers() -> String {
    (1..=LINES).map(|n| format!("<{n}>\n")).collect()
}

/// What takes a line's place: longer or shorter, as its number decides.
fn replacement(line: usize) -> String {
    if line.is_multiple_of(2) { String::new() } else { format!("line {line} is longer now\nby a line\n") }
}

fn expected() -> String {
    let line = |n| if EDITED.contains(&n) { replacement(n) } else { format!("<{n}>\n") };
    (1..=LINES).map(line).collect()
}

#[tokio::test]
async fn parallel_edits_of_different_lines_all_land() {
    let sandbox = Sandbox::new().await;
    std::fs::create_dir(sandbox.at("sub")).unwrap();
    std::os::unix::fs::symlink("../f", sandbox.at("sub/link")).unwrap();
    let absolute = sandbox.at("f").display().to_string();
    let spellings = ["f", "./f", "sub/link", "sub/../f", absolute.as_str()];
    for round in 0..20 {
        sandbox.put("f", numbers());
        let edits = EDITED.iter().enumerate().map(|(index, line)| {
            let path = spellings[(index + round) % spellings.len()];
            let old_str = format!("<{line}>\n");
            sandbox
                .call("edit_file", json!({"path": path, "old_str": old_str, "new_str": replacement(*line)}))
        });
        for outcome in join_all(edits).await {
            outcome.payload();
        }
        assert_eq!(String::from_utf8(sandbox.bytes("f")).unwrap(), expected(), "round {round}");
    }
    let left: Vec<_> = sandbox.tree().into_keys().collect();
    assert_eq!(left, ["root", "root/f", "root/sub", "root/sub/link"]);
}

#[tokio::test]
async fn a_reader_never_sees_half_a_file() {
    let sandbox = Sandbox::new().await;
    let versions = ["a\n".repeat(200_000), "bbb\n".repeat(50_000)];
    let path = sandbox.put("f", &versions[0]);
    let stop = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (stop, versions) = (stop.clone(), versions.clone());
        move || {
            let mut reads = 0;
            while !stop.load(Ordering::Relaxed) {
                let found = std::fs::read(&path).unwrap();
                assert!(versions.iter().any(|version| version.as_bytes() == found), "{} bytes", found.len());
                reads += 1;
            }
            reads
        }
    });
    for round in 0..20 {
        let content = &versions[(round + 1) % 2];
        sandbox.call("write_file", json!({"path": "f", "content": content})).await.payload();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
}

#[tokio::test]
async fn of_many_that_create_a_file_only_one_does() {
    let sandbox = Sandbox::new().await;
    let writes = (0..10).map(|n| {
        let arguments = json!({"path": "f", "content": n.to_string(), "overwrite": false});
        sandbox.call("write_file", arguments)
    });
    let outcomes = join_all(writes).await;
    let created: Vec<_> = outcomes.iter().filter(|outcome| outcome.terminal()["event"] == "result").collect();
    assert_eq!(created.len(), 1);
    assert!(
        outcomes
            .iter()
            .all(|outcome| { outcome.terminal()["event"] == "result" || outcome.error().code == "exists" })
    );
}
