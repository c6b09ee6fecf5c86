//! What a provider says about itself, as the host understands it.

use std::fmt;
use std::time::Duration;

use harness_proto::common::v1 as common;
use harness_proto::config::v1 as config;
use harness_proto::tool::v1 as pb;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::Schema;

/// The deadline of tools that declare none, as the kernel has it.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Who a provider is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Its own short name.
    pub name: String,
    /// The version of the build, without a leading v.
    pub version: String,
    /// Where it comes from, for example `github.com/org/repo`.
    pub source: String,
    /// The category it serves, in lower case; `tool` for everything this crate can drive.
    pub category: String,
    /// The version of the category's protocol.
    pub protocol_version: u32,
}

impl From<common::ProducerRef> for Identity {
    fn from(wire: common::ProducerRef) -> Self {
        let category = wire.category().as_str_name().trim_start_matches("CATEGORY_").to_ascii_lowercase();
        Self {
            name: wire.name,
            version: wire.version,
            source: wire.source,
            category,
            protocol_version: wire.protocol_version,
        }
    }
}

/// What a provider offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    /// The tools in the order the provider lists them, each name once.
    pub tools: Vec<Tool>,
    /// The attributes of its configuration.
    pub config: Vec<Attribute>,
    /// The hook points it can subscribe to, as agent.hcl writes them.
    pub hook_points: Vec<String>,
    /// The slash commands it offers.
    pub slash_commands: Vec<SlashCommand>,
    /// What is wrong with the declaration but can be lived with, one sentence each.
    pub warnings: Vec<String>,
}

impl Catalogue {
    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A prompt that a person calls by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlashCommand {
    /// The word after the slash.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The text it expands to, with `{arg}` placeholders.
    pub template: String,
}

/// One operation of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its bare name, unique in the provider.
    pub name: String,
    /// Whether it reads, changes or asks.
    pub kind: Kind,
    /// How much harm a call can do.
    pub risk: Risk,
    /// What it does, for models and people.
    pub description: String,
    /// The arguments.
    pub input: Schema,
    /// The result's payload.
    pub output: Schema,
    /// Whether events may come before the outcome.
    pub streaming: bool,
    /// Which calls may run at the same time.
    pub concurrency: Concurrency,
    /// How long a call may run unless the operator says otherwise; `None` leaves it to the host.
    pub timeout: Option<Duration>,
    /// Whether repeating a call leaves the same state as making it once.
    pub idempotent: bool,
    /// Whether a successful call ends the agent's turn.
    pub terminates_turn: bool,
}

impl Tool {
    /// The first sentence of the description.
    pub fn summary(&self) -> &str {
        let line = self.description.lines().next().unwrap_or_default().trim();
        line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.')
    }
}

/// Whether a tool reads, changes or asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Changes something; runs after approval.
    Resource,
    /// Reads; runs freely.
    DataSource,
    /// Asks a person.
    Interactive,
    /// The provider did not say; every call is refused.
    Unspecified,
}

/// How much harm a call can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// None.
    ReadOnly,
    /// Adds something easily removed.
    Low,
    /// Changes what can be put back.
    Moderate,
    /// Removes things or runs code.
    High,
    /// Acts beyond what one call shows.
    Critical,
    /// The provider did not say.
    Unspecified,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Resource => "resource",
            Self::DataSource => "data_source",
            Self::Interactive => "interactive",
            Self::Unspecified => "unspecified",
        })
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadOnly => "read_only",
            Self::Low => "low",
            Self::Moderate => "moderate",
            Self::High => "high",
            Self::Critical => "critical",
            Self::Unspecified => "unspecified",
        })
    }
}

/// Which calls of a provider may run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// No other call of the provider runs meanwhile.
    Exclusive,
    /// Any other shared call may run meanwhile; with keys, calls of this tool that have equal values of these
    /// arguments run one after another.
    Shared {
        /// Names of top-level arguments, in declared order.
        keys: Vec<String>,
    },
}

impl From<Option<pb::ConcurrencySpec>> for Concurrency {
    fn from(wire: Option<pb::ConcurrencySpec>) -> Self {
        match wire {
            Some(spec) if spec.safe => Self::Shared { keys: spec.key_fields },
            _ => Self::Exclusive,
        }
    }
}

impl From<pb::ToolSchema> for Tool {
    fn from(wire: pb::ToolSchema) -> Self {
        let kind = match wire.kind() {
            pb::ToolKind::Resource => Kind::Resource,
            pb::ToolKind::DataSource => Kind::DataSource,
            pb::ToolKind::Interactive => Kind::Interactive,
            pb::ToolKind::Unspecified => Kind::Unspecified,
        };
        let risk = match wire.risk() {
            pb::RiskClass::ReadOnly => Risk::ReadOnly,
            pb::RiskClass::Low => Risk::Low,
            pb::RiskClass::Moderate => Risk::Moderate,
            pb::RiskClass::High => Risk::High,
            pb::RiskClass::Critical => Risk::Critical,
            pb::RiskClass::Unspecified => Risk::Unspecified,
        };
        Self {
            name: wire.name,
            kind,
            risk,
            description: wire.description,
            input: wire.input_schema.map_or_else(Schema::any, Schema::from),
            output: wire.output_schema.map_or_else(Schema::any, Schema::from),
            streaming: wire.streaming,
            concurrency: wire.concurrency.into(),
            timeout: wire.default_timeout.and_then(|timeout| Duration::try_from(timeout).ok()),
            idempotent: wire.idempotent,
            terminates_turn: wire.terminates_turn,
        }
    }
}

