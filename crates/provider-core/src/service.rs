//! The gRPC services of a provider: tools, call control, and where declared hooks and slash commands.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::FutureExt;
use harness_proto::common::v1 as common;
use harness_proto::control::v1 as control;
use harness_proto::hook::v1 as hook;
use harness_proto::slashcommand::v1 as slash;
use harness_proto::tool::v1 as pb;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};

use crate::core::{Core, NoPreview};
use crate::error::{Category, ToolError};
use crate::tool::Provider;
use crate::wire::struct_to_value;

/// The version of payloads that Render knows.
const PAYLOAD_VERSION: &str = "1";
/// The version of the tool protocol itself.
const PROTOCOL_VERSION: u32 = 1;
/// How many events wait for a slow reader before the tool waits too.
const EVENT_QUEUE: usize = 32;

type EventStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// All services of a provider, with unlimited messages: hosts send file contents.
pub(crate) fn routes<P: Provider>(core: &Arc<Core<P>>) -> Routes {
    let service = Service { core: core.clone() };
    let tools = pb::tool_service_server::ToolServiceServer::new(service.clone())
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX);
    let mut routes = Routes::new(tools);
    routes = routes.add_service(control::call_control_server::CallControlServer::new(service.clone()));
    if !core.catalogue.hooks.is_empty() {
        let hooks = hook::hook_subscriber_service_server::HookSubscriberServiceServer::new(service.clone());
        routes = routes
            .add_service(hooks.max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX));
    }
    if !core.catalogue.commands.direct.is_empty() {
        let commands = slash::slash_command_service_server::SlashCommandServiceServer::new(service);
        routes = routes.add_service(commands.max_decoding_message_size(usize::MAX));
    }
    routes
}

struct Service<P> {
    core: Arc<Core<P>>,
}

impl<P> Clone for Service<P> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone() }
    }
}

impl<P: Provider> Service<P> {
    fn producer(category: common::Category) -> common::ProducerRef {
        common::ProducerRef {
            name: P::NAME.to_owned(),
            version: P::VERSION.to_owned(),
            source: P::source(),
            category: category.into(),
            protocol_version: PROTOCOL_VERSION,
        }
    }

    /// Starts a call; its events arrive in the returned queue.
    fn start(&self, call: pb::ToolCall, deadline: Option<Instant>) -> ReceiverStream<pb::ToolEvent> {
        let (events, queue) = mpsc::channel(EVENT_QUEUE);
        tokio::spawn(self.core.clone().invoke(call, deadline, events));
        ReceiverStream::new(queue)
    }

    async fn previewed(
        &self,
        call: Option<pb::ToolCall>,
    ) -> Result<harness_proto::render::v1::RenderTree, Status> {
        let call = call.ok_or_else(|| missing("call"))?;
        match self.core.preview(call).await {
            Ok(node) => Ok(node.into_tree()),
            Err(NoPreview::Unimplemented) => Err(Status::unimplemented("this operation has no preview")),
            Err(NoPreview::Failed(error)) => Err(status_of(&error)),
        }
    }

    fn rendered(
        &self,
        payload: &[u8],
        version: &str,
    ) -> Result<harness_proto::render::v1::RenderTree, Status> {
        if version != PAYLOAD_VERSION {
            let message = format!(
                "schema_version: {version:?} is not known; this provider has only ever used {PAYLOAD_VERSION:?}"
            );
            return Err(status_of(&ToolError::invalid_arguments(message)));
        }
        self.core.render(payload).map(crate::render::Node::into_tree).map_err(|error| status_of(&error))
    }

    async fn configured(&self, config: Option<prost_types::Struct>) -> Result<(), Status> {
        let values = struct_to_value(config.unwrap_or_default());
        let result = std::panic::AssertUnwindSafe(self.core.configure(values)).catch_unwind().await;
        match result {
            Ok(result) => result.map_err(|error| status_of(&error)),
            Err(_) => Err(Status::internal("configuring the provider panicked; see its log")),
        }
    }
}

