//! Callbacks: logs carry their own session and no secret, and a silent kernel disturbs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness_proto::kernel::v1 as pb;
use harness_proto::kernel::v1::kernel_callback_service_server::{
    KernelCallbackService, KernelCallbackServiceServer,
};
use provider_core::testing::Harness;
use serde_json::json;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::demo::Demo;

/// Log messages by session.
type Logged = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

/// A kernel that offers nothing but its log and what it knows of a session.
struct LogOnly(Logged);

/// Implements the service with all operations but `log` answering that they are not offered.
macro_rules! log_only {
    ({$($name:ident: $request:ident => $reply:ident;)*} {$($stream:ident($item:ident) $sname:ident: $srequest:ident;)*}) => {
        #[tonic::async_trait]
        impl KernelCallbackService for LogOnly {
            $(type $stream = tokio_stream::Empty<Result<pb::$item, Status>>;)*

            async fn log(&self, request: Request<pb::LogRequest>) -> Result<Response<pb::LogResult>, Status> {
                let request = request.into_inner();
                let messages = request.entries.into_iter().map(|entry| format!("{} {}", entry.message, json!(entry.fields.map(provider_core::wire::struct_to_value))));
                self.0.lock().unwrap().entry(request.session_id.unwrap_or_default()).or_default().extend(messages);
                Ok(Response::new(pb::LogResult {}))
            }

            async fn get_session(&self, request: Request<pb::GetSessionRequest>) -> Result<Response<pb::GetSessionResult>, Status> {
                let profile = format!("profile of {}", request.into_inner().session_id);
                let info = harness_proto::session::v1::SessionInfo { profile, ..Default::default() };
                Ok(Response::new(pb::GetSessionResult { info: Some(info), ..Default::default() }))
            }

            $(async fn $name(&self, _: Request<pb::$request>) -> Result<Response<pb::$reply>, Status> {
                Err(Status::unimplemented("not offered"))
            })*

            $(async fn $sname(&self, _: Request<pb::$srequest>) -> Result<Response<Self::$stream>, Status> {
                Err(Status::unimplemented("not offered"))
            })*
        }
    };
}

log_only! {
    {
    run_session: RunSessionRequest => RunSessionResult;
    count_tokens: CountTokensRequest => CountTokensResult;
    emit: EmitRequest => EmitResult;
    export_spans: ExportSpansRequest => ExportSpansResult;
    record_metrics: RecordMetricsRequest => RecordMetricsResult;
    get_telemetry_config: GetTelemetryConfigRequest => GetTelemetryConfigResult;
    get_config: GetConfigRequest => GetConfigResult;
    publish: PublishRequest => PublishResult;
    get_session_state: GetSessionStateRequest => GetSessionStateResult;
    submit_input: SubmitInputRequest => SubmitInputResult;
    resolve_plan_decision: ResolvePlanDecisionRequest => ResolvePlanDecisionResult;
    resolve_interactive: ResolveInteractiveRequest => ResolveInteractiveResult;
    interrupt: InterruptRequest => InterruptResult;
    create_session: CreateSessionRequest => CreateSessionResult;
    attach_session: AttachSessionRequest => AttachSessionResult;
    resume_session: ResumeSessionRequest => ResumeSessionResult;
    detach_session: DetachSessionRequest => DetachSessionResult;
    list_sessions: ListSessionsRequest => ListSessionsResult;
    publish_metadata: PublishMetadataRequest => PublishMetadataResult;
    retract_metadata: RetractMetadataRequest => RetractMetadataResult;
    list_metadata: ListMetadataRequest => ListMetadataResult;
    invoke_slash_command: InvokeSlashCommandRequest => InvokeSlashCommandResult;
    trigger_action: TriggerActionRequest => TriggerActionResult;
    }
    {
    SubscribeStream(BusEvent) subscribe: SubscribeRequest;
    ReadEventsStream(StoredEvent) read_events: ReadEventsRequest;
    StreamDeltasStream(TokenDelta) stream_deltas: StreamDeltasRequest;
    }
}

/// Waits until `done` holds of what was logged.
async fn eventually(logged: &Logged, done: impl Fn(&BTreeMap<String, Vec<String>>) -> bool) {
    for _ in 0..200 {
        if done(&logged.lock().unwrap()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never logged; there is {:?}", logged.lock().unwrap());
}

#[tokio::test]
async fn a_log_entry_carries_the_session_of_its_call_and_no_secret() {
    let logged = Logged::default();
    let services = Routes::new(KernelCallbackServiceServer::new(LogOnly(logged.clone())));
    let harness = Harness::with_kernel::<Demo>(json!({"key": "hunter2"}), services).await.unwrap();
    let (first, second) = (harness.clone().in_session("first"), harness.in_session("second"));
    for turn in 0..5 {
        let text = |session: &str| json!({"text": format!("{session} {turn}")});
        tokio::join!(first.call("echo", text("first")), second.call("echo", text("second")));
    }
    second.call("leaks", json!({})).await;
    let count = |logged: &BTreeMap<String, Vec<String>>, session: &str| {
        logged
            .get(session)
            .map_or(0, |entries| entries.iter().filter(|entry| entry.starts_with("echoing in")).count())
    };
    eventually(&logged, |logged| {
        count(logged, "first") == 5
            && count(logged, "second") == 5
            && logged["second"].iter().any(|entry| entry.starts_with("the key is [secret]"))
    })
    .await;
    let logged = logged.lock().unwrap();
    for session in ["first", "second"] {
        let own = format!("echoing in {session} ");
        let echoes = logged[session].iter().filter(|entry| entry.starts_with("echoing in"));
        assert!(echoes.clone().all(|entry| entry.starts_with(&own)), "{logged:?}");
    }
    assert!(!format!("{logged:?}").contains("hunter2"), "{logged:?}");
}

#[tokio::test]
async fn callbacks_ask_for_the_calls_own_session_and_degrade() {
    let services = Routes::new(KernelCallbackServiceServer::new(LogOnly(Logged::default())));
    let harness = Harness::with_kernel::<Demo>(json!({}), services).await.unwrap().in_session("mine");
    let said = harness.call("asks_kernel", json!({})).await.payload()["said"].clone();
    assert_eq!(
        said,
        "profile of mine; the kernel does not offer GetConfig; the kernel does not offer RunSession; \
         the kernel does not offer Emit"
    );
}

#[tokio::test]
async fn without_a_kernel_every_callback_degrades() {
    let harness = Harness::start::<Demo>(json!({})).await.unwrap();
    let said = harness.call("asks_kernel", json!({})).await.payload()["said"].clone();
    assert_eq!(said.as_str().unwrap().matches("the kernel does not offer").count(), 4, "{said}");
}
