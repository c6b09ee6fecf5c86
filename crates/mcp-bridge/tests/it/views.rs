//! How the tools are shown, and their results.

use mcp_bridge::{Setting, Toolbox};
use serde_json::{Value, json};
use tool_host::catalogue::Kind;

use crate::fixture::{Fx, SEPARATE, STRUCTURED, bridge, code, denying, host, over, toolbox};
use crate::wire::{Wire, text};

async fn tools(wire: &mut Wire) -> Vec<Value> {
    let answer = wire.request("tools/list", json!({})).await;
    answer["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_view_for_reading_promises_no_value() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), SEPARATE), json!({})).await;
    let tools = tools(&mut wire).await;
    assert_eq!(names(&tools), ["echo", "add", "img", "boom", "slow", "stuck", "steps", "my-tool_v2"]);
    for tool in &tools {
        assert!(tool.get("outputSchema").is_none(), "{tool}");
        assert!(tool["inputSchema"]["properties"].is_object(), "{tool}");
        assert_eq!(tool["annotations"]["destructiveHint"], false);
    }
    let answer = wire.request("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})).await;
    assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
    assert_eq!(text(&answer), "{\"sum\":3.0}");
}

#[tokio::test]
async fn the_structured_view_promises_a_value_and_keeps_it() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), STRUCTURED), json!({})).await;
    let tools = tools(&mut wire).await;
    assert_eq!(tools[1]["outputSchema"]["required"], json!(["sum"]));
    let answer = wire.request("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"sum": 3.0}));
    let told: Value = serde_json::from_str(&text(&answer)).unwrap();
    assert_eq!(told, answer["result"]["structuredContent"]);
}

#[tokio::test]
async fn images_and_failures_pass_as_they_are() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), SEPARATE), json!({})).await;
    let answer = wire.request("tools/call", json!({"name": "img"})).await;
    assert_eq!(
        answer["result"]["content"],
        json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}])
    );
    let answer = wire.request("tools/call", json!({"name": "boom"})).await;
    assert_eq!((text(&answer).as_str(), &answer["result"]["isError"]), ("boom!", &json!(true)));
}

#[tokio::test]
async fn tools_of_one_name_are_told_apart_by_their_owners() {
    let box_of_two = toolbox(vec![Fx::new().source("one"), Fx::new().source("two")]);
    let mut wire = Wire::initialized(&over(box_of_two, SEPARATE), json!({})).await;
    let tools = tools(&mut wire).await;
    assert!(
        names(&tools).contains(&"one_echo") && names(&tools).contains(&"two_echo"),
        "{:?}",
        names(&tools)
    );
    let answer = wire.request("tools/call", json!({"name": "two_echo", "arguments": {"t": "q"}})).await;
    assert_eq!(text(&answer), "q");
}

#[test]
fn two_owners_of_one_name_are_refused() {
    let twice = vec![Fx::new().source("fx"), Fx::new().source("fx")];
    let error = Toolbox::new(host(), Vec::new(), twice, Setting::default()).unwrap_err();
    assert!(error.to_string().contains("fx"), "{error}");
}

#[tokio::test]
async fn programs_call_the_tools() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), code()), json!({})).await;
    let tools = tools(&mut wire).await;
    assert_eq!(names(&tools), ["execute"]);
    assert!(tools[0]["description"].as_str().unwrap().contains("fx: echo, add"), "{}", tools[0]);
    assert!(
        tools[0]["inputSchema"]["properties"]["code"]["description"]
            .as_str()
            .unwrap()
            .contains("tools.fx.echo")
    );
    let program = "console.log('l'); const {sum} = await tools.fx.add({a: 1, b: 2}); \
                   const [image] = await tools.fx.img(); return [sum, image.mimeType, await tools.fx.echo({t: 'q'})]";
    let answer = wire.request("tools/call", json!({"name": "execute", "arguments": {"code": program}})).await;
    assert_eq!(text(&answer), "[3,\"image/png\",\"q\"]\n\nl");
    assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
    let failing = json!({"name": "execute", "arguments": {"code": "await tools.fx.boom()"}});
    let answer = wire.request("tools/call", failing).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).starts_with("threw: Error: boom!"), "{}", text(&answer));
}

