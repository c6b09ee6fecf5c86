//! A plugin that runs, as a source of tools.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool_host::notice::What;
use tool_host::source::{SourceTool, ToolResult};
use tool_host::{Call, CallError, Category, Event, Notices, Object, Reporter, ToolSource};

use super::host::{HostCall, HostTools, Opening, opening_params};
use super::link::{Link, NoAnswer, Request};
use super::listing::listed;
use super::process::{Process, Program};
use crate::conventions::{code, initialize_params, method};
use crate::message::{Id, Incoming, RpcError};
use crate::result::result_of;
use crate::subagents::{Ending, Subagents};

/// The first answers must come within this time.
const BRING_UP: Duration = Duration::from_secs(30);
/// How long after a broken pipe the end of the process may become known.
const DEATH: Duration = Duration::from_millis(500);
/// What is kept of its last words, in bytes.
const LAST_WORDS: usize = 4 * 1024;
/// Complaints about one plugin that are passed on; somebody who prints to the wrong place does so without end.
const MOST_COMPLAINTS: usize = 20;

/// What is to be started, and how.
#[derive(Clone)]
pub struct Start {
    name: String,
    program: Program,
    notices: Notices,
    in_plugins_workspace: bool,
    host: Option<Arc<dyn HostTools>>,
}

impl Start {
    /// The plugin of that name, which is this program, in its folder.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        let program =
            Program { path: program.into(), arguments: Vec::new(), folder: folder.into(), env: Vec::new() };
        let name = name.into();
        Self { name, program, notices: Notices::ignored(), in_plugins_workspace: false, host: None }
    }

    /// With these arguments.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.program.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// With this variable, besides the few that every plugin gets.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.program.env.push((name.into(), value.into()));
        self
    }

    /// Tells what happens beside the calls.
    #[must_use]
    pub fn telling(self, notices: Notices) -> Self {
        Self { notices, ..self }
    }

    /// Whether sessions are for working on plugins, which some tools are for.
    #[must_use]
    pub fn in_plugins_workspace(self, there: bool) -> Self {
        Self { in_plugins_workspace: there, ..self }
    }

    /// Answers what the plugin asks of its host.
    #[must_use]
    pub fn serving(self, host: Arc<dyn HostTools>) -> Self {
        Self { host: Some(host), ..self }
    }
}

/// Why a plugin cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its program does not start.
    #[error("{0}")]
    Program(#[from] std::io::Error),
    /// It does not answer, or refuses.
    #[error("it does not answer {method}: {reason}")]
    Silent {
        /// What it was asked.
        method: &'static str,
        /// What came instead.
        reason: String,
    },
}

/// A plugin that runs. Dropping it ends it at once; [`ToolSource::stop`] in order.
pub struct PluginProcess(Arc<Inner>);

struct Inner {
    name: String,
    link: Link,
    process: Process,
    notices: Notices,
    in_plugins_workspace: bool,
    host: Option<Arc<dyn HostTools>>,
    tools: RwLock<Arc<Vec<SourceTool>>>,
    changes: watch::Sender<u64>,
    /// Calls whose subagents are told of, by their scope.
    scopes: Mutex<HashMap<String, mpsc::UnboundedSender<Object>>>,
    /// Calls that the plugin has made of its host.
    host_calls: Mutex<HashMap<Id, CancellationToken>>,
    last_words: Mutex<Vec<u8>>,
}

impl std::fmt::Debug for PluginProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginProcess").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl PluginProcess {
    /// Starts the plugin, and asks it for its tools.
    ///
    /// # Errors
    /// It does not start, or does not answer.
    pub async fn start(start: Start) -> Result<Self, StartError> {
        let (process, pipes) = Process::start(&start.program)?;
        let inner = Arc::new(Inner {
            name: start.name,
            link: Link::open(pipes.stdin),
            process,
            notices: start.notices,
            in_plugins_workspace: start.in_plugins_workspace,
            host: start.host,
            tools: RwLock::default(),
            changes: watch::Sender::new(0),
            scopes: Mutex::default(),
            host_calls: Mutex::default(),
            last_words: Mutex::default(),
        });
        tokio::spawn(listen(inner.clone().link.clone(), Arc::downgrade(&inner), pipes.stdout));
        tokio::spawn(hear(Arc::downgrade(&inner), pipes.stderr));
        let plugin = Self(inner);
        let params = initialize_params("toolctl", env!("CARGO_PKG_VERSION"), true);
        plugin.0.ask(method::INITIALIZE, params).await?;
        plugin.0.list().await?;
        Ok(plugin)
    }

    /// Opens a session of one of its agents: `params` is what the plugin wants to know, to which what the session may call
    /// and what the agent is told are added.
    ///
    /// # Errors
    /// The plugin refuses, or is gone; or it was started without a host.
    pub async fn open_session(&self, opening: Opening, params: Object) -> Result<Value, CallError> {
        let Some(host) = &self.0.host else {
            return Err(CallError::new(Category::ExecutionFailed, "there are no tools to hand to a session"));
        };
        let params = opening_params(params, host.as_ref()).await;
        let mut request = self.0.link.request(opening.method(), params);
        match request.answer().await {
            Ok(value) => Ok(value),
            Err(why) => Err(self.0.error(why).await),
        }
    }
}