#[tonic::async_trait]
impl<P: Provider> pb::tool_service_server::ToolService for Service<P> {
    type InvokeStream = EventStream<pb::InvokeResponse>;

    async fn get_schema(
        &self,
        _: Request<pb::GetSchemaRequest>,
    ) -> Result<Response<pb::GetSchemaResponse>, Status> {
        Ok(Response::new(self.core.catalogue.to_wire().clone()))
    }

    async fn configure(
        &self,
        request: Request<pb::ConfigureRequest>,
    ) -> Result<Response<pb::ConfigureResponse>, Status> {
        self.configured(request.into_inner().config).await?;
        Ok(Response::new(pb::ConfigureResponse {}))
    }

    async fn invoke(
        &self,
        request: Request<pb::InvokeRequest>,
    ) -> Result<Response<Self::InvokeStream>, Status> {
        let deadline = deadline_of(&request);
        let call = request.into_inner().call.ok_or_else(|| missing("call"))?;
        let events = self.start(call, deadline).map(|event| Ok(pb::InvokeResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(events)))
    }

    async fn render(
        &self,
        request: Request<pb::RenderRequest>,
    ) -> Result<Response<pb::RenderResponse>, Status> {
        let request = request.into_inner();
        let tree = self.rendered(&request.payload, &request.schema_version)?;
        Ok(Response::new(pb::RenderResponse { tree: Some(tree) }))
    }

    async fn preview(
        &self,
        request: Request<pb::PreviewRequest>,
    ) -> Result<Response<pb::PreviewResponse>, Status> {
        let preview = self.previewed(request.into_inner().call).await?;
        Ok(Response::new(pb::PreviewResponse { preview: Some(preview) }))
    }

    async fn describe(
        &self,
        _: Request<pb::DescribeRequest>,
    ) -> Result<Response<pb::DescribeResponse>, Status> {
        let producer = Some(Self::producer(common::Category::Tool));
        Ok(Response::new(pb::DescribeResponse { producer }))
    }
}

#[tonic::async_trait]
impl<P: Provider> control::call_control_server::CallControl for Service<P> {
    async fn cancel(
        &self,
        request: Request<control::CancelRequest>,
    ) -> Result<Response<control::CancelResponse>, Status> {
        let found = self.core.cancel(&request.into_inner().call_id);
        Ok(Response::new(control::CancelResponse { found }))
    }
}

#[tonic::async_trait]
impl<P: Provider> hook::hook_subscriber_service_server::HookSubscriberService for Service<P> {
    async fn dispatch_hook(
        &self,
        request: Request<hook::DispatchHookRequest>,
    ) -> Result<Response<hook::DispatchHookResponse>, Status> {
        let request = request.into_inner();
        let mode = request.mode();
        let refuse =
            |code, reason: &str| with_reason(code, reason, reason, "hook.pluggableharness.dev", Vec::new());
        let payload = request.payload.ok_or_else(|| refuse(Code::InvalidArgument, "payload_unset"))?;
        let payload =
            payload.payload.ok_or_else(|| refuse(Code::InvalidArgument, "payload_variant_unset"))?;
        let provider = self.core.provider().map_err(|error| status_of(&error))?;
        let work = self.core.catalogue.hooks.dispatch(provider, payload, mode);
        match std::panic::AssertUnwindSafe(work).catch_unwind().await {
            Ok(Ok(outcome)) => Ok(Response::new(hook::DispatchHookResponse { outcome: Some(outcome) })),
            Ok(Err(refused)) if refused.unimplemented => Err(refuse(Code::Unimplemented, refused.reason)),
            Ok(Err(refused)) => Err(refuse(Code::InvalidArgument, refused.reason)),
            Err(_) => Err(refuse(Code::Internal, failure_reason(mode))),
        }
    }
}

fn failure_reason(mode: hook::HookMode) -> &'static str {
    match mode {
        hook::HookMode::Transform => "transform_failed",
        hook::HookMode::Veto => "veto_failed",
        hook::HookMode::Observe | hook::HookMode::Unspecified => "observe_failed",
    }
}

