//! One call as a tool sees it: who calls, how to report, when to stop.

use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::arguments::strip_nulls;
use crate::config::Scrubber;
use crate::error::{Code, ToolError};
use crate::kernel::SessionKernel;
use crate::wire::{map_to_struct, value_to_struct};

/// Locks a mutex whose data stays valid whatever a panicking holder did.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which events a tool sends before its terminal one. It decides both what the schema declares and which
/// methods [`Cx`] has, so that the two cannot disagree.
///
/// ```
/// use provider_core::{Events, Process, Silent, Stream};
///
/// assert!(!Silent::STREAMING && Events::STREAMING && Process::STREAMING);
/// assert!(Process::PROCESS && !Events::PROCESS);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which events a tool sends",
    note = "use `Silent` for nothing but the result, `Events` for progress and partial results, or `Process` for a program's \
            output and exit status"
)]
pub trait Stream: Send + Sync + 'static {
    /// Whether events may come before the terminal one.
    const STREAMING: bool;
    /// Whether the tool runs a process and reports its exit.
    const PROCESS: bool;
}

/// A [`Stream`] that may send progress and partial results.
///
/// ```
/// use provider_core::{Cx, Streaming};
///
/// async fn halfway<S: Streaming>(cx: &Cx<S>) {
///     cx.progress("half of it is done", Some(0.5)).await;
/// }
/// # let _ = halfway::<provider_core::Events>;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` sends no events",
    note = "a tool that sends progress, and every resource, which reports what it had done when a call is cancelled, \
            has `type Stream = Events`, or `Process` if it runs a program"
)]
pub trait Streaming: Stream {}

/// Nothing but the result.
///
/// ```
/// use provider_core::{Cx, Silent};
///
/// async fn count(words: &str, cx: Cx<Silent>) -> usize {
///     // There is no `cx.progress` here: what a silent tool has to say goes into its result.
///     cx.note("words are what white space separates");
///     words.split_whitespace().count()
/// }
/// # let _ = count;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Silent;
/// Progress and partial results.
///
/// ```
/// use provider_core::{Cx, Events, ToolError};
/// use serde_json::json;
///
/// async fn tell(cx: Cx<Events>) -> Result<(), ToolError> {
///     cx.progress("reading", Some(0.1)).await;
///     cx.partial(&json!({"found": ["a.txt"]})).await
/// }
/// # let _ = tell;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Events;
/// Events, output chunks and the exit status of a program.
///
/// ```
/// use provider_core::{Cx, Output, Process};
///
/// async fn tell(cx: Cx<Process>) {
///     cx.chunk(Output::Stdout, "compiling\n").await;
///     cx.exit_status(0, None).await;
/// }
/// # let _ = tell;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Process;

impl Stream for Silent {
    const STREAMING: bool = false;
    const PROCESS: bool = false;
}
impl Stream for Events {
    const STREAMING: bool = true;
    const PROCESS: bool = false;
}
impl Stream for Process {
    const STREAMING: bool = true;
    const PROCESS: bool = true;
}
impl Streaming for Events {}
impl Streaming for Process {}

/// Which pipe a chunk of output came from.
///
/// ```
/// use provider_core::{Cx, Output, Process};
///
/// async fn tell(cx: &Cx<Process>, line: Vec<u8>, failed: bool) {
///     cx.chunk(if failed { Output::Stderr } else { Output::Stdout }, line).await;
/// }
/// # let _ = tell;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The facts and channels of one running call, shared between the tool and its driver.
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) tool: &'static str,
    pub(crate) session_id: Arc<str>,
    pub(crate) turn_id: String,
    pub(crate) working_directory: PathBuf,
    pub(crate) deadline: Option<Instant>,
    pub(crate) previewed: Option<String>,
    pub(crate) kernel: SessionKernel,
    pub(crate) scrubber: Scrubber,
    pub(crate) events: mpsc::Sender<pb::ToolEvent>,
    pub(crate) stop: CancellationToken,
    /// The tool watches for the stop itself, so it is given time to come to a clean end.
    pub(crate) cooperative: AtomicBool,
    pub(crate) exit_reported: AtomicBool,
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) effects: Effects,
}

