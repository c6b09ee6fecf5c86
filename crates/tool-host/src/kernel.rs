//! The kernel's callback service, as far as a host without a model can serve it.
//!
//! One instance serves one provider process. Sessions exist here once a call has named them; anything about a
//! session that no call has named is refused, as the kernel refuses what it gave no grant for.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use harness_proto::content::v1::content_block::Block;
use harness_proto::kernel::v1::kernel_callback_service_server::KernelCallbackService;
use harness_proto::kernel::v1::*;
use harness_proto::log::v1 as log;
use harness_proto::session::v1 as session;
use prost_types::{Struct, Timestamp};
use tokio_stream::Empty;
use tonic::{Request, Response, Status};

use crate::json::from_struct;
use crate::notice::{Level, LogRecord, Notices, What};

/// What the service knows. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Kernel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    notices: Notices,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    provider: String,
    config: Struct,
    sessions: BTreeMap<String, Session>,
}

/// A session and the events emitted into it.
#[derive(Debug)]
struct Session {
    started_at: Timestamp,
    working_directory: String,
    events: Vec<EmitRequest>,
}

/// More events of one session than a host without a store keeps.
const MOST_EVENTS: usize = 10_000;

impl Kernel {
    /// A kernel that knows the provider only by the name it was launched under.
    pub(crate) fn new(provider: &str, notices: Notices) -> Self {
        let state = State { provider: provider.to_owned(), ..State::default() };
        Self(Arc::new(Shared { notices, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the name from Describe from now on.
    pub(crate) fn identify(&self, provider: &str) {
        self.state().provider = provider.to_owned();
    }

    /// Answers GetConfig with this from now on.
    pub(crate) fn configured(&self, config: Struct) {
        self.state().config = config;
    }

    /// Grants the provider the session.
    pub(crate) fn open_session(&self, id: &str, working_directory: &str) {
        let mut state = self.state();
        let open = || Session {
            started_at: Timestamp::from(SystemTime::now()),
            working_directory: String::new(),
            events: Vec::new(),
        };
        let session = state.sessions.entry(id.to_owned()).or_insert_with(open);
        session.working_directory = working_directory.to_owned();
    }

    fn notice(&self, what: What) {
        let provider = self.state().provider.clone();
        self.0.notices.send(&provider, what);
    }

    fn info(&self, id: &str) -> Result<(session::SessionInfo, String), Status> {
        let state = self.state();
        let session = state.sessions.get(id).ok_or_else(|| no_grant(id))?;
        let info = session::SessionInfo {
            session_id: id.to_owned(),
            profile: "tool-host".to_owned(),
            status: session::SessionStatus::Running.into(),
            started_at: Some(session.started_at),
            ..session::SessionInfo::default()
        };
        Ok((info, session.working_directory.clone()))
    }
}

fn no_grant(id: &str) -> Status {
    Status::permission_denied(format!("no grant for session {id:?}"))
}

fn record(session: Option<&String>, entry: log::LogEntry) -> Option<LogRecord> {
    let level = match entry.level() {
        log::LogLevel::Unspecified => return None,
        log::LogLevel::Trace => Level::Trace,
        log::LogLevel::Debug => Level::Debug,
        log::LogLevel::Info => Level::Info,
        log::LogLevel::Warn => Level::Warn,
        log::LogLevel::Error | log::LogLevel::Fatal => Level::Error,
    };
    if entry.message.is_empty() || entry.time.is_none() {
        return None;
    }
    Some(LogRecord {
        level,
        logger: entry.logger,
        message: entry.message,
        fields: entry.fields.map(from_struct).unwrap_or_default(),
        session: session.cloned(),
    })
}

/// Four bytes a token: what the kernel assumes without a tokenizer.
const BYTES_PER_TOKEN: u64 = 4;

/// The RPCs that need what this host does not have, each with the reason. They are written as the attribute of
/// the trait would have them, because it does not see into a macro.
macro_rules! not_offered {
    ($($rpc:ident($request:ty) -> $reply:ty: $why:literal;)*) => {$(
        fn $rpc<'a, 'b>(
            &'a self,
            _: Request<$request>,
        ) -> Pin<Box<dyn Future<Output = Result<Response<$reply>, Status>> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(concat!("this host ", $why))) })
        }
    )*};
}

#[tonic::async_trait]
impl KernelCallbackService for Kernel {
    type SubscribeStream = Empty<Result<BusEvent, Status>>;
    type ReadEventsStream = Empty<Result<StoredEvent, Status>>;
    type StreamDeltasStream = Empty<Result<TokenDelta, Status>>;

