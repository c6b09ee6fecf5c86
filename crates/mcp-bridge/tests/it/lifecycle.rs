//! How conversations begin and end.

use serde_json::json;

use crate::fixture::{Fx, SEPARATE, bridge, until};
use crate::wire::{Wire, initialize, stateless};

#[tokio::test]
async fn every_older_revision_is_answered_in_kind() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut wire = Wire::open(&bridge(&Fx::new(), SEPARATE));
        let answer = wire.request("initialize", initialize(version, json!({}))).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "test");
        assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
        wire.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let answer = wire.request("tools/call", json!({"name": "echo", "arguments": {"t": "q"}})).await;
        assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": "q"}]), "{version}");
        assert!(wire.close().await.is_empty());
    }
}

#[tokio::test]
async fn the_stateless_revision_is_discovered_on_the_same_server() {
    let mut wire = Wire::open(&bridge(&Fx::new(), SEPARATE));
    let answer = wire.request("server/discover", stateless(json!({}), json!({}))).await;
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{answer}");
    }
    let params = stateless(json!({"name": "echo", "arguments": {"t": "q"}}), json!({}));
    let answer = wire.request("tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "q");
    assert_eq!(answer["result"]["resultType"], "complete");
    wire.close().await;
}

#[tokio::test]
async fn a_line_that_is_no_json_and_an_unknown_tool_end_nothing() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), SEPARATE), json!({})).await;
    let answer = wire.request("tools/call", json!({"name": "ecko"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("did you mean echo?"), "{answer}");
    wire.send(json!("no request at all")).await;
    let answer = wire.request("tools/call", json!({"name": "echo"})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "nothing");
}

#[tokio::test]
async fn the_end_of_the_input_gives_up_what_runs() {
    let fx = Fx::new();
    let mut wire = Wire::initialized(&bridge(&fx, SEPARATE), json!({})).await;
    let id = wire.begin("tools/call", json!({"name": "stuck"})).await;
    until("the call runs", || fx.called() == 1).await;
    let start = std::time::Instant::now();
    let rest = wire.close().await;
    assert!(!rest.iter().any(|message| message["id"] == id && message.get("result").is_some()), "{rest:?}");
    assert_eq!(fx.cancelled(), 1);
    // The library alone would wait 5 s for a call that does not end.
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}