impl Call {
    pub(crate) async fn send(&self, event: Event) {
        // A closed stream means that the caller is gone; the driver sees that and ends the call.
        let _ = self.events.send(pb::ToolEvent { event: Some(event) }).await;
    }

    fn watch(&self) -> &CancellationToken {
        self.cooperative.store(true, Ordering::Relaxed);
        &self.stop
    }
}

tokio::task_local! {
    /// The call that the current task, or blocking thread, works for.
    pub(crate) static CURRENT: Arc<Call>;
}

/// What a mutating call has already changed. It becomes the report when the call is cancelled or times out.
///
/// ```
/// use provider_core::Effects;
///
/// let effects = Effects::default();
/// effects.record("replaced src/a.rs");
/// assert_eq!(effects.records(), ["replaced src/a.rs"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Effects(Arc<Mutex<VecDeque<String>>>);

/// Older records give way to newer ones beyond this many, so that memory stays bounded.
const KEPT_EFFECTS: usize = 256;

impl Effects {
    /// Records one thing that has happened and will not be taken back, in the past tense: `replaced src/a.rs`.
    pub fn record(&self, what: impl Into<String>) {
        let mut records = locked(&self.0);
        if records.len() == KEPT_EFFECTS {
            records.pop_front();
        }
        records.push_back(what.into());
    }

    /// What has been recorded, oldest first.
    pub fn records(&self) -> Vec<String> {
        locked(&self.0).iter().cloned().collect()
    }

    /// The report of a call that did not come to its own end.
    pub(crate) fn report(&self, why: &str) -> Map<String, Value> {
        let done = self.records();
        let note = if done.is_empty() {
            format!("{why}; nothing had been changed")
        } else {
            format!("{why}; already done: {}", done.join("; "))
        };
        let mut report = Map::from_iter([("note".to_owned(), Value::from(note))]);
        if !done.is_empty() {
            report.insert("done".to_owned(), json!(done));
        }
        report
    }
}

/// The context of one call. Cheap to clone, so that it can be moved into blocking work.
///
/// ```
/// use provider_core::{Cx, Events, ToolError};
///
/// /// Works through files, which may take long.
/// async fn convert(files: Vec<std::path::PathBuf>, cx: Cx<Events>) -> Result<usize, ToolError> {
///     let total = files.len();
///     for (done, file) in files.into_iter().enumerate() {
///         cx.check_cancelled()?;
///         let name = file.display().to_string();
///         cx.blocking(move || std::fs::read(&file).map_err(|error| ToolError::execution_failed(error.to_string())))
///             .await?;
///         cx.effects().record(format!("converted {name}"));
///         cx.progress(name, Some(done as f64 / total as f64)).await;
///     }
///     cx.note("files in other formats were left out");
///     Ok(total)
/// }
/// # let _ = convert;
/// ```
pub struct Cx<S: Stream> {
    call: Arc<Call>,
    stream: PhantomData<S>,
}

impl<S: Stream> Clone for Cx<S> {
    fn clone(&self) -> Self {
        Self::new(self.call.clone())
    }
}

impl<S: Stream> Cx<S> {
    pub(crate) fn new(call: Arc<Call>) -> Self {
        Self { call, stream: PhantomData }
    }

    /// The id of this call.
    pub fn call_id(&self) -> &str {
        &self.call.id
    }

    /// The session that calls. Empty when the host named none.
    pub fn session_id(&self) -> &str {
        &self.call.session_id
    }

    /// The turn that calls. Empty when the host named none.
    pub fn turn_id(&self) -> &str {
        &self.call.turn_id
    }

    /// The directory that relative paths start from. Empty when the host named none.
    pub fn working_directory(&self) -> &Path {
        &self.call.working_directory
    }

    /// How long the call may still run, if the host set a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        self.call.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// The fingerprint that this call's preview left, if it was previewed.
    pub fn previewed(&self) -> Option<&str> {
        self.call.previewed.as_deref()
    }

    /// The kernel, for this call's session.
    pub fn kernel(&self) -> &SessionKernel {
        &self.call.kernel
    }

    /// Adds a sentence to the result's `notes`.
    pub fn note(&self, note: impl Into<String>) {
        locked(&self.call.notes).push(note.into());
    }

    /// Resolves when the call is given up. A tool that waits on this is given two seconds to come to a clean
    /// end; one that does not is dropped at its next await.
    pub async fn cancelled(&self) {
        self.call.watch().cancelled().await;
    }

