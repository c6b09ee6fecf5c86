//! A provider at work: its configuration, its running calls, what it remembers. It answers in the SDK's own
//! terms; [`crate::service`] speaks gRPC.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{CURRENT, Call, Effects, Ending, PreviewCx, drive, locked, report_event};
use crate::config::{self, Scrubber};
use crate::error::{Code, ToolError};
use crate::kernel::{Kernel, SessionKernel};
use crate::logging;
use crate::nearest::nearest;
use crate::registry::{Catalogue, Tool};
use crate::render::{Node, Style};
use crate::tool::{Provider, Setup};
use crate::wire::{error_to_wire, struct_to_value, value_to_struct};

/// How many previews are remembered; a host previews a plan's calls shortly before it makes them.
const REMEMBERED_PREVIEWS: usize = 256;
/// Calls may use many directories over a long life; two are enough to know that there is not just one.
const REMEMBERED_DIRECTORIES: usize = 2;
/// How long running calls may take to end when the process stops.
const STOP_LIMIT: Duration = Duration::from_millis(1_200);

/// A configured provider and the secrets it must not tell.
struct Configured<P> {
    provider: Arc<P>,
    scrubber: Scrubber,
}

impl<P> Clone for Configured<P> {
    fn clone(&self) -> Self {
        Self { provider: self.provider.clone(), scrubber: self.scrubber.clone() }
    }
}

/// The state behind all services of one provider process.
pub(crate) struct Core<P> {
    pub(crate) catalogue: Catalogue<P>,
    kernel: Kernel,
    configured: Mutex<Option<Configured<P>>>,
    running: Mutex<HashMap<String, CancellationToken>>,
    running_count: watch::Sender<usize>,
    previews: Mutex<VecDeque<(String, String)>>,
    directories: Mutex<BTreeSet<PathBuf>>,
    shutdown: CancellationToken,
}

/// Why there is no preview.
pub(crate) enum NoPreview {
    /// The operation has none, or there is no such operation.
    Unimplemented,
    /// The call is wrong, or would fail.
    Failed(ToolError),
}

impl<P: Provider> Core<P> {
    pub(crate) fn new(catalogue: Catalogue<P>, kernel: Kernel) -> Self {
        Self {
            catalogue,
            kernel,
            configured: Mutex::default(),
            running: Mutex::default(),
            running_count: watch::Sender::new(0),
            previews: Mutex::default(),
            directories: Mutex::default(),
            shutdown: CancellationToken::new(),
        }
    }

    pub(crate) async fn configure(&self, values: Value) -> Result<(), ToolError> {
        let decoded = config::decode::<P::Config>(P::NAME, &self.catalogue.config, values)?;
        let scrubber = decoded.scrubber;
        let directory = std::env::current_dir().unwrap_or_default();
        logging::set_scrubber(scrubber.clone());
        let provider = P::configure(decoded.config, Setup { directory }).await;
        let provider = provider.map_err(|error| error.map_text(|value| scrubber.value(value)))?;
        *locked(&self.configured) = Some(Configured { provider: Arc::new(provider), scrubber });
        Ok(())
    }

    fn configured(&self) -> Result<Configured<P>, ToolError> {
        locked(&self.configured).clone().ok_or_else(|| {
            let message = format!("{} has not been configured; the host must call Configure first", P::NAME);
            ToolError::new(Code::NotConfigured, message)
        })
    }

    pub(crate) fn provider(&self) -> Result<Arc<P>, ToolError> {
        self.configured().map(|configured| configured.provider)
    }

    fn tool(&self, name: &str) -> Result<&Tool<P>, ToolError> {
        self.catalogue.tool(name).ok_or_else(|| {
            let names = || self.catalogue.declarations().map(|declaration| declaration.name);
            let hint = match nearest(name, names()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
            };
            ToolError::not_found(format!("{} has no tool {name:?}; {hint}", P::NAME))
        })
    }

