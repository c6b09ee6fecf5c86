//! The plugin's side, over tools with known behaviour.

use plugin_wire::conventions::Framing;
use serde_json::{Value, json};

use crate::support::{Fx, LONG, Talk};

fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(id: Value, name: &str, input: Value) -> Value {
    request(id, "tool/call", json!({"name": name, "input": input}))
}

/// The whole exchange in every framing, cut at every byte and in one piece, with and without the version.
#[tokio::test]
async fn an_exchange_however_it_is_cut() {
    for framing in [Framing::Lines, Framing::Headers] {
        for versioned in [true, false] {
            let message = |mut message: Value| {
                if !versioned {
                    message.as_object_mut().unwrap().remove("jsonrpc");
                }
                framing.encode(&message.to_string())
            };
            let sent: Vec<u8> = [
                message(request(json!(1), "initialize", json!({"protocolVersion": "1"}))),
                message(request(json!(2), "tools/list", json!({}))),
                message(call(json!("3"), "echo", json!({"t": "\u{e9}\n\"x\""}))),
            ]
            .concat();
            for cut in 0..=sent.len() {
                let mut talk = Talk::with(Fx::new());
                let (head, tail) = sent.split_at(cut);
                for piece in [head, tail] {
                    if !piece.is_empty() {
                        talk.bytes(piece.to_vec()).await;
                    }
                }
                let answers = [talk.next().await, talk.next().await, talk.next().await];
                check_exchange(&answers, versioned);
                talk.close();
                assert_eq!(talk.end().await, [] as [Value; 0]);
            }
        }
    }
}

fn check_exchange([hello, list, echo]: &[Value; 3], versioned: bool) {
    let version = if versioned { json!("2.0") } else { Value::Null };
    assert!([hello, list, echo].iter().all(|answer| answer["jsonrpc"] == version));
    assert_eq!(hello["id"], 1);
    assert_eq!(
        hello["result"],
        json!({"name": "fx", "version": "1.2.3", "protocolVersion": "1", "capabilities": {"tools": {"changed": true}}})
    );
    assert_eq!(list["id"], 2);
    assert_eq!(
        list["result"]["tools"][0],
        json!({
            "name": "echo", "description": "echo, for tests",
            "inputSchema": {"type": "object", "properties": {}}, "annotations": {"readOnlyHint": true},
        })
    );
    assert_eq!(echo["id"], "3", "a text stays a text");
    assert_eq!(echo["result"], json!({"content": [{"type": "text", "text": "\u{e9}\n\"x\""}]}));
}

#[tokio::test]
async fn before_initialize_nothing_else_is_answered() {
    let mut talk = Talk::with(Fx::new());
    for (method, params) in
        [("tools/list", json!({})), ("tool/call", json!({"name": "echo"})), ("x", json!(null))]
    {
        talk.send(&request(json!(1), method, params)).await;
        assert_eq!(talk.next().await["error"]["code"], -32002);
    }
    for params in [json!(null), json!([1]), json!({"any": "thing"})] {
        talk.send(&request(json!(2), "initialize", params)).await;
        assert_eq!(talk.next().await["result"]["name"], "fx");
    }
}

#[tokio::test]
async fn parameters_of_a_list_may_be_absent() {
    let mut talk = Talk::initialized(Fx::new()).await;
    for message in [
        json!({"id": 1, "method": "tools/list"}),
        json!({"id": 1, "method": "tools/list", "params": null}),
        json!({"id": 1, "method": "tools/list", "params": {}}),
    ] {
        talk.send(&message).await;
        assert_eq!(talk.next().await["result"]["tools"].as_array().unwrap().len(), 8);
    }
}

