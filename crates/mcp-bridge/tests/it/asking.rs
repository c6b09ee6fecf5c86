//! Questions to the person behind a client, in both lifecycles.

use mcp_bridge::{Bridge, Setting, Toolbox, View};
use serde_json::{Value, json};

use crate::fixture::{Fx, SEPARATE, asking, code, host, over};
use crate::wire::{Wire, stateless, text};

/// The asking provider and the plugin of the tests.
async fn bridge(view: View) -> Bridge {
    let toolbox =
        Toolbox::new(host(), vec![asking().await], vec![Fx::new().source("fx")], Setting::default());
    over(toolbox.unwrap(), view)
}

fn can_ask() -> Value {
    json!({"elicitation": {}})
}

const ASK: &str = "test_elicitation";

fn ask() -> Value {
    json!({"name": ASK, "arguments": {"message": "Who are you?"}})
}

/// Answers the question that comes; what was asked.
async fn reply(wire: &mut Wire, result: Value) -> Value {
    let asked = wire.hear("elicitation/create").await;
    wire.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    asked["params"].clone()
}

#[tokio::test]
async fn a_client_is_asked_during_the_call() {
    let mut wire = Wire::initialized(&bridge(SEPARATE).await, can_ask()).await;
    let id = wire.begin("tools/call", ask()).await;
    let asked = reply(&mut wire, json!({"action": "accept", "content": {"answer": "Ada"}})).await;
    assert_eq!(asked["requestedSchema"]["properties"]["answer"]["type"], "string", "{asked}");
    assert!(asked["message"].as_str().unwrap().contains("Who are you?"), "{asked}");
    let answer = wire.answer(id).await;
    assert_eq!(text(&answer), "{\"user_name\":\"Ada\"}");
    assert_ne!(answer["result"]["isError"], true);
}

