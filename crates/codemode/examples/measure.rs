//! What code mode costs on this machine, in microseconds: `cargo run --profile dist -p codemode --example measure`.
//! `trivial` returns a number, `sequential` makes 100 calls one after another, `parallel` makes 1,000 at once; `spawn` is
//! what starting `true` and waiting for it takes, in turns with `trivial`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode::catalogue::{Catalogue, Plugin, Tool};
use codemode::{Answer, Failure, Program, ToolCall, ToolHost};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// One tool that answers at once.
struct Echo(Arc<Catalogue>);

impl Echo {
    fn new() -> Self {
        let tool = Tool {
            name: "echo".to_owned(),
            description: "Answers a word.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
            output_schema: None,
        };
        Self(Arc::new(Catalogue::new([Plugin { name: "fx".to_owned(), tools: vec![tool] }])))
    }
}

impl ToolHost for Echo {
    fn tools(&self) -> Arc<Catalogue> {
        self.0.clone()
    }

    fn call<'a>(&'a self, _: ToolCall, _: CancellationToken) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async { Ok(Answer::Text("word".to_owned())) })
    }
}

fn main() -> ExitCode {
    if let Some(code) = codemode::run_if_asked() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let figures = runtime.block_on(async {
        let sequential = "for (let i = 0; i < 100; i += 1) await tools.fx.echo({}); return 100";
        let parallel =
            "return (await Promise.all(Array.from({length: 1000}, (_, i) => tools.fx.echo({i})))).length";
        let mut spawns = Vec::new();
        let trivial = measure(200, "return 1", "1", || spawns.push(spawn())).await;
        json!({
            "trivial": trivial,
            "spawn": spread(spawns),
            "sequential": measure(50, sequential, "100", || {}).await,
            "parallel": measure(50, parallel, "1000", || {}).await,
        })
    });
    println!("{figures}");
    ExitCode::SUCCESS
}

/// Runs the program so many times, and something else between.
async fn measure(times: usize, code: &str, expected: &str, mut between: impl FnMut()) -> Value {
    let host: Arc<dyn ToolHost> = Arc::new(Echo::new());
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let begun = Instant::now();
        let report = Program::new(host.clone(), code, "call").run().await;
        took.push(begun.elapsed());
        assert_eq!((report.reason, report.text.as_str()), (None, expected));
        between();
    }
    spread(took)
}

fn spawn() -> Duration {
    let begun = Instant::now();
    assert!(std::process::Command::new("true").status().unwrap().success());
    begun.elapsed()
}

fn spread(mut took: Vec<Duration>) -> Value {
    took.sort_unstable();
    let last = took.len() - 1;
    let at = |share: usize| took[(last * share).div_ceil(100)].as_secs_f64() * 1e6;
    json!({"least": at(0), "median": at(50), "high": at(99), "most": at(100)})
}
