//! Everything beside Invoke: schema, configuration, previews, render, hooks, slash commands.

use harness_proto::hook::v1 as hook;
use harness_proto::render::v1::render_node::Node;
use harness_proto::slashcommand::v1 as slash;
use harness_proto::tool::v1 as pb;
use hook::dispatch_hook_response::Outcome;
use hook::hook_payload::Payload;
use hook::hook_subscriber_service_client::HookSubscriberServiceClient;
use prost::Message;
use provider_core::testing::Harness;
use provider_core::wire::value_to_struct;
use provider_core::{Catalogue, testing};
use serde_json::json;
use slash::slash_command_service_client::SlashCommandServiceClient;
use tonic::Code;

use crate::calls::harness;
use crate::demo::Demo;

#[tokio::test]
async fn the_schema_is_the_same_bytes_always() {
    let harness = harness().await;
    let mut client = harness.client();
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(client.get_schema(pb::GetSchemaRequest {}).await.unwrap().into_inner().encode_to_vec());
        harness.configure(json!({"steps": 5})).await.unwrap();
    }
    answers.push(Catalogue::<Demo>::of().unwrap().to_wire().encode_to_vec());
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn kinds_declare_only_what_their_kind_has() {
    let schema = Catalogue::<Demo>::of().unwrap().to_wire().clone();
    let tool = |name: &str| schema.tools.iter().find(|tool| tool.name == name).unwrap();
    assert_eq!(
        (tool("echo").risk(), tool("echo").kind()),
        (pb::RiskClass::ReadOnly, pb::ToolKind::DataSource)
    );
    assert!(!tool("echo").streaming && !tool("echo").terminates_turn);
    assert_eq!((tool("count").risk(), tool("count").kind()), (pb::RiskClass::Low, pb::ToolKind::Resource));
    assert!(tool("count").streaming && tool("count").terminates_turn);
    assert_eq!(tool("count").concurrency.clone().unwrap().key_fields, ["pause_ms"]);
    assert_eq!((tool("ask").kind(), tool("ask").concurrency.clone()), (pb::ToolKind::Interactive, None));
    assert_eq!(schema.supported_hook_points, [2, 4, 6]);
    assert_eq!(schema.slash_commands[0].name, "explain");
}

#[tokio::test]
async fn describe_is_stable() {
    let answer = harness().await.client().describe(pb::DescribeRequest {}).await.unwrap().into_inner();
    let producer = answer.producer.unwrap();
    assert_eq!(
        (producer.name.as_str(), producer.version.as_str(), producer.protocol_version),
        ("demo", "1.2.3", 1)
    );
    assert_eq!(producer.source, "github.com/pluggable-harness/provider-demo");
}

#[tokio::test]
async fn a_wrong_configuration_names_every_attribute_and_no_secret() {
    let status = Harness::start::<Demo>(json!({"steps": "many", "key": "hunter2", "kay": "hunter2"}))
        .await
        .err()
        .unwrap();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status.message().contains("steps: wanted an integer") && status.message().contains("kay: unknown"),
        "{status}"
    );
    assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
    let status = Harness::start::<Demo>(json!({"steps": 13})).await.err().unwrap();
    assert_eq!(
        (status.code(), status.message()),
        (Code::InvalidArgument, "steps: 13 brings bad luck; choose another number")
    );
}

#[tokio::test]
async fn a_preview_is_offered_before_arguments_are_looked_at() {
    let harness = harness().await;
    let code = async |tool: &str, arguments| {
        harness.preview_as("p", tool, arguments).await.err().map(|status| status.code())
    };
    assert_eq!(code("echo", json!({})).await, Some(Code::Unimplemented));
    assert_eq!(code("sleepy", json!({})).await, Some(Code::Unimplemented));
    assert_eq!(code("nothing", json!({})).await, Some(Code::Unimplemented));
    assert_eq!(code("count", json!({})).await, Some(Code::InvalidArgument));
    let tree = harness.preview_as("p", "count", json!({"pause_ms": 1})).await.unwrap();
    assert!(matches!(tree.root.unwrap().node, Some(Node::Text(text)) if text.content == "would count to 3"));
}

