//! What the awkward provider does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goplugin::plugin::Broker;
use harness_proto::kernel::v1 as kernel;
use harness_proto::log::v1 as log;
use harness_proto::tool::v1 as pb;
use kernel::kernel_callback_service_client::KernelCallbackServiceClient;
use pb::tool_event::Event;
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp, Value};
use tokio::sync::{Notify, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::Events;

/// What the calls share.
pub(crate) struct State {
    broker: Broker,
    cancels: Mutex<BTreeMap<String, Arc<Notify>>>,
    inside: watch::Sender<usize>,
    most: AtomicUsize,
}

impl State {
    pub(crate) fn new(broker: Broker) -> Self {
        Self { broker, cancels: Mutex::default(), inside: watch::Sender::new(0), most: AtomicUsize::new(0) }
    }

    fn cancels(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Notify>>> {
        self.cancels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call of that id was running.
    pub(crate) fn cancel(&self, call: &str) -> bool {
        let found = self.cancels().get(call).cloned();
        found.iter().for_each(|notify| notify.notify_one());
        found.is_some()
    }
}

/// The stream of one call, seen from the tool.
struct Out(mpsc::Sender<Result<pb::InvokeResponse, Status>>);

impl Out {
    async fn event(&self, event: Event) {
        let response = pb::InvokeResponse { event: Some(pb::ToolEvent { event: Some(event) }) };
        let _ = self.0.send(Ok(response)).await;
    }

    async fn chunk(&self, bytes: &'static [u8]) {
        let stream = pb::OutputStream::Stdout.into();
        self.event(Event::OutputChunk(pb::tool_event::OutputChunk { stream, data: bytes.into() })).await;
    }

    async fn result(&self, fields: &[(&str, Kind)]) {
        self.event(Event::Result(pb::ToolResult { payload: Some(object(fields)) })).await;
    }

    async fn text(&self, text: &str) {
        self.result(&[("text", Kind::StringValue(text.to_owned()))]).await;
    }

    async fn error(&self, category: pb::ToolErrorCategory, message: &str) {
        let error =
            pb::ToolError { category: category.into(), message: message.into(), ..pb::ToolError::default() };
        self.event(Event::Error(error)).await;
    }
}

fn object(fields: &[(&str, Kind)]) -> Struct {
    let member = |(name, kind): &(&str, Kind)| ((*name).to_owned(), Value { kind: Some(kind.clone()) });
    Struct { fields: fields.iter().map(member).collect() }
}

fn number(call: &pb::ToolCall, name: &str) -> u64 {
    let fields = call.arguments.as_ref().map(|arguments| &arguments.fields);
    match fields.and_then(|fields| fields.get(name)).and_then(|value| value.kind.as_ref()) {
        Some(Kind::NumberValue(number)) => *number as u64,
        _ => 0,
    }
}

/// Starts a call.
pub(crate) fn invoke(state: Arc<State>, call: pb::ToolCall) -> Result<Events, Status> {
    if call.tool_name == "status" {
        return Err(Status::invalid_argument("failed as a status"));
    }
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(async move {
        let out = Out(sender.clone());
        tokio::select! {
            () = run(&state, &call, &out) => {}
            () = sender.closed() => {}
        }
        state.cancels().remove(&call.id);
    });
    Ok(Box::pin(ReceiverStream::new(receiver)))
}

async fn run(state: &State, call: &pb::ToolCall, out: &Out) {
    match call.tool_name.as_str() {
        "no_terminal" => out.chunk(b"something").await,
        "two_terminals" => {
            out.text("first").await;
            out.text("second").await;
        }
        "chunk_after_terminal" => {
            out.text("done").await;
            out.chunk(b"late").await;
        }
        "null_field" => out.result(&[("text", Kind::NullValue(0))]).await,
        "missing_field" => out.result(&[("note", Kind::StringValue("x".into()))]).await,
        "no_payload" => out.event(Event::Result(pb::ToolResult { payload: None })).await,
        "claims_crash" => out.error(pb::ToolErrorCategory::ProcessCrashed, "I crashed").await,
        "fail" => out.error(pb::ToolErrorCategory::NotFound, "there is no such thing").await,
        "crash" => {
            out.chunk(b"last words").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            std::process::exit(3);
        }
        "hang" => std::future::pending().await,
        "stubborn" => stubborn(state, call, out).await,
        "polite" => polite(state, call, out).await,
        "events" => events(out).await,
        "callbacks" => callbacks(state, call, out).await,
        "enter_shared" | "enter_keyed" | "enter_alone" => enter(state, call, out).await,
        "environment" => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort();
            out.text(&names.join(" ")).await;
        }
        name => out.text(name).await,
    }
}

/// Waits to be cancelled.
async fn cancelled(state: &State, call: &pb::ToolCall, out: &Out) {
    let notify = Arc::new(Notify::new());
    state.cancels().insert(call.id.clone(), notify.clone());
    out.event(Event::Progress(pb::tool_event::Progress {
        message: "waiting".into(),
        fraction_complete: None,
    }))
    .await;
    notify.notified().await;
}

/// Tells what was done when cancelled, and ends without a terminal, as the protocol wants it.
async fn polite(state: &State, call: &pb::ToolCall, out: &Out) {
    cancelled(state, call, out).await;
    out.chunk(b"cleaned up\n").await;
    let payload = object(&[("note", Kind::StringValue("half of it was done".into()))]);
    out.event(Event::PartialResult(pb::tool_event::PartialResult { payload: Some(payload) })).await;
}

/// Takes the request to cancel and does not end.
async fn stubborn(state: &State, call: &pb::ToolCall, out: &Out) {
    cancelled(state, call, out).await;
    out.chunk(b"no").await;
    std::future::pending().await
}

async fn events(out: &Out) {
    out.event(Event::Progress(pb::tool_event::Progress {
        message: "half".into(),
        fraction_complete: Some(0.5),
    }))
    .await;
    out.chunk(b"pri\xe2").await;
    out.chunk(b"\x82\xac\n").await;
    let stream = pb::OutputStream::Stderr.into();
    out.event(Event::OutputChunk(pb::tool_event::OutputChunk { stream, data: b"\xff".as_slice().into() }))
        .await;
    out.0.send(Ok(pb::InvokeResponse { event: Some(pb::ToolEvent { event: None }) })).await.ok();
    let signal = Some("SIGTERM".to_owned());
    out.event(Event::ExitStatus(pb::tool_event::ExitStatus { exit_code: 143, signal })).await;
    out.text("done").await;
}

/// Says how many calls were inside at most, once `wait_for` are, and stays `hold_ms` longer.
async fn enter(state: &State, call: &pb::ToolCall, out: &Out) {
    state.inside.send_modify(|inside| *inside += 1);
    let now = *state.inside.borrow();
    state.most.fetch_max(now, Ordering::SeqCst);
    let wanted = number(call, "wait_for") as usize;
    let _ = state.inside.subscribe().wait_for(|inside| *inside >= wanted).await;
    tokio::time::sleep(Duration::from_millis(number(call, "hold_ms"))).await;
    state.inside.send_modify(|inside| *inside -= 1);
    out.text(&state.most.load(Ordering::SeqCst).to_string()).await;
}

/// Calls the kernel back and reports what it said, one word each.
async fn callbacks(state: &State, call: &pb::ToolCall, out: &Out) {
    let session_id = call.call_context.clone().unwrap_or_default().session_id;
    let Ok(channel) = state.broker.dial(1, Duration::from_secs(5)).await else {
        return out.text("no callback").await;
    };
    let mut kernel = KernelCallbackServiceClient::new(channel);
    let entry = log::LogEntry {
        level: log::LogLevel::Warn.into(),
        message: "logged".into(),
        time: Some(Timestamp::default()),
        ..log::LogEntry::default()
    };
    let log =
        kernel.log(kernel::LogRequest { session_id: Some(session_id.clone()), entries: vec![entry] }).await;
    let event = kernel::EmitRequest {
        session_id: session_id.clone(),
        kind: kernel::EventKind::ToolResult.into(),
        schema_version: "1".into(),
        payload: b"x".as_slice().into(),
    };
    let emit = kernel.emit(event).await.map(|result| result.into_inner().sequence.to_string());
    let session = kernel.get_session(kernel::GetSessionRequest { session_id }).await;
    let stranger = kernel.get_session(kernel::GetSessionRequest { session_id: "stranger".into() }).await;
    let config = kernel.get_config(kernel::GetConfigRequest {}).await;
    let keys = config.map(|config| config.into_inner().config.unwrap_or_default().fields.len().to_string());
    let publish = kernel::PublishRequest { event_type: "done".into(), ..kernel::PublishRequest::default() };
    let topic = kernel.publish(publish).await.map(|result| result.into_inner().topic);
    let run = kernel.run_session(kernel::RunSessionRequest::default()).await;
    let words = [
        word(log.map(|_| "logged".to_owned())),
        word(emit),
        word(session.map(|_| "session".to_owned())),
        word(stranger.map(|_| "stranger".to_owned())),
        word(keys),
        word(topic),
        word(run.map(|_| "ran".to_owned())),
    ];
    out.text(&words.join(" ")).await;
}

fn word(answer: Result<String, Status>) -> String {
    answer.unwrap_or_else(|status| match status.code() {
        Code::PermissionDenied => "denied".to_owned(),
        Code::Unimplemented => "unimplemented".to_owned(),
        code => format!("{code:?}"),
    })
}
