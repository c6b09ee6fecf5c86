//! The client's side: the tools of an MCP server, for programs and for other agents.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use rmcp::ClientHandler;
use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, ProgressNotificationParam, ServerResult, Tool,
};
use rmcp::service::{
    NotificationContext, Peer, PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError,
    serve_client,
};
use rmcp::transport::TokioChildProcess;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;
use tool_host::source::{Annotations, SourceTool, ToolResult};
use tool_host::{Call, CallError, Category, Event, Reporter, Source, ToolSource};

/// How long a server may take to start and to list its tools.
const BRING_UP_LIMIT: Duration = Duration::from_secs(30);
/// How long a server may take to end before it is ended.
const STOP_LIMIT: Duration = Duration::from_millis(1_500);

/// Why a server's tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// There is no command.
    #[error("the server {0} has no command to start it")]
    NoCommand(String),
    /// It could not be started.
    #[error("the server {name} cannot be started: {source}")]
    Start {
        /// The server.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// It started, but does not do as the protocol says.
    #[error("the server {name} does not speak the Model Context Protocol: {reason}")]
    Silent {
        /// The server.
        name: String,
        /// What happened.
        reason: String,
    },
}

/// A server that is to be started: a program that speaks the protocol on its standard input and output.
#[derive(Clone, Debug)]
pub struct McpServer {
    name: String,
    command: Vec<OsString>,
    directory: Option<PathBuf>,
    log: Option<fn(&str, &str)>,
}

impl McpServer {
    /// A server of that name, started by this program and its arguments.
    pub fn new(name: impl Into<String>, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { name: name.into(), command, directory: None, log: None }
    }

    /// The same, running in a directory.
    #[must_use]
    pub fn in_directory(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..self }
    }

    /// The same, with the lines of its standard error handed to `log`, after its name. Otherwise they are dropped.
    #[must_use]
    pub fn logging_to(self, log: fn(&str, &str)) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Starts it, with the environment of this process, and asks it for its tools.
    ///
    /// # Errors
    /// It does not start, or does not speak the protocol.
    pub async fn start(self) -> Result<Source, McpError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(McpError::NoCommand(self.name));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let started = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn();
        let (transport, stderr) =
            started.map_err(|source| McpError::Start { name: self.name.clone(), source })?;
        drain(stderr, self.name.clone(), self.log);
        let silent = |reason: String| McpError::Silent { name: self.name.clone(), reason };
        let known = Arc::new(Known::default());
        let listener = Listener { known: known.clone(), progress: ProgressDispatcher::new() };
        let bring_up = async {
            let running =
                serve_client(listener, transport).await.map_err(|error| silent(error.to_string()))?;
            known.refresh(running.peer()).await.map_err(|error| silent(error.to_string()))?;
            Ok(running)
        };
        let running = timeout(BRING_UP_LIMIT, bring_up)
            .await
            .map_err(|_| silent(format!("no answer within {BRING_UP_LIMIT:?}")))??;
        let version = running
            .peer()
            .peer_info()
            .and_then(|info| info.server_info.as_ref().map(|own| own.version.clone()));
        let origin = program.to_string_lossy().into_owned();
        let server = Server {
            peer: running.peer().clone(),
            progress: running.service().progress.clone(),
            known,
            running: Mutex::new(Some(running)),
        };
        Ok(Source::new(self.name.clone(), version.unwrap_or_default(), origin, server))
    }
}

/// Reads what the server writes to its standard error, so that it never waits for a reader.
fn drain(stderr: Option<ChildStderr>, name: String, log: Option<fn(&str, &str)>) {
    let Some(stderr) = stderr else { return };
    tokio::spawn(async move {
        let mut lines = BufReader::new(stderr).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            if let Some(log) = log {
                log(&name, String::from_utf8_lossy(&line).trim_end());
            }
        }
    });
}

/// The tools that a server has said it has.
struct Known {
    tools: RwLock<Arc<Vec<SourceTool>>>,
    changes: watch::Sender<u64>,
}

impl Default for Known {
    fn default() -> Self {
        Self { tools: RwLock::default(), changes: watch::channel(0).0 }
    }
}

