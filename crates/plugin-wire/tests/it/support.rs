//! A plugin of fixtures, and a host to talk to whatever is served.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plugin_wire::conventions::{Decoder, Frame, Framing};
use plugin_wire::server::{Written, output};
use plugin_wire::{RpcError, Served, Subagents, ToolCall, ToolEntry, failed, result_of, serve};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool_host::source::ToolResult;

/// Nothing here takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Tools with known behaviour.
pub(crate) struct Fx {
    pub(crate) changes: watch::Sender<u64>,
    /// What `gate` waits for.
    pub(crate) gate: Semaphore,
    /// How many calls of `hang` were cancelled.
    pub(crate) cancelled: watch::Sender<u64>,
}

impl Fx {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            changes: watch::Sender::new(0),
            gate: Semaphore::new(0),
            cancelled: watch::Sender::new(0),
        })
    }

    async fn run(
        &self,
        call: ToolCall,
        cancel: CancellationToken,
        mut subagents: Subagents,
    ) -> Result<ToolResult, RpcError> {
        let input = match call.input {
            Ok(input) => Value::Object(input),
            Err(why) => return Ok(failed(why)),
        };
        Ok(match call.name.as_str() {
            "echo" => result_of(input["t"].clone()),
            "add" => result_of(
                json!({"sum": input["a"].as_f64().unwrap_or_default() + input["b"].as_f64().unwrap_or_default()}),
            ),
            "boom" => failed("boom!"),
            "panic" => panic!("on purpose"),
            "gate" => {
                let _permit = self.gate.acquire().await;
                result_of(json!("through"))
            }
            "hang" => {
                cancel.cancelled().await;
                self.cancelled.send_modify(|count| *count += 1);
                failed("cancelled: as asked")
            }
            "context" => result_of(json!(format!("{:?}", call.context))),
            "subagent" => {
                for event in [
                    json!({"subagent": 7, "kind": "start", "title": "x"}),
                    json!({"subagent": 7, "kind": "text", "delta": "a"}),
                ] {
                    subagents.take(event.as_object().unwrap());
                }
                subagents.finish(plugin_wire::subagents::Ending::Completed);
                result_of(json!({"shown": subagents.shown()}))
            }
            other => return Err(RpcError::invalid_params(format!("there is no tool {other}"))),
        })
    }
}

impl Served for Fx {
    fn identity(&self) -> (String, String) {
        ("fx".to_owned(), "1.2.3".to_owned())
    }

    fn tools(&self) -> Vec<ToolEntry> {
        ["echo", "add", "boom", "panic", "gate", "hang", "context", "subagent"]
            .map(|name| ToolEntry {
                name: name.to_owned(),
                title: None,
                description: format!("{name}, for tests"),
                input_schema: json!({"type": "object", "properties": {}}),
                output_schema: None,
                annotations: json!({"readOnlyHint": true}),
            })
            .to_vec()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn call(
        self: Arc<Self>,
        call: ToolCall,
        cancel: CancellationToken,
        subagents: Subagents,
    ) -> BoxFuture<'static, Result<ToolResult, RpcError>> {
        Box::pin(async move { self.run(call, cancel, subagents).await })
    }
}

/// A host of something that is served.
pub(crate) struct Talk {
    input: Option<mpsc::Sender<Vec<u8>>>,
    written: Written,
    decoder: Decoder,
    waiting: VecDeque<Value>,
    pub(crate) stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Talk {
    pub(crate) fn with<S: Served>(served: Arc<S>) -> Self {
        let (input, pieces) = mpsc::channel(64);
        let (out, written) = output();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(served, pieces, out, stop.clone()));
        let (decoder, waiting) = (Decoder::default(), VecDeque::new());
        Self { input: Some(input), written, decoder, waiting, stop, serving }
    }

    /// With the first exchange done.
    pub(crate) async fn initialized<S: Served>(served: Arc<S>) -> Self {
        let mut talk = Self::with(served);
        talk.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize"})).await;
        talk.next().await;
        talk
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.bytes(Framing::Lines.encode(&message.to_string())).await;
    }

    pub(crate) async fn bytes(&mut self, bytes: Vec<u8>) {
        self.input.as_ref().unwrap().send(bytes).await.unwrap();
    }

    /// The end of the input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// The next message that comes.
    pub(crate) async fn next(&mut self) -> Value {
        timeout(LONG, self.read()).await.expect("nothing came").expect("the end came")
    }

    /// The next message, unless the server ends.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            let bytes = self.written.recv().await?;
            self.decoder.feed(&bytes);
            while let Some(frame) = self.decoder.next_frame() {
                let Frame::Message(bytes) = frame else { panic!("{frame:?}") };
                self.waiting.push_back(serde_json::from_slice(&bytes).unwrap());
            }
        }
    }

    /// What a call answers.
    pub(crate) async fn call(&mut self, name: &str, input: Value) -> Value {
        self.call_in(name, input, json!({})).await
    }

    pub(crate) async fn call_in(&mut self, name: &str, input: Value, context: Value) -> Value {
        let params = json!({"name": name, "input": input, "context": context});
        self.send(&json!({"id": "c", "method": "tool/call", "params": params})).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], "c", "{answer}");
        answer
    }

    /// Waits for the server to end; returns what it still said.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = timeout(LONG, self.read()).await.expect("it does not end") {
            rest.push(message);
        }
        timeout(LONG, &mut self.serving).await.expect("it does not end").unwrap();
        rest
    }

    /// Nothing more is said for a while.
    pub(crate) async fn quiet(&mut self) {
        if let Ok(message) = timeout(Duration::from_millis(300), self.read()).await {
            panic!("not quiet: {message:?}");
        }
    }
}