#[tokio::test]
async fn render_takes_json_and_stored_events_and_refuses_unknown_versions() {
    let harness = harness().await;
    let payload = json!({"last": 3});
    let tree = harness.render(&payload).await.unwrap();
    assert!(
        matches!(tree.root.unwrap().node, Some(Node::CodeBlock(code)) if code.content.contains("\"last\": 3"))
    );
    let stored = harness_proto::event::v1::ToolResultEvent {
        tool_call_id: "c".to_owned(),
        outcome: Some(harness_proto::event::v1::tool_result_event::Outcome::Result(pb::ToolResult {
            payload: Some(value_to_struct(payload)),
        })),
    };
    let mut client = harness.client();
    let ask = |payload: Vec<u8>, version: &str| pb::RenderRequest {
        payload: payload.into(),
        schema_version: version.to_owned(),
    };
    assert!(client.render(ask(stored.encode_to_vec(), "1")).await.unwrap().into_inner().tree.is_some());
    let status = client.render(ask(b"{}".to_vec(), "7")).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let status = client.render(ask(b"\xff\xff".to_vec(), "1")).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

fn dispatch(payload: Payload, mode: hook::HookMode) -> hook::DispatchHookRequest {
    hook::DispatchHookRequest {
        payload: Some(hook::HookPayload { payload: Some(payload) }),
        mode: mode.into(),
        subscription_id: None,
    }
}

#[tokio::test]
async fn hooks_observe_veto_and_transform() {
    let harness = harness().await;
    let mut hooks = HookSubscriberServiceClient::new(harness.channel());
    let call = |tool: &str| harness.request("h", tool, json!({}));

    let observed =
        Payload::PostToolCall(hook::PostToolCallPayload { call: Some(call("echo")), outcome: None });
    hooks.dispatch_hook(dispatch(observed, hook::HookMode::Observe)).await.unwrap();
    assert_eq!(harness.call("observed", json!({})).await.payload(), &json!({"observed": 1}));

    for (tool, decision) in [("forbidden", hook::HookDecision::Deny), ("echo", hook::HookDecision::Allow)] {
        let payload =
            Payload::PreToolCall(hook::PreToolCallPayload { call: Some(call(tool)), plan_item: None });
        let answer = hooks.dispatch_hook(dispatch(payload, hook::HookMode::Veto)).await.unwrap().into_inner();
        assert!(matches!(answer.outcome, Some(Outcome::Veto(veto)) if veto.decision() == decision));
    }

    let payload = Payload::PreModelCall(hook::PreModelCallPayload::default());
    let answer =
        hooks.dispatch_hook(dispatch(payload, hook::HookMode::Transform)).await.unwrap().into_inner();
    let Some(Outcome::Transform(transformed)) = answer.outcome else { panic!("no transform") };
    let Some(Payload::PreModelCall(call)) = transformed.payload.unwrap().payload else {
        panic!("another payload")
    };
    assert_eq!(call.messages.len(), 1);

    let payload = Payload::SessionEnd(hook::SessionEndPayload::default());
    let status = hooks.dispatch_hook(dispatch(payload, hook::HookMode::Veto)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_slash_command_runs_its_tool() {
    let harness = harness().await;
    let mut commands = SlashCommandServiceClient::new(harness.channel());
    let capabilities =
        commands.get_capabilities(slash::GetCapabilitiesRequest {}).await.unwrap().into_inner();
    assert_eq!(capabilities.commands[0].name, "echo");
    let call = slash::SlashCommandCall {
        id: "s".to_owned(),
        name: "echo".to_owned(),
        arguments: Some(value_to_struct(json!({"text": "hi"}))),
        call_context: None,
    };
    let mut stream = commands.invoke(slash::InvokeRequest { call: Some(call) }).await.unwrap().into_inner();
    let event = stream.message().await.unwrap().unwrap().event.unwrap().event.unwrap();
    let slash::slash_command_event::Event::Result(result) = event else { panic!("no result") };
    let event = pb::ToolEvent { event: Some(pb::tool_event::Event::Result(result)) };
    assert_eq!(testing::event_to_json(event)["payload"], json!({"text": "hi"}));
    assert!(stream.message().await.unwrap().is_none());
}
