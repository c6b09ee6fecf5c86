//! A plugin for tests: tools with known behaviour, and an agent that calls what its host hands it.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    if let Ok(file) = std::env::var("FX_PID_FILE") {
        std::fs::write(file, std::process::id().to_string()).unwrap();
    }
    if std::env::var_os("FX_SILENT").is_some() {
        std::thread::sleep(Duration::from_secs(600));
    }
    let mut plugin = Plugin::default();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        plugin.message(serde_json::from_str(&line).unwrap());
    }
    if std::env::var_os("FX_STUBBORN").is_some() {
        std::thread::sleep(Duration::from_secs(600));
    }
}

#[derive(Default)]
struct Plugin {
    /// Whether `change` has been called.
    changed: bool,
    /// Calls that wait to be cancelled.
    hanging: Vec<Value>,
    /// A session that is being opened: its request, what it was given, and what has come of it so far.
    opening: Option<(Value, Value, Vec<Value>)>,
}

fn send(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}

fn answer(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

impl Plugin {
    fn message(&mut self, message: Value) {
        let (id, params) = (message["id"].clone(), message["params"].clone());
        match message["method"].as_str() {
            Some("initialize") => answer(&id, json!({"name": "fx", "version": "1.0.0"})),
            Some("tools/list") => answer(&id, json!({"tools": self.tools()})),
            Some("tool/call") => self.call(id, &params),
            Some("tool/cancel") => self.cancel(&params["id"]),
            Some(open @ ("agent/create_session" | "agent/resume_session" | "agent/fork_session")) => {
                self.open(open, id, params);
            }
            Some(other) => {
                let error = json!({"code": -32601, "message": format!("there is no method {other}")});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            None => self.answered(&message),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let schema = json!({"type": "object", "properties": {}});
        let read = json!({"readOnlyHint": true});
        let names = [
            "echo", "img", "boom", "slow", "hang", "crash", "garbage", "change", "subagent", "context",
            "plain",
        ];
        let plain = |name: &str| json!({"name": name, "description": name, "inputSchema": schema, "annotations": read});
        let mut tools: Vec<Value> = names.iter().map(|name| plain(name)).collect();
        let output =
            json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
        tools.push(json!({"name": "add", "description": "add", "inputSchema": schema, "outputSchema": output, "annotations": read}));
        tools.push(json!({"name": "for_plugins", "description": "p", "scope": "plugins-workspace"}));
        tools.push(json!({"name": "not a name", "description": "x"}));
        if self.changed {
            tools.push(plain("late"));
        }
        tools
    }

    fn call(&mut self, id: Value, params: &Value) {
        let input = &params["input"];
        match params["name"].as_str().unwrap_or_default() {
            "echo" => answer(&id, text(input["t"].as_str().unwrap_or_default())),
            "plain" => answer(&id, json!("a bare text")),
            "context" => answer(&id, json!({"context": params["context"]})),
            "add" => {
                let sum = input["a"].as_i64().unwrap_or(0) + input["b"].as_i64().unwrap_or(0);
                let value = json!({"sum": sum});
                answer(
                    &id,
                    json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value}),
                );
            }
            "img" => {
                answer(&id, json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}))
            }
            "boom" => answer(&id, json!({"content": [{"type": "text", "text": "boom!"}], "isError": true})),
            "slow" => {
                let wait = Duration::from_millis(input["ms"].as_u64().unwrap_or(0));
                std::thread::spawn(move || {
                    std::thread::sleep(wait);
                    answer(&id, text("slept"));
                });
            }
            "hang" => self.hanging.push(id),
            "crash" => {
                eprintln!("last words");
                std::process::exit(7);
            }
            "garbage" => {
                let mut out = std::io::stdout().lock();
                writeln!(out, "debug: this is no message").unwrap();
                drop(out);
                answer(&id, text("after the garbage"));
            }
            "change" => {
                self.changed = true;
                answer(&id, text("changed"));
                for _ in 0..3 {
                    send(&json!({"jsonrpc": "2.0", "method": "host/tools.changed"}));
                }
            }
            "subagent" => {
                let scope = &params["context"]["scope"];
                let event = |event: Value| {
                    let params = json!({"scope": scope, "subagent": 4, "event": event});
                    send(&json!({"jsonrpc": "2.0", "method": "host/subagent.event", "params": params}));
                };
                event(json!({"kind": "start", "title": "Research"}));
                event(json!({"kind": "step", "title": "Reading"}));
                event(json!({"kind": "text", "delta": "two"}));
                if input["end"] == true {
                    event(json!({"kind": "end", "status": "completed"}));
                    event(json!({"kind": "text", "delta": "late"}));
                }
                answer(&id, text("done"));
            }
            other => {
                let error = json!({"code": -32602, "message": format!("there is no tool {other}")});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        }
    }

    fn cancel(&mut self, id: &Value) {
        if let Some(at) = self.hanging.iter().position(|hanging| hanging == id) {
            let id = self.hanging.remove(at);
            answer(&id, json!({"content": [{"type": "text", "text": "stopped half way"}], "isError": true}));
        }
    }

    /// Does what an agent does with a session: calls a tool, asks for the tools over MCP, and says what came of it.
    fn open(&mut self, method: &str, id: Value, params: Value) {
        let call = json!({
            "agentId": "fx-agent", "sessionId": "s1", "workspace": params["workspace"],
            "name": params["tools"][0]["name"], "input": params["input"], "callId": method,
        });
        send(&json!({"jsonrpc": "2.0", "id": "h1", "method": "host/tools.call", "params": call}));
        let unknown = json!({"agentId": "fx-agent", "name": "no_such_tool", "input": {}});
        send(&json!({"jsonrpc": "2.0", "id": "h2", "method": "host/tools.call", "params": unknown}));
        send(
            &json!({"jsonrpc": "2.0", "id": "h3", "method": "host/mcp.serve", "params": {"workspace": params["workspace"]}}),
        );
        send(&json!({"jsonrpc": "2.0", "id": "h4", "method": "host/else", "params": {}}));
        self.opening = Some((id, params, Vec::new()));
    }

    fn answered(&mut self, message: &Value) {
        let Some((id, params, got)) = &mut self.opening else { return };
        got.push(message.clone());
        if got.len() < 4 {
            return;
        }
        got.sort_by_key(|message| message["id"].to_string());
        let names: Vec<&Value> = params["tools"]
            .as_array()
            .map(|tools| tools.iter().map(|tool| &tool["name"]).collect())
            .unwrap_or_default();
        answer(
            id,
            json!({"sessionId": "s1", "tools": names, "instructions": params["instructions"], "got": got}),
        );
        self.opening = None;
    }
}
