//! The host's side, over the process of a plugin.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use plugin_wire::client::{HostCall, HostTools, McpAddress, Opening, PluginProcess, Start, StartError};
use plugin_wire::{RpcError, ToolEntry, result_of};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool_host::notice::What;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::source::ToolResult;
use tool_host::{Call, CallError, Category, Event, Host, Notices, Object, Source, ToolSource as _};

use crate::support::LONG;

fn program() -> PathBuf {
    // The test's own program is in target/…/deps, examples are beside that.
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().unwrap().parent().unwrap().join("examples/fx-plugin");
    assert!(path.exists(), "{} is missing: `cargo test -p plugin-wire` builds it", path.display());
    path
}

fn start() -> Start {
    Start::new("fx", program(), "/")
}

async fn source(start: Start) -> Source {
    let process = PluginProcess::start(start).await.unwrap();
    Source::new("fx", "1.0.0", "/", process)
}

fn host() -> Host {
    Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "" }))
}

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

/// The events and the outcome of a call.
async fn made(source: &Source, tool: &str, input: Value) -> (Vec<Event>, Result<ToolResult, CallError>) {
    let mut call = Call::new(tool, object(input), "chat-1");
    call.working_directory = PathBuf::from("/work/space");
    let mut invocation = host().call_source(source, call);
    let mut events = Vec::new();
    while let Some(event) = timeout(LONG, invocation.next()).await.expect("the call does not end") {
        events.push(event);
    }
    (events, ToolResult::of(invocation.outcome().await))
}

async fn answer(source: &Source, tool: &str, input: Value) -> ToolResult {
    made(source, tool, input).await.1.unwrap()
}

#[tokio::test]
async fn tools_of_a_plugin_are_called() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = told.clone();
    let notices = Notices::to(move |notice| {
        if let What::Warning(warning) = notice.what {
            keep.lock().unwrap().push(warning);
        }
    });
    let source = source(start().telling(notices)).await;
    let names: Vec<String> = source.tools().iter().map(|tool| tool.name.clone()).collect();
    assert!(names.contains(&"echo".to_owned()) && names.contains(&"add".to_owned()), "{names:?}");
    assert!(!names.contains(&"for_plugins".to_owned()), "{names:?}");
    assert_eq!(told.lock().unwrap().len(), 1, "the one that has no name for a tool: {told:?}");

    assert_eq!(
        answer(&source, "echo", json!({"t": "\u{e9}\n\u{2028}"})).await,
        ToolResult::text("\u{e9}\n\u{2028}")
    );
    assert_eq!(answer(&source, "plain", json!({})).await, ToolResult::text("a bare text"));
    let sum = answer(&source, "add", json!({"a": 1, "b": 2})).await;
    assert_eq!((sum.structured, sum.failed), (Some(json!({"sum": 3})), false));
    assert!(answer(&source, "img", json!({})).await.has_media());
    let failed = answer(&source, "boom", json!({})).await;
    assert_eq!((failed.failed, failed.text_of_content().as_str()), (true, "boom!"));
    let context = answer(&source, "context", json!({})).await.structured.unwrap()["context"].clone();
    assert_eq!((&context["workspace"], &context["chatId"]), (&json!("/work/space"), &json!("chat-1")));
    assert!(context["callId"].is_string() && context["scope"].is_string(), "{context}");
    source.stop().await;
}

#[tokio::test]
async fn a_session_for_work_on_plugins_has_more_tools() {
    let source = source(start().in_plugins_workspace(true)).await;
    assert!(source.tools().iter().any(|tool| tool.name == "for_plugins"));
    source.stop().await;
}

#[tokio::test]
async fn calls_run_together_and_what_is_no_message_does_no_harm() {
    let source = source(start()).await;
    let slow = made(&source, "slow", json!({"ms": 500}));
    let quick = async {
        let garbage = answer(&source, "garbage", json!({})).await;
        assert_eq!(garbage.text_of_content(), "after the garbage");
        std::time::Instant::now()
    };
    let (slow, quick_ended) = tokio::join!(async { (slow.await, std::time::Instant::now()) }, quick);
    assert_eq!(slow.0.1.unwrap().text_of_content(), "slept");
    assert!(quick_ended < slow.1);
    source.stop().await;
}