/// Reads what the plugin writes, for as long as somebody uses it.
async fn listen(link: Link, inner: std::sync::Weak<Inner>, stdout: tokio::process::ChildStdout) {
    let mut complaints = 0;
    let complain = {
        let inner = inner.clone();
        move |why: String| {
            complaints += 1;
            if let Some(inner) = inner.upgrade().filter(|_| complaints <= MOST_COMPLAINTS) {
                inner.warn(why);
            }
        }
    };
    let receive = |message| {
        if let Some(inner) = inner.upgrade() {
            inner.receive(message);
        }
    };
    link.read(stdout, receive, complain).await;
    if let Some(inner) = inner.upgrade() {
        let calls = std::mem::take(&mut *inner.host_calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.values().for_each(CancellationToken::cancel);
    }
}

/// Passes on what the plugin logs, by lines.
async fn hear(inner: std::sync::Weak<Inner>, mut stderr: ChildStderr) {
    let mut buffer = vec![0; 8 * 1024];
    let mut line = Vec::new();
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let Some(inner) = inner.upgrade() else { return };
        inner.keep_last_words(&buffer[..count]);
        for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if line.ends_with(b"\n") || line.len() > buffer.len() {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                inner.notices.send(&inner.name, What::Stderr(text));
                line.clear();
            }
        }
    }
}

impl Inner {
    /// One of the first questions.
    async fn ask(&self, method: &'static str, params: Value) -> Result<Value, StartError> {
        let silent = |reason| StartError::Silent { method, reason };
        let mut request = self.link.request(method, params);
        match timeout(BRING_UP, request.answer()).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => {
                let error = self.error(why).await;
                let words = error.details.get("stderr").and_then(Value::as_str);
                let words = words.map_or_else(String::new, |words| format!("\n{words}"));
                Err(silent(format!("{}{words}", error.message)))
            }
            Err(_) => Err(silent(format!("nothing came within {} s", BRING_UP.as_secs()))),
        }
    }

    /// Asks for the tools; returns whether they are others than before.
    async fn list(&self) -> Result<bool, StartError> {
        let answer = self.ask(method::TOOLS_LIST, json!({})).await?;
        let (tools, warnings) = listed(&answer, self.in_plugins_workspace);
        warnings.into_iter().for_each(|warning| self.warn(warning));
        let mut known = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let changed = **known != tools;
        *known = Arc::new(tools);
        Ok(changed)
    }

    fn receive(self: Arc<Self>, message: Incoming) {
        match message {
            Incoming::Notification { method, params } => self.notified(&method, &params),
            Incoming::Request { id, method, params } => self.asked(id, &method, params),
            Incoming::Response { .. } => {}
        }
    }

    fn notified(self: Arc<Self>, name: &str, params: &Value) {
        match name {
            method::TOOLS_CHANGED => {
                tokio::spawn(async move {
                    match self.list().await {
                        Ok(true) => self.changes.send_modify(|count| *count += 1),
                        Ok(false) => {}
                        Err(error) => self.warn(error.to_string()),
                    }
                });
            }
            method::SUBAGENT_EVENT => self.subagent(params),
            method::TOOL_CANCEL => {
                let id = params.get("id").and_then(Id::from_json);
                let calls = self.host_calls.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(cancel) = id.and_then(|id| calls.get(&id)) {
                    cancel.cancel();
                }
            }
            _ => {}
        }
    }

    /// Passes an event on to the call it belongs to.
    fn subagent(&self, params: &Value) {
        let scope = params.get("scope").and_then(Value::as_str).unwrap_or_default();
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(call), Some(Value::Object(event))) = (scopes.get(scope), params.get("event")) else {
            return;
        };
        let mut payload = event.clone();
        payload.insert("subagent".to_owned(), params.get("subagent").cloned().unwrap_or_default());
        // The call may have ended.
        let _ = call.send(payload);
    }

    fn asked(self: Arc<Self>, id: Id, name: &str, params: Value) {
        let Some(host) = self.host.clone() else {
            return self.link.answer(id, Err(RpcError::no_method(name)));
        };
        match name {
            method::HOST_TOOLS_CALL => match serde_json::from_value::<HostCall>(params) {
                Ok(call) => self.host_call(id, call, host),
                Err(error) => self.link.answer(id, Err(RpcError::invalid_params(error.to_string()))),
            },
            method::HOST_MCP_SERVE => {
                let workspace = params.get("workspace").and_then(Value::as_str).map(PathBuf::from);
                tokio::spawn(async move {
                    let served = host.serve_mcp(workspace).await;
                    self.link.answer(id, served.map(|address| json!(address)));
                });
            }
            other => self.link.answer(id, Err(RpcError::no_method(other))),
        }
    }

    fn host_call(self: Arc<Self>, id: Id, call: HostCall, host: Arc<dyn HostTools>) {
        let cancel = CancellationToken::new();
        self.host_calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), cancel.clone());
        tokio::spawn(async move {
            let known = host.tools().iter().any(|tool| tool.name == call.name);
            let result = match known {
                true => host.call(call, cancel).await,
                false => Err(RpcError::invalid_params(format!("there is no tool {}", call.name))),
            };
            self.host_calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            self.link.answer(id, result.map(|result| json!(result)));
        });
    }

    async fn call(&self, call: &Call, reporter: &Reporter) -> Result<ToolResult, CallError> {
        let (scope, mut told) = self.scope(call);
        let mut request = self.link.call(call_params(call, &scope.name));
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut subagents = Subagents::shown_to(move |_, event| {
            let _ = sender.send(event.clone());
        });
        let mut cancelled = false;
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = told.recv() => {
                    subagents.take(&event);
                    report(&mut events, reporter).await;
                }
                answer = answered(&mut request, &mut cancelled, reporter) => break answer,
            }
        };
        while let Ok(event) = told.try_recv() {
            subagents.take(&event);
        }
        let outcome = match answer {
            Ok(value) => Ok(result_of(value)),
            Err(why) => Err(self.error(why).await),
        };
        let outcome = if cancelled { given_up(outcome, reporter).await } else { outcome };
        subagents.finish(match &outcome {
            Ok(result) if result.failed => Ending::Failed,
            other => Ending::of(other),
        });
        report(&mut events, reporter).await;
        outcome
    }

    /// A name under which the subagents of the call are told of, for as long as the call runs.
    fn scope(&self, call: &Call) -> (Scope<'_>, mpsc::UnboundedReceiver<Object>) {
        let (sender, told) = mpsc::unbounded_channel();
        let name = format!("{}/{}", call.session, call.id);
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), sender);
        (Scope { of: &self.scopes, name }, told)
    }

    async fn error(&self, why: NoAnswer) -> CallError {
        match why {
            NoAnswer::Refused(error) => {
                let category = match error.code {
                    code::INVALID_PARAMS => Category::InvalidArguments,
                    code::NO_METHOD => Category::NotFound,
                    _ => Category::ExecutionFailed,
                };
                CallError::new(category, error.message).with("rpc_code", error.code)
            }
            NoAnswer::Gone => {
                let how = match timeout(DEATH, self.process.exited()).await {
                    Ok(status) => format!("has ended ({status})"),
                    Err(_) => "has closed its standard output".to_owned(),
                };
                let error =
                    CallError::new(Category::ProcessCrashed, format!("the process of {} {how}", self.name));
                let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
                let words = String::from_utf8_lossy(&words).trim().to_owned();
                if words.is_empty() { error } else { error.with("stderr", words) }
            }
        }
    }

    fn keep_last_words(&self, words: &[u8]) {
        let mut kept = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(words);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }

    fn warn(&self, warning: String) {
        self.notices.send(&self.name, What::Warning(warning));
    }
}