/// One attribute of a provider's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What its value is.
    pub kind: AttributeKind,
    /// Whether it must be given.
    pub required: bool,
    /// Whether its value is a secret.
    pub sensitive: bool,
    /// What it is for.
    pub description: String,
    /// The value that stands in for an absent one.
    pub default: Option<Value>,
}

/// What an attribute's value is.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeKind {
    /// Text.
    String,
    /// A number.
    Number,
    /// True or false.
    Bool,
    /// A list of texts.
    ListString,
    /// A list of numbers.
    ListNumber,
    /// Texts by name.
    MapString,
    /// An object with these attributes.
    Object(Vec<Attribute>),
    /// The provider did not say.
    Unspecified,
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Bool => "boolean",
            Self::ListString => "list of strings",
            Self::ListNumber => "list of numbers",
            Self::MapString => "map of strings",
            Self::Object(_) => "object",
            Self::Unspecified => "unspecified",
        })
    }
}

impl From<config::ConfigAttribute> for Attribute {
    fn from(wire: config::ConfigAttribute) -> Self {
        let kind = match wire.r#type() {
            config::AttrType::String => AttributeKind::String,
            config::AttrType::Number => AttributeKind::Number,
            config::AttrType::Bool => AttributeKind::Bool,
            config::AttrType::ListString => AttributeKind::ListString,
            config::AttrType::ListNumber => AttributeKind::ListNumber,
            config::AttrType::MapString => AttributeKind::MapString,
            config::AttrType::Object => {
                AttributeKind::Object(wire.object_attributes.into_iter().map(Self::from).collect())
            }
            config::AttrType::Unspecified => AttributeKind::Unspecified,
        };
        Self {
            name: wire.name,
            kind,
            required: wire.required,
            sensitive: wire.sensitive,
            description: wire.description,
            default: wire.default_json.and_then(|text| serde_json::from_str(&text).ok()),
        }
    }
}

impl From<pb::GetSchemaResponse> for Catalogue {
    fn from(wire: pb::GetSchemaResponse) -> Self {
        let mut warnings = Vec::new();
        let mut tools: Vec<Tool> = Vec::with_capacity(wire.tools.len());
        let hook_points = wire.supported_hook_points().map(hook_point).collect();
        for tool in wire.tools.into_iter().map(Tool::from) {
            if tools.iter().any(|known| known.name == tool.name) {
                warnings.push(format!("{} is declared twice; the first declaration counts", tool.name));
                continue;
            }
            if tool.kind == Kind::Unspecified {
                warnings.push(format!("{} has no kind, so every call of it is refused", tool.name));
            }
            tools.push(tool);
        }
        let attributes = wire.config_schema.map(|schema| schema.attributes).unwrap_or_default();
        let command = |wire: common::PromptExpansionSpec| SlashCommand {
            name: wire.name,
            description: wire.description,
            template: wire.template,
        };
        Self {
            tools,
            config: attributes.into_iter().map(Attribute::from).collect(),
            hook_points,
            slash_commands: wire.slash_commands.into_iter().map(command).collect(),
            warnings,
        }
    }
}

fn hook_point(point: common::HookPoint) -> String {
    point.as_str_name().trim_start_matches("HOOK_POINT_").to_ascii_lowercase().replace('_', "-")
}

/// The version of [`dump`]'s layout: a minor step adds, a major step breaks.
pub const FORMAT_VERSION: &str = "1.0";

/// Everything a provider declares, as one JSON document.
pub fn dump(identity: &Identity, catalogue: &Catalogue) -> Value {
    json!({
        "format_version": FORMAT_VERSION,
        "provider": identity,
        "tools": catalogue.tools.iter().map(tool_json).collect::<Vec<_>>(),
        "config": catalogue.config.iter().map(attribute_json).collect::<Vec<_>>(),
        "hook_points": catalogue.hook_points,
        "slash_commands": catalogue.slash_commands,
    })
}

/// One tool as JSON, its schemas as JSON Schema.
pub fn tool_json(tool: &Tool) -> Value {
    let concurrency = match &tool.concurrency {
        Concurrency::Exclusive => json!({"safe": false, "key_fields": []}),
        Concurrency::Shared { keys } => json!({"safe": true, "key_fields": keys}),
    };
    let mut out = json!({
        "name": tool.name,
        "kind": tool.kind,
        "risk": tool.risk,
        "description": tool.description,
        "streaming": tool.streaming,
        "idempotent": tool.idempotent,
        "terminates_turn": tool.terminates_turn,
        "input_schema": tool.input.to_json_schema(),
        "output_schema": tool.output.to_json_schema(),
    });
    if let Value::Object(map) = &mut out {
        // An interactive tool has no concurrency: people are asked one at a time.
        if tool.kind != Kind::Interactive {
            map.insert("concurrency".to_owned(), concurrency);
        }
        if let Some(timeout) = tool.timeout {
            let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            map.insert("default_timeout_ms".to_owned(), milliseconds.into());
        }
    }
    out
}

fn attribute_json(attribute: &Attribute) -> Value {
    let mut out = json!({
        "name": attribute.name,
        "type": attribute.kind.to_string().replace(" of ", "_of_"),
        "required": attribute.required,
        "sensitive": attribute.sensitive,
        "description": attribute.description,
    });
    if let Value::Object(map) = &mut out {
        if let Some(default) = &attribute.default {
            map.insert("default".to_owned(), default.clone());
        }
        if let AttributeKind::Object(attributes) = &attribute.kind {
            map.insert("attributes".to_owned(), attributes.iter().map(attribute_json).collect());
        }
    }
    out
}
