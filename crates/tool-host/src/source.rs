//! Tools that come from elsewhere than a provider: a plugin on another wire, an MCP server.
//!
//! What speaks the wire implements [`ToolSource`]; a [`Source`] is that under a name, and [`crate::Host::call_source`]
//! makes its calls, gated and ordered as those of a provider are. Shapes are the Model Context Protocol's: schemas are
//! JSON Schema of any kind, and a result is a list of content with an optional value beside it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::call::{Call, Reporter};
use crate::catalogue::{Concurrency, Identity, Kind, Risk, Tool};
use crate::event::{CallError, Category, Object, Outcome};
use crate::schedule::Scheduler;
use crate::schema::Schema;

/// Something that has tools and makes calls of them.
pub trait ToolSource: Send + Sync {
    /// The tools there are now, in the order the source lists them, each name once.
    fn tools(&self) -> Arc<Vec<SourceTool>>;

    /// A number that grows whenever the tools have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Makes a call of one of the tools, to its end. The reporter carries progress, and tells when the call is given up:
    /// it then ends soon, or its future is dropped. A tool that failed is a [`ToolResult`] too.
    ///
    /// # Errors
    /// Why there is no result at all: the source is gone, or does not speak.
    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>>;

    /// Ends what the source started. Later calls fail.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// A tool of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTool {
    /// Its bare name, unique in the source.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of the arguments: an object with `properties`.
    pub input_schema: Value,
    /// The JSON Schema of the value beside the content; `None` for a tool that answers with content alone.
    pub output_schema: Option<Value>,
    /// What it says about itself.
    pub annotations: Annotations,
}

impl SourceTool {
    /// How the host sees the tool: a data source when it says that it only reads, else a resource. Whatever does not say
    /// that it only adds is taken to have a high risk.
    pub fn gate(&self) -> Tool {
        let hints = self.annotations;
        let (kind, risk) = match (hints.read_only, hints.destructive) {
            (Some(true), _) => (Kind::DataSource, Risk::ReadOnly),
            (_, Some(false)) => (Kind::Resource, Risk::Low),
            _ => (Kind::Resource, Risk::High),
        };
        Tool {
            name: self.name.clone(),
            kind,
            risk,
            description: self.description.clone(),
            input: Schema::any(),
            output: Schema::any(),
            streaming: true,
            concurrency: Concurrency::Shared { keys: Vec::new() },
            timeout: None,
            idempotent: hints.idempotent.unwrap_or(false),
            terminates_turn: false,
        }
    }
}

/// The hints of a tool, as the Model Context Protocol names them. An absent one stands for the protocol's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// It changes nothing.
    #[serde(rename = "readOnlyHint", default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may remove or overwrite something.
    #[serde(rename = "destructiveHint", default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    #[serde(rename = "idempotentHint", default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches things that nobody has listed, such as the web.
    #[serde(rename = "openWorldHint", default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// Tools of the catalog that reach nothing but what they are configured with; `*` is every tool of the provider.
const CLOSED_WORLD: [(&str, &str); 9] = [
    ("filesystem", "*"),
    ("search", "*"),
    ("task", "*"),
    ("user", "*"),
    ("exec", "shell_read"),
    ("exec", "job_output"),
    ("exec", "job_list"),
    ("exec", "job_kill"),
    ("agent", "subagent_list"),
];

impl Annotations {
    /// The hints of a provider's tool. A provider does not say whether its world is open: that of the catalog's is known,
    /// that of others is taken to be.
    pub fn of(provider: &str, tool: &Tool) -> Self {
        let changes = tool.kind == Kind::Resource || tool.kind == Kind::Unspecified;
        let harmless = matches!(tool.risk, Risk::ReadOnly | Risk::Low);
        let closed =
            CLOSED_WORLD.iter().any(|(of, name)| *of == provider && (*name == "*" || *name == tool.name));
        Self {
            read_only: Some(!changes),
            destructive: Some(changes && !harmless),
            idempotent: Some(tool.idempotent),
            open_world: Some(!closed),
        }
    }
}

/// What a tool of a source answered, whether it succeeded or failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The content, items of the Model Context Protocol: `{"type": "text", "text": …}`, `{"type": "image", "data": …,
    /// "mimeType": …}` and others.
    #[serde(default)]
    pub content: Vec<Value>,
    /// The value that fits the tool's output schema.
    #[serde(rename = "structuredContent", default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the tool failed; the content then says why.
    #[serde(rename = "isError", default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

