//! `toolctl session`: many calls, as NDJSON on stdin and stdout.

use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tool_host::{Call, CallError, Canceller, Category, Host, Invocation, Object, Provider, nearest};

use crate::cli::{Session, Shared};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::open::{Setup, host};
use crate::reach::{Reach, is_code};
use crate::shell::Shell;

use super::preview;

/// Lines read ahead of what is being worked on.
const LINES_AHEAD: usize = 16;

pub(super) async fn run(args: Session, shell: &Shell, interrupts: &mut Interrupts) -> Result<Exit, Failure> {
    super::verbosity(args.shared.verbose, shell);
    let setup = Setup::new(&args.shared)?;
    // stdin carries requests, so nobody can answer there.
    let host = host(&args.shared, shell, false)?;
    let running = interrupts.guard(setup.open_all(&args.providers, shell)).await?;
    let reach = reach(&args.providers, &running, &setup, &host)?;
    let names: Vec<String> = running.iter().map(|provider| provider.identity().name.clone()).collect();
    let providers =
        args.providers.into_iter().zip(running.iter().cloned()).chain(names.into_iter().zip(running.clone()));
    let desk = Desk {
        providers: providers.collect(),
        only: running.first().filter(|_| running.len() == 1).cloned(),
        setup,
        shared: args.shared,
        host,
        reach,
        shell: shell.clone(),
        open: BTreeMap::new(),
        calls: JoinSet::new(),
        previewed: VecDeque::new(),
    };
    let exit = desk.serve(interrupts).await;
    for provider in running {
        provider.stop().await;
    }
    Ok(exit)
}

/// What programs may call, where the session has the code provider: the session's other providers.
fn reach(
    names: &[String],
    running: &[Provider],
    setup: &Setup,
    host: &Host,
) -> Result<Option<(Provider, Reach)>, Failure> {
    let Some(index) = names.iter().position(|name| is_code(name)) else { return Ok(None) };
    let code = &running[index];
    let others = running.iter().filter(|provider| provider.identity().name != code.identity().name);
    let attributes = &code.catalogue().config;
    let config = setup.settings.restricted_to(attributes).resolve(attributes)?;
    let reach = Reach::new(host, others.cloned().collect(), config).map_err(Failure::usage)?;
    Ok(Some((code.clone(), reach)))
}

/// What a line of stdin may be.
enum Request {
    Call(Box<CallRequest>),
    Cancel(Value),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallRequest {
    id: Value,
    provider: Option<String>,
    tool: String,
    args: Option<Object>,
    #[serde(default)]
    preview: bool,
    cwd: Option<PathBuf>,
    session: Option<String>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelRequest {
    cancel: Value,
}

/// Why a line is no request, and the id it gave, as far as it gave one.
struct BadLine {
    id: Option<Value>,
    error: CallError,
}

impl BadLine {
    fn new(id: Option<Value>, message: impl Into<String>) -> Self {
        Self { id, error: CallError::new(Category::InvalidArguments, message) }
    }
}

/// An id is what a client can compare: text or a number.
fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn parse(line: &[u8]) -> Result<Request, BadLine> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| BadLine::new(None, format!("not a line of JSON: {error}")))?;
    if !value.is_object() {
        return Err(BadLine::new(None, "not a request: wanted one JSON object a line"));
    }
    let id = value.get("id").filter(|id| is_id(id)).cloned();
    let bad = |error: serde_json::Error| BadLine::new(id.clone(), format!("not a request: {error}"));
    if value.get("cancel").is_some() {
        let request: CancelRequest = serde_json::from_value(value).map_err(bad)?;
        return Ok(Request::Cancel(request.cancel));
    }
    let request: CallRequest = serde_json::from_value(value).map_err(bad)?;
    if !is_id(&request.id) {
        return Err(BadLine::new(None, "not a request: id must be a string or a number"));
    }
    if request.timeout_ms == Some(0) {
        return Err(BadLine::new(id, "not a request: timeout_ms must be at least 1"));
    }
    Ok(Request::Call(Box::new(request)))
}

