//! One call: what is asked for, and the handle on it while it runs.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::event::{CallError, Category, Event, Object, Outcome};
use crate::json::to_struct;

/// What is asked of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Names the call towards the provider; unique in its process.
    pub id: String,
    /// The tool's bare name.
    pub tool: String,
    /// The arguments, as they came.
    pub arguments: Object,
    /// The session the call belongs to.
    pub session: String,
    /// Where relative paths start.
    pub working_directory: PathBuf,
    /// How long the call may run once it has started; `None` takes what the tool declares.
    pub timeout: Option<Duration>,
}

impl Call {
    /// A call with an id of its own.
    pub fn new(tool: impl Into<String>, arguments: Object, session: impl Into<String>) -> Self {
        Self {
            id: ulid::Ulid::new().to_string(),
            tool: tool.into(),
            arguments,
            session: session.into(),
            working_directory: PathBuf::new(),
            timeout: None,
        }
    }

    pub(crate) fn to_wire(&self) -> pb::ToolCall {
        pb::ToolCall {
            id: self.id.clone(),
            tool_name: self.tool.clone(),
            arguments: Some(to_struct(self.arguments.clone())),
            call_context: Some(CallContext {
                session_id: self.session.clone(),
                turn_id: String::new(),
                working_directory: self.working_directory.to_string_lossy().into_owned(),
            }),
        }
    }
}

/// A call that has been made. Dropping it gives the call up.
#[derive(Debug)]
pub struct Invocation {
    events: mpsc::Receiver<Event>,
    outcome: JoinHandle<Outcome>,
    stop: CancellationToken,
}

/// Cancels a call from elsewhere.
#[derive(Clone, Debug)]
pub struct Canceller(CancellationToken);

impl Canceller {
    /// Asks the call to end. What it still reports, and its outcome, arrive as usual.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// Events that are ready before somebody takes them; beyond that the provider waits.
const EVENTS_AHEAD: usize = 32;

impl Invocation {
    /// Runs `work` as a call.
    pub(crate) fn spawn<F>(work: impl FnOnce(Line) -> F) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let (sender, events) = mpsc::channel(EVENTS_AHEAD);
        let stop = CancellationToken::new();
        let outcome = tokio::spawn(work(Line { events: sender, stop: stop.clone() }));
        Self { events, outcome, stop }
    }

    /// The next event, until there are no more; then [`Self::outcome`] is ready.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// How the call ended. Events that nobody took are dropped.
    pub async fn outcome(mut self) -> Outcome {
        while self.events.recv().await.is_some() {}
        match (&mut self.outcome).await {
            Ok(outcome) => outcome,
            Err(error) => Err(CallError::new(Category::Unknown, format!("the host failed: {error}"))),
        }
    }

    /// A handle that cancels this call.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.stop.clone())
    }
}

impl Drop for Invocation {
    fn drop(&mut self) {
        self.outcome.abort();
    }
}

/// The call's end of an [`Invocation`].
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) stop: CancellationToken,
}

impl Line {
    /// Waits for `work`, unless the call is cancelled first.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, CallError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(cancelled()),
            done = work => Ok(done),
        }
    }
}

/// What work in place of a provider reports with; see [`crate::Host::call_with`].
#[derive(Debug)]
pub struct Reporter(Line);

impl Reporter {
    pub(crate) fn new(line: Line) -> Self {
        Self(line)
    }

    /// Reports an event. Nobody may be listening any more.
    pub async fn send(&self, event: Event) {
        let _ = self.0.events.send(event).await;
    }

    /// Resolves when the call is given up.
    pub async fn cancelled(&self) {
        self.0.stop.cancelled().await;
    }
}

/// What a call that was given up ends with.
pub fn cancelled() -> CallError {
    CallError::new(Category::Cancelled, "the call was cancelled")
}