impl ToolResult {
    /// A success that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self { content: vec![json!({"type": "text", "text": text})], ..Self::default() }
    }

    /// The texts of the content, one after the other.
    pub fn text_of_content(&self) -> String {
        let text = |item: &Value| item.get("text").and_then(Value::as_str).map(str::to_owned);
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }

    /// Whether the content has something that is no text.
    pub fn has_media(&self) -> bool {
        self.content.iter().any(|item| item.get("type").and_then(Value::as_str) != Some("text"))
    }

    /// What the outcome of [`crate::Host::call_source`] holds.
    ///
    /// # Errors
    /// The error in place of a result.
    pub fn of(outcome: Outcome) -> Result<Self, CallError> {
        serde_json::from_value(Value::Object(outcome?))
            .map_err(|error| CallError::new(Category::Unknown, format!("no result of a tool: {error}")))
    }

    /// The result as the payload of a call.
    pub(crate) fn into_payload(self) -> Object {
        match serde_json::to_value(self) {
            Ok(Value::Object(payload)) => payload,
            _ => Map::new(),
        }
    }
}

/// A [`ToolSource`] under the name that its tools go by. Clones share it.
#[derive(Clone)]
pub struct Source(Arc<Inner>);

struct Inner {
    identity: Identity,
    scheduler: Scheduler,
    tools: Box<dyn ToolSource>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("identity", &self.0.identity).finish_non_exhaustive()
    }
}

impl Source {
    /// The tools of `tools` under a name; `version` is that of what has them, `origin` says where it comes from.
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        origin: impl Into<String>,
        tools: impl ToolSource + 'static,
    ) -> Self {
        let identity = Identity {
            name: name.into(),
            version: version.into(),
            source: origin.into(),
            category: "tool".to_owned(),
            protocol_version: 0,
        };
        Self(Arc::new(Inner { identity, scheduler: Scheduler::default(), tools: Box::new(tools) }))
    }

    /// Who it is; the name is the one given to [`Self::new`].
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The tools there are now.
    pub fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.0.tools.tools()
    }

    /// A number that grows whenever the tools have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.tools.changes()
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// `not_found`, naming the nearest.
    pub fn tool(&self, name: &str) -> Result<SourceTool, CallError> {
        let tools = self.tools();
        tools.iter().find(|tool| tool.name == name).cloned().ok_or_else(|| {
            let names = tools.iter().map(|tool| tool.name.as_str());
            let hint = crate::nearest(name, names.clone()).map_or_else(
                || format!("it has {}", names.collect::<Vec<_>>().join(", ")),
                |nearest| format!("did you mean {nearest}?"),
            );
            CallError::new(Category::NotFound, format!("{} has no tool {name}; {hint}", self.identity().name))
        })
    }

    /// Ends what the source started. Later calls fail.
    pub async fn stop(&self) {
        self.0.tools.stop().await;
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    pub(crate) async fn make(&self, call: &Call, reporter: &Reporter) -> Result<ToolResult, CallError> {
        self.0.tools.call(call, reporter).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hints: Value, expected: (Kind, Risk)) {
        let tool = SourceTool {
            name: "t".to_owned(),
            title: None,
            description: String::new(),
            input_schema: json!({"type": "object", "properties": {}}),
            output_schema: None,
            annotations: serde_json::from_value(hints).unwrap(),
        };
        let gate = tool.gate();
        assert_eq!((gate.kind, gate.risk), expected);
    }

    #[test]
    fn what_does_not_say_that_it_is_harmless_is_gated() {
        check(json!({}), (Kind::Resource, Risk::High));
        check(json!({"readOnlyHint": false}), (Kind::Resource, Risk::High));
        check(json!({"destructiveHint": false}), (Kind::Resource, Risk::Low));
        check(json!({"readOnlyHint": true, "destructiveHint": true}), (Kind::DataSource, Risk::ReadOnly));
    }

    #[test]
    fn a_result_keeps_its_shape_on_the_way_through_a_call() {
        let wire = json!({
            "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}],
            "structuredContent": [1],
            "isError": true,
        });
        let result: ToolResult = serde_json::from_value(wire.clone()).unwrap();
        assert!(result.has_media() && result.failed);
        assert_eq!(Value::Object(result.clone().into_payload()), wire);
        assert_eq!(ToolResult::of(Ok(result.clone().into_payload())), Ok(result));
        assert_eq!(
            Value::Object(ToolResult::text("a").into_payload()),
            json!({"content": [{"type": "text", "text": "a"}]})
        );
    }
}
