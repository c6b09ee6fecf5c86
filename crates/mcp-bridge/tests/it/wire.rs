//! A client that sends and reads lines, so that what is on the wire is seen.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_bridge::{Bridge, ServeError, serve_stream};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, split,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Enough for a busy machine; nothing here waits that long when it works.
const PATIENCE: Duration = Duration::from_secs(60);

/// One client, and the server that serves it.
pub(crate) struct Wire {
    to_server: Option<WriteHalf<DuplexStream>>,
    from_server: BufReader<ReadHalf<DuplexStream>>,
    /// Read, and not yet asked for.
    early: VecDeque<Value>,
    server: JoinHandle<Result<(), ServeError>>,
    next_id: u64,
}

impl Wire {
    /// A connection on which nothing has been said.
    pub(crate) fn open(bridge: &Bridge) -> Self {
        let (client, server) = tokio::io::duplex(1 << 20);
        let (input, output) = split(server);
        let bridge = bridge.clone();
        let server = tokio::spawn(async move { serve_stream(&bridge, input, output).await });
        let (from_server, to_server) = split(client);
        Self {
            to_server: Some(to_server),
            from_server: BufReader::new(from_server),
            early: VecDeque::new(),
            server,
            next_id: 100,
        }
    }

    /// A connection on which the client has introduced itself as one with these capabilities.
    pub(crate) async fn initialized(bridge: &Bridge, capabilities: Value) -> Self {
        let mut wire = Self::open(bridge);
        let answer = wire.request("initialize", initialize("2025-11-25", capabilities)).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        wire.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        wire
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.to_server.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    /// Sends a request without waiting; its id.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The answer to a request; what else comes is kept.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none()).await
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// The next message of the server of that method.
    pub(crate) async fn hear(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    async fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.early.iter().position(&wanted) {
            return self.early.remove(index).unwrap();
        }
        loop {
            let message = self.read().await.expect("the server closed the connection");
            if wanted(&message) {
                return message;
            }
            self.early.push_back(message);
        }
    }

    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count =
            timeout(PATIENCE, self.from_server.read_line(&mut line)).await.expect("no answer").unwrap();
        (count > 0).then(|| serde_json::from_str(&line).expect(&line))
    }

    /// What has come of that method so far, and is not asked for otherwise.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        self.early.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// Ends the input; everything that came and was not asked for.
    pub(crate) async fn close(mut self) -> Vec<Value> {
        let mut to_server = self.to_server.take().unwrap();
        to_server.shutdown().await.unwrap();
        while let Some(message) = self.read().await {
            self.early.push_back(message);
        }
        timeout(PATIENCE, self.server).await.expect("the server goes on").unwrap().unwrap();
        self.early.into()
    }
}

pub(crate) fn initialize(version: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {"name": "wire", "version": "1"},
    })
}

/// The parameters with what every request of the stateless revision carries.
pub(crate) fn stateless(mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// The texts of a result.
pub(crate) fn text(answer: &Value) -> String {
    let items = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {answer}"));
    items.iter().filter_map(|item| item["text"].as_str()).collect::<Vec<_>>().join("\n")
}
