//! What code mode costs on this machine: `cargo run --release -p codemode --example measure`, as JSON with `--json`.
//! `trivial` returns a number, `sequential` makes 100 calls one after another, `parallel` makes 1,000 at once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

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
    let json = std::env::args().any(|argument| argument == "--json");
    let figures = runtime.block_on(async {
        let sequential = "for (let i = 0; i < 100; i += 1) await tools.fx.echo({}); return 100";
        let parallel =
            "return (await Promise.all(Array.from({length: 1000}, (_, i) => tools.fx.echo({i})))).length";
        [
            ("trivial", measure(200, "return 1", "1").await),
            ("sequential", measure(50, sequential, "100").await),
            ("parallel", measure(50, parallel, "1000").await),
        ]
    });
    if json {
        let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        println!("{}", Value::Object(figures));
    } else {
        for (name, value) in figures {
            println!("{name}: {value}");
        }
    }
    ExitCode::SUCCESS
}

/// Runs the program so many times; the milliseconds that it took.
async fn measure(times: usize, code: &str, expected: &str) -> Value {
    let host: Arc<dyn ToolHost> = Arc::new(Echo::new());
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let begun = Instant::now();
        let report = Program::new(host.clone(), code, "call").run().await;
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
        assert_eq!((report.reason, report.text.as_str()), (None, expected));
    }
    took.sort_by(f64::total_cmp);
    let at = |part: usize| took[(took.len() - 1) * part / 100];
    json!({"p50_ms": at(50), "p95_ms": at(95), "least_ms": at(0)})
}