    /// Runs one call. All events, the terminal one last, go to `events`; the caller's absence is noticed there.
    pub(crate) async fn invoke(
        self: Arc<Self>,
        call: pb::ToolCall,
        deadline: Option<Instant>,
        events: mpsc::Sender<pb::ToolEvent>,
    ) {
        let prepared = self.configured().and_then(|configured| Ok((configured, self.tool(&call.tool_name)?)));
        let (configured, tool) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return send_error(&events, &error).await,
        };
        let arguments = struct_to_value(call.arguments.clone().unwrap_or_default());
        let declaration = &tool.declaration;
        let call = Arc::new(self.call(call, declaration.name, deadline, &configured, events));
        let registration = Registration::new(&self, &call.id);
        let work = {
            let (core, call) = (self.clone(), call.clone());
            async move { core.tool(call.tool)?.invoke(configured.provider, arguments, call).await }
        };
        let ending = drive(call.clone(), work, registration.cancel.clone(), self.shutdown.clone()).await;
        finish(&call, declaration.streaming, ending).await;
    }

    fn call(
        &self,
        call: pb::ToolCall,
        tool: &'static str,
        deadline: Option<Instant>,
        configured: &Configured<P>,
        events: mpsc::Sender<pb::ToolEvent>,
    ) -> Call {
        let context = call.call_context.unwrap_or_default();
        let working_directory = PathBuf::from(context.working_directory);
        self.remember_directory(&working_directory);
        let session_id: Arc<str> = context.session_id.into();
        Call {
            previewed: self.take_preview(&call.id),
            id: call.id.into(),
            tool,
            kernel: SessionKernel::new(self.kernel.clone(), session_id.clone()),
            session_id,
            turn_id: context.turn_id,
            working_directory,
            deadline,
            scrubber: configured.scrubber.clone(),
            events,
            stop: CancellationToken::new(),
            cooperative: AtomicBool::new(false),
            exit_reported: AtomicBool::new(false),
            notes: Mutex::default(),
            effects: Effects::default(),
        }
    }

    fn remember_directory(&self, directory: &Path) {
        let mut directories = locked(&self.directories);
        if !directory.as_os_str().is_empty() && directories.len() < REMEMBERED_DIRECTORIES {
            directories.insert(directory.to_owned());
        }
    }

    fn take_preview(&self, id: &str) -> Option<String> {
        let mut previews = locked(&self.previews);
        let index = previews.iter().position(|(previewed, _)| previewed == id)?;
        previews.remove(index).map(|(_, fingerprint)| fingerprint)
    }

    /// Gives up a running call. Answers whether there was one with this id.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        locked(&self.running).get(id).map(CancellationToken::cancel).is_some()
    }

    pub(crate) async fn preview(&self, call: pb::ToolCall) -> Result<Node, NoPreview> {
        let tool = self.tool(&call.tool_name).map_err(|_| NoPreview::Unimplemented)?;
        if !tool.declaration.previews {
            return Err(NoPreview::Unimplemented);
        }
        let configured = self.configured().map_err(NoPreview::Failed)?;
        let context = call.call_context.unwrap_or_default();
        let known = locked(&self.directories).clone();
        let cx = Arc::new(PreviewCx {
            working_directory: Some(PathBuf::from(context.working_directory))
                .filter(|path| !path.as_os_str().is_empty()),
            known_directory: known
                .into_iter()
                .collect::<Vec<_>>()
                .try_into()
                .ok()
                .map(|[only]: [PathBuf; 1]| only),
            fingerprint: Mutex::default(),
            session_id: context.session_id,
        });
        let arguments = struct_to_value(call.arguments.unwrap_or_default());
        let preview =
            tool.preview(configured.provider, arguments, cx.clone()).ok_or(NoPreview::Unimplemented)?;
        let shown = contain_panic(preview)
            .await
            .map_err(|error| NoPreview::Failed(error.map_text(|value| configured.scrubber.value(value))))?;
        if let Some(fingerprint) = locked(&cx.fingerprint).take() {
            let mut previews = locked(&self.previews);
            previews.retain(|(id, _)| *id != call.id);
            if previews.len() == REMEMBERED_PREVIEWS {
                previews.pop_front();
            }
            previews.push_back((call.id, fingerprint));
        }
        Ok(shown)
    }

    /// Shows a payload that some version of this provider emitted.
    pub(crate) fn render(&self, payload: &[u8]) -> Result<Node, ToolError> {
        use harness_proto::event::v1::{ToolResultEvent, tool_result_event::Outcome};
        use prost::Message;
        let value = match serde_json::from_slice::<Value>(payload) {
            Ok(value) => value,
            Err(_) => match ToolResultEvent::decode(payload).ok().and_then(|event| event.outcome) {
                Some(Outcome::Result(result)) => struct_to_value(result.payload.unwrap_or_default()),
                Some(Outcome::Error(error)) => return Ok(Node::styled(error.message, Style::Error)),
                None => {
                    let message = "payload: neither JSON nor a stored tool result of this protocol";
                    return Err(ToolError::invalid_arguments(message));
                }
            },
        };
        let shown = self.catalogue.tools.iter().find_map(|tool| tool.render(&value));
        Ok(shown.unwrap_or_else(|| Node::Code { language: "json".to_owned(), content: format!("{value:#}") }))
    }

    /// Ends all calls and closes the provider, within bounds.
    pub(crate) async fn stop(&self) {
        self.shutdown.cancel();
        let mut count = self.running_count.subscribe();
        let _ = tokio::time::timeout(STOP_LIMIT, count.wait_for(|count| *count == 0)).await;
        if let Ok(provider) = self.provider() {
            let _ = tokio::time::timeout(Duration::from_secs(1), provider.close()).await;
        }
    }
}