#[tokio::test]
async fn what_is_wrong_is_answered_by_code_and_the_next_request_works() {
    let mut talk = Talk::initialized(Fx::new()).await;
    for (bytes, id, code) in [
        (&b"nonsense\n"[..], json!(null), -32700),
        (b"{\"id\":1,\n", json!(null), -32700),
        (b"\xff\xfe\n", json!(null), -32700),
        (b"[{\"id\":1,\"method\":\"tools/list\"}]\n", json!(null), -32600),
        (b"{\"id\":1}\n", json!(1), -32600),
        (b"{\"id\":1,\"method\":\"nothing\"}\n", json!(1), -32601),
        (b"{\"id\":1,\"method\":\"tool/call\",\"params\":{\"name\":\"none\"}}\n", json!(1), -32602),
        (b"{\"id\":1,\"method\":\"tool/call\",\"params\":{}}\n", json!(1), -32602),
        (b"{\"id\":1,\"method\":\"tool/call\"}\n", json!(1), -32602),
    ] {
        talk.bytes(bytes.to_vec()).await;
        let answer = talk.next().await;
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&id, Some(code)), "{answer}");
    }
    // Notifications are never answered, whatever they are.
    talk.bytes(b"{\"method\":\"nothing\"}\n{\"method\":\"tool/cancel\"}\n".to_vec()).await;
    talk.send(&json!({"method": "tool/cancel", "params": {"id": "unknown"}})).await;
    assert_eq!(talk.call("echo", json!({"t": "on"})).await["result"]["content"][0]["text"], "on");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_and_skipped() {
    let mut talk = Talk::initialized(Fx::new()).await;
    let long = "x".repeat(33 * 1024 * 1024);
    talk.send(&call(json!(1), "echo", json!({"t": long}))).await;
    let answer = talk.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(talk.call("echo", json!({"t": "on"})).await["result"]["content"][0]["text"], "on");
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result_and_a_panic_ends_one_call() {
    let mut talk = Talk::initialized(Fx::new()).await;
    let failed = talk.call("boom", json!({})).await;
    assert_eq!(failed["result"], json!({"content": [{"type": "text", "text": "boom!"}], "isError": true}));
    assert_eq!(
        talk.call("echo", json!([1])).await["result"]["isError"],
        true,
        "a bad input is for the agent to read"
    );
    let panicked = talk.call("panic", json!({})).await;
    assert_eq!(panicked["result"]["isError"], true, "{panicked}");
    assert_eq!(talk.call("echo", json!({"t": "alive"})).await["result"]["content"][0]["text"], "alive");
}

#[tokio::test]
async fn values_are_text_and_themselves_and_texts_only_text() {
    let mut talk = Talk::initialized(Fx::new()).await;
    let sum = talk.call("add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum["result"]["structuredContent"], json!({"sum": 3.0}));
    let text = sum["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), sum["result"]["structuredContent"]);
    let text = talk.call("echo", json!({"t": "plain"})).await;
    assert_eq!(text["result"], json!({"content": [{"type": "text", "text": "plain"}]}));
}

#[tokio::test]
async fn the_second_of_two_calls_may_be_answered_first() {
    let fx = Fx::new();
    let mut talk = Talk::initialized(fx.clone()).await;
    let both = [call(json!(1), "gate", json!({})), call(json!(2), "echo", json!({"t": "quick"}))];
    let bytes = both.iter().flat_map(|message| Framing::Lines.encode(&message.to_string())).collect();
    talk.bytes(bytes).await;
    assert_eq!(talk.next().await["id"], 2);
    fx.gate.add_permits(1);
    assert_eq!(talk.next().await["id"], 1);
}

#[tokio::test]
async fn a_cancelled_call_is_answered_as_cancelled() {
    let fx = Fx::new();
    let mut talk = Talk::initialized(fx.clone()).await;
    talk.send(&call(json!(1), "hang", json!({}))).await;
    talk.send(&call(json!("1"), "hang", json!({}))).await;
    // The same number as a text is another call.
    talk.send(&json!({"method": "tool/cancel", "params": {"id": 1}})).await;
    let answer = talk.next().await;
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)), "{answer}");
    assert_eq!(*fx.cancelled.borrow(), 1);
    talk.send(&json!({"method": "tool/cancel", "params": {"id": "1"}})).await;
    assert_eq!(talk.next().await["id"], "1");
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused_without_ending_its_call() {
    let fx = Fx::new();
    let mut talk = Talk::initialized(fx.clone()).await;
    talk.send(&call(json!(1), "gate", json!({}))).await;
    talk.send(&call(json!(1), "echo", json!({"t": "x"}))).await;
    let refused = talk.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    fx.gate.add_permits(1);
    assert_eq!(talk.next().await["result"]["content"][0]["text"], "through");
    talk.send(&call(json!(1), "echo", json!({"t": "again"}))).await;
    assert_eq!(talk.next().await["result"]["content"][0]["text"], "again");
}

#[tokio::test]
async fn a_burst_of_changes_is_told_once_and_never_before_initialize() {
    let fx = Fx::new();
    let mut talk = Talk::with(fx.clone());
    fx.changes.send_modify(|count| *count += 1);
    talk.quiet().await;
    talk.send(&request(json!(0), "initialize", json!({}))).await;
    assert_eq!(talk.next().await["id"], 0);
    talk.quiet().await;
    for _ in 0..3 {
        fx.changes.send_modify(|count| *count += 1);
    }
    assert_eq!(talk.next().await, json!({"jsonrpc": "2.0", "method": "host/tools.changed"}));
    talk.quiet().await;
    fx.changes.send_modify(|count| *count += 1);
    assert_eq!(talk.next().await["method"], "host/tools.changed");
}

#[tokio::test]
async fn at_the_end_of_the_input_calls_are_cancelled_and_answered() {
    let fx = Fx::new();
    let mut talk = Talk::initialized(fx.clone()).await;
    talk.send(&call(json!(1), "hang", json!({}))).await;
    talk.send(&call(json!(2), "gate", json!({}))).await;
    talk.close();
    let started = tokio::time::Instant::now();
    let rest = talk.end().await;
    assert!(started.elapsed() < LONG);
    assert_eq!(rest.len(), 1, "what does not end is given up: {rest:?}");
    assert_eq!(rest[0]["id"], 1);
    assert_eq!(*fx.cancelled.borrow(), 1);
}

#[tokio::test]
async fn a_last_request_without_a_line_end_is_answered() {
    let mut talk = Talk::initialized(Fx::new()).await;
    talk.bytes(call(json!(9), "echo", json!({"t": "last"})).to_string().into_bytes()).await;
    talk.close();
    let rest = talk.end().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["result"]["content"][0]["text"], "last");
}

