//! The task provider over gRPC, and as several processes on one file.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod beside;
mod lists;
mod processes;

use provider_core::testing::Harness;
use provider_task::Tasks;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A provider with a state folder of its own.
struct Bench {
    state: TempDir,
    harness: Harness,
}

impl Bench {
    async fn new() -> Self {
        let state = TempDir::new().unwrap();
        let config = json!({"state_dir": state.path()});
        let harness = Harness::start::<Tasks>(config).await.unwrap().in_session("one");
        Self { state, harness }
    }

    /// Another provider on the same file.
    async fn again(&self) -> Harness {
        Harness::start::<Tasks>(json!({"state_dir": self.state.path()})).await.unwrap().in_session("one")
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.harness.call(tool, arguments).await.payload().clone()
    }

    /// Category, code and message of the error.
    async fn error(&self, tool: &str, arguments: Value) -> (String, String, String) {
        let error = self.harness.call(tool, arguments).await.error();
        (error.category, error.code, error.message)
    }

    /// The list on one line: `id status title`.
    async fn lines(&self) -> Vec<String> {
        lines(&self.call("task_list", json!({})).await)
    }
}

fn lines(payload: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let line =
        |task: &Value| format!("{} {} {}", text(&task["id"]), text(&task["status"]), text(&task["title"]));
    payload["tasks"].as_array().unwrap().iter().map(line).collect()
}