impl Known {
    async fn refresh(&self, peer: &Peer<RoleClient>) -> Result<(), ServiceError> {
        let mut tools: Vec<SourceTool> = Vec::new();
        for tool in peer.list_all_tools().await? {
            if !tools.iter().any(|known| known.name == tool.name) {
                tools.push(of_server(tool));
            }
        }
        let changed = {
            let mut known = self.tools.write().unwrap_or_else(PoisonError::into_inner);
            let changed = **known != tools;
            *known = Arc::new(tools);
            changed
        };
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(())
    }
}

fn of_server(tool: Tool) -> SourceTool {
    let hints = tool.annotations.as_ref();
    SourceTool {
        title: tool.title.clone().or_else(|| hints.and_then(|hints| hints.title.clone())),
        description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
        annotations: Annotations {
            read_only: hints.and_then(|hints| hints.read_only_hint),
            destructive: hints.and_then(|hints| hints.destructive_hint),
            idempotent: hints.and_then(|hints| hints.idempotent_hint),
            open_world: hints.and_then(|hints| hints.open_world_hint),
        },
        name: tool.name.into_owned(),
    }
}

/// Hears what the server says by itself.
struct Listener {
    known: Arc<Known>,
    progress: ProgressDispatcher,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("toolctl", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }

    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        if let Err(error) = self.known.refresh(&context.peer).await {
            tracing::warn!(%error, "the changed tools cannot be listed");
        }
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.handle_notification(progress).await;
    }
}

/// A server that runs.
struct Server {
    peer: Peer<RoleClient>,
    progress: ProgressDispatcher,
    known: Arc<Known>,
    /// `None` once stopped.
    running: Mutex<Option<RunningService<RoleClient, Listener>>>,
}

impl ToolSource for Server {
    fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.known.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.known.changes.subscribe()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>> {
        Box::pin(self.make(call, reporter))
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(running) = self.running.lock().await.take() {
                // Dropping what is left ends the process at once.
                let _ = timeout(STOP_LIMIT, running.cancel()).await;
            }
        })
    }
}

impl Server {
    async fn make(&self, call: &Call, reporter: &Reporter) -> Result<ToolResult, CallError> {
        let params = CallToolRequestParams::new(call.tool.clone()).with_arguments(call.arguments.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut open = Open(Some(sent.map_err(|error| refused(&error))?));
        let Some(handle) = &mut open.0 else { return Err(tool_host::call::cancelled()) };
        let mut progress = self.progress.subscribe(handle.progress_token.clone()).await;
        let response = loop {
            tokio::select! {
                biased;
                Some(told) = progress.next() => reporter.send(event(told)).await,
                response = &mut handle.rx => break response.unwrap_or(Err(ServiceError::TransportClosed)),
                () = reporter.cancelled() => return Err(tool_host::call::cancelled()),
            }
        };
        open.0 = None;
        match response.map_err(|error| refused(&error))? {
            ServerResult::CallToolResult(result) => Ok(result_of(result)),
            ServerResult::InputRequiredResult(_) => Err(CallError::new(
                Category::PermissionDenied,
                format!("{} asks for input of a person, and nobody can be asked through here", call.tool),
            )
            .with("code", "no_human")),
            _ => Err(CallError::new(
                Category::Unknown,
                "the server answered with something else than a result",
            )),
        }
    }
}

/// A request without an answer. Dropping it tells the server that nobody waits any more.
struct Open(Option<RequestHandle<RoleClient>>);

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(handle.cancel(Some("the call was given up".to_owned())));
        }
    }
}

fn event(told: ProgressNotificationParam) -> Event {
    let fraction =
        told.total.filter(|total| *total > 0.0).map(|total| (told.progress / total).clamp(0.0, 1.0));
    Event::Progress { message: told.message.unwrap_or_default(), fraction_complete: fraction }
}

fn result_of(result: CallToolResult) -> ToolResult {
    let item = |item| serde_json::to_value(item).unwrap_or(Value::Null);
    ToolResult {
        content: result.content.into_iter().map(item).collect(),
        structured: result.structured_content,
        failed: result.is_error.unwrap_or(false),
    }
}

/// An error of the protocol, or of the way to the server.
fn refused(error: &ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) if error.code == rmcp::model::ErrorCode::INVALID_PARAMS => {
            CallError::new(Category::InvalidArguments, error.message.to_string())
        }
        ServiceError::McpError(error) => CallError::new(Category::ExecutionFailed, error.message.to_string()),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            CallError::new(Category::ProcessCrashed, "the server has ended")
        }
        error => CallError::new(Category::Unknown, error.to_string()),
    }
}
