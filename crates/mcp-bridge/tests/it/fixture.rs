//! Tools to serve.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp_bridge::{Bridge, Setting, Toolbox, View};
use serde_json::{Value, json};
use tokio::sync::watch;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::source::{Annotations, SourceTool, ToolResult};
use tool_host::{
    Call, CallError, Event, Host, LaunchOptions, Object, Policy, Provider, ProviderSource, Reporter, Source,
    ToolSource,
};

/// The plugin of the tests, and what it has seen.
#[derive(Clone)]
pub(crate) struct Fx(Arc<Inner>);

struct Inner {
    tools: Mutex<Arc<Vec<SourceTool>>>,
    changes: watch::Sender<u64>,
    called: AtomicUsize,
    cancelled: AtomicUsize,
}

impl Fx {
    pub(crate) fn new() -> Self {
        let object =
            json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
        let tools = vec![
            tool("echo", None),
            tool("add", Some(object)),
            tool("img", None),
            tool("boom", None),
            tool("slow", None),
            tool("stuck", None),
            tool("steps", None),
            tool("my-tool.v2", None),
        ];
        Self(Arc::new(Inner {
            tools: Mutex::new(Arc::new(tools)),
            changes: watch::channel(0).0,
            called: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
        }))
    }

    /// Has one more tool from now on.
    pub(crate) fn grow(&self, name: &str) {
        let mut tools = self.0.tools.lock().unwrap();
        let mut more = (**tools).clone();
        more.push(tool(name, None));
        *tools = Arc::new(more);
        self.0.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn called(&self) -> usize {
        self.0.called.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn source(&self, name: &str) -> Source {
        Source::new(name, "1.0.0", "", self.clone())
    }
}

fn tool(name: &str, output_schema: Option<Value>) -> SourceTool {
    SourceTool {
        name: name.to_owned(),
        title: None,
        description: format!("The tool {name}."),
        input_schema: json!({"type": "object"}),
        output_schema,
        annotations: Annotations { destructive: Some(false), ..Annotations::default() },
    }
}

impl ToolSource for Fx {
    fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.0.tools.lock().unwrap().clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>> {
        self.0.called.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match call.tool.as_str() {
                "add" => {
                    let number = |name: &str| call.arguments[name].as_f64().unwrap();
                    let sum = json!({"sum": number("a") + number("b")});
                    Ok(ToolResult { structured: Some(sum.clone()), ..ToolResult::text(sum.to_string()) })
                }
                "img" => Ok(ToolResult {
                    content: vec![json!({"type": "image", "data": "AA==", "mimeType": "image/png"})],
                    ..ToolResult::default()
                }),
                "boom" => Ok(ToolResult { failed: true, ..ToolResult::text("boom!") }),
                "slow" => {
                    let time = Duration::from_millis(call.arguments["ms"].as_u64().unwrap());
                    tokio::time::sleep(time).await;
                    Ok(ToolResult::text("slept"))
                }
                "stuck" => {
                    reporter.cancelled().await;
                    self.0.cancelled.fetch_add(1, Ordering::SeqCst);
                    Err(tool_host::call::cancelled())
                }
                "steps" => {
                    for done in [0.0, 0.5, 1.0] {
                        let message = format!("step {done}");
                        reporter.send(Event::Progress { message, fraction_complete: Some(done) }).await;
                    }
                    Ok(ToolResult::text("done"))
                }
                _ => {
                    Ok(ToolResult::text(call.arguments.get("t").and_then(Value::as_str).unwrap_or("nothing")))
                }
            }
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

pub(crate) fn host() -> Host {
    Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "ask the client" }))
}

pub(crate) fn denying(rules: Value) -> Host {
    host().under(Policy::from_json(rules).unwrap())
}

pub(crate) fn toolbox(sources: Vec<Source>) -> Toolbox {
    Toolbox::new(host(), Vec::new(), sources, Setting::default()).unwrap()
}

/// A bridge over the plugin alone.
pub(crate) fn bridge(fx: &Fx, view: View) -> Bridge {
    over(toolbox(vec![fx.source("fx")]), view)
}

pub(crate) fn over(toolbox: Toolbox, view: View) -> Bridge {
    Bridge::new(toolbox, view, "test", "1.2.3").unwrap()
}

pub(crate) fn code() -> View {
    // A program runs in a process that becomes its sandbox; the example knows how.
    codemode::set_program(example());
    View::Code { limits: codemode::Limits::default(), sandboxing: codemode::Sandboxing::default() }
}

pub(crate) const SEPARATE: View = View::Separate { structured: false };
pub(crate) const STRUCTURED: View = View::Separate { structured: true };

/// The server of the conformance suite, which also holds a provider that asks.
pub(crate) fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join("conformance_server");
    assert!(
        Path::new(&path).exists(),
        "{} is missing: `cargo test -p mcp-bridge` builds it, `--test` alone does not",
        path.display()
    );
    path
}

/// A provider whose tools ask a person.
pub(crate) async fn asking() -> Provider {
    let source = ProviderSource::Embedded { program: example(), name: "asking".to_owned() };
    let provider = Provider::launch(&source, LaunchOptions::default()).await.unwrap();
    provider.configure(Object::new()).await.unwrap();
    provider
}

/// Waits for something that must come about.
pub(crate) async fn until(what: &str, happened: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
