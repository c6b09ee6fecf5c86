//! Calls that are given up.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Place, mark, place, until, with_mark, within};

/// Starts a command, gives the call up once the command runs, and answers the call's events.
async fn cancelled(place: &Place, command: &str, running: impl FnMut() -> bool) -> Vec<Value> {
    let id = place.harness.next_id();
    let arguments = json!({ "command": command });
    let call = place.harness.call_as(&id, "bash", arguments, None);
    let cancel = async {
        until("the command does not run", running).await;
        assert!(place.harness.cancel(&id).await);
    };
    within(async { tokio::join!(call, cancel).0 }).await.events
}

fn report(events: &[Value]) -> String {
    let last = events.last().unwrap();
    assert_eq!(last["event"], "partial_result", "{last}");
    last["payload"]["note"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_report_says_what_ran_and_which_signal_ended_it() {
    let place = place(json!({ "grace_ms": 200 })).await;
    let mark_one = mark();
    let sleeping = format!("sleep\0{mark_one}");
    let events = cancelled(&place, &format!("echo partly; sleep {mark_one}; true"), || {
        !with_mark(&sleeping).is_empty()
    })
    .await;
    let note = report(&events);
    assert!(note.starts_with("the call was cancelled; already done: ran `echo partly; sleep"), "{note}");
    assert!(note.contains("SIGTERM ended ") && note.ends_with("it had printed 7 bytes"), "{note}");
    assert!(events.iter().any(|event| event["data"] == "partly\n"), "{events:?}");
    assert_eq!(with_mark(&mark_one), Vec::<u32>::new());

    let mark_two = mark();
    let command = format!("trap '' TERM INT HUP; sleep {mark_two}; true");
    let events = cancelled(&place, &command, || with_mark(&mark_two).len() == 2).await;
    let note = report(&events);
    assert!(note.contains("SIGTERM was sent to 2 processes, and after 200 ms SIGKILL ended 2"), "{note}");
    assert_eq!(with_mark(&mark_two), Vec::<u32>::new());
}

#[tokio::test]
async fn escapes_from_session_and_parent_do_not_outlive_a_cancel() {
    let place = place(json!({ "grace_ms": 200 })).await;
    let beats = place.root.join("hb");
    let command = "setsid sh -c 'while :; do date >> hb; sleep 0.02; done' & wait";
    cancelled(&place, command, || beats.metadata().is_ok_and(|data| data.len() > 0)).await;
    let length = beats.metadata().unwrap().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(beats.metadata().unwrap().len(), length);

    let mark = mark();
    let command = format!(
        "python3 -c 'import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp(\"sleep\", [\"sleep\", \"{mark}\"])
    os._exit(0)
time.sleep(1000)'"
    );
    let sleeping = format!("sleep\0{mark}");
    cancelled(&place, &command, || with_mark(&sleeping).len() == 1).await;
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
}

#[tokio::test]
async fn a_flood_does_not_keep_a_cancel_from_its_time() {
    let place = place(json!({ "grace_ms": 100 })).await;
    let mark = mark();
    let events = cancelled(&place, &format!("yes {mark}"), || !with_mark(&mark).is_empty()).await;
    assert!(report(&events).contains("ended"), "{}", report(&events));
    assert_eq!(with_mark(&mark), Vec::<u32>::new());
}

#[tokio::test]
async fn a_caller_that_is_simply_gone_ends_the_command() {
    let place = place(json!({})).await;
    let mark = mark();
    let call = place.harness.call("bash", json!({ "command": format!("sleep {mark}") }));
    tokio::select! {
        outcome = call => panic!("{outcome:?}"),
        () = until("the command does not run", || !with_mark(&mark).is_empty()) => {}
    }
    until("the command goes on", || with_mark(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_deadline_of_the_call_is_an_error_and_ends_the_command() {
    let place = place(json!({})).await;
    let mark = mark();
    let arguments = json!({ "command": format!("sleep {mark}") });
    let outcome =
        within(place.harness.call_as("deadline", "bash", arguments, Some(Duration::from_secs(2)))).await;
    assert_eq!(outcome.error().category, "timeout");
    until("the command goes on", || with_mark(&mark).is_empty()).await;
}
