//! A program at work, seen from outside: frames come in, calls are made, answers go out, limits are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codemode_sandbox::frames::{self, AnswerKind, Done, Reason, Run, ToChild, ToParent};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::catalogue::SELF;
use crate::child::{Child, Sandboxing, default_message, first_line};
use crate::console::Console;
use crate::frames::{NoFrame, answer_line};
use crate::host::{Answer, Failure, ToolCall, ToolHost};
use crate::report::{CallRecord, CallStatus, Report};

/// How much longer than its limit a slice may last before the parent ends it: the child does that itself, unless something
/// is very wrong with it.
const SLICE_MARGIN: Duration = Duration::from_secs(2);
/// The same for the first slice, in which the process starts and locks itself up.
const BEGINNING: Duration = Duration::from_secs(20);
/// How long calls that are given up may take to end.
const GIVING_UP: Duration = Duration::from_millis(2_200);
/// Calls that may be without an answer at one time.
const MOST_OUTSTANDING: usize = 10_000;
/// Bytes of input that may wait for their turn.
const MOST_WAITING: usize = 64 * 1_024 * 1_024;
/// Lines on their way to the child; more wait in their calls.
const LINES_AHEAD: usize = 8;

/// What a program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long JavaScript may run between two answers.
    pub slice: Duration,
    /// How long it may take in all.
    pub total: Duration,
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of the value that are read.
    pub value: usize,
    /// Bytes of console text that are read.
    pub console: usize,
    /// Calls that run at one time; further ones wait.
    pub together: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let inner = frames::Limits::default();
        Self {
            slice: inner.slice(),
            total: Duration::from_secs(15 * 60),
            memory: inner.memory_bytes,
            value: inner.value_bytes,
            console: inner.console_bytes,
            together: 32,
        }
    }
}

/// Something that happened before the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The program wrote a line to its console.
    Console(String),
    /// A call begins.
    Started {
        /// The tool, as `plugin.tool`.
        tool: String,
    },
    /// A call has ended.
    Ended {
        /// The tool, as `plugin.tool`.
        tool: String,
        /// How.
        status: CallStatus,
    },
}

/// A program that is to be run.
pub struct Program {
    host: Arc<dyn ToolHost>,
    code: String,
    id: String,
    limits: Limits,
    sandboxing: Sandboxing,
    cancel: CancellationToken,
    progress: Box<dyn FnMut(Progress) + Send>,
}

impl Program {
    /// A program that calls the tools of a host. `id` names the call that runs it.
    pub fn new(host: Arc<dyn ToolHost>, code: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            host,
            code: code.into(),
            id: id.into(),
            limits: Limits::default(),
            sandboxing: Sandboxing::default(),
            cancel: CancellationToken::new(),
            progress: Box::new(|_| {}),
        }
    }

    /// The same within other limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same in another sandbox.
    #[must_use]
    pub fn in_sandbox(self, sandboxing: Sandboxing) -> Self {
        Self { sandboxing, ..self }
    }

    /// The same, given up once `cancel` is cancelled.
    #[must_use]
    pub fn until(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }

    /// The same, telling `progress` what happens on the way. It is called between other work and must not block.
    #[must_use]
    pub fn telling(self, progress: impl FnMut(Progress) + Send + 'static) -> Self {
        Self { progress: Box::new(progress), ..self }
    }

    /// Runs it to its end. Dropping the future gives up the program and its calls.
    ///
    /// The kernel ends the program's process with the thread that started it, so a runtime whose threads come and go
    /// must not be what polls this first.
    pub async fn run(self) -> Report {
        let (console, value) = (Console::new(self.limits.console), self.limits.value);
        let child = match Child::start(&self.sandboxing) {
            Ok(child) => child,
            Err(error) => {
                let done = Done::failed(
                    Reason::SandboxUnavailable,
                    format!("its process cannot be started: {error}"),
                );
                return Report::new(done, "", Vec::new(), value);
            }
        };
        let mut execution = Execution::new(self, child, console);
        let mut done = execution.work().await;
        execution.give_up().await;
        if let Some(reason) = done.reason.filter(|_| done.message.is_empty()) {
            done.message = default_message(reason, &execution.limits);
        }
        Report::new(done, &execution.console.text(), execution.calls, value)
    }
}

/// A call that waits for its turn.
struct Waiting {
    index: usize,
    id: u64,
    call: ToolCall,
    /// Bytes of its input.
    bytes: usize,
}

/// A call that is over, and whether it has an answer.
type Over = (usize, CallStatus);

struct Execution {
    host: Arc<dyn ToolHost>,
    id: String,
    limits: Limits,
    cancel: CancellationToken,
    progress: Box<dyn FnMut(Progress) + Send>,
    child: Child,
    /// Lines to the child, the first frame first.
    lines: mpsc::Sender<Vec<u8>>,
    console: Console,
    calls: Vec<CallRecord>,
    /// The number of the child's last call.
    last: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    running: FuturesUnordered<BoxFuture<'static, Over>>,
    /// Ends the calls that run.
    stop_calls: CancellationToken,
    /// Answers made so far.
    answered: u64,
    /// When what the child does now has to be over; `None` while it waits.
    slice_end: Option<Instant>,
}

