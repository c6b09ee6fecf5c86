//! Subagents that are scripts: each way to end, and that nothing is left behind.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Once;
use std::time::{Duration, Instant};

use provider_agent::Agents;
use provider_core::testing::{Harness, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with an agent in it, and a provider that knows it as `script`.
struct Bench {
    folder: TempDir,
    harness: Harness,
}

impl Bench {
    /// An agent that is this shell script. Its first argument is the prompt.
    async fn new(script: &str) -> Self {
        Self::with(script, json!({})).await
    }

    async fn with(script: &str, more: Value) -> Self {
        static GUARD: Once = Once::new();
        GUARD.call_once(|| provider_core::supervisor::set_program(env!("CARGO_BIN_EXE_provider-agent")));
        let folder = TempDir::new().unwrap();
        let agent = folder.path().join("agent.sh");
        fs::write(&agent, format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let mut config = json!({
            "runners": {"script": json!([agent, "{prompt}"]).to_string()},
            "state_dir": folder.path().join("state"),
        });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let harness = Harness::start::<Agents>(config).await.unwrap();
        let harness = harness.in_directory(folder.path()).in_session("one");
        Self { folder, harness }
    }

    async fn spawn(&self, prompt: &str) -> Outcome {
        self.harness.call("spawn_subagent", json!({"prompt": prompt})).await
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until the script has written this file, and reads it.
    async fn wait_for(&self, name: &str) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match fs::read_to_string(self.path(name)) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ if Instant::now() > until => panic!("{name} was never written"),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Waits until no process of that number is left.
    async fn wait_until_gone(&self, pid: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while is_alive(pid) {
            assert!(Instant::now() < until, "{pid} lives on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn is_alive(pid: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// What was told of the subagent, one event a line.
fn told(outcome: &Outcome) -> Vec<String> {
    let told = |event: &Value| {
        let payload = event.get("payload").filter(|_| event["event"] == "partial_result")?;
        let text = payload.get("delta").or(payload.get("title")).or(payload.get("status"));
        Some(format!(
            "{} {}",
            payload["kind"].as_str()?,
            text.and_then(Value::as_str).unwrap_or_default().trim()
        ))
    };
    outcome.events.iter().filter_map(told).collect()
}

#[tokio::test]
async fn an_agent_that_streams_and_edits_a_file_completes() {
    let bench = Bench::new("echo \"reading\" >&2; echo new > made.txt; echo \"It is done: $1\"").await;
    let outcome = bench.spawn("count to two\nslowly").await;
    let payload = outcome.payload();
    assert_eq!(
        (&payload["status"], &payload["text"], &payload["done"]),
        (&json!("completed"), &json!("It is done: count to two\nslowly"), &json!(["reading"]))
    );
    assert_eq!(fs::read_to_string(bench.path("made.txt")).unwrap(), "new\n");
    let told = told(&outcome);
    assert_eq!(told.first().unwrap(), "start count to two");
    assert_eq!(told.last().unwrap(), "end completed");
    assert!(told.contains(&"step reading".to_owned()), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("text It is done")), "{told:?}");
    assert!(outcome.events.iter().any(|event| event["event"] == "progress" && event["message"] == "reading"));
}

#[tokio::test]
async fn what_an_agent_leaves_running_ends_with_it() {
    let bench = Bench::new(
        "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done; echo ok",
    )
    .await;
    let outcome = bench.spawn("x").await;
    assert_eq!(outcome.payload()["status"], "completed");
    let notes = outcome.payload()["notes"].to_string();
    assert!(notes.contains("ended what the agent had left running") && notes.contains("sleep"), "{notes}");
    bench.wait_until_gone(&bench.wait_for("pid").await).await;
}

#[tokio::test]
async fn an_agent_that_crashes_has_failed_with_what_it_had_said() {
    let bench = Bench::new("echo half; echo broken >&2; exit 3").await;
    let outcome = bench.spawn("x").await;
    let payload = outcome.payload();
    assert_eq!(
        (&payload["status"], &payload["text"], &payload["done"]),
        (&json!("failed"), &json!("half"), &json!(["broken"]))
    );
    assert_eq!(payload["notes"], json!(["the agent ended with exit code 3"]));
    let bench = Bench::new("echo half; kill -9 $$").await;
    assert_eq!(bench.spawn("x").await.payload()["notes"], json!(["the agent ended with exit code 137"]));
}

#[tokio::test]
async fn an_agent_without_a_word_is_empty() {
    let bench = Bench::new("true").await;
    let outcome = bench.spawn("x").await;
    assert_eq!((&outcome.payload()["status"], &outcome.payload()["text"]), (&json!("empty"), &json!("")));
}

#[tokio::test]
async fn an_agent_whose_time_is_up_is_ended_with_all_it_started() {
    let script = "echo begun; sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' & wait";
    let bench = Bench::with(script, json!({"timeout_ms": 500})).await;
    let outcome = bench.spawn("x").await;
    assert_eq!(
        (&outcome.payload()["status"], &outcome.payload()["text"]),
        (&json!("limit"), &json!("begun"))
    );
    bench.wait_until_gone(&bench.wait_for("pid").await).await;
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_the_agent_and_is_listed_as_cancelled() {
    let bench = Bench::new("echo $$ > pid; setsid sleep 1000 & wait").await;
    let call = bench.harness.request("c1", "spawn_subagent", json!({"prompt": "a long one"}));
    let request = harness_proto::tool::v1::InvokeRequest { call: Some(call) };
    let stream = bench.harness.client().invoke(request).await.unwrap().into_inner();
    let pid = bench.wait_for("pid").await;
    let list = bench.harness.call("subagent_list", json!({"running": true})).await.payload().clone();
    assert_eq!((&list["running"], &list["subagents"][0]["status"]), (&json!(1), &json!("running")));
    assert_eq!(
        (&list["subagents"][0]["title"], &list["subagents"][0]["owner"]),
        (&json!("a long one"), &json!("one"))
    );
    assert!(Path::new(list["subagents"][0]["output_path"].as_str().unwrap()).exists());
    drop(stream);
    bench.wait_until_gone(&pid).await;
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let list = bench.harness.call("subagent_list", json!({})).await.payload().clone();
        match list["subagents"][0]["status"].as_str().unwrap() {
            "running" => assert!(Instant::now() < until),
            status => break assert_eq!(status, "cancelled"),
        }
    }
}

#[tokio::test]
async fn only_so_many_run_at_one_time() {
    let bench = Bench::with("echo $$ > pid; sleep 1000", json!({"max_children": 1})).await;
    let call = bench.harness.request("c1", "spawn_subagent", json!({"prompt": "first"}));
    let request = harness_proto::tool::v1::InvokeRequest { call: Some(call) };
    let _stream = bench.harness.client().invoke(request).await.unwrap().into_inner();
    bench.wait_for("pid").await;
    let error = bench.spawn("second").await.error();
    assert_eq!(error.category, "execution_failed");
    assert!(error.message.starts_with("1 subagents run already"), "{}", error.message);
}

#[tokio::test]
async fn without_any_agent_a_call_is_refused_clearly() {
    let harness = Harness::start::<Agents>(json!({})).await.unwrap();
    let outcome = harness.call("spawn_subagent", json!({"prompt": "x"})).await;
    let error = outcome.error();
    assert_eq!((error.category.as_str(), error.code.as_str()), ("execution_failed", "not_configured"));
    assert_eq!(told(&outcome), ["start x", "end failed"], "what was shown is ended");
    let harness = Harness::start::<Agents>(json!({"max_depth": 0})).await.unwrap();
    let error = harness.call("spawn_subagent", json!({"prompt": "x"})).await.error();
    assert_eq!(error.code, "depth_limit");
}

#[tokio::test]
async fn wrong_arguments_and_configurations_are_named() {
    let bench = Bench::new("true").await;
    let error = bench.harness.call("spawn_subagent", json!({"prompt": "x", "agent": "none"})).await.error();
    assert_eq!(
        (error.category.as_str(), error.message.as_str()),
        ("not_found", "agent: there is no agent \"none\"; there are script")
    );
    assert_eq!(bench.spawn(" ").await.error().category, "invalid_arguments");
    let config = json!({"runners": {"a": "codex", "b": "[\"no-such-agent\"]"}, "default_agent": "a"});
    let status = Harness::start::<Agents>(config).await.err().unwrap();
    assert!(status.message().contains("runners.a: wanted a JSON list"), "{}", status.message());
    assert!(
        status.message().contains("runners.b: there is no program \"no-such-agent\""),
        "{}",
        status.message()
    );
    let config = json!({"runners": {"a": "[\"true\",\"{model}\"]"}});
    let harness = Harness::start::<Agents>(config).await.unwrap().in_directory("/");
    let error = harness.call("spawn_subagent", json!({"prompt": "x"})).await.error();
    assert_eq!(error.message, "model: is missing; the agent \"a\" cannot be run without");
}

#[tokio::test]
async fn keys_reach_an_agent_only_where_they_are_passed_on() {
    let bench = Bench::new("env").await;
    let text = bench.spawn("x").await.payload()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("PATH=") && !text.contains("CARGO_"), "{text}");
    assert!(
        text.contains("PLUGGABLEHARNESS_SUBAGENT_DEPTH=1")
            && text.contains("PLUGGABLEHARNESS_SUBAGENT_LEVELS=1"),
        "{text}"
    );
    let bench = Bench::with("env", json!({"env_pass": ["CARGO_MANIFEST_DIR"]})).await;
    let text = bench.spawn("x").await.payload()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("CARGO_MANIFEST_DIR="), "{text}");
}

#[tokio::test]
async fn a_long_answer_is_cut_in_the_middle_and_whole_on_disk() {
    let bench = Bench::new("seq 1 100000").await;
    let outcome = bench.spawn("x").await;
    let text = outcome.payload()["text"].as_str().unwrap();
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("\n100000") && text.len() < 50 * 1024,
        "{}",
        text.len()
    );
    assert!(text.contains("bytes are left out"));
    let list = bench.harness.call("subagent_list", json!({})).await.payload().clone();
    let output = fs::read_to_string(list["subagents"][0]["output_path"].as_str().unwrap()).unwrap();
    assert_eq!(output.lines().count(), 100_000);
}
