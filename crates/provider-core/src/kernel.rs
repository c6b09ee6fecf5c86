//! What a provider may ask of the kernel, degrading where the kernel is silent.
//!
//! A kernel may serve no callbacks at all, or only some. Every call here is bounded in time and answers
//! [`CallbackError::NotOffered`] where nothing is there, so that a tool decides what it can do without.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use harness_proto::kernel::v1 as pb;
use harness_proto::log::v1 as log;
use harness_proto::session::v1 as session;
use pb::kernel_callback_service_client::KernelCallbackServiceClient;
use serde_json::{Map, Value};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::hooks::message_text;
use crate::wire::{map_to_struct, struct_to_value};

/// The broker id under which every kernel serves its callbacks.
///
/// ```
/// // What a host of one's own announces its callback service under.
/// assert_eq!(provider_core::CALLBACK_BROKER_ID, 1);
/// ```
pub const CALLBACK_BROKER_ID: u32 = 1;

/// How long to wait for the kernel to announce its callback socket. The announcement and the first call may
/// arrive in either order.
const ANNOUNCEMENT_WAIT: Duration = Duration::from_secs(5);
/// How long an ordinary callback may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a callback gave no answer.
///
/// ```
/// use provider_core::{CallbackError, Code, ToolError};
///
/// fn told(error: CallbackError) -> ToolError {
///     match error {
///         CallbackError::NotOffered(_) => ToolError::new(
///             Code::NotConfigured,
///             "this host has no nested sessions; do the work yourself",
///         ),
///         failed @ CallbackError::Failed { .. } => ToolError::execution_failed(failed.to_string()),
///     }
/// }
/// # let _ = told;
/// ```
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The kernel serves no callbacks, or not this one.
    #[error("the kernel does not offer {0}")]
    NotOffered(&'static str),
    /// The kernel refused or failed.
    #[error("the kernel answered {operation} with {code}: {message}")]
    Failed {
        /// The callback's name.
        operation: &'static str,
        /// The gRPC code in words.
        code: String,
        /// The kernel's text.
        message: String,
    },
}

/// Where the callback service is reached.
#[derive(Clone)]
pub(crate) enum Source {
    Broker(goplugin::plugin::Broker),
    #[cfg(feature = "testing")]
    Channel(Channel),
    #[cfg(feature = "testing")]
    None,
}

/// A connection to the kernel's callbacks, made on first use and made again when it breaks.
#[derive(Clone)]
pub(crate) struct Kernel {
    source: Source,
}

/// One entry for the kernel's log.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub(crate) session_id: Option<Arc<str>>,
    pub(crate) level: log::LogLevel,
    pub(crate) logger: String,
    pub(crate) message: String,
    pub(crate) fields: Map<String, Value>,
    pub(crate) time: SystemTime,
}

