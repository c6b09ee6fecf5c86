//! What the provider serves beside its tools: a prompt, a slash command and a hook.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use harness_proto::hook::v1 as hook;
use harness_proto::slashcommand::v1 as slash;
use harness_proto::tool::v1 as pb;
use hook::hook_subscriber_service_client::HookSubscriberServiceClient;
use provider_core::testing::Harness;
use provider_core::wire::{struct_to_value, value_to_struct};
use provider_task::Tasks;
use serde_json::{Value, json};
use slash::slash_command_service_client::SlashCommandServiceClient;

use crate::Bench;

async fn tell(bench: &Bench, outcome: hook::post_tool_call_payload::Outcome) {
    let call = bench.harness.request("h", "edit_file", json!({"path": "a"}));
    let payload = hook::PostToolCallPayload { call: Some(call), outcome: Some(outcome) };
    let payload = hook::hook_payload::Payload::PostToolCall(payload);
    let request = hook::DispatchHookRequest {
        payload: Some(hook::HookPayload { payload: Some(payload) }),
        mode: hook::HookMode::Observe.into(),
        subscription_id: None,
    };
    HookSubscriberServiceClient::new(bench.harness.channel()).dispatch_hook(request).await.unwrap();
}

async fn edited(bench: &Bench, result: Value) {
    let result = pb::ToolResult { payload: Some(value_to_struct(result)) };
    tell(bench, hook::post_tool_call_payload::Outcome::Result(result)).await;
}

#[tokio::test]
async fn changed_files_are_noted_on_the_task_in_progress() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"tasks": [{"title": "a"}, {"title": "b"}]})).await;
    edited(&bench, json!({"path": "early", "changed": true})).await;
    bench.call("task_update", json!({"id": "2", "status": "in_progress"})).await;
    edited(&bench, json!({"path": "src/x.rs", "changed": true, "change_id": "1"})).await;
    edited(&bench, json!({"files": [{"path": "src/x.rs"}, {"path": "y"}], "change_id": "2"})).await;
    edited(&bench, json!({"path": "read", "content": "only"})).await;
    tell(&bench, hook::post_tool_call_payload::Outcome::Error(pb::ToolError::default())).await;
    let one = async |id: &str| bench.call("task_list", json!({"id": id})).await["tasks"][0]["files"].clone();
    assert_eq!(one("2").await, json!(["src/x.rs", "y"]));
    assert_eq!(one("1").await, Value::Null);
    let changed = bench.call("task_list", json!({"since": 2})).await;
    assert_eq!(crate::lines(&changed), ["2 in_progress b"], "a noted file is a change of its task");
}

#[tokio::test]
async fn what_is_served_beside_the_tools_is_advertised() {
    let bench = Bench::new().await;
    let schema = bench.harness.client().get_schema(pb::GetSchemaRequest {}).await.unwrap().into_inner();
    assert_eq!(schema.slash_commands[0].name, "plan");
    assert!(schema.slash_commands[0].template.contains("{goal}"));
    assert_eq!(schema.supported_hook_points, [harness_proto::common::v1::HookPoint::PostToolCall as i32]);
}

#[tokio::test]
async fn the_slash_command_lists_the_tasks() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"title": "a"})).await;
    let mut commands = SlashCommandServiceClient::new(bench.harness.channel());
    let offered = commands.get_capabilities(slash::GetCapabilitiesRequest {}).await.unwrap().into_inner();
    assert_eq!(offered.commands[0].name, "tasks");
    let context = bench.harness.request("s", "task_list", json!({})).call_context;
    let call = slash::SlashCommandCall {
        id: "s".to_owned(),
        name: "tasks".to_owned(),
        arguments: Some(value_to_struct(json!({}))),
        call_context: context,
    };
    let mut stream = commands.invoke(slash::InvokeRequest { call: Some(call) }).await.unwrap().into_inner();
    let event = stream.message().await.unwrap().unwrap().event.unwrap().event.unwrap();
    let slash::slash_command_event::Event::Result(result) = event else { panic!("no result") };
    assert_eq!(crate::lines(&struct_to_value(result.payload.unwrap())), ["1 pending a"]);
    assert!(stream.message().await.unwrap().is_none());
}

#[tokio::test]
async fn a_state_folder_that_cannot_be_used_refuses_configure() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let status = Harness::start::<Tasks>(json!({"state_dir": file})).await.err().unwrap();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(status.message().starts_with("state_dir: tasks cannot be kept:"), "{}", status.message());

    std::fs::create_dir(folder.path().join("task")).unwrap();
    std::fs::write(folder.path().join("task/tasks.sqlite3"), "this is no database, whatever it is called")
        .unwrap();
    let status = Harness::start::<Tasks>(json!({"state_dir": folder.path()})).await.err().unwrap();
    assert!(status.message().contains("tasks.sqlite3: file is not a database"), "{}", status.message());
}

#[tokio::test]
async fn the_file_is_for_its_user_alone() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"title": "a"})).await;
    for entry in std::fs::read_dir(bench.state.path().join("task")).unwrap() {
        let metadata = entry.unwrap().metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0);
        assert_eq!(metadata.uid(), own_uid());
    }
}

fn own_uid() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

#[tokio::test]
async fn a_file_that_was_removed_is_made_anew() {
    let bench = Bench::new().await;
    bench.call("task_create", json!({"title": "a"})).await;
    std::fs::remove_dir_all(bench.state.path().join("task")).unwrap();
    bench.call("task_create", json!({"title": "b"})).await;
    let other = bench.again().await;
    assert_eq!(crate::lines(other.call("task_list", json!({})).await.payload()), ["1 pending b"]);
}