impl<P: Provider> Service<P> {
    /// The tool call that a slash command stands for.
    fn command_call(&self, call: slash::SlashCommandCall) -> Result<pb::ToolCall, Status> {
        let command = self.core.catalogue.commands.direct.iter().find(|command| command.name == call.name);
        let command =
            command.ok_or_else(|| Status::not_found(format!("there is no command /{}", call.name)))?;
        Ok(pb::ToolCall {
            id: call.id,
            tool_name: command.tool.to_owned(),
            arguments: call.arguments,
            call_context: call.call_context,
        })
    }

    fn command_specs(&self) -> Vec<slash::SlashCommandSpec> {
        let spec = |command: &crate::registry::DirectCommand| {
            let schema = self.core.catalogue.tool(command.tool)?.declaration.to_wire();
            Some(slash::SlashCommandSpec {
                name: command.name.clone(),
                description: command.description.clone(),
                input_schema: schema.input_schema,
                kind: schema.kind,
                risk: schema.risk,
                concurrency: schema.concurrency,
                streaming: schema.streaming,
                default_timeout: schema.default_timeout,
                idempotent: schema.idempotent,
            })
        };
        self.core.catalogue.commands.direct.iter().filter_map(spec).collect()
    }
}

#[tonic::async_trait]
impl<P: Provider> slash::slash_command_service_server::SlashCommandService for Service<P> {
    type InvokeStream = EventStream<slash::InvokeResponse>;

    async fn get_capabilities(
        &self,
        _: Request<slash::GetCapabilitiesRequest>,
    ) -> Result<Response<slash::GetCapabilitiesResponse>, Status> {
        let schema = self.core.catalogue.to_wire();
        Ok(Response::new(slash::GetCapabilitiesResponse {
            commands: self.command_specs(),
            config_schema: schema.config_schema.clone(),
            supported_hook_points: schema.supported_hook_points.clone(),
        }))
    }

    async fn configure(
        &self,
        request: Request<slash::ConfigureRequest>,
    ) -> Result<Response<slash::ConfigureResponse>, Status> {
        self.configured(request.into_inner().config).await?;
        Ok(Response::new(slash::ConfigureResponse {}))
    }

    async fn invoke(
        &self,
        request: Request<slash::InvokeRequest>,
    ) -> Result<Response<Self::InvokeStream>, Status> {
        let deadline = deadline_of(&request);
        let call = self.command_call(request.into_inner().call.ok_or_else(|| missing("call"))?)?;
        let events = self
            .start(call, deadline)
            .map(|event| Ok(slash::InvokeResponse { event: Some(command_event(event)) }));
        Ok(Response::new(Box::pin(events)))
    }

    async fn render(
        &self,
        request: Request<slash::RenderRequest>,
    ) -> Result<Response<slash::RenderResponse>, Status> {
        let request = request.into_inner();
        let tree = self.rendered(&request.payload, &request.schema_version)?;
        Ok(Response::new(slash::RenderResponse { tree: Some(tree) }))
    }

    async fn preview(
        &self,
        request: Request<slash::PreviewRequest>,
    ) -> Result<Response<slash::PreviewResponse>, Status> {
        let call = self.command_call(request.into_inner().call.ok_or_else(|| missing("call"))?)?;
        let preview = self.previewed(Some(call)).await?;
        Ok(Response::new(slash::PreviewResponse { preview: Some(preview) }))
    }

    async fn describe(
        &self,
        _: Request<slash::DescribeRequest>,
    ) -> Result<Response<slash::DescribeResponse>, Status> {
        // The process is a tool provider; its commands are served beside the tools.
        let producer = Some(Self::producer(common::Category::Tool));
        Ok(Response::new(slash::DescribeResponse { producer }))
    }
}

