//! A declaration, also from the JSON that `toolctl schema` prints.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tool_host::catalogue::{
    Attribute, AttributeKind, Catalogue, Concurrency, Identity, Kind, Risk, SlashCommand, Tool,
};
use tool_host::schema::{Schema, Shape};

/// Who a provider is and what it offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Who it is.
    pub identity: Identity,
    /// What it offers.
    pub catalogue: Catalogue,
}

/// Why a text is no declaration.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is not the JSON that `toolctl schema` prints.
    #[error("this is not what `toolctl schema` prints: {0}")]
    Form(#[from] serde_json::Error),
    /// A later layout.
    #[error(
        "the format_version is {0}, and this program reads 1.x: use the toolctl that wrote it, or a newer one"
    )]
    Version(String),
    /// A node of a schema cannot be on the wire.
    #[error("{place}: a schema cannot have the type {found}")]
    Type {
        /// Which tool and field.
        place: String,
        /// The type as written.
        found: String,
    },
}

impl Declaration {
    /// Reads what `toolctl schema` printed.
    ///
    /// # Errors
    /// Says what of the document is not as `toolctl schema` writes it.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let document: Document = serde_json::from_str(text)?;
        if !document.format_version.starts_with("1.") {
            return Err(DocumentError::Version(document.format_version));
        }
        let catalogue = Catalogue {
            tools: document.tools.into_iter().map(ToolDocument::read).collect::<Result<_, _>>()?,
            config: document.config.into_iter().map(Attribute::from).collect(),
            hook_points: document.hook_points,
            slash_commands: document.slash_commands.into_iter().map(SlashCommand::from).collect(),
            warnings: Vec::new(),
        };
        Ok(Self { identity: document.provider.into(), catalogue })
    }
}

#[derive(Deserialize)]
struct Document {
    format_version: String,
    provider: IdentityDocument,
    tools: Vec<ToolDocument>,
    #[serde(default)]
    config: Vec<AttributeDocument>,
    #[serde(default)]
    hook_points: Vec<String>,
    #[serde(default)]
    slash_commands: Vec<CommandDocument>,
}

#[derive(Deserialize)]
struct IdentityDocument {
    name: String,
    version: String,
    source: String,
    category: String,
    protocol_version: u32,
}

impl From<IdentityDocument> for Identity {
    fn from(document: IdentityDocument) -> Self {
        let IdentityDocument { name, version, source, category, protocol_version } = document;
        Self { name, version, source, category, protocol_version }
    }
}

#[derive(Deserialize)]
struct ToolDocument {
    name: String,
    kind: KindDocument,
    risk: RiskDocument,
    #[serde(default)]
    description: String,
    #[serde(default)]
    streaming: bool,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    terminates_turn: bool,
    input_schema: Value,
    output_schema: Value,
    concurrency: Option<ConcurrencyDocument>,
    default_timeout_ms: Option<u64>,
}

impl ToolDocument {
    fn read(self) -> Result<Tool, DocumentError> {
        let schema = |side: &str, node: &Value| schema(&format!("{} {side}", self.name), node);
        Ok(Tool {
            input: schema("arguments", &self.input_schema)?,
            output: schema("result", &self.output_schema)?,
            name: self.name,
            kind: self.kind.into(),
            risk: self.risk.into(),
            description: self.description,
            streaming: self.streaming,
            concurrency: match self.concurrency {
                Some(ConcurrencyDocument { safe: true, key_fields }) => {
                    Concurrency::Shared { keys: key_fields }
                }
                _ => Concurrency::Exclusive,
            },
            timeout: self.default_timeout_ms.map(Duration::from_millis),
            idempotent: self.idempotent,
            terminates_turn: self.terminates_turn,
        })
    }
}

#[derive(Deserialize)]
struct ConcurrencyDocument {
    safe: bool,
    #[serde(default)]
    key_fields: Vec<String>,
}

/// The words of a declaration, which the host's own types only write.
macro_rules! words {
    ($document:ident => $target:ident { $($name:ident),* }) => {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum $document { $($name,)* }

        impl From<$document> for $target {
            fn from(document: $document) -> Self {
                match document { $($document::$name => Self::$name,)* }
            }
        }
    };
}