#[tokio::test]
async fn no_answer_fails_the_call_and_says_how() {
    for (action, expected) in [("decline", "declined"), ("cancel", "cancelled")] {
        let mut wire = Wire::initialized(&bridge(SEPARATE).await, can_ask()).await;
        let id = wire.begin("tools/call", ask()).await;
        reply(&mut wire, json!({ "action": action })).await;
        let answer = wire.answer(id).await;
        assert_eq!(answer["result"]["isError"], true);
        assert!(text(&answer).contains(expected), "{}", text(&answer));
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_at_once() {
    let bridge = bridge(SEPARATE).await;
    let mut wire = Wire::initialized(&bridge, json!({})).await;
    let answer = wire.request("tools/call", ask()).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("no human can be asked in this client"), "{}", text(&answer));
    let mut wire = Wire::open(&bridge);
    let answer = wire.request("tools/call", stateless(ask(), json!({}))).await;
    assert!(text(&answer).contains("no human can be asked in this client"), "{}", text(&answer));
}

#[tokio::test]
async fn a_program_asks_during_its_call() {
    let mut wire = Wire::initialized(&bridge(code()).await, can_ask()).await;
    let program = "const {user_name} = await tools.asking.test_elicitation({message: 'Who?'}); return 'hello ' + user_name";
    let id = wire.begin("tools/call", json!({"name": "execute", "arguments": {"code": program}})).await;
    reply(&mut wire, json!({"action": "accept", "content": {"answer": "Ada"}})).await;
    assert_eq!(text(&wire.answer(id).await), "hello Ada");
}

#[tokio::test]
async fn questions_of_one_program_come_one_by_one() {
    let mut wire = Wire::initialized(&bridge(code()).await, can_ask()).await;
    let program = "const ask = message => tools.asking.test_elicitation({message}); \
                   const all = await Promise.all([ask('one'), ask('two')]); return all.map(a => a.user_name)";
    let id = wire.begin("tools/call", json!({"name": "execute", "arguments": {"code": program}})).await;
    let first = wire.hear("elicitation/create").await;
    wire.request("tools/list", json!({})).await;
    assert!(wire.heard("elicitation/create").is_empty(), "the second question waits");
    for asked in [Some(first), None] {
        let asked = match asked {
            Some(asked) => asked,
            None => wire.hear("elicitation/create").await,
        };
        let word = if asked["params"]["message"].as_str().unwrap().contains("one") { "1" } else { "2" };
        let result = json!({"action": "accept", "content": {"answer": word}});
        wire.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }
    assert_eq!(text(&wire.answer(id).await), "[\"1\",\"2\"]");
}

/// The call again, with what the person said.
fn retry(mut params: Value, required: &Value, response: Value) -> Value {
    let key = required["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["requestState"] = required["requestState"].clone();
    params["inputResponses"] = json!({ key: response });
    stateless(params, can_ask())
}

#[tokio::test]
async fn a_stateless_client_is_asked_between_two_requests() {
    let mut wire = Wire::open(&bridge(SEPARATE).await);
    let required = wire.request("tools/call", stateless(ask(), can_ask())).await["result"].clone();
    assert_eq!(required["resultType"], "input_required", "{required}");
    let question = required["inputRequests"].as_object().unwrap().values().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let accepted = json!({"action": "accept", "content": {"answer": "Ada"}});
    let answer = wire.request("tools/call", retry(ask(), &required, accepted.clone())).await;
    assert_eq!(text(&answer), "{\"user_name\":\"Ada\"}");
    assert_eq!(answer["result"]["resultType"], "complete");
    // What was used is used up.
    let again = wire.request("tools/call", retry(ask(), &required, accepted)).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    wire.close().await;
}

#[tokio::test]
async fn a_state_that_was_changed_or_is_of_another_tool_is_refused() {
    let mut wire = Wire::open(&bridge(SEPARATE).await);
    let required = wire.request("tools/call", stateless(ask(), can_ask())).await["result"].clone();
    let accepted = json!({"action": "accept", "content": {"answer": "Ada"}});
    let state = required["requestState"].as_str().unwrap();
    let mut flipped = state.to_owned();
    let last = flipped.pop().unwrap();
    flipped.push(if last == 'A' { 'B' } else { 'A' });
    for wrong in
        [flipped, format!("{state}-TAMPERED"), String::new(), "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned()]
    {
        let mut tampered = required.clone();
        tampered["requestState"] = wrong.into();
        let answer = wire.request("tools/call", retry(ask(), &tampered, accepted.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let other = json!({"name": "echo", "arguments": {}});
    let answer = wire.request("tools/call", retry(other, &required, accepted.clone())).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // None of that has used it up.
    let answer = wire.request("tools/call", retry(ask(), &required, accepted)).await;
    assert_eq!(text(&answer), "{\"user_name\":\"Ada\"}");
    wire.close().await;
}

#[tokio::test]
async fn a_retry_without_the_answer_is_asked_again() {
    let mut wire = Wire::open(&bridge(SEPARATE).await);
    let required = wire.request("tools/call", stateless(ask(), can_ask())).await["result"].clone();
    let mut params = retry(ask(), &required, json!({}));
    params["inputResponses"] = json!({"something": {"action": "accept"}});
    let again = wire.request("tools/call", params).await["result"].clone();
    assert_eq!(again["resultType"], "input_required", "{again}");
    let wrong = wire.request("tools/call", retry(ask(), &again, json!(5))).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let declined = wire.request("tools/call", retry(ask(), &again, json!({"action": "decline"}))).await;
    assert!(text(&declined).contains("declined"), "{declined}");
    wire.close().await;
}

#[tokio::test]
async fn the_same_program_goes_on_after_the_answer() {
    let mut wire = Wire::open(&bridge(code()).await);
    // A program that was begun anew would have another number, and would ask again.
    let program = "globalThis.me = Math.random(); const before = me; \
                   const a = await tools.asking.test_elicitation({message: 'one'}); \
                   const b = await tools.asking.test_elicitation({message: 'two'}); \
                   return [a.user_name, b.user_name, before === me]";
    let call = json!({"name": "execute", "arguments": {"code": program}});
    let first = wire.request("tools/call", stateless(call.clone(), can_ask())).await["result"].clone();
    assert!(first.to_string().contains("one"), "{first}");
    let accepted = |word: &str| json!({"action": "accept", "content": {"answer": word}});
    let second =
        wire.request("tools/call", retry(call.clone(), &first, accepted("1"))).await["result"].clone();
    assert_eq!(second["resultType"], "input_required", "{second}");
    assert!(second["inputRequests"].to_string().contains("two"), "{second}");
    assert_ne!(first["requestState"], second["requestState"]);
    let answer = wire.request("tools/call", retry(call, &second, accepted("2"))).await;
    assert_eq!(text(&answer), "[\"1\",\"2\",true]");
    wire.close().await;
}