/// Takes requests and hands out calls.
struct Desk {
    /// By the name on the command line, and by the name the provider gives itself.
    providers: BTreeMap<String, Provider>,
    /// The provider of requests that name none.
    only: Option<Provider>,
    setup: Setup,
    shared: Shared,
    host: Host,
    /// The code provider, and what its programs may call.
    reach: Option<(Provider, Reach)>,
    shell: Shell,
    /// How to cancel what runs, by id as JSON.
    open: BTreeMap<String, Cancel>,
    calls: JoinSet<String>,
    /// The requests that were previewed, oldest first: their id as JSON, and the call's. A request with the same id
    /// then makes the call that was shown, and the provider refuses it when it would do something else by now.
    previewed: VecDeque<(String, String)>,
}

/// Older previews are forgotten beyond this many.
const REMEMBERED_PREVIEWS: usize = 256;

enum Cancel {
    Call(Canceller),
    /// Dropping it would do; `None` once used.
    Preview(Option<oneshot::Sender<()>>),
}

impl Cancel {
    fn cancel(&mut self) {
        match self {
            Self::Call(canceller) => canceller.cancel(),
            Self::Preview(sender) => drop(sender.take()),
        }
    }
}

impl Desk {
    /// Works until the input has ended and what runs is done, or until interrupted.
    async fn serve(mut self, interrupts: &mut Interrupts) -> Exit {
        let mut lines = lines();
        let mut reading = true;
        let mut exit = Exit::Done;
        while reading || !self.calls.is_empty() {
            tokio::select! {
                line = lines.recv(), if reading => match line {
                    Some(line) => self.line(&line),
                    None => reading = false,
                },
                Some(done) = self.calls.join_next() => self.settle(done),
                () = interrupts.next() => {
                    if exit == Exit::Interrupted {
                        return exit;
                    }
                    (exit, reading) = (Exit::Interrupted, false);
                    self.open.values_mut().for_each(Cancel::cancel);
                }
            }
            if self.shell.reader_gone() {
                // Nobody will know how the calls end.
                return exit;
            }
        }
        exit
    }

