//! The plugin's side: answers a host on a pair of byte streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tool_host::source::ToolResult;

use crate::call::{ToolCall, ToolEntry, subagent_params};
use crate::conventions::{
    Decoder, Frame, Framing, MOST_CALLS, code, initialize_result, method, takes_subagents,
};
use crate::message::{Id, Incoming, Malformed, Outgoing, Parsed, RpcError, parse, write};
use crate::result::failed;
use crate::subagents::Subagents;

/// What a plugin serves.
pub trait Served: Send + Sync + 'static {
    /// Its name and version.
    fn identity(&self) -> (String, String);

    /// The tools there are now, each name once.
    fn tools(&self) -> Vec<ToolEntry>;

    /// A number that grows whenever the tools have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Makes a call, to its end; once `cancel` is cancelled it ends soon. What its subagents do goes to `subagents`. A
    /// tool that failed is a result too.
    ///
    /// # Errors
    /// There is no such tool.
    fn call(
        self: Arc<Self>,
        call: ToolCall,
        cancel: CancellationToken,
        subagents: Subagents,
    ) -> BoxFuture<'static, Result<ToolResult, RpcError>>;
}

/// Calls that had begun when the input ended may come to their own end for so long; whoever writes a request and closes
/// wants its answer.
const LAST_ANSWERS: Duration = Duration::from_millis(700);
/// Then they are cancelled, and have so long to end.
const LAST_CANCELS: Duration = Duration::from_millis(1_800);
/// Changes that come within this time are one.
const BURST: Duration = Duration::from_millis(50);
/// A host that leaves so many bytes of answers unread gets no more calls made.
const MOST_UNREAD: usize = 256 * 1024 * 1024;

/// Where answers go, in whole messages. What is written leaves in the order of the calls.
#[derive(Clone, Debug)]
pub struct Output {
    sender: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
}

/// The other end of an [`Output`].
#[derive(Debug)]
pub struct Written {
    receiver: mpsc::UnboundedReceiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
}

/// An output and its other end.
pub fn output() -> (Output, Written) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let unread = Arc::new(AtomicUsize::new(0));
    (Output { sender, unread: unread.clone() }, Written { receiver, unread })
}

impl Output {
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        self.unread.fetch_add(bytes.len(), Ordering::Relaxed);
        // Nobody reads any more; that the input ends too ends everything.
        let _ = self.sender.send(bytes);
    }

    fn is_full(&self) -> bool {
        self.unread.load(Ordering::Relaxed) > MOST_UNREAD
    }
}

impl Written {
    /// The next bytes to write; `None` when there will be no more.
    pub async fn recv(&mut self) -> Option<Vec<u8>> {
        let bytes = self.receiver.recv().await?;
        self.unread.fetch_sub(bytes.len(), Ordering::Relaxed);
        Some(bytes)
    }

    /// [`Self::recv`] for a thread that may wait.
    pub fn blocking_recv(&mut self) -> Option<Vec<u8>> {
        let bytes = self.receiver.blocking_recv()?;
        self.unread.fetch_sub(bytes.len(), Ordering::Relaxed);
        Some(bytes)
    }
}

/// Answers what comes from `input`, in pieces of any size, until it ends or `stop` is cancelled. Calls that still run are
/// then ended, within a few seconds.
pub async fn serve<S: Served>(
    served: Arc<S>,
    mut input: mpsc::Receiver<Vec<u8>>,
    output: Output,
    stop: CancellationToken,
) {
    let mut changes = served.changes();
    let mut server = Server {
        served,
        output,
        decoder: Decoder::default(),
        versioned: true,
        spoken: false,
        initialized: false,
        subagents: false,
        running: HashMap::new(),
        calls: JoinSet::new(),
    };
    let mut announce: Option<Instant> = None;
    loop {
        let due = announce.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(done) = server.calls.join_next() => server.settle(done.ok()),
            piece = input.recv() => match piece {
                Some(piece) => {
                    let was = server.initialized;
                    server.feed(&piece);
                    if server.initialized && !was {
                        // The host lists the tools after this, so what changed before is no news.
                        changes.mark_unchanged();
                    }
                }
                None => break,
            },
            Ok(()) = changes.changed(), if announce.is_none() => {
                announce = server.initialized.then(|| Instant::now() + BURST);
            }
            () = sleep_until(due), if announce.is_some() => {
                announce = None;
                changes.mark_unchanged();
                server.notify(method::TOOLS_CHANGED, Value::Null);
            }
        }
    }
    server.finish().await;
}

struct Server<S> {
    served: Arc<S>,
    output: Output,
    decoder: Decoder,
    /// Whether what is sent says which JSON-RPC it is.
    versioned: bool,
    /// Whether a message has come that decided it.
    spoken: bool,
    initialized: bool,
    /// Whether the host takes what subagents do.
    subagents: bool,
    running: HashMap<Id, CancellationToken>,
    calls: JoinSet<Id>,
}

impl<S: Served> Server<S> {
    fn feed(&mut self, piece: &[u8]) {
        self.decoder.feed(piece);
        while let Some(frame) = self.decoder.next_frame() {
            self.frame(frame);
        }
    }

