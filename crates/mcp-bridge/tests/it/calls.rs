//! Progress and cancellation.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{Fx, SEPARATE, bridge, code, until};
use crate::wire::{Wire, text};

const PROGRESS: &str = "notifications/progress";

fn values(told: &[Value]) -> Vec<f64> {
    told.iter().map(|message| message["params"]["progress"].as_f64().unwrap()).collect()
}

fn is_increasing(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] < pair[1])
}

#[tokio::test]
async fn a_long_call_shows_signs_of_life_to_who_asked() {
    let bridge = bridge(&Fx::new(), SEPARATE).with_heartbeat(Duration::from_millis(40));
    let mut wire = Wire::initialized(&bridge, json!({})).await;
    let params = json!({"name": "slow", "arguments": {"ms": 400}, "_meta": {"progressToken": "t"}});
    let answer = wire.request("tools/call", params).await;
    assert_eq!(text(&answer), "slept");
    let before = wire.heard(PROGRESS);
    assert!(before.len() >= 2, "{before:?}");
    assert!(is_increasing(&values(&before)), "{before:?}");
    assert!(before.iter().all(|message| message["params"]["progressToken"] == "t"));
    assert_eq!(before[0]["params"]["message"], "waiting for fx.slow");
    // A request to and fro: whatever was to come after the result would have come.
    wire.request("tools/list", json!({})).await;
    let count = before.len();
    assert_eq!(wire.heard(PROGRESS).len(), count);
    assert_eq!(wire.close().await.iter().filter(|message| message["method"] == PROGRESS).count(), count);
}

#[tokio::test]
async fn who_did_not_ask_hears_nothing() {
    let bridge = bridge(&Fx::new(), SEPARATE).with_heartbeat(Duration::from_millis(20));
    let mut wire = Wire::initialized(&bridge, json!({})).await;
    wire.request("tools/call", json!({"name": "slow", "arguments": {"ms": 200}})).await;
    assert!(wire.close().await.iter().all(|message| message["method"] != PROGRESS));
}

#[tokio::test]
async fn what_a_tool_says_of_its_progress_is_passed_on() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), SEPARATE), json!({})).await;
    wire.request("tools/call", json!({"name": "steps", "_meta": {"progressToken": 7}})).await;
    let told = wire.heard(PROGRESS);
    assert_eq!(values(&told), [0.0, 50.0, 100.0]);
    assert!(told.iter().all(|message| message["params"]["total"] == 100.0), "{told:?}");
    assert_eq!(told[1]["params"]["message"], "step 0.5");
}

#[tokio::test]
async fn a_program_tells_what_it_writes_and_waits_for() {
    let bridge = bridge(&Fx::new(), code()).with_heartbeat(Duration::from_millis(50));
    let mut wire = Wire::initialized(&bridge, json!({})).await;
    let program = "console.log('half'); await tools.fx.slow({ms: 600}); return 1";
    let params = json!({"name": "execute", "arguments": {"code": program}, "_meta": {"progressToken": 1}});
    assert_eq!(text(&wire.request("tools/call", params).await), "1\n\nhalf");
    let told = wire.heard(PROGRESS);
    let messages: Vec<&str> =
        told.iter().map(|message| message["params"]["message"].as_str().unwrap()).collect();
    assert!(messages.contains(&"half"), "{messages:?}");
    assert!(messages.contains(&"waiting for fx.slow"), "{messages:?}");
    assert!(is_increasing(&values(&told)), "{told:?}");
}

#[tokio::test]
async fn a_cancelled_call_ends_without_an_answer_and_the_next_is_answered() {
    for (view, params) in [
        (SEPARATE, json!({"name": "stuck"})),
        (code(), json!({"name": "execute", "arguments": {"code": "await tools.fx.stuck()"}})),
    ] {
        let fx = Fx::new();
        let mut wire = Wire::initialized(&bridge(&fx, view), json!({})).await;
        let id = wire.begin("tools/call", params).await;
        until("the call runs", || fx.called() == 1).await;
        let cancel = json!({"requestId": id, "reason": "not wanted"});
        wire.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})).await;
        until("the tool has heard of it", || fx.cancelled() == 1).await;
        assert!(wire.request("tools/list", json!({})).await["result"]["tools"].is_array());
        let rest = wire.close().await;
        assert!(!rest.iter().any(|message| message["id"] == id), "{rest:?}");
    }
}
