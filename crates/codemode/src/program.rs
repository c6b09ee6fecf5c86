//! A program at work, seen from outside: frames come in, calls are made, answers go out, limits are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use codemode_sandbox::frames::{self, Done, MOST_OUTSTANDING, Reason, Run, ToChild, ToParent};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, SELF};
use crate::child::{Child, Sandboxing, default_message, first_line};
use crate::console::Console;
use crate::frames::{NoFrame, of_answer, of_result};
use crate::host::{ToolCall, ToolHost};
use crate::report::{CallRecord, CallStatus, Report};

/// How much longer than its limit a slice may last before the parent ends it: the child does that itself, unless something
/// is very wrong with it.
const SLICE_MARGIN: Duration = Duration::from_secs(2);
/// The same for the first slice, in which the process starts and locks itself up.
const BEGINNING: Duration = Duration::from_secs(20);
/// How long calls that are given up may take to end.
const GIVING_UP: Duration = Duration::from_millis(2_200);
/// What the input of calls without an answer may weigh together, in bytes.
const MOST_INPUT: usize = 64 * 1_024 * 1_024;
/// What every value weighs beside its text: about what it takes once it is read.
const VALUE_WEIGHT: usize = 32;
/// Lines on their way to the child; more wait in their calls.
const LINES_AHEAD: usize = 8;
/// Calls of which a record is kept; further ones are counted.
const MOST_RECORDS: usize = 10_000;
/// Characters of a name that is shown.
const LONGEST_NAME: usize = 160;
/// Bytes of a program.
const LONGEST_CODE: usize = 4 * 1_024 * 1_024;

/// What JSON weighs: a short text can be a great many values.
fn weight(json: &str) -> usize {
    let values = json.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    json.len() + VALUE_WEIGHT * values
}

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
    pub async fn run(self) -> Report {
        let limits = self.limits;
        let nothing_ran = |done| Report::new(done, &limits, "", Vec::new(), 0);
        if self.code.len() > LONGEST_CODE {
            let (has, most) = (self.code.len() / 1_024, LONGEST_CODE / 1_024);
            let message = format!("the program has {has} KiB, at most {most} KiB are taken");
            return nothing_ran(Done::failed(Reason::Syntax, message));
        }
        let child = match Child::start(&self.sandboxing).await {
            Ok(child) => child,
            Err(error) => {
                let message = format!("its process cannot be started: {error}");
                return nothing_ran(Done::failed(Reason::SandboxUnavailable, message));
            }
        };
        let mut execution = Execution::new(self, child, Console::new(limits.console));
        let mut done = execution.work().await;
        execution.give_up().await;
        if let Some(reason) = done.reason.filter(|_| done.message.is_empty()) {
            done.message = default_message(reason, &limits);
        }
        let Execution { console, calls, uncounted, .. } = execution;
        Report::new(done, &limits, &console.text(), calls, uncounted)
    }
}

/// A call that waits for its turn.
struct Waiting {
    id: u64,
    call: ToolCall,
    which: Which,
}

/// What is known of a call while it has no answer.
struct Which {
    /// Its record, if it has one.
    record: Option<usize>,
    /// The tool, as `plugin.tool`; empty where there is nobody to tell.
    tool: String,
    /// Bytes of its input.
    bytes: usize,
}

/// A call that is over.
type Over = (Which, CallStatus);

/// A question that is answered here. The answer is made when there is room for it, so that answers do not pile up.
enum Question {
    /// About the catalogue.
    About { question: String, input: Map<String, Value> },
    /// About a tool that there is not.
    Unknown { plugin: String, tool: String },
    /// About a call that cannot be made.
    Refused(String),
}