#[tokio::test]
async fn a_program_that_is_none_is_told_what_is_wrong() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), code()), json!({})).await;
    for (arguments, expected) in [
        (json!({}), "code is missing"),
        (json!({"code": 1}), "code must be a string"),
        (json!({"code": "1", "lang": "js"}), "there is no argument lang"),
    ] {
        let answer = wire.request("tools/call", json!({"name": "execute", "arguments": arguments})).await;
        assert_eq!(answer["result"]["isError"], true);
        assert!(text(&answer).contains(expected), "{}", text(&answer));
    }
    let answer = wire.request("tools/call", json!({"name": "echo"})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn all_tools_are_a_resource() {
    let mut wire = Wire::initialized(&bridge(&Fx::new(), code()), json!({})).await;
    let answer = wire.request("resources/list", json!({})).await;
    assert_eq!(answer["result"]["resources"][0]["uri"], "codemode://tools");
    let answer = wire.request("resources/read", json!({"uri": "codemode://tools"})).await;
    let all = answer["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(
        all.starts_with("COMPLETE: all 8 tools") && all.contains("tools.fx[\"my-tool.v2\"]")
            || all.contains("my_tool_v2"),
        "{all}"
    );
    let answer = wire.request("resources/read", json!({"uri": "codemode://none"})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("codemode://tools"), "{answer}");
}

#[tokio::test]
async fn texts_fit_where_clients_cut() {
    for view in [code(), SEPARATE] {
        let mut wire = Wire::open(&bridge(&Fx::new(), view));
        let answer = wire.request("initialize", crate::wire::initialize("2025-11-25", json!({}))).await;
        let instructions = answer["result"]["instructions"].as_str().unwrap();
        assert!(instructions.chars().count() <= 2_048);
        let head: String = instructions.chars().take(512).collect();
        assert!(head.trim_end().ends_with('.'), "{head}");
        for tool in tools(&mut wire).await {
            assert!(tool["description"].as_str().unwrap().chars().count() <= 2_048);
        }
    }
}

#[tokio::test]
async fn a_policy_denies_directly_and_in_programs() {
    let fx = Fx::new();
    let rules = json!([{"name": "no echo", "match": {"tool_name": "echo"}, "action": "deny"}]);
    let toolbox =
        Toolbox::new(denying(rules), Vec::new(), vec![fx.source("fx")], Setting::default()).unwrap();
    let mut wire = Wire::initialized(&over(toolbox.clone(), SEPARATE), json!({})).await;
    let answer = wire.request("tools/call", json!({"name": "echo"})).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("denied by the policy \"no echo\""), "{}", text(&answer));
    let mut wire = Wire::initialized(&over(toolbox, code()), json!({})).await;
    let program = "try { await tools.fx.echo() } catch (e) { return e.message }";
    let answer = wire.request("tools/call", json!({"name": "execute", "arguments": {"code": program}})).await;
    assert!(text(&answer).contains("denied by the policy \"no echo\""), "{}", text(&answer));
    assert_eq!(fx.called(), 0);
}

#[tokio::test]
async fn refused_kinds_are_not_offered_and_say_so_when_called() {
    let fx = Fx::new();
    let setting = Setting { refused: vec![Kind::Resource], ..Setting::default() };
    let toolbox = Toolbox::new(host(), Vec::new(), vec![fx.source("fx")], setting).unwrap();
    let mut wire = Wire::initialized(&over(toolbox.clone(), SEPARATE), json!({})).await;
    assert!(tools(&mut wire).await.is_empty());
    let answer = wire.request("tools/call", json!({"name": "echo"})).await;
    assert!(text(&answer).contains("fx.echo is a resource"), "{}", text(&answer));
    let mut wire = Wire::initialized(&over(toolbox, code()), json!({})).await;
    let tools = tools(&mut wire).await;
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    let answer = wire
        .request("tools/call", json!({"name": "execute", "arguments": {"code": "Object.keys(tools)"}}))
        .await;
    assert_eq!(text(&answer), "[]");
    assert_eq!(fx.called(), 0);
}