#[tokio::test]
async fn a_change_is_heard_once_and_the_new_tool_works() {
    let source = source(start()).await;
    let mut changes = source.changes();
    changes.mark_unchanged();
    answer(&source, "change", json!({})).await;
    timeout(LONG, changes.changed()).await.expect("no change was heard").unwrap();
    assert!(source.tools().iter().any(|tool| tool.name == "late"));
    // The plugin has said it three times; nothing is new the second and third time.
    assert_eq!(*changes.borrow_and_update(), 1);
    answer(&source, "echo", json!({"t": "x"})).await;
    assert_eq!(*changes.borrow(), 1);
    source.stop().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_in_the_plugin() {
    let source = source(start()).await;
    let mut invocation = host().call_source(&source, Call::new("hang", Object::new(), "s"));
    let canceller = invocation.canceller();
    // It runs as soon as a later call has been answered.
    answer(&source, "echo", json!({"t": "x"})).await;
    canceller.cancel();
    let mut events = Vec::new();
    while let Some(event) = timeout(LONG, invocation.next()).await.expect("it does not end") {
        events.push(event);
    }
    let error = invocation.outcome().await.unwrap_err();
    assert_eq!(error.category, Category::Cancelled);
    let note = Event::PartialResult { payload: object(json!({"note": "stopped half way"})) };
    assert_eq!(events, [note]);
    source.stop().await;
}

#[tokio::test]
async fn the_death_of_a_plugin_ends_its_calls_with_its_last_words() {
    let source = source(start()).await;
    let (hang, crash) = tokio::join!(made(&source, "hang", json!({})), async {
        answer(&source, "echo", json!({"t": "x"})).await;
        made(&source, "crash", json!({})).await
    });
    for error in [hang.1.unwrap_err(), crash.1.unwrap_err()] {
        assert_eq!(error.category, Category::ProcessCrashed);
        assert!(error.message.contains("exit status: 7"), "{error}");
        assert_eq!(error.details["stderr"], "last words");
    }
    let error = made(&source, "echo", json!({})).await.1.unwrap_err();
    assert_eq!(error.category, Category::ProcessCrashed, "later calls fail as well");
}

#[tokio::test]
async fn subagents_are_passed_on_in_order_and_end_with_their_call() {
    let source = source(start()).await;
    for (input, status) in [(json!({}), "completed"), (json!({"end": true}), "completed")] {
        let (events, outcome) = made(&source, "subagent", input).await;
        assert_eq!(outcome.unwrap().text_of_content(), "done");
        let told: Vec<String> = events
            .iter()
            .map(|event| match event {
                Event::Progress { message, .. } => format!("progress {message}"),
                Event::PartialResult { payload } => {
                    let what = payload.get("delta").or(payload.get("status")).or(payload.get("title"));
                    format!(
                        "{} {} {}",
                        payload["subagent"],
                        payload["kind"].as_str().unwrap(),
                        what.unwrap().as_str().unwrap()
                    )
                }
                other => format!("{other:?}"),
            })
            .collect();
        let end = format!("4 end {status}");
        assert_eq!(
            told,
            ["4 start Research", "progress Reading", "4 step Reading", "4 text two", end.as_str()]
        );
    }
    source.stop().await;
}

#[tokio::test]
async fn what_does_not_start_or_answer_is_said() {
    let error = PluginProcess::start(Start::new("x", "/no/such/program", "/")).await.unwrap_err();
    assert!(matches!(&error, StartError::Program(_)), "{error}");
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    let error =
        PluginProcess::start(Start::new("x", "/bin/sh", "/").args(["-c", "echo oops >&2; exit 3"])).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("initialize") && error.contains("exit status: 3") && error.contains("oops"),
        "{error}"
    );
}

/// Whether a process of that number runs.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit(") ").next().unwrap().starts_with('Z')
}