impl Kernel {
    pub(crate) fn new(source: Source) -> Self {
        Self { source }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn is_present(&self) -> bool {
        !matches!(self.source, Source::None)
    }

    async fn client(
        &self,
        operation: &'static str,
    ) -> Result<KernelCallbackServiceClient<Channel>, CallbackError> {
        let channel = match &self.source {
            Source::Broker(broker) => broker.dial(CALLBACK_BROKER_ID, ANNOUNCEMENT_WAIT).await.ok(),
            #[cfg(feature = "testing")]
            Source::Channel(channel) => Some(channel.clone()),
            #[cfg(feature = "testing")]
            Source::None => None,
        };
        let channel = channel.ok_or(CallbackError::NotOffered(operation))?;
        Ok(KernelCallbackServiceClient::new(channel).max_decoding_message_size(usize::MAX))
    }

    fn forget(&self) {
        match &self.source {
            Source::Broker(broker) => broker.forget(CALLBACK_BROKER_ID),
            #[cfg(feature = "testing")]
            Source::Channel(_) | Source::None => {}
        }
    }

    /// Turns a status into our error; a broken connection is forgotten so that the next call dials anew.
    fn failed(&self, operation: &'static str, status: Status) -> CallbackError {
        if status.code() == Code::Unavailable {
            self.forget();
        }
        match status.code() {
            Code::Unimplemented => CallbackError::NotOffered(operation),
            code => CallbackError::Failed {
                operation,
                code: format!("{code:?}"),
                message: status.message().to_owned(),
            },
        }
    }

    /// Sends entries that all belong to one session, or to none.
    pub(crate) async fn log(&self, entries: Vec<LogEntry>) -> Result<(), CallbackError> {
        let session_id = entries.first().and_then(|entry| entry.session_id.as_deref().map(str::to_owned));
        let entries = entries.into_iter().map(log_to_wire).collect();
        let mut client = self.client("Log").await?;
        let request = timed(pb::LogRequest { session_id, entries }, CALL_TIMEOUT);
        client.log(request).await.map(drop).map_err(|status| self.failed("Log", status))
    }

    /// The values that Configure was given, as the kernel remembers them.
    pub(crate) async fn config(&self) -> Result<Value, CallbackError> {
        let mut client = self.client("GetConfig").await?;
        let request = timed(pb::GetConfigRequest::default(), CALL_TIMEOUT);
        let answer = client.get_config(request).await.map_err(|status| self.failed("GetConfig", status))?;
        Ok(struct_to_value(answer.into_inner().config.unwrap_or_default()))
    }
}

fn timed<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

fn log_to_wire(entry: LogEntry) -> log::LogEntry {
    log::LogEntry {
        level: entry.level.into(),
        logger: entry.logger,
        message: entry.message,
        fields: (!entry.fields.is_empty()).then(|| map_to_struct(entry.fields)),
        time: Some(entry.time.into()),
    }
}

/// What kind of durable event is emitted.
///
/// ```
/// use provider_core::{CallbackError, Cx, EmittedKind, Events};
///
/// /// `event` is a serialised `MemoryMutationEvent`.
/// async fn remember(cx: &Cx<Events>, event: Vec<u8>) -> Result<(), CallbackError> {
///     cx.kernel().emit(EmittedKind::MemoryWrite, event).await
/// }
/// # let _ = remember;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmittedKind {
    /// A serialised `event.v1.ContextContributionEvent`.
    ContextContribution,
    /// A serialised `event.v1.MemoryMutationEvent` for a new record.
    MemoryWrite,
    /// A serialised `event.v1.MemoryMutationEvent` for a changed record.
    MemoryUpdate,
    /// A serialised `event.v1.MemoryMutationEvent` for a removed record.
    MemoryDelete,
}

/// A request for a nested agent session. Depth and budget can only shrink.
///
/// ```
/// use provider_core::{Cx, Events, SubSession};
///
/// async fn research(cx: &Cx<Events>) -> Option<String> {
///     let child = SubSession {
///         profile: "research".to_owned(),
///         prompt: "Which files name the version?".to_owned(),
///         remaining_depth: 1,
///         remaining_cost_budget_usd: 0.5,
///     };
///     cx.kernel().run_session(child).await.ok().map(|end| end.text)
/// }
/// # let _ = research;
/// ```
#[derive(Clone, Debug, Default)]
pub struct SubSession {
    /// The agent profile's name.
    pub profile: String,
    /// All that the child sees.
    pub prompt: String,
    /// How much deeper the child may nest.
    pub remaining_depth: i32,
    /// What the child may spend, in US dollars.
    pub remaining_cost_budget_usd: f64,
}

/// How a nested session ended.
///
/// ```
/// use provider_core::{SubSessionEnd, ToolError};
///
/// fn answer(end: SubSessionEnd) -> Result<String, ToolError> {
///     match end.status.as_str() {
///         "completed" => Ok(end.text),
///         other => Err(ToolError::execution_failed(format!("the nested session ended as {other}: {}", end.text))),
///     }
/// }
/// # let _ = answer;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SubSessionEnd {
    /// The child's id.
    pub session_id: String,
    /// How it ended, in lower case: `completed`, `cancelled`, `failed`, `error_max_turns`, ….
    pub status: String,
    /// The text of its last message.
    pub text: String,
    /// What it spent, in US dollars.
    pub total_cost_usd: f64,
}

/// What the kernel says about a session.
///
/// ```
/// use provider_core::SessionFacts;
///
/// fn may_nest(facts: &SessionFacts) -> bool {
///     facts.remaining_depth > 0 && facts.remaining_cost_budget_usd > 0.0
/// }
/// # let _ = may_nest;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFacts {
    /// The agent profile's name.
    pub profile: String,
    /// The parent, for a nested session.
    pub parent_session_id: Option<String>,
    /// Nesting depth, 0 for a root.
    pub depth: i32,
    /// How much deeper the session may nest. The kernel may answer a placeholder of the largest integer.
    pub remaining_depth: i32,
    /// What the session may still spend, in US dollars.
    pub remaining_cost_budget_usd: f64,
}