    async fn count_tokens(
        &self,
        request: Request<CountTokensRequest>,
    ) -> Result<Response<CountTokensResult>, Status> {
        let content = request.into_inner().content;
        if content.is_empty() {
            return Err(Status::invalid_argument("content is empty"));
        }
        let bytes = |block: &harness_proto::content::v1::ContentBlock| match &block.block {
            Some(Block::Text(text)) => text.text.len() as u64,
            _ => 0,
        };
        let count = content.iter().map(bytes).sum::<u64>().div_ceil(BYTES_PER_TOKEN);
        Ok(Response::new(CountTokensResult { count: i64::try_from(count).unwrap_or(i64::MAX), exact: false }))
    }

    async fn emit(&self, request: Request<EmitRequest>) -> Result<Response<EmitResult>, Status> {
        let event = request.into_inner();
        match event.kind() {
            EventKind::Message | EventKind::Plan => {
                return Err(Status::permission_denied("only the kernel emits messages and plans"));
            }
            EventKind::Unspecified => return Err(Status::invalid_argument("kind is not given")),
            _ if event.schema_version.is_empty() => {
                return Err(Status::invalid_argument("schema_version is empty"));
            }
            _ if event.payload.is_empty() => return Err(Status::invalid_argument("payload is empty")),
            _ => {}
        }
        let mut state = self.state();
        let id = event.session_id.clone();
        let session = state.sessions.get_mut(&id).ok_or_else(|| no_grant(&id))?;
        if session.events.len() >= MOST_EVENTS {
            return Err(Status::resource_exhausted("this host keeps no more events of one session"));
        }
        session.events.push(event);
        let sequence = session.events.len();
        let result = EmitResult {
            id: format!("{id}/{sequence}"),
            sequence: i64::try_from(sequence).unwrap_or(i64::MAX),
        };
        Ok(Response::new(result))
    }

    async fn log(&self, request: Request<LogRequest>) -> Result<Response<LogResult>, Status> {
        let LogRequest { session_id, entries } = request.into_inner();
        if let Some(id) = session_id.as_ref().filter(|id| !id.is_empty()) {
            self.info(id)?;
        }
        let records: Vec<_> =
            entries.into_iter().filter_map(|entry| record(session_id.as_ref(), entry)).collect();
        if records.is_empty() {
            return Err(Status::invalid_argument("no entry has a level, a message and a time"));
        }
        records.into_iter().for_each(|record| self.notice(What::Log(record)));
        Ok(Response::new(LogResult {}))
    }

    async fn get_telemetry_config(
        &self,
        _: Request<GetTelemetryConfigRequest>,
    ) -> Result<Response<GetTelemetryConfigResult>, Status> {
        Ok(Response::new(GetTelemetryConfigResult {
            logs_enabled: true,
            log_level: log::LogLevel::Debug.into(),
            ..GetTelemetryConfigResult::default()
        }))
    }

    async fn get_config(&self, _: Request<GetConfigRequest>) -> Result<Response<GetConfigResult>, Status> {
        Ok(Response::new(GetConfigResult { config: Some(self.state().config.clone()) }))
    }

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<PublishResult>, Status> {
        let event_type = request.into_inner().event_type;
        if event_type.is_empty() || event_type.contains(['.', '*']) {
            return Err(Status::invalid_argument("event_type is one segment without . or *"));
        }
        // Nobody can subscribe here, so the event has reached everybody there is.
        let topic = format!("plugin.tool.{}.{event_type}", self.state().provider);
        Ok(Response::new(PublishResult { topic }))
    }

    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResult>, Status> {
        let (info, _) = self.info(&request.into_inner().session_id)?;
        Ok(Response::new(GetSessionResult { info: Some(info), ..GetSessionResult::default() }))
    }

    async fn get_session_state(
        &self,
        request: Request<GetSessionStateRequest>,
    ) -> Result<Response<GetSessionStateResult>, Status> {
        let (info, working_directory) = self.info(&request.into_inner().session_id)?;
        let state = session::SessionState {
            info: Some(info),
            working_directory,
            phase: session::SessionPhase::Generating.into(),
            ..session::SessionState::default()
        };
        Ok(Response::new(GetSessionStateResult { state: Some(state) }))
    }

    async fn subscribe(
        &self,
        _: Request<SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        Err(Status::unimplemented("this host has no event bus"))
    }

    async fn read_events(
        &self,
        _: Request<ReadEventsRequest>,
    ) -> Result<Response<Self::ReadEventsStream>, Status> {
        Err(Status::unimplemented("this host has no event store"))
    }