/// Counts a call as running until it is dropped.
struct Registration<'a, P> {
    core: &'a Core<P>,
    id: Arc<str>,
    cancel: CancellationToken,
}

impl<'a, P> Registration<'a, P> {
    fn new(core: &'a Core<P>, id: &Arc<str>) -> Self {
        let cancel = CancellationToken::new();
        locked(&core.running).insert(id.to_string(), cancel.clone());
        core.running_count.send_modify(|count| *count += 1);
        Self { core, id: id.clone(), cancel }
    }
}

impl<P> Drop for Registration<'_, P> {
    fn drop(&mut self) {
        locked(&self.core.running).remove(&*self.id);
        self.core.running_count.send_modify(|count| *count -= 1);
    }
}

async fn contain_panic<T>(work: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    use futures_util::FutureExt;
    let result = std::panic::AssertUnwindSafe(work).catch_unwind().await;
    result.unwrap_or_else(|panic| Err(panicked(&crate::call::panic_text(&*panic))))
}

fn panicked(text: &str) -> ToolError {
    #[derive(Debug, thiserror::Error)]
    #[error("the tool panicked: {0}")]
    struct Panicked(String);
    ToolError::unknown(&Panicked(text.to_owned()))
}

async fn send_error(events: &mpsc::Sender<pb::ToolEvent>, error: &ToolError) {
    let _ = events.send(pb::ToolEvent { event: Some(Event::Error(error_to_wire(error))) }).await;
}

/// Sends what a call ended with: one terminal, or the report of a cancelled call.
async fn finish(call: &Arc<Call>, streaming: bool, ending: Ending) {
    let fail = async |error: ToolError| {
        let error = error.map_text(|value| call.scrubber.value(value));
        call.send(Event::Error(error_to_wire(&error))).await;
    };
    match ending {
        Ending::Finished(Ok(mut payload)) => {
            call.scrubber.value(&mut payload);
            call.send(Event::Result(pb::ToolResult { payload: Some(value_to_struct(payload)) })).await;
        }
        Ending::Finished(Err(error)) => fail(error).await,
        Ending::Panicked(text) => fail(panicked(&text)).await,
        Ending::Cancelled(report) => report_ended(call, streaming, report).await,
        Ending::TimedOut(report) => {
            let note = note_of(&report);
            report_ended(call, streaming, report).await;
            fail(ToolError::timeout(format!(
                "{}: {note}; try a smaller piece of work or a longer timeout",
                call.tool
            )))
            .await;
        }
        Ending::ShutDown(report) => {
            report_ended(call, streaming, report).await;
            fail(ToolError::cancelled()).await;
        }
    }
}

fn note_of(report: &Map<String, Value>) -> String {
    report.get("note").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The honest record of a call that did not come to its own end: to the caller where it still listens, and to
/// the kernel's log.
async fn report_ended(call: &Arc<Call>, streaming: bool, mut report: Map<String, Value>) {
    report.values_mut().for_each(|value| call.scrubber.value(value));
    let note = note_of(&report);
    CURRENT.sync_scope(call.clone(), || tracing::info!(tool = call.tool, call = &*call.id, "{note}"));
    if streaming {
        call.send(report_event(report)).await;
    }
}