/// Slash commands have events of their own with the same meaning.
fn command_event(event: pb::ToolEvent) -> slash::SlashCommandEvent {
    use pb::tool_event::Event as Tool;
    use slash::slash_command_event as own;
    let event = event.event.map(|event| match event {
        Tool::OutputChunk(chunk) => {
            own::Event::OutputChunk(own::OutputChunk { stream: chunk.stream, data: chunk.data })
        }
        Tool::Progress(progress) => own::Event::Progress(own::Progress {
            message: progress.message,
            fraction_complete: progress.fraction_complete,
        }),
        Tool::PartialResult(partial) => {
            own::Event::PartialResult(own::PartialResult { payload: partial.payload })
        }
        Tool::ExitStatus(exit) => {
            own::Event::ExitStatus(own::ExitStatus { exit_code: exit.exit_code, signal: exit.signal })
        }
        Tool::Result(result) => own::Event::Result(result),
        Tool::Error(error) => own::Event::Error(error),
    });
    slash::SlashCommandEvent { event }
}

fn missing(field: &str) -> Status {
    status_of(&ToolError::invalid_arguments(format!("{field}: missing")))
}

/// When the caller stops waiting, from the `grpc-timeout` header: digits and one letter for the unit.
fn deadline_of<T>(request: &Request<T>) -> Option<Instant> {
    let text = request.metadata().get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let amount: u64 = digits.parse().ok()?;
    let timeout = match unit {
        "H" => Duration::from_secs(amount.saturating_mul(3_600)),
        "M" => Duration::from_secs(amount.saturating_mul(60)),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    };
    Instant::now().checked_add(timeout)
}

/// The gRPC status of an error outside of Invoke, with `google.rpc.ErrorInfo` and the `ToolError` as details.
pub(crate) fn status_of(error: &ToolError) -> Status {
    let code = match error.category() {
        Category::InvalidArguments => Code::InvalidArgument,
        Category::NotFound => Code::NotFound,
        Category::PermissionDenied => Code::PermissionDenied,
        Category::Timeout => Code::DeadlineExceeded,
        Category::ConcurrencyConflict => Code::Aborted,
        Category::Cancelled => Code::Cancelled,
        Category::ExecutionFailed | Category::Unknown => Code::Internal,
    };
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let metadata = error.details().iter().map(|(key, value)| (key.clone(), text(value))).collect();
    with_reason(code, error.category().as_str(), error.message(), "tool.pluggableharness.dev", metadata)
}

fn with_reason(
    code: Code,
    reason: &str,
    message: &str,
    domain: &str,
    metadata: Vec<(String, String)>,
) -> Status {
    let info = ErrorInfo {
        reason: reason.to_owned(),
        domain: domain.to_owned(),
        metadata: metadata.into_iter().collect(),
    };
    let detail = prost_types::Any {
        type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
        value: info.encode_to_vec(),
    };
    let status = RpcStatus { code: code as i32, message: message.to_owned(), details: vec![detail] };
    Status::with_details(code, message, status.encode_to_vec().into())
}

/// `google.rpc.Status`, which travels in the trailer of a failed call.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: std::collections::BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_header_is_read_in_all_units() {
        for (text, seconds) in [("2S", 2.0), ("1500m", 1.5), ("1M", 60.0), ("3000000u", 3.0), ("1H", 3600.0)]
        {
            let mut request = Request::new(());
            request.metadata_mut().insert("grpc-timeout", text.parse().unwrap());
            let left = deadline_of(&request).unwrap() - Instant::now();
            assert!((left.as_secs_f64() - seconds).abs() < 0.5, "{text}");
        }
        let mut request = Request::new(());
        request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
        assert!(deadline_of(&request).is_none());
    }

    #[test]
    fn a_status_carries_the_category_as_its_reason() {
        let status = status_of(&ToolError::new(crate::Code::Stale, "changed"));
        assert_eq!(status.code(), Code::Aborted);
        let details = RpcStatus::decode(status.details()).unwrap();
        let info = ErrorInfo::decode(&*details.details[0].value).unwrap();
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            ("concurrency_conflict", "tool.pluggableharness.dev")
        );
        assert_eq!(info.metadata["code"], "stale");
    }
}