    /// Fails once the call has been given up. For loops in blocking work, between one safe point and the next.
    ///
    /// # Errors
    /// `cancelled`.
    pub fn check_cancelled(&self) -> Result<(), ToolError> {
        if self.call.watch().is_cancelled() { Err(ToolError::cancelled()) } else { Ok(()) }
    }

    /// Runs work that blocks (files, computation) beside the event loop.
    ///
    /// A started piece of work runs to its end, also when the call is cancelled meanwhile; long work asks
    /// [`Cx::check_cancelled`] at its safe points.
    ///
    /// # Errors
    /// Those of the work.
    ///
    /// # Panics
    /// Passes on a panic of the work, which ends the call with an `unknown` error.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.call.cooperative.store(true, Ordering::Relaxed);
        let call = self.call.clone();
        match tokio::task::spawn_blocking(move || CURRENT.sync_scope(call, work)).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(ToolError::unknown(&error)),
        }
    }
}

impl<S: Streaming> Cx<S> {
    /// Reports progress: a sentence, and how much is done from 0 to 1 where that is known.
    pub async fn progress(&self, message: impl Into<String>, fraction_complete: Option<f64>) {
        let message = self.call.scrubber.text(&message.into()).into_owned();
        let fraction_complete = fraction_complete.map(|fraction| fraction.clamp(0.0, 1.0));
        self.call.send(Event::Progress(pb::tool_event::Progress { message, fraction_complete })).await;
    }

    /// Sends a part of the result that is already known.
    ///
    /// # Errors
    /// `unknown` when the part cannot be written as JSON.
    pub async fn partial(&self, part: &impl Serialize) -> Result<(), ToolError> {
        let mut value = serde_json::to_value(part).map_err(|error| ToolError::unknown(&error))?;
        strip_nulls(&mut value);
        self.call.scrubber.value(&mut value);
        let payload = Some(value_to_struct(value));
        self.call.send(Event::PartialResult(pb::tool_event::PartialResult { payload })).await;
        Ok(())
    }

    /// Where the call records what it has changed.
    pub fn effects(&self) -> Effects {
        self.call.effects.clone()
    }
}

impl Cx<Process> {
    /// Passes on output of the program. Chunks arrive in the order they are sent and may split characters.
    pub async fn chunk(&self, output: Output, data: impl Into<Bytes>) {
        let stream = match output {
            Output::Stdout => pb::OutputStream::Stdout,
            Output::Stderr => pb::OutputStream::Stderr,
        };
        let chunk = pb::tool_event::OutputChunk { stream: stream.into(), data: data.into() };
        self.call.send(Event::OutputChunk(chunk)).await;
    }

    /// Reports how the program ended; only the first report is sent. A program that a signal ended has the
    /// exit code 128 + n.
    pub async fn exit_status(&self, exit_code: i32, signal: Option<String>) {
        if !self.call.exit_reported.swap(true, Ordering::Relaxed) {
            self.call.send(Event::ExitStatus(pb::tool_event::ExitStatus { exit_code, signal })).await;
        }
    }
}

/// The context of a preview. The kernel sends neither session nor working directory with it.
///
/// ```
/// use provider_core::{Node, PreviewCx, ToolError};
///
/// async fn preview(path: std::path::PathBuf, cx: &PreviewCx) -> Result<Node, ToolError> {
///     let Some(folder) = cx.working_directory() else {
///         return Err(ToolError::invalid_arguments("path: must be absolute here"));
///     };
///     let target = folder.join(path);
///     cx.remember(target.display().to_string());
///     Ok(Node::text(format!("remove {}", target.display())))
/// }
/// # let _ = preview;
/// ```
pub struct PreviewCx {
    pub(crate) working_directory: Option<PathBuf>,
    pub(crate) known_directory: Option<PathBuf>,
    pub(crate) fingerprint: Mutex<Option<String>>,
    pub(crate) session_id: String,
}

impl PreviewCx {
    /// The directory that relative paths start from: the one the host named, else the one that all calls of
    /// this process have used so far. `None` when there is no such directory; then an only root is right.
    pub fn working_directory(&self) -> Option<&Path> {
        self.working_directory.as_deref().or(self.known_directory.as_deref())
    }