/// The answer; when the call is given up, the plugin is told so first.
async fn answered(
    request: &mut Request,
    cancelled: &mut bool,
    reporter: &Reporter,
) -> Result<Value, NoAnswer> {
    tokio::select! {
        biased;
        answer = request.answer() => return answer,
        () = reporter.cancelled(), if !*cancelled => {}
    }
    *cancelled = true;
    request.cancel();
    request.answer().await
}

/// The scope of a running call.
struct Scope<'a> {
    of: &'a Mutex<HashMap<String, mpsc::UnboundedSender<Object>>>,
    name: String,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

fn call_params(call: &Call, scope: &str) -> Value {
    let mut context = json!({"callId": call.id, "chatId": call.session, "scope": scope});
    if call.working_directory.is_absolute() {
        context["workspace"] = call.working_directory.to_string_lossy().into_owned().into();
    }
    json!({"name": call.tool, "input": call.arguments, "context": context})
}

/// Passes on what subagents do; a step is progress too.
async fn report(events: &mut mpsc::UnboundedReceiver<Object>, reporter: &Reporter) {
    while let Ok(payload) = events.try_recv() {
        let title = payload.get("title").and_then(Value::as_str);
        if let (Some("step"), Some(title)) = (payload.get("kind").and_then(Value::as_str), title) {
            let message = title.to_owned();
            reporter.send(Event::Progress { message, fraction_complete: None }).await;
        }
        reporter.send(Event::PartialResult { payload }).await;
    }
}

/// How a call ends that was given up: as it did if it came to its end all the same, else as cancelled, with what it still
/// said.
async fn given_up(
    outcome: Result<ToolResult, CallError>,
    reporter: &Reporter,
) -> Result<ToolResult, CallError> {
    match outcome {
        Ok(result) if !result.failed => return Ok(result),
        Ok(result) => {
            let note = result.text_of_content();
            let payload = Map::from_iter([("note".to_owned(), Value::from(note))]);
            reporter.send(Event::PartialResult { payload }).await;
        }
        Err(_) => {}
    }
    Err(tool_host::call::cancelled())
}

impl ToolSource for PluginProcess {
    fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.0.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>> {
        Box::pin(self.0.call(call, reporter))
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.0.link.close();
            self.0.process.leave().await;
        })
    }
}
