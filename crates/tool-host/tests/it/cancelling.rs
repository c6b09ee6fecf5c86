//! Giving calls up.

use serde_json::json;
use tool_host::event::Chunk;
use tool_host::{Category, Event, Invocation, Outcome};

use crate::support::{Launched, call, check_error, finish, text, willing};

const CONTROL: &[(&str, &str)] = &[("AWKWARD_CONTROL", "1")];

/// Cancels the call once it says that it waits.
async fn cancel(mut invocation: Invocation) -> (Vec<Event>, Outcome) {
    let first = invocation.next().await;
    assert!(matches!(first, Some(Event::Progress { .. })), "{first:?}");
    invocation.canceller().cancel();
    finish(invocation).await
}

#[tokio::test]
async fn a_cancelled_call_still_reports_what_it_did() {
    let launched = Launched::with(CONTROL).await;
    let (events, outcome) = cancel(launched.invoke("polite")).await;
    let note = json!({"note": "half of it was done"});
    assert!(
        matches!(&events[0], Event::OutputChunk { data: Chunk::Text(text), .. } if text == "cleaned up\n")
    );
    assert!(matches!(&events[1], Event::PartialResult { payload } if json!(payload) == note), "{events:?}");
    check_error(&outcome, Category::Cancelled, "the call was cancelled");
}

#[tokio::test]
async fn without_the_control_service_the_stream_is_reset() {
    let launched = Launched::plain().await;
    let (events, outcome) = cancel(launched.invoke("polite")).await;
    assert!(events.is_empty(), "{events:?}");
    check_error(&outcome, Category::Cancelled, "the call was cancelled");
    let (_, outcome) = finish(launched.invoke("fine")).await;
    assert_eq!(text(&outcome), "fine", "the provider serves on");
}

#[tokio::test]
async fn a_call_that_does_not_end_is_left_after_the_grace() {
    let launched = Launched::with(CONTROL).await;
    let (events, outcome) = cancel(launched.invoke("stubborn")).await;
    assert_eq!(events.len(), 1, "what came in the grace is passed on");
    check_error(&outcome, Category::Cancelled, "the call was cancelled");
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_can_be_cancelled() {
    let launched = Launched::plain().await;
    let host = willing();
    let running = host.call(&launched.provider, call("enter_alone", json!({"wait_for": 2})));
    let waiting = host.call(&launched.provider, call("fine", json!({})));
    tokio::task::yield_now().await;
    waiting.canceller().cancel();
    let (_, outcome) = finish(waiting).await;
    check_error(&outcome, Category::Cancelled, "the call was cancelled");
    drop(running);
    let (_, outcome) = finish(host.call(&launched.provider, call("fine", json!({})))).await;
    assert_eq!(text(&outcome), "fine", "a dropped call makes room");
}

#[tokio::test]
async fn a_stopped_provider_answers_no_call() {
    let launched = Launched::plain().await;
    launched.provider.stop().await.unwrap();
    let (_, outcome) = finish(launched.invoke("fine")).await;
    check_error(&outcome, Category::ProcessCrashed, "awkward has been stopped");
}