    /// The session, where the host named one; otherwise empty.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Remembers what was shown, so that the call with the same id applies exactly that; see
    /// [`Cx::previewed`].
    pub fn remember(&self, fingerprint: impl Into<String>) {
        *locked(&self.fingerprint) = Some(fingerprint.into());
    }

    /// Runs work that blocks beside the event loop.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(ToolError::unknown(&error)),
        }
    }
}

/// Refuses a call whose preview showed something else than what it would do now.
///
/// # Errors
/// `stale`, when there was a preview and its fingerprint differs from `fingerprint`.
///
/// ```
/// use provider_core::{Cx, Events, ToolError, ensure_as_previewed};
///
/// fn apply(content: &str, cx: &Cx<Events>) -> Result<(), ToolError> {
///     // The preview gave the same text to `PreviewCx::remember`.
///     ensure_as_previewed(cx, content)?;
///     Ok(())
/// }
/// # let _ = apply;
/// ```
pub fn ensure_as_previewed<S: Stream>(cx: &Cx<S>, fingerprint: &str) -> Result<(), ToolError> {
    match cx.previewed() {
        Some(shown) if shown != fingerprint => Err(ToolError::new(
            Code::Stale,
            "the target changed between the preview and the call, so what was approved is not what would happen; \
             nothing was changed: look again and repeat the call",
        )),
        _ => Ok(()),
    }
}

/// The terminal that a call's future came to, or why it was ended.
pub(crate) enum Ending {
    Finished(Result<Value, ToolError>),
    Panicked(String),
    Cancelled(Map<String, Value>),
    TimedOut(Map<String, Value>),
    ShutDown(Map<String, Value>),
}

/// How long a tool that watches for the stop may take to come to a clean end.
const CANCEL_GRACE: Duration = Duration::from_millis(2_500);
/// The same at a deadline or a shutdown, where somebody waits.
const HURRIED_GRACE: Duration = Duration::from_millis(200);
/// The terminal is sent this long before the caller's deadline, so that it arrives.
const DEADLINE_MARGIN: Duration = Duration::from_millis(300);

/// What becomes of the report of a call that was ended.
type Ended = fn(Map<String, Value>) -> Ending;

/// Runs a tool to its end, or ends it.
pub(crate) async fn drive(
    call: Arc<Call>,
    work: impl Future<Output = Result<Value, ToolError>> + Send + 'static,
    cancel: CancellationToken,
    shutdown: CancellationToken,
) -> Ending {
    use futures_util::FutureExt;
    let work = std::panic::AssertUnwindSafe(CURRENT.scope(call.clone(), work)).catch_unwind();
    tokio::pin!(work);
    let finished = |result: std::thread::Result<Result<Value, ToolError>>| match result {
        Ok(result) => Ending::Finished(result),
        Err(panic) => Ending::Panicked(panic_text(&*panic)),
    };
    let (why, grace, ending): (_, _, Ended) = tokio::select! {
        biased;
        result = &mut work => return finished(result),
        () = cancel.cancelled() => ("the call was cancelled", CANCEL_GRACE, Ending::Cancelled),
        () = call.events.closed() => ("the call was given up by its caller", CANCEL_GRACE, Ending::Cancelled),
        () = shutdown.cancelled() => ("the provider is shutting down", HURRIED_GRACE * 4, Ending::ShutDown),
        () = until_deadline(call.deadline) => ("the deadline of the call passed", HURRIED_GRACE, Ending::TimedOut),
    };
    call.stop.cancel();
    if call.cooperative.load(Ordering::Relaxed)
        && let Ok(Ok(Ok(_))) = tokio::time::timeout(grace, &mut work).await
    {
        call.effects.record("the operation itself finished");
    }
    ending(call.effects.report(why))
}

async fn until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => {
            let total = deadline.saturating_duration_since(Instant::now());
            let early = (DEADLINE_MARGIN + HURRIED_GRACE).min(total / 2);
            tokio::time::sleep_until(deadline - early).await;
        }
        None => std::future::pending().await,
    }
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

/// The partial result that carries a report.
pub(crate) fn report_event(report: Map<String, Value>) -> Event {
    Event::PartialResult(pb::tool_event::PartialResult { payload: Some(map_to_struct(report)) })
}
