//! Which calls run at the same time.

use std::time::Duration;

use serde_json::{Value, json};
use tool_host::Provider;

use crate::support::{Launched, call, finish, text, willing};

/// Makes the calls at once; the most that were inside at the same time.
async fn most(provider: &Provider, calls: &[(&str, Value)]) -> String {
    let host = willing();
    let running: Vec<_> =
        calls.iter().map(|(tool, arguments)| host.call(provider, call(tool, arguments.clone()))).collect();
    let mut most = String::new();
    for invocation in running {
        most = text(&finish(invocation).await.1).to_owned();
    }
    most
}

#[tokio::test]
async fn shared_calls_and_different_keys_run_together() {
    let launched = Launched::plain().await;
    let both = json!({"wait_for": 2});
    assert_eq!(
        most(&launched.provider, &[("enter_shared", both.clone()), ("enter_shared", both)]).await,
        "2"
    );
    let keyed = |path: &str| ("enter_keyed", json!({"path": path, "wait_for": 2}));
    assert_eq!(most(&launched.provider, &[keyed("a"), keyed("b")]).await, "2");
}

#[tokio::test]
async fn equal_keys_run_one_after_another() {
    let launched = Launched::plain().await;
    let keyed = || ("enter_keyed", json!({"path": "a", "hold_ms": 20}));
    assert_eq!(most(&launched.provider, &[keyed(), keyed(), keyed()]).await, "1");
}

#[tokio::test]
async fn an_exclusive_call_runs_beside_nothing() {
    let launched = Launched::plain().await;
    let hold = json!({"hold_ms": 20});
    let calls = [("enter_alone", hold.clone()), ("enter_shared", hold.clone()), ("enter_alone", hold)];
    assert_eq!(most(&launched.provider, &calls).await, "1");
}

#[tokio::test]
async fn waiting_does_not_count_against_the_deadline() {
    let launched = Launched::plain().await;
    let host = willing();
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let mut call = call("enter_alone", json!({"hold_ms": 400}));
            call.timeout = Some(Duration::from_millis(1_000));
            host.call(&launched.provider, call)
        })
        .collect();
    for invocation in calls {
        assert_eq!(text(&finish(invocation).await.1), "1");
    }
}
