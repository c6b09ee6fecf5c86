//! Sources as one plugin.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};

use futures_util::future::BoxFuture;
use plugin_wire::Toolbox;
use serde_json::{Value, json};
use tokio::sync::watch;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::source::{Annotations, SourceTool, ToolResult};
use tool_host::{Call, CallError, Host, Policy, Reporter, Source, ToolSource};

use crate::support::Talk;

/// Tools that answer with the call they got.
#[derive(Clone)]
struct Mirror {
    tools: Arc<RwLock<Arc<Vec<SourceTool>>>>,
    changes: watch::Sender<u64>,
    seen: Arc<Mutex<Vec<Call>>>,
}

impl Mirror {
    fn new(names: &[&str]) -> Self {
        let tools = Arc::new(names.iter().map(|name| tool(name)).collect());
        Self { tools: Arc::new(RwLock::new(tools)), changes: watch::Sender::new(0), seen: Arc::default() }
    }

    fn change(&self, names: &[&str]) {
        *self.tools.write().unwrap() = Arc::new(names.iter().map(|name| tool(name)).collect());
        self.changes.send_modify(|count| *count += 1);
    }
}

fn tool(name: &str) -> SourceTool {
    SourceTool {
        name: name.to_owned(),
        title: Some(name.to_uppercase()),
        description: format!("The tool {name}"),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        output_schema: Some(json!({"type": "object"})),
        annotations: Annotations { read_only: Some(name != "write"), ..Annotations::default() },
    }
}

impl ToolSource for Mirror {
    fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.tools.read().unwrap().clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>> {
        self.seen.lock().unwrap().push(call.clone());
        Box::pin(async move {
            if call.tool == "wait" {
                reporter.cancelled().await;
                return Err(tool_host::call::cancelled());
            }
            Ok(ToolResult::text(format!(
                "{} in {} of {}",
                call.id,
                call.working_directory.display(),
                call.session
            )))
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn toolbox(sources: &[(&str, &Mirror)]) -> Arc<Toolbox> {
    under(sources, Policy::default())
}

fn under(sources: &[(&str, &Mirror)], policy: Policy) -> Arc<Toolbox> {
    let host = Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "" })).under(policy);
    let toolbox = Toolbox::new("box", "0.1.0", host, "session");
    let sources = sources.iter().map(|(name, mirror)| Source::new(*name, "1.0.0", "here", (*mirror).clone()));
    toolbox.serve(Vec::new(), sources.collect());
    Arc::new(toolbox)
}

async fn names(talk: &mut Talk) -> Vec<String> {
    talk.send(&json!({"id": 1, "method": "tools/list"})).await;
    let answer = talk.next().await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn names_that_two_have_carry_their_owner() {
    let (a, b) = (Mirror::new(&["read", "only"]), Mirror::new(&["read"]));
    let mut talk = Talk::initialized(toolbox(&[("a", &a), ("b", &b)])).await;
    assert_eq!(names(&mut talk).await, ["a_read", "only", "b_read"]);
    talk.call("b_read", json!({})).await;
    assert_eq!((a.seen.lock().unwrap().len(), b.seen.lock().unwrap()[0].tool.as_str()), (0, "read"));
    let unknown = talk.call("red", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("there is no tool red"), "{unknown}");
}

#[tokio::test]
async fn an_entry_has_everything_that_is_known() {
    let mut talk = Talk::initialized(toolbox(&[("a", &Mirror::new(&["read"]))])).await;
    talk.send(&json!({"id": 1, "method": "tools/list"})).await;
    assert_eq!(
        talk.next().await["result"]["tools"][0],
        json!({
            "name": "read", "title": "READ", "description": "The tool read",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        })
    );
}

#[tokio::test]
async fn the_context_becomes_the_calls() {
    let mirror = Mirror::new(&["read", "wait"]);
    let mut talk = Talk::initialized(toolbox(&[("a", &mirror)])).await;
    let context = json!({"workspace": "/w/x", "chatId": "7", "callId": "id-1"});
    let answer = talk.call_in("read", json!({"path": "p"}), context).await;
    assert_eq!(text(&answer), "id-1 in /w/x of chat-7");
    let answer = talk.call("read", json!({})).await;
    assert!(text(&answer).ends_with(" in  of session"), "{answer}");
    let relative = talk.call_in("read", json!({}), json!({"workspace": "x"})).await;
    assert_eq!(
        (text(&relative), &relative["result"]["isError"]),
        ("invalid_arguments: context.workspace: x is not absolute", &json!(true))
    );

    // The same id twice at once: the second call gets another.
    let params = json!({"name": "wait", "context": {"callId": "twice"}});
    talk.send(&json!({"id": 1, "method": "tool/call", "params": params})).await;
    let answer = talk.call_in("read", json!({}), json!({"callId": "twice"})).await;
    assert!(!text(&answer).starts_with("twice"), "{answer}");
    talk.send(&json!({"method": "tool/cancel", "params": {"id": 1}})).await;
    let cancelled = talk.next().await;
    assert_eq!((&cancelled["id"], text(&cancelled)), (&json!(1), "cancelled: the call was cancelled"));
    let answer = talk.call_in("read", json!({}), json!({"callId": "twice"})).await;
    assert!(text(&answer).starts_with("twice"), "it is free again: {answer}");
    assert_eq!(mirror.seen.lock().unwrap()[0].working_directory, PathBuf::from("/w/x"));
}

#[tokio::test]
async fn a_change_of_a_source_and_of_the_box_is_told_once() {
    let (mirror, other) = (Mirror::new(&["read"]), Mirror::new(&["more"]));
    let toolbox = toolbox(&[("a", &mirror)]);
    let mut talk = Talk::initialized(toolbox.clone()).await;
    mirror.change(&["read", "late"]);
    assert_eq!(talk.next().await["method"], "host/tools.changed");
    assert_eq!(names(&mut talk).await, ["read", "late"]);
    talk.quiet().await;
    let sources =
        || vec![Source::new("a", "1", "x", mirror.clone()), Source::new("b", "1", "x", other.clone())];
    toolbox.serve(Vec::new(), sources());
    assert_eq!(talk.next().await["method"], "host/tools.changed");
    assert_eq!(names(&mut talk).await, ["read", "late", "more"]);
    // The same again is no change, and a change of a source is still told once.
    toolbox.serve(Vec::new(), sources());
    talk.quiet().await;
    mirror.change(&["read"]);
    assert_eq!(talk.next().await["method"], "host/tools.changed");
    talk.quiet().await;
}

#[tokio::test]
async fn the_policy_can_deny() {
    let policy = json!([{"name": "no writing", "match": {"tool_name": "write"}, "action": "deny"}]);
    let mirror = Mirror::new(&["read", "write"]);
    let mut talk = Talk::initialized(under(&[("a", &mirror)], Policy::from_json(policy).unwrap())).await;
    let denied = talk.call("write", json!({})).await;
    assert!(text(&denied).starts_with("permission_denied: a.write is denied by the policy"), "{denied}");
    assert_eq!(denied["result"]["isError"], true);
    assert_eq!(mirror.seen.lock().unwrap().len(), 0);
    assert_eq!(talk.call("read", json!({})).await["result"]["isError"], Value::Null);
}
