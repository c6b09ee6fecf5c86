//! A host with one plugin, `fx`, and what tests ask of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codemode::catalogue::{Catalogue, Plugin, Tool};
use codemode::{Answer, Failure, Limits, Program, Reason, Report, Sandboxing, ToolCall, ToolHost};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// The host, and what it has seen.
#[derive(Default)]
pub(crate) struct Fx {
    /// Calls that run.
    running: AtomicUsize,
    /// The most that ran at one time.
    pub(crate) most: AtomicUsize,
    /// What was called, with which input.
    pub(crate) calls: Mutex<Vec<(String, Value)>>,
    /// Calls that came to their end.
    pub(crate) finished: AtomicUsize,
    /// Calls that were given up.
    pub(crate) cancelled: AtomicUsize,
    /// Tools that appear while a program runs.
    pub(crate) late: Mutex<Vec<String>>,
}

impl Fx {
    pub(crate) fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect()
    }

    pub(crate) fn inputs(&self) -> Vec<Value> {
        self.calls.lock().unwrap().iter().map(|(_, input)| input.clone()).collect()
    }
}

fn tool(name: &str, output_schema: Option<Value>) -> Tool {
    Tool {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        input_schema: json!({"type": "object", "properties": {}}),
        output_schema,
    }
}

impl ToolHost for Fx {
    fn tools(&self) -> Arc<Catalogue> {
        let object = Some(json!({"type": "object"}));
        let mut tools: Vec<Tool> = [
            ("echo", None),
            ("add", object.clone()),
            ("json", object),
            ("img", None),
            ("boom", None),
            ("slow", None),
            ("big", None),
            ("stuck", None),
            ("my-tool.v2", None),
            ("a-b", None),
            ("a_b", None),
            ("c-d", None),
            ("c.d", None),
        ]
        .into_iter()
        .map(|(name, output)| tool(name, output))
        .collect();
        tools.extend(self.late.lock().unwrap().iter().map(|name| tool(name, None)));
        Arc::new(Catalogue::new([Plugin { name: "fx".to_owned(), tools }]))
    }

    fn call<'a>(
        &'a self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            self.calls.lock().unwrap().push((call.tool.clone(), Value::Object(call.input.clone())));
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let answer = tokio::select! {
                answer = self.answer(&call) => answer,
                () = cancel.cancelled() => {
                    self.cancelled.fetch_add(1, Ordering::SeqCst);
                    Err(Failure::new("given up"))
                }
            };
            self.running.fetch_sub(1, Ordering::SeqCst);
            self.finished.fetch_add(1, Ordering::SeqCst);
            answer
        })
    }
}

impl Fx {
    async fn answer(&self, call: &ToolCall) -> Result<Answer, Failure> {
        let number = |name: &str| call.input.get(name).and_then(Value::as_f64).unwrap_or_default();
        match call.tool.as_str() {
            "echo" => Ok(Answer::Text(text(&call.input))),
            "add" => Ok(Answer::structured(&json!({"sum": number("a") + number("b")})).unwrap()),
            // JSON as it is given, also such as no Rust string can hold.
            "json" => Ok(Answer::Structured(RawValue::from_string(text(&call.input)).unwrap())),
            "img" => {
                let data = "A".repeat(number("size").max(4.0) as usize);
                let items = json!([{"type": "image", "mimeType": "image/png", "data": data}]);
                Ok(Answer::Content(serde_json::value::to_raw_value(&items).unwrap()))
            }
            "boom" => Err(Failure::new("boom!")),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(number("ms") as u64)).await;
                Ok(Answer::Text("slept".to_owned()))
            }
            "big" => Ok(Answer::Text("x".repeat(number("bytes") as usize))),
            "stuck" => std::future::pending().await,
            other => Ok(Answer::Text(other.to_owned())),
        }
    }
}

fn text(input: &Map<String, Value>) -> String {
    input.get("t").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Limits a hundredth of a minute long, so that tests of them are short.
pub(crate) fn short() -> Limits {
    Limits { slice: Duration::from_secs(1), total: Duration::from_secs(60), ..Limits::default() }
}

/// A sandbox that tries what a hostile program would.
pub(crate) fn probing(name: &str) -> Sandboxing {
    if cfg!(not(debug_assertions)) {
        panic!("only builds with debug assertions have probes: run these tests in the dev profile");
    }
    Sandboxing { probe: Some(name.to_owned()), ..Sandboxing::default() }
}

pub(crate) fn program(fx: &Arc<Fx>, code: &str) -> Program {
    codemode::set_program(env!("CARGO_BIN_EXE_codemode-child"));
    Program::new(fx.clone(), code, "call-1")
}

pub(crate) async fn run(code: &str) -> Report {
    program(&Arc::default(), code).run().await
}

pub(crate) async fn run_within(limits: Limits, code: &str) -> Report {
    program(&Arc::default(), code).within(limits).run().await
}

/// The program succeeds, and this is what is read.
#[track_caller]
pub(crate) fn reads(report: &Report, expected: &str) {
    assert_eq!((report.reason, report.text.as_str()), (None, expected));
}

/// The program fails for this reason, which is the first thing that is read.
#[track_caller]
pub(crate) fn fails(report: &Report, reason: Reason, parts: &[&str]) {
    let begins = report.text.starts_with(&format!("{reason}: "));
    assert!(report.reason == Some(reason) && begins, "wanted {reason}, got {report:?}");
    for part in parts {
        assert!(report.text.contains(part), "{part:?} is not in {}", report.text);
    }
}

/// Runs an ignored test of this binary in a process of its own.
#[track_caller]
pub(crate) fn alone(test: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