    fn frame(&mut self, frame: Frame) {
        // Ids may be used again as soon as their answers have been read, and those are written before.
        while let Some(done) = self.calls.try_join_next() {
            self.settle(done.ok());
        }
        let malformed = match frame {
            Frame::Message(bytes) => match parse(&bytes) {
                Ok(parsed) => return self.message(parsed),
                Err(malformed) => malformed,
            },
            Frame::TooLong => Malformed {
                id: None,
                error: RpcError::new(
                    code::INVALID_REQUEST,
                    "the message is longer than 32 MiB, and was skipped",
                ),
            },
            Frame::BadHeader(why) => Malformed { id: None, error: RpcError::new(code::PARSE, why) },
        };
        self.answer(malformed.id, Err(malformed.error));
    }

    fn message(&mut self, parsed: Parsed) {
        if !std::mem::replace(&mut self.spoken, true) {
            self.versioned = parsed.versioned;
        }
        match parsed.message {
            Incoming::Request { id, method, params } => self.request(id, &method, params),
            Incoming::Notification { method, params } => self.notification(&method, &params),
            // Nothing is ever asked of the host, so this answers nothing.
            Incoming::Response { .. } => {}
        }
    }

    fn request(&mut self, id: Id, name: &str, params: Value) {
        if self.running.contains_key(&id) {
            // Under its id, this error would be taken for the end of the call that runs.
            let message = format!("a request with the id {id} is still running");
            return self.answer(None, Err(RpcError::new(code::INVALID_REQUEST, message)));
        }
        let result = match name {
            method::INITIALIZE => Ok(self.initialize(&params)),
            _ if !self.initialized => {
                Err(RpcError::new(code::NOT_INITIALIZED, "not initialized: send initialize first"))
            }
            method::TOOLS_LIST => {
                let tools: Vec<Value> = self.served.tools().iter().map(ToolEntry::to_json).collect();
                Ok(json!({ "tools": tools }))
            }
            method::TOOL_CALL => match ToolCall::parse(params) {
                Ok(call) => match self.start(id.clone(), call) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            },
            other => Err(RpcError::no_method(other)),
        };
        self.answer(Some(id), result);
        self.initialized |= name == method::INITIALIZE;
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.subagents = takes_subagents(params);
        let (name, version) = self.served.identity();
        initialize_result(&name, &version, params)
    }

    fn notification(&mut self, name: &str, params: &Value) {
        // Whatever else comes is for somebody else.
        if name == method::TOOL_CANCEL
            && let Some(id) = params.get("id").and_then(Id::from_json)
            && let Some(cancel) = self.running.get(&id)
        {
            cancel.cancel();
        }
    }

    fn start(&mut self, id: Id, call: ToolCall) -> Result<(), RpcError> {
        if self.running.len() >= MOST_CALLS {
            return Err(RpcError::new(code::TOO_MANY, format!("{MOST_CALLS} calls are running already")));
        }
        if self.output.is_full() {
            return Err(RpcError::new(code::TOO_MANY, "too many answers have not been read yet"));
        }
        let cancel = CancellationToken::new();
        let subagents = self.subagents_of(&call);
        let work = self.served.clone().call(call, cancel.clone(), subagents);
        self.running.insert(id.clone(), cancel);
        let (output, framing, versioned) = (self.output.clone(), self.framing(), self.versioned);
        self.calls.spawn(async move {
            // A task of its own, so that a panic is the end of this call alone.
            let result = match tokio::spawn(work).await {
                Ok(result) => result.map(result_json),
                Err(_) => Ok(result_json(failed(
                    "unknown: the tool failed inside; nothing is known of how far it came",
                ))),
            };
            let message = Outgoing::Response { id: Some(id.clone()), result };
            output.send(framing.encode(&write(&message, versioned)));
            id
        });
        Ok(())
    }

    fn subagents_of(&self, call: &ToolCall) -> Subagents {
        let params = subagent_params(&call.context).filter(|_| self.subagents);
        let Some(params) = params else { return Subagents::unseen() };
        let (output, framing, versioned) = (self.output.clone(), self.framing(), self.versioned);
        Subagents::shown_to(move |number, event| {
            let method = method::SUBAGENT_EVENT.to_owned();
            let message = Outgoing::Notification { method, params: params(number, event) };
            output.send(framing.encode(&write(&message, versioned)));
        })
    }

    fn settle(&mut self, done: Option<Id>) {
        if let Some(id) = done {
            self.running.remove(&id);
        }
    }

    fn notify(&self, name: &str, params: Value) {
        self.send(&Outgoing::Notification { method: name.to_owned(), params });
    }

    fn answer(&self, id: Option<Id>, result: Result<Value, RpcError>) {
        self.send(&Outgoing::Response { id, result });
    }

    fn send(&self, message: &Outgoing) {
        self.output.send(self.framing().encode(&write(message, self.versioned)));
    }

    fn framing(&self) -> Framing {
        self.decoder.framing().unwrap_or(Framing::Lines)
    }

    /// Lets what runs end.
    async fn finish(mut self) {
        if let Some(frame) = std::mem::take(&mut self.decoder).finish() {
            self.frame(frame);
        }
        let calls = &mut self.calls;
        if timeout(LAST_ANSWERS, async { while calls.join_next().await.is_some() {} }).await.is_ok() {
            return;
        }
        self.running.values().for_each(CancellationToken::cancel);
        let _ = timeout(LAST_CANCELS, async { while calls.join_next().await.is_some() {} }).await;
    }
}

fn result_json(result: ToolResult) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}
