//! What a search says when it could not look everywhere: no permission, no time, nobody who waits.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Gid, Uid, geteuid};
use serde_json::{Value, json};

use crate::sandbox::{LIMIT, Sandbox, contains, notes, paths};

/// Nobody, by number: there need be no such account.
const NOBODY: u32 = 65_534;

/// Runs a check as a user whom permissions stop. Credentials belong to a thread and to those it starts, so no other
/// test is affected.
fn unprivileged<F: Future<Output = ()>>(check: impl FnOnce() -> F + Send) {
    std::thread::scope(|scope| {
        let own = scope.spawn(|| {
            if geteuid().is_root() {
                let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(check());
        });
        if let Err(panic) = own.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_cannot_be_read_is_listed_beside_the_hits() {
    unprivileged(async || {
        let sandbox = Sandbox::new().await;
        sandbox.put("readable/notes.txt", "needle\n");
        let locked = sandbox.put("locked/secret.txt", "needle\n");
        let locked = locked.parent().unwrap();
        set_mode(&sandbox.put("shut.txt", "needle\n"), 0);
        set_mode(locked, 0);
        let payload = sandbox.payload("grep", json!({"pattern": "needle"})).await;
        assert_eq!(paths(&payload["matches"]), ["readable/notes.txt"]);
        assert_eq!(paths(&payload["errors"]), ["locked", "shut.txt"]);
        contains(payload["errors"][0]["message"].as_str().unwrap(), &["Permission denied", "EACCES"]);
        assert_eq!(payload["incomplete"], true);
        let payload = sandbox.payload("grep", json!({"pattern": "absent"})).await;
        assert_eq!((&payload["total_matches"], &payload["incomplete"]), (&json!(0), &json!(true)));
        let shown = format!("{:?}", sandbox.harness.render(&payload).await.unwrap());
        assert!(
            shown.contains("not everything could be searched") && !shown.contains("no matches"),
            "{shown}"
        );
        set_mode(locked, 0o755);
    });
}

#[test]
fn directories_that_cannot_be_listed_are_named_by_every_search_for_names() {
    unprivileged(async || {
        let sandbox = Sandbox::new().await;
        sandbox.put("readable/notes.txt", "");
        let locked = sandbox.put("locked/notes.txt", "");
        let locked = locked.parent().unwrap();
        set_mode(locked, 0);
        // The second time from memory.
        for _ in 0..3 {
            let payload = sandbox.payload("glob", json!({"pattern": "**/*.txt"})).await;
            assert_eq!(paths(&payload["paths"]), ["readable/notes.txt"]);
            assert_eq!(paths(&payload["errors"]), ["locked"], "{payload}");
            contains(payload["errors"][0]["message"].as_str().unwrap(), &["Permission denied"]);
            let payload = sandbox.payload("find_file", json!({"query": "notes"})).await;
            assert_eq!(paths(&payload["matches"]), ["readable/notes.txt"]);
            assert_eq!(paths(&payload["errors"]), ["locked"], "{payload}");
        }
        set_mode(locked, 0o755);
        let payload = sandbox.payload("glob", json!({"pattern": "**/*.txt"})).await;
        assert_eq!((paths(&payload["paths"]).len(), &payload["errors"]), (2, &json!([])));
    });
}

/// A tree with one hit that comes first, and much that takes long to search with [`SLOW`].
fn slow_tree(sandbox: &Sandbox) {
    sandbox.put("a/first.txt", "needle\n");
    for file in 0..200 {
        sandbox.put(&format!("b/{file}.txt"), format!("{}\n", "x".repeat(14)).repeat(400));
    }
}

/// Hits a needle at once, and backtracks for a long time over each line of x.
const SLOW: &str = r"needle|(x+x+)+(?=y)\1";

#[tokio::test]
async fn a_search_that_runs_out_of_time_answers_what_it_has() {
    let sandbox = Sandbox::with(json!({"deadline_ms": 1000})).await;
    slow_tree(&sandbox);
    let payload = sandbox.payload("grep", json!({"pattern": SLOW})).await;
    assert_eq!(paths(&payload["matches"]), ["a/first.txt"]);
    assert_eq!((&payload["timed_out"], &payload["incomplete"]), (&json!(true), &json!(true)));
    contains(&notes(&payload), &["deadline", "having searched", "the last of them `b/", "narrow the search"]);
    let shown = format!("{:?}", sandbox.harness.render(&payload).await.unwrap());
    contains(&shown, &["stopped by the deadline"]);
}

#[tokio::test]
async fn the_callers_deadline_counts_as_well() {
    let sandbox = Sandbox::new().await;
    slow_tree(&sandbox);
    let arguments = json!({"pattern": SLOW});
    let call = sandbox.harness.call_as("call-deadline", "grep", arguments, Some(Duration::from_secs(4)));
    let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs");
    assert_eq!(outcome.payload()["timed_out"], true);
    assert_eq!(paths(&outcome.payload()["matches"]), ["a/first.txt"]);
}

#[tokio::test]
async fn a_search_that_is_cancelled_ends_without_a_terminal() {
    let sandbox = Sandbox::with(json!({"deadline_ms": 600_000})).await;
    slow_tree(&sandbox);
    let harness = sandbox.harness.clone();
    let call =
        tokio::spawn(async move { harness.call_as("call-1", "grep", json!({"pattern": SLOW}), None).await });
    while !sandbox.harness.cancel("call-1").await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let outcome = tokio::time::timeout(LIMIT, call).await.expect("the call hangs").unwrap();
    let ended = |event: &Value| event["event"] == "result" || event["event"] == "error";
    assert!(!outcome.events.iter().any(ended), "{:?}", outcome.events);
}
