//! A provider in the same process, driven over real gRPC: what a provider's own tests use.
//!
//! ```
//! # use provider_core::prelude::*;
//! # struct Hello;
//! # impl Provider for Hello {
//! #     const NAME: &'static str = "hello";
//! #     const VERSION: &'static str = "0.1.0";
//! #     type Config = NoConfig;
//! #     async fn configure(_: NoConfig, _: Setup) -> Result<Self, ToolError> { Ok(Self) }
//! #     fn tools(_: &mut Tools<Self>) {}
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use provider_core::testing::Harness;
//!
//! let harness = Harness::start::<Hello>(serde_json::json!({})).await.unwrap();
//! let outcome = harness.call("nothing", serde_json::json!({})).await;
//! assert_eq!(outcome.error().category, "not_found");
//! # });
//! ```

mod scenarios;
pub mod tree;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness_proto::common::v1::CallContext;
use harness_proto::control::v1::{CancelRequest, call_control_client::CallControlClient};
use harness_proto::render::v1::RenderTree;
use harness_proto::tool::v1 as pb;
use hyper_util::rt::TokioIo;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Status};

use crate::core::Core;
use crate::kernel::{Kernel, Source};
use crate::registry::Catalogue;
use crate::service::routes;
use crate::tool::Provider;
use crate::wire::{struct_to_value, value_to_struct};

/// Bytes in flight between the two sides.
const PIPE: usize = 1 << 20;

pub use scenarios::Scenarios;

/// What a test cannot go on without.
#[track_caller]
pub(crate) fn must<T, E: std::fmt::Display>(result: Result<T, E>, what: &std::path::Path) -> T {
    result.unwrap_or_else(|error| panic!("{}: {error}", what.display()))
}

/// A provider that serves in this process.
///
/// ```
/// # use provider_core::prelude::*;
/// use provider_core::testing::Harness;
/// use serde_json::json;
///
/// async fn a_note_is_added<P: Provider>() {
///     let harness = Harness::start::<P>(json!({"root": "/tmp/notes"})).await.unwrap();
///     let outcome = harness.call("add_note", json!({"text": "milk"})).await;
///     assert_eq!(outcome.payload(), &json!({"added": 1}));
/// }
/// ```
#[derive(Clone)]
pub struct Harness {
    channel: Channel,
    working_directory: String,
    session_id: String,
    next_id: Arc<AtomicU64>,
}

/// The error that a call ended with.
///
/// ```
/// use provider_core::testing::Outcome;
/// use serde_json::json;
///
/// let event = json!({"event": "error", "category": "not_found", "message": "there is no note 7", "details": {}});
/// let error = Outcome { events: vec![event] }.error();
/// assert_eq!((error.category.as_str(), error.code.as_str()), ("not_found", ""));
/// assert!(error.message.contains('7'));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CallError {
    /// The category in lower case.
    pub category: String,
    /// `details.code`, or empty.
    pub code: String,
    /// What the model reads.
    pub message: String,
}

/// All events of one call, in the form of NDJSON lines; the last one is the terminal.
///
/// ```
/// use provider_core::testing::Outcome;
/// use serde_json::json;
///
/// let outcome = Outcome { events: vec![json!({"event": "result", "payload": {"added": 1}})] };
/// assert_eq!(outcome.payload(), &json!({"added": 1}));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The events.
    pub events: Vec<Value>,
}

impl Outcome {
    /// The terminal event.
    ///
    /// # Panics
    /// When the stream ended without an event.
    #[track_caller]
    pub fn terminal(&self) -> &Value {
        self.events.last().unwrap_or_else(|| panic!("the call ended without an event"))
    }

    /// The result's payload.
    ///
    /// # Panics
    /// When the call did not end in a result.
    #[track_caller]
    pub fn payload(&self) -> &Value {
        let terminal = self.terminal();
        assert_eq!(terminal["event"], "result", "{terminal}");
        &terminal["payload"]
    }