#[tokio::test]
async fn a_stop_from_outside_is_an_end() {
    let fx = Fx::new();
    let mut talk = Talk::initialized(fx.clone()).await;
    talk.send(&call(json!(1), "hang", json!({}))).await;
    talk.send(&call(json!(2), "echo", json!({"t": "x"}))).await;
    assert_eq!(talk.next().await["id"], 2);
    talk.stop.cancel();
    assert_eq!(talk.end().await[0]["id"], 1);
}

#[tokio::test]
async fn the_context_arrives() {
    let mut talk = Talk::initialized(Fx::new()).await;
    let context =
        json!({"workspaceId": "w", "workspace": "/x", "agentId": "codex", "chatId": "c", "callId": "7"});
    let answer = talk.call_in("context", json!({}), context).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    for part in
        ["Some(\"w\")", "Some(\"/x\")", "Some(\"codex\")", "Some(\"c\")", "Some(\"7\")", "scope: None"]
    {
        assert!(text.contains(part), "{text}");
    }
}

/// The host has said that it takes them, and the call runs in a chat.
#[tokio::test]
async fn subagents_are_told_in_order_and_end_before_the_answer() {
    let mut talk = Talk::with(Fx::new());
    let params = json!({"capabilities": {"subagents": true}});
    talk.send(&request(json!(0), "initialize", params)).await;
    talk.next().await;
    let call =
        json!({"id": 1, "method": "tool/call", "params": {"name": "subagent", "context": {"scope": "s1"}}});
    talk.send(&call).await;
    let told: Vec<Value> = [talk.next().await, talk.next().await, talk.next().await].to_vec();
    let event = |event: Value| json!({"jsonrpc": "2.0", "method": "host/subagent.event", "params": {"scope": "s1", "subagent": 7, "event": event}});
    assert_eq!(
        told,
        [
            event(json!({"kind": "start", "title": "x"})),
            event(json!({"kind": "text", "delta": "a"})),
            event(json!({"kind": "end", "status": "completed"})),
        ]
    );
    let answer = talk.next().await;
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["shown"]), (&json!(1), &json!(true)));
}

#[tokio::test]
async fn subagents_of_a_call_outside_of_a_chat_are_not_told() {
    for (params, context) in
        [(json!({"capabilities": {"subagents": true}}), json!({})), (json!({}), json!({"scope": "s1"}))]
    {
        let mut talk = Talk::with(Fx::new());
        talk.send(&request(json!(0), "initialize", params)).await;
        talk.next().await;
        let answer = talk.call_in("subagent", json!({}), context).await;
        assert_eq!(answer["result"]["structuredContent"]["shown"], false);
    }
}
