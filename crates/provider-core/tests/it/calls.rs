//! Calls: arguments, terminals, deadlines, cancellation, panics, secrets.

use std::time::Duration;

use provider_core::testing::{Harness, Outcome};
use serde_json::{Value, json};

use crate::demo::Demo;

pub(crate) async fn harness() -> Harness {
    Harness::start::<Demo>(json!({"key": "hunter2", "steps": 3})).await.unwrap().in_directory("/tmp")
}

fn kinds(outcome: &Outcome) -> Vec<&str> {
    outcome.events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn absent_optionals_are_omitted_and_repairs_are_noted() {
    let outcome = harness().await.call("echo", json!({"message": "hi", "times": null})).await;
    assert_eq!(outcome.payload(), &json!({"text": "hi", "notes": ["message: taken as text"]}));
    assert_eq!(kinds(&outcome), ["result"]);
}

#[tokio::test]
async fn every_wrong_argument_is_named_in_one_error() {
    let outcome = harness().await.call("echo", json!({"txt": "a", "times": 99})).await;
    let error = outcome.error();
    assert_eq!(error.category, "invalid_arguments");
    for part in [
        "echo: 3 arguments are wrong",
        "txt: unknown; did you mean text?",
        "times: wanted an integer from 1 to 9, got the number 99",
        "text: missing; wanted a string",
    ] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert_eq!(kinds(&outcome), ["error"]);
}

#[tokio::test]
async fn an_unknown_tool_is_not_found_with_the_nearest_name() {
    let error = harness().await.call("ecko", json!({})).await.error();
    assert_eq!(error.category, "not_found");
    assert!(error.message.contains("did you mean echo?"), "{}", error.message);
}

#[tokio::test]
async fn a_panic_is_one_unknown_error_and_the_provider_goes_on() {
    let harness = harness().await;
    for _ in 0..2 {
        let outcome = harness.call("panics", json!({})).await;
        let error = outcome.error();
        assert_eq!(error.category, "unknown");
        assert!(error.message.contains("the tool is broken"), "{}", error.message);
        assert_eq!(outcome.terminal()["details"]["cause"], "the tool panicked: the tool is broken");
    }
    assert_eq!(harness.call("echo", json!({"text": "alive"})).await.payload()["text"], "alive");
}

#[tokio::test]
async fn a_secret_never_leaves_in_an_error() {
    let outcome = harness().await.call("leaks", json!({})).await;
    assert_eq!(outcome.error().message, "401 for [secret]");
    assert!(!outcome.terminal().to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_result_that_breaks_its_schema_does_not_leave() {
    let error = harness().await.call("lies", json!({})).await.error();
    assert_eq!(error.category, "unknown");
    assert!(error.message.contains("number is missing"), "{}", error.message);
}

#[tokio::test]
async fn a_process_reports_its_exit_once_and_before_the_result() {
    let outcome = harness().await.call("runs", json!({})).await;
    assert_eq!(kinds(&outcome), ["output_chunk", "output_chunk", "exit_status", "result"]);
    assert_eq!(outcome.events[1], json!({"event": "output_chunk", "stream": "stderr", "data": "err\n"}));
    assert_eq!(outcome.events[2], json!({"event": "exit_status", "exit_code": 143, "signal": "SIGTERM"}));
}

#[tokio::test]
async fn progress_arrives_in_order_with_fractions() {
    let outcome = harness().await.call("count", json!({"pause_ms": 0})).await;
    assert_eq!(kinds(&outcome), ["progress", "progress", "progress", "result"]);
    assert_eq!(outcome.events[2]["fraction_complete"], 1.0);
    assert_eq!(outcome.payload(), &json!({"last": 3}));
}

#[tokio::test]
async fn the_deadline_ends_a_call_with_its_own_terminal_and_what_was_done() {
    let harness = harness().await;
    let deadline = Some(Duration::from_millis(1_500));
    let outcome = harness.call_as("slow", "count", json!({"pause_ms": 400}), deadline).await;
    let error = outcome.error();
    assert_eq!(error.category, "timeout");
    assert_eq!(outcome.terminal()["retryable"], true);
    assert!(error.message.contains("already done: counted 1"), "{}", error.message);
}

/// Cancels `id` as soon as it runs.
async fn cancel_when_running(harness: Harness, id: &str) {
    while !harness.cancel(id).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_controlled_cancel_reports_what_was_done_and_sends_no_terminal() {
    let harness = harness().await;
    let call = harness.call_as("c1", "count", json!({"pause_ms": 100}), None);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert!(harness.cancel("c1").await);
    };
    let (outcome, ()) = tokio::join!(call, cancel);
    let last = outcome.terminal();
    assert_eq!(last["event"], "partial_result", "{last}");
    assert_eq!(last["payload"]["done"], json!(["counted 1"]));
    assert_eq!(last["payload"]["note"], "the call was cancelled; already done: counted 1");
    assert!(!harness.cancel("c1").await, "the call is over");
}

#[tokio::test]
async fn a_tool_that_watches_for_the_stop_comes_to_a_clean_end() {
    let harness = harness().await;
    let (outcome, ()) = tokio::join!(
        harness.call_as("s1", "sleepy", json!({}), None),
        cancel_when_running(harness.clone(), "s1"),
    );
    assert!(kinds(&outcome).contains(&"progress"));
    assert_eq!(outcome.terminal()["payload"]["done"], json!(["woke up"]));
}

#[tokio::test]
async fn twenty_calls_at_once_are_served() {
    let harness = harness().await;
    let calls = (0..20).map(|n| {
        let harness = harness.clone();
        async move { harness.call("echo", json!({"text": format!("{n}")})).await.payload()["text"].clone() }
    });
    let texts: Vec<Value> = futures_util::future::join_all(calls).await;
    assert_eq!(texts, (0..20).map(|n| json!(format!("{n}"))).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_interactive_call_without_a_human_is_denied_at_once() {
    let error = harness().await.call("ask", json!({"question": "really?"})).await.error();
    assert_eq!((error.category.as_str(), error.code.as_str()), ("permission_denied", "no_human"));
}

#[tokio::test]
async fn a_call_differs_from_its_preview_only_by_being_refused() {
    let harness = harness().await;
    harness.preview_as("p1", "count", json!({"pause_ms": 5})).await.unwrap();
    let error = harness.call_as("p1", "count", json!({"pause_ms": 6}), None).await.error();
    assert_eq!((error.category.as_str(), error.code.as_str()), ("concurrency_conflict", "stale"));
    harness.preview_as("p2", "count", json!({"pause_ms": 0})).await.unwrap();
    assert_eq!(
        harness.call_as("p2", "count", json!({"pause_ms": 0}), None).await.payload(),
        &json!({"last": 3})
    );
}
