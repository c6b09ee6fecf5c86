//! What no document says about the wire, in one place: framing, the first exchange, error codes, sizes, and how a host is
//! told of subagents.
//!
//! Where hosts turn out to expect something else, this module changes and nothing else does.

mod framing;

use serde_json::{Map, Value, json};

pub use framing::{Decoder, Frame, Framing};

/// A message is no longer than this, in bytes.
pub const LONGEST_MESSAGE: usize = 32 * 1024 * 1024;
/// Calls that one side has running at once.
pub const MOST_CALLS: usize = 1024;
/// The version of the wire that is asked for when nothing else is said.
pub const PROTOCOL_VERSION: &str = "1";

/// The methods.
pub mod method {
    /// Host to plugin: the first request.
    pub const INITIALIZE: &str = "initialize";
    /// Host to plugin: which tools there are.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Host to plugin: a call.
    pub const TOOL_CALL: &str = "tool/call";
    /// Host to plugin, a notification: a call was given up.
    pub const TOOL_CANCEL: &str = "tool/cancel";
    /// Plugin to host, a notification: list the tools again.
    pub const TOOLS_CHANGED: &str = "host/tools.changed";
    /// Plugin to host: an agent of the plugin calls a tool of the host.
    pub const HOST_TOOLS_CALL: &str = "host/tools.call";
    /// Plugin to host: serve the host's tools over MCP.
    pub const HOST_MCP_SERVE: &str = "host/mcp.serve";
    /// Plugin to host, a notification: something a subagent does. Sent only to a host that has said it takes them.
    pub const SUBAGENT_EVENT: &str = "host/subagent.event";
    /// Host to plugin: a session of an agent begins.
    pub const CREATE_SESSION: &str = "agent/create_session";
    /// Host to plugin: a session of an agent goes on.
    pub const RESUME_SESSION: &str = "agent/resume_session";
    /// Host to plugin: a session of an agent goes on, twice.
    pub const FORK_SESSION: &str = "agent/fork_session";
}

/// The codes of errors.
pub mod code {
    /// It is no JSON.
    pub const PARSE: i64 = -32700;
    /// It is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const NO_METHOD: i64 = -32601;
    /// The parameters are wrong: also a tool that does not exist.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something failed inside.
    pub const INTERNAL: i64 = -32603;
    /// `initialize` has not been answered yet.
    pub const NOT_INITIALIZED: i64 = -32002;
    /// More calls run than may.
    pub const TOO_MANY: i64 = -32001;
}

/// The parameters with which a host introduces itself.
pub fn initialize_params(name: &str, version: &str, takes_subagents: bool) -> Value {
    let mut params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "host": {"name": name, "version": version},
        "capabilities": {},
    });
    if takes_subagents {
        params["capabilities"]["subagents"] = true.into();
    }
    params
}

/// What a plugin answers: who it is, the version it was asked for, and that it tells of changes.
pub fn initialize_result(name: &str, version: &str, params: &Value) -> Value {
    let mut result = json!({"name": name, "version": version, "capabilities": {"tools": {"changed": true}}});
    if let Some(asked) = params.get("protocolVersion") {
        result["protocolVersion"] = asked.clone();
    }
    result
}

/// Whether the host has said that it takes what subagents do.
pub fn takes_subagents(params: &Value) -> bool {
    params
        .pointer("/capabilities/subagents")
        .is_some_and(|told| !matches!(told, Value::Null | Value::Bool(false)))
}

/// What a host is told of a subagent: the scope that the host gave with the call, and the event, an object with its `kind`.
pub fn subagent_event(scope: &str, subagent: u64, event: &Map<String, Value>) -> Value {
    let mut event = event.clone();
    event.remove("subagent");
    json!({"scope": scope, "subagent": subagent, "event": event})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that is decided here and nowhere else.
    #[test]
    fn the_conventions() {
        let result = |params: Value| initialize_result("tools", "1.2.0", &params);
        let plain =
            json!({"name": "tools", "version": "1.2.0", "capabilities": {"tools": {"changed": true}}});
        let echoed = |version: Value| {
            let mut result = plain.clone();
            result["protocolVersion"] = version;
            result
        };
        let table = [
            ("any parameters do", result(Value::Null), plain.clone()),
            ("a list too", result(json!([1])), plain.clone()),
            ("the version is echoed", result(json!({"protocolVersion": "7"})), echoed(json!("7"))),
            ("whatever it is", result(json!({"protocolVersion": 3})), echoed(json!(3))),
            (
                "a host introduces itself",
                initialize_params("h", "1", true),
                json!({"protocolVersion": "1", "host": {"name": "h", "version": "1"}, "capabilities": {"subagents": true}}),
            ),
            ("a line", text(Framing::Lines), json!("{}\n")),
            ("headers", text(Framing::Headers), json!("Content-Length: 2\r\n\r\n{}")),
            ("the longest message", json!(LONGEST_MESSAGE), json!(33_554_432)),
            (
                "codes",
                json!([code::PARSE, code::INVALID_REQUEST, code::NO_METHOD, code::INVALID_PARAMS]),
                json!([-32700, -32600, -32601, -32602]),
            ),
            ("not yet", json!(code::NOT_INITIALIZED), json!(-32002)),
            ("subagents are off", json!(takes_subagents(&json!({"capabilities": {}}))), json!(false)),
            (
                "said to be off",
                json!(takes_subagents(&json!({"capabilities": {"subagents": false}}))),
                json!(false),
            ),
            ("on", json!(takes_subagents(&json!({"capabilities": {"subagents": {}}}))), json!(true)),
            (
                "an event",
                event(),
                json!({"scope": "s", "subagent": 3, "event": {"kind": "text", "delta": "x"}}),
            ),
        ];
        for (what, got, expected) in table {
            assert_eq!(got, expected, "{what}");
        }
    }

    fn text(framing: Framing) -> Value {
        String::from_utf8(framing.encode("{}")).unwrap().into()
    }

    fn event() -> Value {
        let event = json!({"subagent": 3, "kind": "text", "delta": "x"});
        subagent_event("s", 3, event.as_object().unwrap())
    }
}