    /// The error.
    ///
    /// # Panics
    /// When the call did not end in an error.
    #[track_caller]
    pub fn error(&self) -> CallError {
        let terminal = self.terminal();
        assert_eq!(terminal["event"], "error", "{terminal}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        CallError {
            category: text(&terminal["category"]),
            code: text(&terminal["details"]["code"]),
            message: text(&terminal["message"]),
        }
    }
}

/// A channel to services that run in this process.
pub(crate) fn connect(services: tonic::service::Routes) -> Channel {
    let (client, server) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        let incoming = tokio_stream::once(Ok::<DuplexStream, std::io::Error>(server));
        let _ = Server::builder().add_routes(services).serve_with_incoming(incoming).await;
    });
    let mut client = Some(client);
    Endpoint::from_static("http://in-process").connect_with_connector_lazy(tower::service_fn(move |_| {
        let io = client.take().map(TokioIo::new);
        async move { io.ok_or_else(|| std::io::Error::other("the in-process connection is used up")) }
    }))
}

impl Harness {
    /// Starts and configures a provider without kernel callbacks.
    ///
    /// # Errors
    /// What Configure answered.
    ///
    /// # Panics
    /// When the provider's declarations cannot be served.
    pub async fn start<P: Provider>(config: Value) -> Result<Self, Status> {
        Self::with_source::<P>(config, Source::None).await
    }

    /// Starts and configures a provider whose kernel callbacks are `services`.
    ///
    /// # Errors
    /// What Configure answered.
    ///
    /// # Panics
    /// When the provider's declarations cannot be served.
    pub async fn with_kernel<P: Provider>(
        config: Value,
        services: tonic::service::Routes,
    ) -> Result<Self, Status> {
        Self::with_source::<P>(config, Source::Channel(connect(services))).await
    }

    async fn with_source<P: Provider>(config: Value, source: Source) -> Result<Self, Status> {
        let harness = Self::unconfigured::<P>(source);
        harness.configure(config).await?;
        Ok(harness)
    }

    fn unconfigured<P: Provider>(source: Source) -> Self {
        let catalogue = Catalogue::<P>::of().unwrap_or_else(|error| panic!("{error}"));
        let kernel = Kernel::new(source);
        crate::logging::install_for_tests(&kernel);
        let core = Arc::new(Core::new(catalogue, kernel));
        Self {
            channel: connect(routes(&core)),
            working_directory: String::new(),
            session_id: "session-1".to_owned(),
            next_id: Arc::new(AtomicU64::new(1)),
        }
    }

    /// Calls from now on come from this directory.
    #[must_use]
    pub fn in_directory(mut self, directory: impl AsRef<std::path::Path>) -> Self {
        self.working_directory = directory.as_ref().to_string_lossy().into_owned();
        self
    }

    /// Calls from now on belong to this session.
    #[must_use]
    pub fn in_session(mut self, session_id: &str) -> Self {
        self.session_id = session_id.to_owned();
        self
    }

    /// The connection, for RPCs that this type does not wrap.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The tool service.
    pub fn client(&self) -> ToolServiceClient<Channel> {
        ToolServiceClient::new(self.channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX)
    }