impl Question {
    fn answer(self, catalogue: &Catalogue) -> Result<Value, String> {
        match self {
            Self::About { question, input } => catalogue.about(&question, &input),
            Self::Unknown { plugin, tool } => match catalogue.find(&plugin, &tool) {
                Ok(_) => Err(format!("{plugin}.{tool} was not there a moment ago; call it again")),
                Err(unknown) => Err(unknown),
            },
            Self::Refused(message) => Err(message),
        }
    }
}

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
    /// Calls without a record.
    uncounted: usize,
    /// The number of the child's last call.
    last: u64,
    waiting: VecDeque<Waiting>,
    /// Bytes of input that calls without an answer have.
    input_bytes: usize,
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
            uncounted: 0,
            last: 0,
            waiting: VecDeque::new(),
            input_bytes: 0,
            running: FuturesUnordered::new(),
            stop_calls: CancellationToken::new(),
            answered: 0,
        }
    }

    /// Works until the program is over, for one reason or another.
    async fn work(&mut self) -> Ended {
        let total = Instant::now() + self.limits.total;
        loop {
            let end = self.slice_end.unwrap_or(total).min(total);
            // Asked here, too: a child that never stops talking must not keep the timer from being looked at.
            if Instant::now() >= end {
                let reason = if end == total { Reason::TotalTime } else { Reason::Time };
                return Done::failed(reason, "");
            }
            let step = tokio::select! {
                () = self.cancel.cancelled() => Err(Done::failed(Reason::Cancelled, "")),
                frame = self.child.frames.next() => match frame {
                    Ok(frame) => self.take(frame),
                    Err(error) => Err(self.lost(error).await),
                },
                Some(over) = self.running.next() => {
                    self.over(over);
                    Ok(())
                }
                () = sleep_until(end) => Ok(()),
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
        let nonsense =
            |what: &str| Done::failed(Reason::Crashed, format!("the process of the program {what}"));
        if call.id != self.last + 1 {
            return Err(nonsense("numbered its calls wrongly"));
        }
        if self.running.len() + self.waiting.len() >= MOST_OUTSTANDING {
            return Err(nonsense("made more calls at one time than it may"));
        }
        self.last = call.id;
        let catalogue = self.host.tools();
        let bytes = weight(call.input.get());
        if call.plugin == SELF {
            let question = self.input(&call).map(|input| Question::About { question: call.tool, input });
            self.input_bytes += bytes;
            self.answer(call.id, Which { record: None, tool: String::new(), bytes }, question);
            return Ok(());
        }
        let (plugin, tool) = match catalogue.find(&call.plugin, &call.tool) {
            Ok((plugin, tool)) => (plugin.name.clone(), tool.name.clone()),
            Err(_) => {
                let (plugin, tool) = (shortened(call.plugin), shortened(call.tool));
                let which = self.record(format!("{plugin}.{tool}"), CallStatus::Failed, 0);
                self.answer(call.id, which, Ok(Question::Unknown { plugin, tool }));
                return Ok(());
            }
        };
        let name = format!("{plugin}.{tool}");
        match self.input(&call) {
            Ok(input) => {
                let which = self.record(name, CallStatus::NotStarted, bytes);
                let number = call.id;
                let call = ToolCall { plugin, tool, input, id: format!("{}/{number}", self.id) };
                self.waiting.push_back(Waiting { id: number, call, which });
                self.start_waiting();
            }
            Err(reason) => {
                let refused = Question::Refused(format!("{name} was not called: {reason}"));
                let which = self.record(name, CallStatus::Failed, 0);
                self.answer(call.id, which, Ok(refused));
            }
        }
        Ok(())
    }

    /// The input of a call, for which there has to be room.
    fn input(&self, call: &frames::Call) -> Result<Map<String, Value>, String> {
        if self.input_bytes + weight(call.input.get()) > MOST_INPUT {
            return Err("calls without an answer have 64 MiB of input together, values counted; await some, or send less".to_owned());
        }
        // It is JSON, and an object: it may only be too deep, or have texts that no Rust string can hold.
        serde_json::from_str(call.input.get()).map_err(|error| match error.to_string() {
            text if text.contains("recursion limit") => "its input is nested more than 127 deep".to_owned(),
            _ => "a text in its input has half of a surrogate pair, which is no character".to_owned(),
        })
    }

    /// Writes down a call.
    fn record(&mut self, tool: String, status: CallStatus, bytes: usize) -> Which {
        self.input_bytes += bytes;
        if self.calls.len() == MOST_RECORDS {
            self.uncounted += 1;
            return Which { record: None, tool, bytes };
        }
        self.calls.push(CallRecord { tool: tool.clone(), status });
        Which { record: Some(self.calls.len() - 1), tool, bytes }
    }

    fn set_status(&mut self, which: &Which, status: CallStatus) {
        if let Some(record) = which.record.and_then(|at| self.calls.get_mut(at)) {
            record.status = status;
        }
    }

    /// Starts what waits, as far as calls may run together.
    fn start_waiting(&mut self) {
        while self.running.len() < self.limits.together.max(1) {
            let Some(Waiting { id, call, which }) = self.waiting.pop_front() else { break };
            self.set_status(&which, CallStatus::Cancelled);
            (self.progress)(Progress::Started { tool: which.tool.clone() });
            let (host, cancel, lines) = (self.host.clone(), self.stop_calls.clone(), self.lines.clone());
            self.running.push(Box::pin(async move {
                let result = host.call(call, cancel.clone()).await;
                if cancel.is_cancelled() {
                    return (which, if result.is_ok() { CallStatus::Ok } else { CallStatus::Cancelled });
                }
                let (line, status) = of_result(id, &result);
                // The call keeps its place until its answer is on its way, so that answers do not pile up.
                let _ = lines.send(line).await;
                (which, status)
            }));
        }
    }

    fn over(&mut self, (which, status): Over) {
        self.input_bytes -= which.bytes;
        self.set_status(&which, status);
        if !which.tool.is_empty() {
            (self.progress)(Progress::Ended { tool: which.tool, status });
        }
        self.answer_made();
        self.start_waiting();
    }

    /// Answers a call that nobody has to make.
    fn answer(&mut self, id: u64, which: Which, question: Result<Question, String>) {
        let question = question.unwrap_or_else(Question::Refused);
        let (lines, catalogue) = (self.lines.clone(), self.host.tools());
        self.running.push(Box::pin(async move {
            let status = if which.tool.is_empty() { CallStatus::Ok } else { CallStatus::Failed };
            if let Ok(room) = lines.reserve().await {
                room.send(of_answer(id, question.answer(&catalogue)));
            }
            (which, status)
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
            while let Some((which, status)) = self.running.next().await {
                self.set_status(&which, status);
            }
        };
        // What does not end is dropped, which gives it up for good.
        let _ = timeout(GIVING_UP, rest).await;
    }
}

/// A name that a child made up, short enough to be shown.
fn shortened(name: String) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}