/// The kernel as one call sees it: everything is asked for that call's session, never for another.
///
/// ```
/// use provider_core::{CallbackError, Cx, Silent};
///
/// async fn profile(cx: &Cx<Silent>) -> String {
///     match cx.kernel().session().await {
///         Ok(facts) => facts.profile,
///         // Hosts without callbacks are hosts too.
///         Err(error) => format!("unknown ({error})"),
///     }
/// }
/// # let _ = profile;
/// # let _: Option<CallbackError> = None;
/// ```
#[derive(Clone)]
pub struct SessionKernel {
    kernel: Kernel,
    session_id: Arc<str>,
}

impl SessionKernel {
    pub(crate) fn new(kernel: Kernel, session_id: Arc<str>) -> Self {
        Self { kernel, session_id }
    }

    /// Appends a durable event to the session; `payload` is the serialised event message.
    ///
    /// # Errors
    /// [`CallbackError`].
    pub async fn emit(&self, kind: EmittedKind, payload: Vec<u8>) -> Result<(), CallbackError> {
        let kind = match kind {
            EmittedKind::ContextContribution => pb::EventKind::ContextContribution,
            EmittedKind::MemoryWrite => pb::EventKind::MemoryWrite,
            EmittedKind::MemoryUpdate => pb::EventKind::MemoryUpdate,
            EmittedKind::MemoryDelete => pb::EventKind::MemoryDelete,
        };
        let request = pb::EmitRequest {
            session_id: self.session_id.to_string(),
            kind: kind.into(),
            schema_version: "1".to_owned(),
            payload: payload.into(),
        };
        let mut client = self.kernel.client("Emit").await?;
        let answer = client.emit(timed(request, CALL_TIMEOUT)).await;
        answer.map(drop).map_err(|status| self.kernel.failed("Emit", status))
    }

    /// What the kernel knows about this session.
    ///
    /// # Errors
    /// [`CallbackError`].
    pub async fn session(&self) -> Result<SessionFacts, CallbackError> {
        let request = pb::GetSessionRequest { session_id: self.session_id.to_string() };
        let mut client = self.kernel.client("GetSession").await?;
        let answer = client.get_session(timed(request, CALL_TIMEOUT)).await;
        let answer = answer.map_err(|status| self.kernel.failed("GetSession", status))?.into_inner();
        let info = answer.info.unwrap_or_default();
        Ok(SessionFacts {
            profile: info.profile,
            parent_session_id: info.parent_session_id,
            depth: info.depth,
            remaining_depth: answer.remaining_depth,
            remaining_cost_budget_usd: answer.remaining_cost_budget_usd,
        })
    }

    /// Runs a nested session and waits until it ends. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`CallbackError`]; kernels without nested sessions answer [`CallbackError::NotOffered`].
    pub async fn run_session(&self, child: SubSession) -> Result<SubSessionEnd, CallbackError> {
        let request = pb::RunSessionRequest {
            profile: child.profile,
            prompt: child.prompt,
            parent_session_id: self.session_id.to_string(),
            remaining_depth: child.remaining_depth,
            remaining_cost_budget_usd: child.remaining_cost_budget_usd,
            scoped_providers: Vec::new(),
        };
        let mut client = self.kernel.client("RunSession").await?;
        let answer = client.run_session(request).await;
        let answer = answer.map_err(|status| self.kernel.failed("RunSession", status))?.into_inner();
        Ok(SubSessionEnd {
            status: status_text(answer.status()),
            text: answer.final_message.as_ref().map(message_text).unwrap_or_default(),
            session_id: answer.session_id,
            total_cost_usd: answer.total_cost_usd,
        })
    }

    /// The configuration values as the kernel remembers them.
    ///
    /// # Errors
    /// [`CallbackError`].
    pub async fn config(&self) -> Result<Value, CallbackError> {
        self.kernel.config().await
    }
}

fn status_text(status: session::SessionStatus) -> String {
    status.as_str_name().trim_start_matches("SESSION_STATUS_").to_ascii_lowercase()
}
