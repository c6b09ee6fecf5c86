//! Tools that change while a client is connected.

use serde_json::json;

use crate::fixture::{Fx, SEPARATE, bridge, code};
use crate::wire::{Wire, stateless, text};

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_change_is_told_and_the_next_list_shows_it() {
    let fx = Fx::new();
    let mut wire = Wire::initialized(&bridge(&fx, SEPARATE), json!({})).await;
    wire.request("tools/list", json!({})).await;
    fx.grow("late");
    wire.hear(CHANGED).await;
    let answer = wire.request("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "late"), "{answer}");
    assert_eq!(text(&wire.request("tools/call", json!({"name": "late"})).await), "nothing");
}

#[tokio::test]
async fn programs_call_the_tools_there_are_now() {
    let fx = Fx::new();
    let mut wire = Wire::initialized(&bridge(&fx, code()), json!({})).await;
    wire.request("tools/list", json!({})).await;
    fx.grow("late");
    wire.hear(CHANGED).await;
    let params = json!({"name": "execute", "arguments": {"code": "tools.fx.late({t: 'q'})"}});
    assert_eq!(text(&wire.request("tools/call", params).await), "q");
    let answer = wire.request("tools/list", json!({})).await;
    assert!(answer["result"]["tools"][0]["description"].as_str().unwrap().contains("late"), "{answer}");
}

#[tokio::test]
async fn a_stateless_client_hears_of_changes_where_it_listens() {
    let fx = Fx::new();
    let mut wire = Wire::open(&bridge(&fx, SEPARATE));
    let params = stateless(json!({"notifications": {"toolsListChanged": true}}), json!({}));
    wire.begin("subscriptions/listen", params).await;
    wire.hear("notifications/subscriptions/acknowledged").await;
    fx.grow("late");
    wire.hear(CHANGED).await;
    let answer = wire.request("tools/list", stateless(json!({}), json!({}))).await;
    assert!(answer["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "late"));
    wire.close().await;
}
