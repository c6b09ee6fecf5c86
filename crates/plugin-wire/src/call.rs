//! A call of a tool, as the wire has it.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tool_host::Object;

use crate::conventions::subagent_event;
use crate::message::RpcError;

/// A call that came.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it is called with: an object, or what came in its place.
    pub input: Result<Object, String>,
    /// Who calls.
    pub context: Context,
}

/// Who calls, as far as the host has said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// The workspace, for the host.
    #[serde(default)]
    pub workspace_id: Option<String>,
    /// The absolute folder that the session works in.
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    /// The agent.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// The chat.
    #[serde(default)]
    pub chat_id: Option<String>,
    /// The agent's id for the call.
    #[serde(default)]
    pub call_id: Option<String>,
    /// The host's id for the call's subagents, while it runs in a chat.
    #[serde(default)]
    pub scope: Option<String>,
}

impl ToolCall {
    /// Reads the parameters of `tool/call`.
    ///
    /// # Errors
    /// There is no name, or the context is none. What is wrong with the input is for the agent to read.
    pub fn parse(params: Value) -> Result<Self, RpcError> {
        let Value::Object(mut params) = params else {
            return Err(RpcError::invalid_params("wanted an object with name, input and context"));
        };
        let name = match params.remove("name") {
            Some(Value::String(name)) => name,
            Some(other) => return Err(RpcError::invalid_params(format!("name: wanted a text, got {other}"))),
            None => return Err(RpcError::invalid_params("name is missing: wanted the name of a tool")),
        };
        let input = match params.remove("input") {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(input)) => Ok(input),
            Some(other) => Err(format!("input: wanted an object, got {}", kind(&other))),
        };
        let context = match params.remove("context") {
            None | Some(Value::Null) => Context::default(),
            Some(context) => serde_json::from_value(context)
                .map_err(|error| RpcError::invalid_params(format!("context: {error}")))?,
        };
        Ok(Self { name, input, context })
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What the host is told of the subagents of a call: `None` when it takes nothing, or the call runs outside of a chat.
pub(crate) fn subagent_params(context: &Context) -> Option<impl Fn(u64, &Object) -> Value + Send + use<>> {
    let scope = context.scope.clone()?;
    Some(move |number: u64, event: &Object| subagent_event(&scope, number, event))
}

/// A tool, as `tools/list` has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolEntry {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
    /// The JSON Schema of the value beside its text.
    pub output_schema: Option<Value>,
    /// Its hints, as the Model Context Protocol has them.
    pub annotations: Value,
}

impl ToolEntry {
    /// The entry as JSON.
    pub fn to_json(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
        });
        if let Some(title) = &self.title {
            entry["title"] = title.as_str().into();
        }
        if let Some(schema) = &self.output_schema {
            entry["outputSchema"] = schema.clone();
        }
        if !self.annotations.is_null() {
            entry["annotations"] = self.annotations.clone();
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: Value, expected: Result<&str, &str>) {
        let got = ToolCall::parse(params);
        let got =
            got.as_ref().map(|call| format!("{}({:?})", call.name, call.input)).map_err(ToString::to_string);
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn an_absent_input_is_an_empty_object() {
        check(json!({"name": "t"}), Ok("t(Ok({}))"));
        check(json!({"name": "t", "input": null, "context": null}), Ok("t(Ok({}))"));
        check(json!({"name": "t", "input": [1]}), Ok("t(Err(\"input: wanted an object, got a list\"))"));
    }

    #[test]
    fn what_is_no_call_is_refused() {
        check(json!(null), Err("wanted an object with name, input and context"));
        check(json!({}), Err("name is missing: wanted the name of a tool"));
        check(json!({"name": 3}), Err("name: wanted a text, got 3"));
        let error = ToolCall::parse(json!({"name": "t", "context": {"workspace": 3}})).unwrap_err();
        assert!(error.message.starts_with("context: invalid type: integer"), "{error}");
    }

    #[test]
    fn a_context_may_have_more_than_is_known() {
        let context = json!({"workspace": "/w", "chatId": "c", "callId": "1", "colour": "red"});
        let call = ToolCall::parse(json!({"name": "t", "context": context})).unwrap();
        assert_eq!(call.context.workspace, Some(PathBuf::from("/w")));
        assert_eq!(call.context.chat_id.as_deref(), Some("c"));
    }
}