    fn settle(&mut self, done: Result<String, JoinError>) {
        if let Ok(key) = done {
            self.open.remove(&key);
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        // A client may use an id again as soon as it has read the end of its call, so that comes first.
        while let Some(done) = self.calls.try_join_next() {
            self.settle(done);
        }
        let started = parse(line).and_then(|request| match request {
            Request::Call(request) => self.start(*request),
            Request::Cancel(id) => {
                // One that has just ended cannot be cancelled, and its client will see that it has.
                if let Some(open) = self.open.get_mut(&id.to_string()) {
                    open.cancel();
                }
                Ok(())
            }
        });
        if let Err(BadLine { id, error }) = started {
            self.shell.outcome_line(id.as_ref(), &Err(error));
        }
    }

    fn start(&mut self, request: CallRequest) -> Result<(), BadLine> {
        let id = request.id.clone();
        let key = id.to_string();
        if self.open.contains_key(&key) {
            // Under its id, this error would be taken for the end of the call that runs.
            let error = BadLine::new(None, format!("a request with the id {id} is still running"));
            return Err(BadLine { error: error.error.with("id", id), ..error });
        }
        let provider = self
            .provider(request.provider.as_deref())
            .map_err(|error| BadLine { id: Some(id.clone()), error })?;
        let wants_preview = request.preview;
        let mut call = self.call(request);
        let shown = self.previewed.iter().position(|(id, _)| *id == key);
        if let Some((_, shown)) = shown.and_then(|index| self.previewed.remove(index)) {
            call.id = shown;
        }
        if wants_preview {
            self.previewed.push_back((key.clone(), call.id.clone()));
            if self.previewed.len() > REMEMBERED_PREVIEWS {
                self.previewed.pop_front();
            }
        }
        let cancel = if wants_preview {
            let (cancel, cancelled) = oneshot::channel();
            self.calls.spawn(show_preview(id, provider, call, self.shell.clone(), cancelled));
            Cancel::Preview(Some(cancel))
        } else {
            let invocation = match &self.reach {
                Some((code, reach)) if code.is(&provider) => reach.call(&self.host, &provider, call),
                _ => self.host.call(&provider, call),
            };
            let canceller = invocation.canceller();
            self.calls.spawn(follow(id, invocation, self.shell.clone()));
            Cancel::Call(canceller)
        };
        self.open.insert(key, cancel);
        Ok(())
    }

    fn provider(&self, name: Option<&str>) -> Result<Provider, CallError> {
        let Some(name) = name else {
            return self.only.clone().ok_or_else(|| {
                CallError::new(
                    Category::InvalidArguments,
                    "the session has several providers: say which, \"provider\":…",
                )
            });
        };
        self.providers.get(name).cloned().ok_or_else(|| {
            let names = self.providers.keys().map(String::as_str);
            let meant =
                nearest(name, names).map_or_else(String::new, |name| format!("; did you mean {name}?"));
            CallError::new(Category::NotFound, format!("the session has no provider {name}{meant}"))
        })
    }

    fn call(&self, request: CallRequest) -> Call {
        let mut call = self.setup.call(&request.tool, request.args.unwrap_or_default(), &self.shared);
        if let Some(cwd) = request.cwd {
            // Relative to the session's directory, which is absolute.
            call.working_directory = self.setup.working_directory.join(cwd);
        }
        if let Some(session) = request.session {
            call.session = session;
        }
        if let Some(milliseconds) = request.timeout_ms {
            call.timeout = Some(Duration::from_millis(milliseconds));
        }
        call
    }
}

/// Writes the events of a call as they come; returns the key of its id.
async fn follow(id: Value, mut invocation: Invocation, shell: Shell) -> String {
    while let Some(event) = invocation.next().await {
        shell.event_line(Some(&id), &event);
    }
    shell.outcome_line(Some(&id), &invocation.outcome().await);
    id.to_string()
}

async fn show_preview(
    id: Value,
    provider: Provider,
    call: Call,
    shell: Shell,
    cancelled: oneshot::Receiver<()>,
) -> String {
    let look = async {
        provider.tool(&call.tool)?;
        preview::of(&provider, &call).await
    };
    let shown = tokio::select! {
        shown = look => shown,
        _ = cancelled => Err(tool_host::call::cancelled()),
    };
    match shown {
        Ok(tree) => {
            let mut line = json!({"id": id, "event": "preview"});
            if let (Value::Object(line), Value::Object(view)) = (&mut line, preview::to_json(&tree)) {
                line.extend(view);
            }
            shell.json_line(&line);
        }
        Err(error) => shell.outcome_line(Some(&id), &Err(error)),
    }
    id.to_string()
}

/// The lines of stdin. They are read on a thread of their own, because a read from a terminal or a pipe cannot
/// be called off.
fn lines() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let got = match parse(line.as_bytes()) {
            Ok(Request::Cancel(id)) => format!("cancel {id}"),
            Ok(Request::Call(call)) => {
                format!("call {} {} {}", call.id, call.tool, Value::Object(call.args.unwrap_or_default()))
            }
            Err(BadLine { id, error }) => format!("{} {}", id.unwrap_or_default(), error.message),
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn a_line_is_a_call_a_cancel_or_an_error_that_keeps_the_id() {
        check(r#"{"id":"1","tool":"t","args":{"a":1}}"#, r#"call "1" t {"a":1}"#);
        check(r#"{"id":7,"tool":"t"}"#, "call 7 t {}");
        check(r#"{"cancel":"1"}"#, r#"cancel "1""#);
        check("nonsense", "null not a line of JSON: expected ident at line 1 column 2");
        check(r#"{"id":"1"}"#, r#""1" not a request: missing field `tool`"#);
        check(r#"{"id":[],"tool":"t"}"#, "null not a request: id must be a string or a number");
        check(
            r#"{"id":"1","tool":"t","preveiw":true}"#,
            "\"1\" not a request: unknown field `preveiw`, expected one of `id`, `provider`, `tool`, `args`, \
             `preview`, `cwd`, `session`, `timeout_ms`",
        );
    }
}
