//! Several processes on one file, and one that is killed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_host::people::{ApproveAll, NoAnswers};
use tool_host::{Call, Host, LaunchOptions, Object, Provider, ProviderSource};

const PROCESSES: u64 = 5;
const EACH: u64 = 10;

async fn launch(state: &TempDir) -> Provider {
    let source = ProviderSource::Path(env!("CARGO_BIN_EXE_provider-task").into());
    let provider = Provider::launch(&source, LaunchOptions::default()).await.unwrap();
    provider.configure(object(json!({"state_dir": state.path()}))).await.unwrap();
    provider
}

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

async fn call(provider: &Provider, tool: &str, arguments: Value) -> Value {
    let host = Host::new(Arc::new(ApproveAll), Arc::new(NoAnswers { hint: "-" }));
    let mut call = Call::new(tool, object(arguments), "shared");
    call.working_directory = "/".into();
    Value::Object(host.call(provider, call).outcome().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_several_processes_all_land() {
    let state = TempDir::new().unwrap();
    let first = launch(&state).await;
    let titles: Vec<Value> =
        (0..PROCESSES * EACH).map(|number| json!({"title": format!("{number}")})).collect();
    call(&first, "task_create", json!({"tasks": titles})).await;
    let mut calls = tokio::task::JoinSet::new();
    for process in 0..PROCESSES {
        let provider = launch(&state).await;
        for number in 0..EACH {
            let (provider, id) = (provider.clone(), process * EACH + number + 1);
            calls.spawn(async move {
                call(&provider, "task_update", json!({"id": id.to_string(), "status": "completed"})).await;
                call(&provider, "task_create", json!({"title": format!("after {id}")})).await
            });
        }
    }
    let mut ids = BTreeSet::new();
    while let Some(created) = calls.join_next().await {
        ids.insert(created.unwrap()["tasks"][0]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len() as u64, PROCESSES * EACH, "every new task has an id of its own");
    let list = call(&first, "task_list", json!({})).await;
    assert_eq!(list["total"], json!(2 * PROCESSES * EACH));
    assert_eq!(list["revision"], json!(1 + 2 * PROCESSES * EACH), "every change has its own revision");
    let completed = call(&first, "task_list", json!({"status": "completed"})).await;
    assert_eq!(completed["total"], json!(PROCESSES * EACH));
}

#[tokio::test]
async fn what_was_answered_survives_a_kill() {
    let state = TempDir::new().unwrap();
    let provider = launch(&state).await;
    for number in 0..3 {
        call(&provider, "task_create", json!({"title": format!("{number}")})).await;
    }
    provider.kill();
    let list = call(&launch(&state).await, "task_list", json!({})).await;
    assert_eq!(list["total"], 3);
}
