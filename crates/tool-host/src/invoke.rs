//! The Invoke stream of one call: read to its end, checked, and ended where it does not end itself.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt, TryFutureExt};
use harness_proto::control::v1::CancelRequest;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event as Wire;
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Request, Status};

use crate::call::{Call, Line, cancelled};
use crate::catalogue::{DEFAULT_TIMEOUT, Tool};
use crate::event::{CallError, Category, Event, Outcome, Pipe};
use crate::json::from_struct;
use crate::notice::What;
use crate::provider::Provider;
use crate::status::{stream_error, wire_error};
use crate::utf8::Joiner;

/// The longest deadline that is sent; the header that carries it ends at eight digits of hours.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How long a cancelled call is read on: what a provider allows a tool for a clean end, and a little more.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_millis(3_000);
/// How long the provider may take to answer the request to cancel.
const CONTROL_LIMIT: Duration = Duration::from_millis(500);
/// How long the stream is watched for what must not follow a terminal event.
const AFTER_TERMINAL: Duration = Duration::from_millis(50);

type Events = Pin<Box<dyn Stream<Item = Result<pb::InvokeResponse, Status>> + Send>>;

/// Makes the call and reads it to its one outcome.
pub(crate) async fn invoke(provider: &Provider, tool: &Tool, call: &Call, line: &Line) -> Outcome {
    let allowed = call.timeout.or(tool.timeout).unwrap_or(DEFAULT_TIMEOUT).min(LONGEST_TIMEOUT);
    let mut request = Request::new(pb::InvokeRequest { call: Some(call.to_wire()) });
    request.set_timeout(allowed);
    let mut client = provider.tool_client();
    // A Go server sends its headers with the first event, so opening the stream can take as long as the call.
    let open = async move { client.invoke(request).await.map(tonic::Response::into_inner) };
    let stream: Events = Box::pin(open.try_flatten_stream());
    let mut reader = Reader { provider, tool, line, stream, joiner: Joiner::default() };
    let outcome = reader.read(call, allowed).await;
    for event in reader.joiner.finish() {
        let _ = line.events.send(event).await;
    }
    outcome
}

struct Reader<'a> {
    provider: &'a Provider,
    tool: &'a Tool,
    line: &'a Line,
    stream: Events,
    joiner: Joiner,
}

/// Why the stream is no longer waited for.
enum Limit {
    Deadline(Duration),
    Cancelled,
}

impl Reader<'_> {
    async fn read(&mut self, call: &Call, allowed: Duration) -> Outcome {
        let mut until = Instant::now() + allowed;
        let mut limit = Limit::Deadline(allowed);
        loop {
            let cancelling = matches!(limit, Limit::Cancelled);
            tokio::select! {
                biased;
                message = self.stream.next() => match message {
                    Some(Ok(response)) => {
                        if let Some(outcome) = self.event(response).await {
                            self.watch_the_end().await;
                            return outcome;
                        }
                    }
                    Some(Err(status)) => return Err(self.broken(&status, &limit, until).await),
                    None => return Err(self.ended(&limit).await),
                },
                () = self.line.events.closed() => return Err(cancelled()),
                () = self.line.stop.cancelled(), if !cancelling => {
                    if !self.ask_to_cancel(call).await {
                        // Dropping the stream is the reset that cancels it.
                        return Err(cancelled());
                    }
                    limit = Limit::Cancelled;
                    until = Instant::now() + CANCEL_GRACE;
                }
                () = sleep_until(until) => return Err(limit.passed(self.tool)),
            }
        }
    }

    /// Passes an event on, or returns the outcome that a terminal one is.
    async fn event(&mut self, response: pb::InvokeResponse) -> Option<Outcome> {
        let event = match response.event.and_then(|event| event.event)? {
            Wire::OutputChunk(chunk) => {
                let pipe = match chunk.stream() {
                    pb::OutputStream::Stderr => Pipe::Stderr,
                    pb::OutputStream::Stdout | pb::OutputStream::Unspecified => Pipe::Stdout,
                };
                self.joiner.push(pipe, &chunk.data)?
            }
            Wire::Progress(progress) => {
                Event::Progress { message: progress.message, fraction_complete: progress.fraction_complete }
            }
            Wire::PartialResult(part) => {
                Event::PartialResult { payload: part.payload.map(from_struct).unwrap_or_default() }
            }
            Wire::ExitStatus(exit) => Event::ExitStatus { exit_code: exit.exit_code, signal: exit.signal },
            Wire::Result(result) => return Some(self.result(result)),
            Wire::Error(error) => return Some(Err(wire_error(error))),
        };
        // A reader that is gone is noticed by the loop.
        let _ = self.line.events.send(event).await;
        None
    }

    fn result(&self, result: pb::ToolResult) -> Outcome {
        let payload = serde_json::Value::Object(result.payload.map(from_struct).unwrap_or_default());
        if let Err(violation) = self.tool.output.check(&payload) {
            let message =
                format!("the result of {} does not satisfy its output schema: {violation}", self.tool.name);
            return Err(CallError::new(Category::Unknown, message).with("error", violation.to_string()));
        }
        match payload {
            serde_json::Value::Object(payload) => Ok(payload),
            _ => Ok(crate::event::Object::new()),
        }
    }

    /// Nothing may follow a terminal event; what does is dropped, and said.
    async fn watch_the_end(&mut self) {
        let mut extra = 0;
        let watch = async {
            while let Some(Ok(_)) = self.stream.next().await {
                extra += 1;
            }
        };
        let closed = timeout(AFTER_TERMINAL, watch).await.is_ok();
        let name = &self.tool.name;
        if extra > 0 {
            self.warn(format!("{name} sent {extra} more events after its terminal one; they are ignored"));
        } else if !closed {
            self.warn(format!("{name} left its stream open after the terminal event"));
        }
    }

    fn warn(&self, warning: String) {
        self.provider.notice(What::Warning(warning));
    }

    /// Whether the provider has taken the request to cancel and keeps the stream open meanwhile.
    async fn ask_to_cancel(&mut self, call: &Call) -> bool {
        let mut control = self.provider.control_client();
        let request = CancelRequest { call_id: call.id.clone() };
        matches!(timeout(CONTROL_LIMIT, control.cancel(request)).await, Ok(Ok(_)))
    }

    async fn broken(&mut self, status: &Status, limit: &Limit, until: Instant) -> CallError {
        if let Some(death) = self.provider.death(Some(status)).await {
            return death;
        }
        match limit {
            Limit::Cancelled => cancelled(),
            // The client library answers a passed deadline on its own, with a status of its choice.
            Limit::Deadline(_) if Instant::now() >= until => limit.passed(self.tool),
            Limit::Deadline(_) => stream_error(status),
        }
    }

    async fn ended(&mut self, limit: &Limit) -> CallError {
        if matches!(limit, Limit::Cancelled) {
            return cancelled();
        }
        if let Some(death) = self.provider.death(None).await {
            return death;
        }
        let message = format!("{} ended its stream without a result or an error", self.tool.name);
        CallError::new(Category::Unknown, message).with("error", "missing terminal event")
    }
}

impl Limit {
    fn passed(&self, tool: &Tool) -> CallError {
        match self {
            Self::Cancelled => cancelled(),
            Self::Deadline(allowed) => {
                let message = format!("{} did not finish within {allowed:?}", tool.name);
                CallError::new(Category::Timeout, message)
            }
        }
    }
}
