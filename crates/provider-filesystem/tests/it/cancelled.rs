//! Calls that are given up while they work on a large file in memory.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use provider_core::testing::Outcome;
use serde_json::{Value, json};

use crate::sandbox::{LIMIT, Sandbox, contains};

/// Long enough for its edit to take much longer than a cancel takes to arrive.
fn large() -> String {
    (0..1_000_000).map(|n| format!("line {n} of a large file\n")).collect()
}

/// Whether some writer holds the file.
fn is_held(path: &Path) -> bool {
    match Flock::lock(File::open(path).unwrap(), FlockArg::LockExclusiveNonblock) {
        Ok(lock) => {
            drop(lock);
            false
        }
        Err((_, errno)) => errno == Errno::EWOULDBLOCK,
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Cancels a call as soon as it holds the file.
async fn cancelled_at_work(sandbox: &Sandbox, tool: &str, arguments: Value) -> Outcome {
    let path = sandbox.at("f");
    let id = sandbox.harness.next_id();
    let call = sandbox.harness.call_as(&id, tool, arguments, None);
    let cancel = async {
        until("the lock of the call", || is_held(&path)).await;
        assert!(sandbox.harness.cancel(&id).await, "{tool} was over already");
    };
    tokio::join!(call, cancel).0
}

#[tokio::test]
async fn a_change_of_a_large_file_is_given_up_at_once_and_leaves_nothing() {
    let sandbox = Sandbox::new().await;
    let before = large();
    let path = sandbox.put("f", &before);
    let edit = json!({"path": "f", "old_str": "large", "new_str": "small", "replace_all": true});
    let patch = "*** Begin Patch\n*** Add File: made/new\n+n\n*** Update File: f\n@@\n-line 999999 of a large file\n+x\n\
                 *** End Patch\n";
    for (tool, arguments) in [
        ("edit_file", edit.clone()),
        ("multi_edit", json!({"edits": [edit]})),
        ("write_file", json!({"path": "f", "content": before.replace("large", "small")})),
        ("apply_patch", json!({"patch": patch})),
    ] {
        let outcome = cancelled_at_work(&sandbox, tool, arguments).await;
        let last = outcome.terminal();
        assert_eq!(last["event"], "partial_result", "{tool}: {last}");
        contains(last["payload"]["note"].as_str().unwrap(), &["cancelled", "nothing had been changed"]);
        until("the end of the work", || !is_held(&path)).await;
        let names: Vec<_> = sandbox.tree().into_keys().collect();
        assert_eq!(names, ["root", "root/f"], "{tool}");
        assert!(sandbox.bytes("f") == before.as_bytes(), "{tool} changed the file");
    }
    // Nothing of them stands in the way.
    sandbox
        .call("edit_file", json!({"path": "f", "old_str": "line 7 of", "new_str": "seven"}))
        .await
        .payload();
}

#[tokio::test]
async fn reading_a_large_file_is_given_up_between_two_chunks() {
    let sandbox = Sandbox::new().await;
    let path = sandbox.put("f", "");
    File::options().write(true).open(&path).unwrap().set_len(250 << 20).unwrap();
    for tool in ["read_file", "file_info"] {
        let id = sandbox.harness.next_id();
        let call = sandbox.harness.call_as(&id, tool, json!({"path": "f"}), None);
        let cancel = async {
            let begun = Instant::now();
            while !sandbox.harness.cancel(&id).await {
                assert!(begun.elapsed() < LIMIT, "the call does not begin");
                tokio::task::yield_now().await;
            }
        };
        let (outcome, ()) = tokio::join!(call, cancel);
        assert!(
            outcome.events.iter().all(|event| event["event"] != "result"),
            "{tool}: {:?}",
            outcome.events
        );
    }
}