/// Why the work is over.
type Ended = Done;

impl Execution {
    fn new(program: Program, mut child: Child, console: Console) -> Self {
        let Program { host, code, id, limits, sandboxing, cancel, progress } = program;
        let (lines, mut queue) = mpsc::channel::<Vec<u8>>(LINES_AHEAD);
        let catalogue = host.tools();
        let names = |plugin: &crate::catalogue::Plugin| {
            (plugin.name.clone(), plugin.tools.iter().map(|tool| tool.name.clone()).collect())
        };
        let first = ToChild::Run(Run {
            code,
            tools: catalogue.plugins().iter().map(names).collect(),
            limits: frames::Limits {
                slice_ms: u64::try_from(limits.slice.as_millis()).unwrap_or(u64::MAX),
                memory_bytes: limits.memory,
                value_bytes: limits.value,
                console_bytes: limits.console,
            },
            probe: sandboxing.probe,
        });
        if let Some(mut writer) = child.writer() {
            tokio::spawn(async move {
                let Ok(first) = first_line(&first) else { return };
                if writer.write(&first).await.is_err() {
                    return;
                }
                while let Some(line) = queue.recv().await {
                    if writer.write(&line).await.is_err() {
                        return;
                    }
                }
                // The end of its input tells a child that nobody listens any more.
            });
        }
        Self {
            slice_end: Some(Instant::now() + limits.slice + BEGINNING),
            host,
            id,
            limits,
            cancel,
            progress,
            child,
            lines,
            console,
            calls: Vec::new(),
            last: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            running: FuturesUnordered::new(),
            stop_calls: CancellationToken::new(),
            answered: 0,
        }
    }

