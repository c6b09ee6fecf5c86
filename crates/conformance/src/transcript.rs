//! The Invoke stream of one call, as it came.

use std::time::Duration;

use futures_util::{StreamExt, TryFutureExt};
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use prost::Message as _;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// How long a stream is watched for what must not follow a terminal event.
const AFTER_TERMINAL: Duration = Duration::from_secs(2);

/// Everything that came, in order.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// The events; `None` is one that says nothing.
    pub(crate) events: Vec<Option<Event>>,
    pub(crate) end: End,
}

/// How the stream ended.
#[derive(Debug)]
pub(crate) enum End {
    /// In order.
    Closed,
    /// With a status that is not OK.
    Status(Status),
    /// It did not, in the time it was given.
    Open(Duration),
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Terminal<'a> {
    Result(&'a pb::ToolResult),
    Error(&'a pb::ToolError),
}

impl Transcript {
    /// Makes the call and reads it to its end, for at most `limit`.
    pub(crate) async fn of(client: ToolServiceClient<Channel>, call: pb::ToolCall, limit: Duration) -> Self {
        Self::watch(client, Request::new(pb::InvokeRequest { call: Some(call) }), limit, |_| {}).await
    }

    /// The same for a request that is made already; `seen` is told of each event.
    pub(crate) async fn watch(
        mut client: ToolServiceClient<Channel>,
        request: Request<pb::InvokeRequest>,
        limit: Duration,
        mut seen: impl FnMut(&Event),
    ) -> Self {
        // A Go server sends its headers with the first event, so opening the stream can take as long as the call.
        let open = async move { client.invoke(request).await.map(tonic::Response::into_inner) };
        let mut stream = Box::pin(open.try_flatten_stream());
        let mut events: Vec<Option<Event>> = Vec::new();
        let until = Instant::now() + limit;
        let end = loop {
            let ended = events.iter().flatten().any(is_terminal);
            let next = match ended {
                true => timeout(AFTER_TERMINAL, stream.next()).await,
                false => timeout_at(until, stream.next()).await,
            };
            match next {
                Err(_) => break End::Open(if ended { AFTER_TERMINAL } else { limit }),
                Ok(None) => break End::Closed,
                Ok(Some(Err(status))) => break End::Status(status),
                Ok(Some(Ok(response))) => {
                    let event = response.event.and_then(|event| event.event);
                    if let Some(event) = &event {
                        seen(event);
                    }
                    events.push(event);
                }
            }
        };
        Self { events, end }
    }

    /// The first terminal event and its place.
    pub(crate) fn first_terminal(&self) -> Option<(usize, Terminal<'_>)> {
        self.events.iter().enumerate().find_map(|(index, event)| match event {
            Some(Event::Result(result)) => Some((index, Terminal::Result(result))),
            Some(Event::Error(error)) => Some((index, Terminal::Error(error))),
            _ => None,
        })
    }

    /// The payload of the result, if the call ended with one.
    pub(crate) fn payload(&self) -> Option<Value> {
        match self.first_terminal()? {
            (_, Terminal::Result(result)) => Some(payload_value(result)),
            (_, Terminal::Error(_)) => None,
        }
    }

    /// The error the call ended with.
    pub(crate) fn error(&self) -> Option<&pb::ToolError> {
        match self.first_terminal()? {
            (_, Terminal::Error(error)) => Some(error),
            (_, Terminal::Result(_)) => None,
        }
    }

    /// All that came, as it was on the wire, to look for texts in.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for event in self.events.iter().flatten() {
            bytes.extend(pb::ToolEvent { event: Some(event.clone()) }.encode_to_vec());
        }
        if let End::Status(status) = &self.end {
            bytes.extend(status.message().as_bytes());
            bytes.extend(status.details());
        }
        bytes
    }

    /// How the call ended, without what differs from time to time.
    pub(crate) fn kind(&self) -> String {
        match (self.first_terminal(), &self.end) {
            (Some((_, Terminal::Result(_))), _) => "a result".to_owned(),
            (Some((_, Terminal::Error(error))), _) => format!("the error {}", category(error)),
            (None, End::Closed) => "no terminal event".to_owned(),
            (None, End::Status(status)) => format!("the status {:?}", status.code()),
            (None, End::Open(_)) => "nothing in its time".to_owned(),
        }
    }

    /// How the call ended, in words.
    pub(crate) fn ending(&self) -> String {
        match (self.first_terminal(), &self.end) {
            (Some((_, Terminal::Result(_))), _) => "a result".to_owned(),
            (Some((_, Terminal::Error(error))), _) => {
                format!("the error {}: {}", category(error), shortened(&error.message))
            }
            (None, End::Closed) => "a stream that closed without a terminal event".to_owned(),
            (None, End::Status(status)) => status_in_words(status),
            (None, End::Open(limit)) => format!("no terminal event within {limit:?}"),
        }
    }
}

fn is_terminal(event: &Event) -> bool {
    matches!(event, Event::Result(_) | Event::Error(_))
}

/// The payload as the kernel reads it: an absent one is an empty object.
pub(crate) fn payload_value(result: &pb::ToolResult) -> Value {
    Value::Object(tool_host::struct_to_json(result.payload.clone().unwrap_or_default()))
}

/// The category of an error, as calls files write it.
pub(crate) fn category(error: &pb::ToolError) -> String {
    error.category().as_str_name().trim_start_matches("TOOL_ERROR_CATEGORY_").to_ascii_lowercase()
}

/// A status in words.
pub(crate) fn status_in_words(status: &Status) -> String {
    format!("the gRPC status {:?}: {}", status.code(), shortened(status.message()))
}

/// Enough of a text to recognise it.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    match line.char_indices().nth(240) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
