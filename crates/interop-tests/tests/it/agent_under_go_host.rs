//! The catalog's agent provider under the Go host, with and without nested sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::go_host::run;
use crate::programs;

/// A folder with a command that is an agent.
fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let agent = directory.path().join("agent.sh");
    fs::write(&agent, "#!/bin/sh\necho looking >&2\necho \"done: $1\"\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn script(directory: &tempfile::TempDir, nested: &Value, want: &str) -> Value {
    let agent = json!([directory.path().join("agent.sh"), "{prompt}"]).to_string();
    let config = json!({
        "runners": {"script": agent},
        "state_dir": directory.path().join("state"),
        "default_profile": "worker",
    });
    let calls = json!([
        {"tool": "spawn_subagent", "arguments": {"prompt": "count"}, "session": "first",
         "directory": directory.path(), "render": true, "want": want},
    ]);
    json!({"config": config, "nested": nested, "calls": calls})
}

#[test]
fn with_nested_sessions_a_subagent_is_one() {
    let directory = workspace();
    let ends = [
        ("COMPLETED", "Two.", "completed"),
        ("COMPLETED", "", "empty"),
        ("ERROR_MAX_TURNS", "half", "limit"),
        ("FAILED", "", "failed"),
    ];
    for (status, text, expected) in ends {
        let nested = json!({"status": status, "text": text, "depth": 0});
        let report = run(&programs::agent_provider(), &script(&directory, &nested, "result"), &[]).passed();
        let call = &report["calls"][0];
        assert_eq!((&call["result"]["status"], &call["result"]["text"]), (&json!(expected), &json!(text)));
        assert_eq!(call["result"]["session_id"], "child");
        assert!(call["render"].as_str().unwrap().contains("subSession"), "{call}");
        assert_eq!(
            report["nested"],
            json!([{"profile": "worker", "prompt": "count", "parent": "first", "remaining_depth": 1, "remaining_cost": 1.5}])
        );
    }
}

#[test]
fn a_session_that_is_deep_enough_starts_no_other() {
    let directory = workspace();
    let nested = json!({"status": "COMPLETED", "text": "x", "depth": 2});
    let report =
        run(&programs::agent_provider(), &script(&directory, &nested, "EXECUTION_FAILED"), &[]).passed();
    assert_eq!(report["calls"][0]["error"]["details"]["code"], "depth_limit");
    assert_eq!(report["nested"], json!([]));
}

#[test]
fn without_nested_sessions_a_subagent_is_a_command() {
    let directory = workspace();
    let report = run(&programs::agent_provider(), &script(&directory, &Value::Null, "result"), &[]).passed();
    let result = &report["calls"][0]["result"];
    assert_eq!((&result["status"], &result["text"]), (&json!("completed"), &json!("done: count")));
    assert_eq!(result["done"], json!(["looking"]));
    assert_eq!(report["callbacks"]["/pluggableharness.kernel.v1.KernelCallbackService/RunSession"], 1);
}