words!(KindDocument => Kind { Resource, DataSource, Interactive, Unspecified });
words!(RiskDocument => Risk { ReadOnly, Low, Moderate, High, Critical, Unspecified });

#[derive(Deserialize)]
struct AttributeDocument {
    name: String,
    #[serde(rename = "type")]
    kind: AttributeWord,
    required: bool,
    sensitive: bool,
    #[serde(default)]
    description: String,
    default: Option<Value>,
    #[serde(default)]
    attributes: Vec<AttributeDocument>,
}

#[derive(Deserialize)]
enum AttributeWord {
    #[serde(rename = "string")]
    String,
    #[serde(rename = "number")]
    Number,
    #[serde(rename = "boolean")]
    Bool,
    #[serde(rename = "list_of_strings")]
    ListString,
    #[serde(rename = "list_of_numbers")]
    ListNumber,
    #[serde(rename = "map_of_strings")]
    MapString,
    #[serde(rename = "object")]
    Object,
    #[serde(rename = "unspecified")]
    Unspecified,
}

impl From<AttributeDocument> for Attribute {
    fn from(document: AttributeDocument) -> Self {
        let kind = match document.kind {
            AttributeWord::String => AttributeKind::String,
            AttributeWord::Number => AttributeKind::Number,
            AttributeWord::Bool => AttributeKind::Bool,
            AttributeWord::ListString => AttributeKind::ListString,
            AttributeWord::ListNumber => AttributeKind::ListNumber,
            AttributeWord::MapString => AttributeKind::MapString,
            AttributeWord::Object => {
                AttributeKind::Object(document.attributes.into_iter().map(Self::from).collect())
            }
            AttributeWord::Unspecified => AttributeKind::Unspecified,
        };
        Self {
            name: document.name,
            kind,
            required: document.required,
            sensitive: document.sensitive,
            description: document.description,
            default: document.default,
        }
    }
}

#[derive(Deserialize)]
struct CommandDocument {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    template: String,
}

impl From<CommandDocument> for SlashCommand {
    fn from(document: CommandDocument) -> Self {
        let CommandDocument { name, description, template } = document;
        Self { name, description, template }
    }
}

/// A node written as JSON Schema.
fn schema(place: &str, node: &Value) -> Result<Schema, DocumentError> {
    let texts = |key: &str| -> Vec<String> {
        let list = node[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let shape = match node.get("type").map(|kind| kind.as_str().unwrap_or_default()) {
        None => Shape::Any,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("string") => Shape::String { values: texts("enum") },
        Some("array") => {
            let items = node.get("items").map(|items| schema(&format!("{place}[]"), items)).transpose()?;
            Shape::Array(items.map(Box::new))
        }
        Some("object") => {
            let members = node["properties"].as_object().into_iter().flatten();
            let property = |(name, node): (&String, &Value)| {
                Ok::<_, DocumentError>((name.clone(), schema(&format!("{place}.{name}"), node)?))
            };
            let properties = members.map(property).collect::<Result<BTreeMap<_, _>, _>>()?;
            Shape::Object { properties, required: texts("required") }
        }
        Some(_) => {
            return Err(DocumentError::Type { place: place.to_owned(), found: node["type"].to_string() });
        }
    };
    let description = node["description"].as_str().unwrap_or_default().to_owned();
    Ok(Schema { description, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, reason: &str) {
        let error = Declaration::from_json(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn what_is_no_declaration_is_refused_with_the_reason() {
        check_refused("", "not what `toolctl schema` prints: EOF");
        check_refused("{}", "missing field `format_version`");
        let provider =
            r#""provider":{"name":"a","version":"1","source":"","category":"tool","protocol_version":1}"#;
        check_refused(
            &format!(r#"{{"format_version":"2.0",{provider},"tools":[]}}"#),
            "this program reads 1.x",
        );
        let tool = |input: &str| {
            format!(
                r#"{{"format_version":"1.0",{provider},"tools":[{{"name":"t","kind":"resource","risk":"low",
                "input_schema":{input},"output_schema":{{}}}}]}}"#
            )
        };
        let nested = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}"#;
        check_refused(&tool(nested), "t arguments.a[]: a schema cannot have the type \"integer\"");
        check_refused(&tool("{}").replace("\"low\"", "\"tiny\""), "unknown variant `tiny`");
    }
}