    /// A fresh call id.
    pub fn next_id(&self) -> String {
        format!("call-{}", self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a configuration.
    ///
    /// # Errors
    /// What Configure answered.
    pub async fn configure(&self, config: Value) -> Result<(), Status> {
        let config = Some(value_to_struct(config));
        self.client().configure(pb::ConfigureRequest { config }).await.map(drop)
    }

    /// The wire form of a call.
    pub fn request(&self, id: &str, tool: &str, arguments: Value) -> pb::ToolCall {
        pb::ToolCall {
            id: id.to_owned(),
            tool_name: tool.to_owned(),
            arguments: Some(value_to_struct(arguments)),
            call_context: Some(CallContext {
                session_id: self.session_id.clone(),
                turn_id: "turn-1".to_owned(),
                working_directory: self.working_directory.clone(),
            }),
        }
    }

    /// Makes a call and collects its events.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.call_as(&self.next_id(), tool, arguments, None).await
    }

    /// Makes a call under a given id, perhaps with a deadline, and collects its events.
    ///
    /// # Panics
    /// When the RPC itself fails.
    pub async fn call_as(
        &self,
        id: &str,
        tool: &str,
        arguments: Value,
        deadline: Option<Duration>,
    ) -> Outcome {
        let call = Some(self.request(id, tool, arguments));
        let mut request = Request::new(pb::InvokeRequest { call });
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        let stream = self.client().invoke(request).await;
        let mut stream = stream.unwrap_or_else(|status| panic!("invoke: {status}")).into_inner();
        let mut events = Vec::new();
        while let Some(message) = stream.message().await.unwrap_or_else(|status| panic!("stream: {status}")) {
            events.push(event_to_json(message.event.unwrap_or_default()));
        }
        Outcome { events }
    }

    /// Gives up a call through the control service. Answers whether it was running.
    ///
    /// # Panics
    /// When the RPC itself fails.
    pub async fn cancel(&self, id: &str) -> bool {
        let mut client = CallControlClient::new(self.channel.clone());
        let answer = client.cancel(CancelRequest { call_id: id.to_owned() }).await;
        answer.unwrap_or_else(|status| panic!("cancel: {status}")).into_inner().found
    }

    /// Asks for a preview the way the kernel does, without a context.
    ///
    /// # Errors
    /// What Preview answered.
    pub async fn preview_as(&self, id: &str, tool: &str, arguments: Value) -> Result<RenderTree, Status> {
        let call = pb::ToolCall { call_context: None, ..self.request(id, tool, arguments) };
        let answer = self.client().preview(pb::PreviewRequest { call: Some(call) }).await?;
        Ok(answer.into_inner().preview.unwrap_or_default())
    }

    /// Renders a stored payload.
    ///
    /// # Errors
    /// What Render answered.
    pub async fn render(&self, payload: &Value) -> Result<RenderTree, Status> {
        let request = pb::RenderRequest {
            payload: payload.to_string().into_bytes().into(),
            schema_version: "1".to_owned(),
        };
        Ok(self.client().render(request).await?.into_inner().tree.unwrap_or_default())
    }
}

/// An event as one NDJSON line.
///
/// ```
/// use harness_proto::tool::v1::tool_event::{Event, Progress};
/// use harness_proto::tool::v1::ToolEvent;
/// use provider_core::testing::event_to_json;
/// use serde_json::json;
///
/// let progress = Progress { message: "half".to_owned(), fraction_complete: Some(0.5) };
/// let event = ToolEvent { event: Some(Event::Progress(progress)) };
/// let expected = json!({"event": "progress", "message": "half", "fraction_complete": 0.5});
/// assert_eq!(event_to_json(event), expected);
/// ```
pub fn event_to_json(event: pb::ToolEvent) -> Value {
    match event.event {
        None => json!({"event": "unset"}),
        Some(Event::OutputChunk(chunk)) => {
            let stream = if chunk.stream() == pb::OutputStream::Stderr { "stderr" } else { "stdout" };
            json!({"event": "output_chunk", "stream": stream, "data": String::from_utf8_lossy(&chunk.data)})
        }
        Some(Event::Progress(progress)) => {
            json!({"event": "progress", "message": progress.message, "fraction_complete": progress.fraction_complete})
        }
        Some(Event::PartialResult(partial)) => {
            json!({"event": "partial_result", "payload": struct_to_value(partial.payload.unwrap_or_default())})
        }
        Some(Event::ExitStatus(exit)) => {
            json!({"event": "exit_status", "exit_code": exit.exit_code, "signal": exit.signal})
        }
        Some(Event::Result(result)) => {
            json!({"event": "result", "payload": struct_to_value(result.payload.unwrap_or_default())})
        }
        Some(Event::Error(error)) => json!({
            "event": "error",
            "category": error.category().as_str_name().trim_start_matches("TOOL_ERROR_CATEGORY_").to_ascii_lowercase(),
            "message": error.message,
            "retryable": error.retryable,
            "details": struct_to_value(error.details.unwrap_or_default()),
        }),
    }
}