async fn gone(file: &Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let wait = async {
        while lives(&pid) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, wait).await.expect("the process stays");
}

#[tokio::test]
async fn nothing_stays_behind() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("pid");
    let pid_file = file.to_str().unwrap();
    // One that leaves when it should, one that has to be made to, and one that nobody stops.
    let process = PluginProcess::start(start().env("FX_PID_FILE", pid_file)).await.unwrap();
    process.stop().await;
    gone(&file).await;
    let stubborn = start().env("FX_PID_FILE", pid_file).env("FX_STUBBORN", "1");
    let process = PluginProcess::start(stubborn.clone()).await.unwrap();
    process.stop().await;
    gone(&file).await;
    let process = PluginProcess::start(stubborn).await.unwrap();
    drop(process);
    gone(&file).await;
}

/// The tools of a host that hands them to agents.
struct Desk {
    calls: Mutex<Vec<HostCall>>,
}

impl HostTools for Desk {
    fn tools(&self) -> Vec<ToolEntry> {
        ["read_file", "grep"]
            .map(|name| ToolEntry {
                name: name.to_owned(),
                title: None,
                description: "d".to_owned(),
                input_schema: json!({"type": "object", "properties": {}}),
                output_schema: None,
                annotations: Value::Null,
            })
            .to_vec()
    }

    fn instructions(&self) -> BoxFuture<'_, String> {
        Box::pin(async { "## a\n\nBe brief.\n".to_owned() })
    }

    fn call(&self, call: HostCall, _: CancellationToken) -> BoxFuture<'_, Result<ToolResult, RpcError>> {
        self.calls.lock().unwrap().push(call);
        Box::pin(async { Ok(result_of(json!({"content_of": "a.txt"}))) })
    }

    fn serve_mcp(&self, workspace: Option<PathBuf>) -> BoxFuture<'_, Result<McpAddress, RpcError>> {
        Box::pin(async move {
            assert_eq!(workspace, Some(PathBuf::from("/w")));
            Ok(McpAddress { url: "http://127.0.0.1:1/mcp".to_owned(), token: "t".to_owned() })
        })
    }
}

#[tokio::test]
async fn an_agent_gets_tools_and_instructions_and_calls_its_host() {
    let desk = Arc::new(Desk { calls: Mutex::default() });
    let plugin = PluginProcess::start(start().serving(desk.clone())).await.unwrap();
    for (opening, method) in [
        (Opening::Create, "agent/create_session"),
        (Opening::Resume, "agent/resume_session"),
        (Opening::Fork, "agent/fork_session"),
    ] {
        let params = object(json!({"agentId": "fx-agent", "workspace": "/w", "input": {"path": "a.txt"}}));
        let opened = timeout(LONG, plugin.open_session(opening, params)).await.unwrap().unwrap();
        assert_eq!(opened["tools"], json!(["read_file", "grep"]));
        assert_eq!(opened["instructions"], "## a\n\nBe brief.\n");
        let got = &opened["got"];
        assert_eq!(got[0]["result"]["structuredContent"], json!({"content_of": "a.txt"}));
        assert_eq!(got[1]["error"]["code"], -32602, "a tool that was not handed over cannot be called");
        assert_eq!(got[2]["result"], json!({"url": "http://127.0.0.1:1/mcp", "token": "t"}));
        assert_eq!(got[3]["error"]["code"], -32601);
        let call = desk.calls.lock().unwrap().pop().unwrap();
        assert_eq!((call.name.as_str(), call.call_id.as_deref()), ("read_file", Some(method)));
        assert_eq!(call.workspace, Some(PathBuf::from("/w")));
        assert_eq!(call.input, Some(object(json!({"path": "a.txt"}))));
    }
    plugin.stop().await;
}

#[tokio::test]
async fn a_plugin_without_a_host_gets_nothing() {
    let plugin = PluginProcess::start(start()).await.unwrap();
    let error = plugin.open_session(Opening::Create, Object::new()).await.unwrap_err();
    assert_eq!(error.message, "there are no tools to hand to a session");
    plugin.stop().await;
}