    /// Works until the program is over, for one reason or another.
    async fn work(&mut self) -> Ended {
        let total = Instant::now() + self.limits.total;
        loop {
            let slice_end = self.slice_end.unwrap_or(total).min(total);
            let step = tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(Done::failed(Reason::Cancelled, "")),
                frame = self.child.frames.next() => match frame {
                    Ok(frame) => self.take(frame),
                    Err(error) => Err(self.lost(error).await),
                },
                Some(over) = self.running.next() => {
                    self.over(over);
                    Ok(())
                }
                () = sleep_until(slice_end) => {
                    let reason = if Instant::now() >= total { Reason::TotalTime } else { Reason::Time };
                    Err(Done::failed(reason, ""))
                }
            };
            if let Err(ended) = step {
                return ended;
            }
        }
    }

    fn take(&mut self, frame: ToParent) -> Result<(), Ended> {
        match frame {
            ToParent::Ready(_) => {}
            ToParent::Log(line) => {
                if self.console.line(&line) {
                    (self.progress)(Progress::Console(line));
                }
            }
            ToParent::Idle(taken) => {
                let busy = taken < self.answered;
                self.slice_end = busy.then(|| Instant::now() + self.limits.slice + SLICE_MARGIN);
            }
            ToParent::Call(call) => self.call(call)?,
            ToParent::Done(done) => return Err(done),
        }
        Ok(())
    }

    /// Checks a call and queues it. The child is not trusted: what it says of a call is looked up here.
    fn call(&mut self, call: frames::Call) -> Result<(), Ended> {
        if call.id != self.last + 1 {
            return Err(Done::failed(
                Reason::Crashed,
                "the process of the program numbered its calls wrongly",
            ));
        }
        self.last = call.id;
        let catalogue = self.host.tools();
        if call.plugin == SELF {
            let answer = parse(&call).and_then(|input| catalogue.about(&call.tool, &input));
            self.answer_now(call.id, answer);
            return Ok(());
        }
        let (index, id, bytes) = (self.calls.len(), call.id, call.input.get().len());
        let (name, checked) = match catalogue.find(&call.plugin, &call.tool) {
            Ok((plugin, tool)) => {
                let name = format!("{}.{}", plugin.name, tool.name);
                let checked = self.check(&call, &plugin.name, &tool.name);
                let checked = checked.map_err(|reason| format!("{name} was not called: {reason}"));
                (name, checked)
            }
            Err(no_tool) => (shortened(&format!("{}.{}", call.plugin, call.tool)), Err(no_tool)),
        };
        match checked {
            Ok(call) => {
                self.calls.push(CallRecord { tool: name, status: CallStatus::NotStarted });
                self.waiting_bytes += bytes;
                self.waiting.push_back(Waiting { index, id, call, bytes });
                self.start_waiting();
            }
            Err(message) => {
                self.calls.push(CallRecord { tool: name, status: CallStatus::Failed });
                self.answer_now(id, Err(message));
            }
        }
        Ok(())
    }

    fn check(&self, call: &frames::Call, plugin: &str, tool: &str) -> Result<ToolCall, String> {
        if self.running.len() + self.waiting.len() >= MOST_OUTSTANDING {
            return Err(format!("{MOST_OUTSTANDING} calls are without an answer; await some"));
        }
        if self.waiting_bytes + call.input.get().len() > MOST_WAITING {
            return Err("too much input waits for its turn; await some calls".to_owned());
        }
        let id = format!("{}/{}", self.id, call.id);
        Ok(ToolCall { plugin: plugin.to_owned(), tool: tool.to_owned(), input: parse(call)?, id })
    }

    /// Starts what waits, as far as calls may run together.
    fn start_waiting(&mut self) {
        while self.running.len() < self.limits.together.max(1) {
            let Some(Waiting { index, id, call, bytes }) = self.waiting.pop_front() else { break };
            self.waiting_bytes -= bytes;
            let record = &mut self.calls[index];
            record.status = CallStatus::Cancelled;
            (self.progress)(Progress::Started { tool: record.tool.clone() });
            let (host, cancel, lines) = (self.host.clone(), self.stop_calls.clone(), self.lines.clone());
            self.running.push(Box::pin(async move {
                let result = host.call(call, cancel.clone()).await;
                let (line, status) = answer(id, &result);
                if cancel.is_cancelled() {
                    return (index, if result.is_ok() { CallStatus::Ok } else { CallStatus::Cancelled });
                }
                // The call keeps its place until its answer is on its way, so that answers do not pile up.
                let _ = lines.send(line).await;
                (index, status)
            }));
        }
    }

    fn over(&mut self, (index, status): Over) {
        if let Some(record) = self.calls.get_mut(index) {
            record.status = status;
            (self.progress)(Progress::Ended { tool: record.tool.clone(), status });
        }
        self.answer_made();
        self.start_waiting();
    }

    /// Answers a call that nobody has to make.
    fn answer_now(&mut self, id: u64, answer: Result<Value, String>) {
        let line = match answer {
            Ok(value) => answer_line(id, true, AnswerKind::Structured, &value),
            Err(message) => answer_line(id, false, AnswerKind::Text, &message),
        };
        let (lines, line) = (self.lines.clone(), line.unwrap_or_default());
        self.running.push(Box::pin(async move {
            let _ = lines.send(line).await;
            (usize::MAX, CallStatus::Ok)
        }));
    }

    /// The child has something to do again.
    fn answer_made(&mut self) {
        self.answered += 1;
        self.slice_end.get_or_insert_with(|| Instant::now() + self.limits.slice + SLICE_MARGIN);
    }

    /// The child is gone without a last word.
    async fn lost(&mut self, error: NoFrame) -> Ended {
        if !matches!(error, NoFrame::End) {
            self.child.kill();
        }
        let end = self.child.end().await;
        Done::failed(Reason::Crashed, format!("the process of the program: {error}; {end}"))
    }

    /// Ends the process and all calls that are left.
    async fn give_up(&mut self) {
        self.child.kill();
        self.waiting.clear();
        if self.running.is_empty() {
            return;
        }
        self.stop_calls.cancel();
        let rest = async {
            while let Some(over) = self.running.next().await {
                if let Some(record) = self.calls.get_mut(over.0) {
                    record.status = over.1;
                }
            }
        };
        // What does not end is dropped, which gives it up for good.
        let _ = timeout(GIVING_UP, rest).await;
    }
}

/// The input as a value.
fn parse(call: &frames::Call) -> Result<Map<String, Value>, String> {
    // It is JSON, and an object; only its texts can be such as no Rust string can hold.
    serde_json::from_str(call.input.get())
        .map_err(|_| "a text in its input has half of a surrogate pair, which is no character".to_owned())
}

/// The line that answers a call, and what became of it.
fn answer(id: u64, result: &Result<Answer, Failure>) -> (Vec<u8>, CallStatus) {
    let line = match result {
        Ok(Answer::Structured(value)) => answer_line(id, true, AnswerKind::Structured, value),
        Ok(Answer::Text(text)) => answer_line(id, true, AnswerKind::Text, text),
        Ok(Answer::Content(items)) => answer_line(id, true, AnswerKind::Content, items),
        Err(failure) => answer_line(id, false, AnswerKind::Text, &failure.message),
    };
    let status = match result {
        Ok(_) => CallStatus::Ok,
        Err(failure) if failure.denied => CallStatus::Denied,
        Err(_) => CallStatus::Failed,
    };
    match line {
        Some(line) => (line, status),
        None => {
            let message = "the tool answered with more than 32 MiB, which cannot be passed on; ask for less";
            (answer_line(id, false, AnswerKind::Text, message).unwrap_or_default(), CallStatus::Failed)
        }
    }
}

/// A name that a child made up, short enough to be shown.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