    async fn stream_deltas(
        &self,
        _: Request<StreamDeltasRequest>,
    ) -> Result<Response<Self::StreamDeltasStream>, Status> {
        Err(Status::unimplemented("this host runs no model"))
    }

    not_offered! {
        run_session(RunSessionRequest) -> RunSessionResult: "runs no model, so it cannot run a session";
        export_spans(ExportSpansRequest) -> ExportSpansResult: "collects no traces";
        record_metrics(RecordMetricsRequest) -> RecordMetricsResult: "collects no metrics";
        submit_input(SubmitInputRequest) -> SubmitInputResult: "runs no model, so nothing takes input";
        resolve_plan_decision(ResolvePlanDecisionRequest) -> ResolvePlanDecisionResult: "takes approvals itself";
        resolve_interactive(ResolveInteractiveRequest) -> ResolveInteractiveResult: "takes answers itself";
        interrupt(InterruptRequest) -> InterruptResult: "has no turn to interrupt";
        create_session(CreateSessionRequest) -> CreateSessionResult: "creates no sessions for others";
        attach_session(AttachSessionRequest) -> AttachSessionResult: "lets nobody attach";
        resume_session(ResumeSessionRequest) -> ResumeSessionResult: "keeps no sessions";
        detach_session(DetachSessionRequest) -> DetachSessionResult: "lets nobody attach";
        list_sessions(ListSessionsRequest) -> ListSessionsResult: "keeps no list of sessions";
        publish_metadata(PublishMetadataRequest) -> PublishMetadataResult: "shows no metadata";
        retract_metadata(RetractMetadataRequest) -> RetractMetadataResult: "shows no metadata";
        list_metadata(ListMetadataRequest) -> ListMetadataResult: "shows no metadata";
        invoke_slash_command(InvokeSlashCommandRequest) -> InvokeSlashCommandResult: "has no slash commands";
        trigger_action(TriggerActionRequest) -> TriggerActionResult: "has no actions";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> (Kernel, Arc<Mutex<Vec<What>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let kernel = Kernel::new("p", Notices::to(move |notice| sink.lock().unwrap().push(notice.what)));
        (kernel, seen)
    }

    fn emission(session: &str, kind: EventKind) -> Request<EmitRequest> {
        Request::new(EmitRequest {
            session_id: session.into(),
            kind: kind.into(),
            schema_version: "1".into(),
            payload: b"x".as_slice().into(),
        })
    }

    #[tokio::test]
    async fn events_are_numbered_within_their_session() {
        let (kernel, _) = kernel();
        kernel.open_session("s", "/w");
        kernel.open_session("t", "/w");
        for (session, expected) in [("s", 1), ("t", 1), ("s", 2)] {
            let result = kernel.emit(emission(session, EventKind::ToolResult)).await.unwrap().into_inner();
            assert_eq!((result.sequence, result.id), (expected, format!("{session}/{expected}")));
        }
        let refused = |code: tonic::Code, status: Status| assert_eq!(status.code(), code, "{status}");
        refused(
            tonic::Code::PermissionDenied,
            kernel.emit(emission("u", EventKind::Apply)).await.unwrap_err(),
        );
        refused(
            tonic::Code::PermissionDenied,
            kernel.emit(emission("s", EventKind::Plan)).await.unwrap_err(),
        );
        refused(
            tonic::Code::InvalidArgument,
            kernel.emit(emission("s", EventKind::Unspecified)).await.unwrap_err(),
        );
    }

    #[tokio::test]
    async fn bad_log_entries_are_skipped_one_by_one() {
        let (kernel, seen) = kernel();
        let entry = |message: &str| log::LogEntry {
            level: log::LogLevel::Warn.into(),
            message: message.into(),
            time: Some(Timestamp::default()),
            ..log::LogEntry::default()
        };
        let request = |entries| Request::new(LogRequest { session_id: None, entries });
        kernel.log(request(vec![entry(""), entry("kept")])).await.unwrap();
        assert!(matches!(&seen.lock().unwrap()[..], [What::Log(record)] if record.message == "kept"));
        assert_eq!(
            kernel.log(request(vec![entry("")])).await.unwrap_err().code(),
            tonic::Code::InvalidArgument
        );
    }

    #[tokio::test]
    async fn a_session_no_call_has_named_is_refused() {
        let (kernel, _) = kernel();
        let ask = |id: &str| Request::new(GetSessionRequest { session_id: id.into() });
        assert_eq!(kernel.get_session(ask("s")).await.unwrap_err().code(), tonic::Code::PermissionDenied);
        kernel.open_session("s", "/w");
        let info = kernel.get_session(ask("s")).await.unwrap().into_inner().info.unwrap();
        assert_eq!(info.session_id, "s");
    }
}
