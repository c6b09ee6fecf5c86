//! Configuration: typed, decoded once, every wrong attribute in one error.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use harness_proto::config::v1 as pb;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::arguments::{repair, strip_nulls};
use crate::error::ToolError;
use crate::schema::{Kind, Schema, SchemaError};

/// What a provider's configuration must be: deserialisable, with a schema and a doc comment on every field.
///
/// ```
/// use provider_core::prelude::*;
///
/// /// How the notes are kept.
/// #[derive(Deserialize, JsonSchema)]
/// struct NotesConfig {
///     /// The folder of the notes.
///     root: String,
///     /// How many notes there may be.
///     #[serde(default)]
///     limit: u32,
///     /// The key of the service.
///     key: Option<provider_core::Secret>,
/// }
/// # fn needs<C: provider_core::Config>() {}
/// # needs::<NotesConfig>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a provider's configuration",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it; a provider without one has `NoConfig`"
)]
pub trait Config: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Config for T {}

/// The configuration of a provider that has none.
///
/// ```
/// use provider_core::NoConfig;
///
/// assert!(serde_json::from_str::<NoConfig>("{}").is_ok());
/// ```
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(description = "This provider has no configuration.")]
pub struct NoConfig {}

/// A secret from the configuration. It cannot be printed, serialised or compared by accident.
///
/// Its attribute is declared sensitive, and the SDK takes its value out of every error, log line and result
/// that leaves the process.
///
/// ```
/// # use provider_core::Secret;
/// let key: Secret = serde_json::from_str("\"hunter2\"").unwrap();
/// assert_eq!(format!("{key:?}"), "Secret(…)");
/// assert_eq!(key.reveal(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "x-sensitive": true})
    }
}

/// Takes secret values out of whatever leaves the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrubber {
    secrets: Arc<[Secret]>,
}

/// Shorter values would blot out ordinary words.
const SHORTEST_SECRET: usize = 4;

impl Scrubber {
    fn new(schema: &Schema, config: &Value) -> Self {
        let mut secrets = Vec::new();
        collect_secrets(schema, config, &mut secrets);
        Self { secrets: secrets.into() }
    }

    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.secrets.iter().filter(|secret| text.contains(secret.reveal())).collect::<Vec<_>>()
        {
            text = text.replace(secret.reveal(), "[secret]").into();
        }
        text
    }

    pub(crate) fn value(&self, value: &mut Value) {
        if self.secrets.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => map.values_mut().for_each(|member| self.value(member)),
            _ => {}
        }
    }
}

fn collect_secrets(schema: &Schema, value: &Value, out: &mut Vec<Secret>) {
    match (&schema.kind, value) {
        (Kind::Object { properties, .. }, Value::Object(map)) => {
            for (name, schema) in properties {
                if let Some(value) = map.get(name) {
                    collect_secrets(schema, value, out);
                }
            }
        }
        (_, Value::String(text)) if schema.sensitive && text.len() >= SHORTEST_SECRET => {
            out.push(Secret(text.as_str().into()));
        }
        _ => {}
    }
}

/// The lowered configuration schema of `C`.
///
/// # Errors
/// As [`Schema::of`], and for a configuration that is not a struct or a default on a secret.
pub(crate) fn schema_of<C: Config>() -> Result<Schema, SchemaError> {
    Schema::of::<C>()
}

/// A configuration that was accepted.
pub(crate) struct Decoded<C> {
    pub(crate) config: C,
    pub(crate) scrubber: Scrubber,
}

/// Decodes the values a host sent. Null equals absent.
///
/// # Errors
/// `invalid_arguments` naming every wrong attribute at once.
pub(crate) fn decode<C: Config>(
    provider: &str,
    schema: &Schema,
    mut value: Value,
) -> Result<Decoded<C>, ToolError> {
    strip_nulls(&mut value);
    let scrubber = Scrubber::new(schema, &value);
    let subject = format!("configuration of {provider}");
    let clean = |error: ToolError| error.map_text(|value| scrubber.value(value));
    let repaired = repair(&subject, schema, value).map_err(clean)?;
    let config = serde_json::from_value(repaired.value)
        .map_err(|error| clean(ToolError::invalid_arguments(format!("{subject}: {error}"))))?;
    Ok(Decoded { config, scrubber })
}

/// The wire form of a configuration schema.
pub(crate) fn to_wire(schema: &Schema) -> pb::ConfigSchema {
    pb::ConfigSchema { attributes: attributes(schema) }
}

fn attributes(schema: &Schema) -> Vec<pb::ConfigAttribute> {
    let Kind::Object { properties, required } = &schema.kind else { return Vec::new() };
    let attribute = |(name, node): (&String, &Schema)| {
        let default = node.default.as_ref().filter(|_| !node.sensitive);
        pb::ConfigAttribute {
            name: name.clone(),
            r#type: attribute_type(node).into(),
            required: required.contains(name),
            sensitive: node.sensitive,
            description: description(node),
            object_attributes: attributes(node),
            default_json: default.map(Value::to_string),
        }
    };
    properties.iter().map(attribute).collect()
}

/// The wire has no closed sets for configuration, so the values allowed are said in words.
fn description(node: &Schema) -> String {
    match &node.kind {
        Kind::String { values } if !values.is_empty() => {
            format!("{} ({})", node.full_description(), node.wanted())
        }
        _ => node.full_description(),
    }
}

fn attribute_type(node: &Schema) -> pb::AttrType {
    match &node.kind {
        Kind::Object { .. } => pb::AttrType::Object,
        Kind::Map(_) => pb::AttrType::MapString,
        Kind::String { .. } => pb::AttrType::String,
        Kind::Number { .. } => pb::AttrType::Number,
        Kind::Boolean => pb::AttrType::Bool,
        Kind::Array { items, .. } => match items.kind {
            Kind::Number { .. } => pb::AttrType::ListNumber,
            _ => pb::AttrType::ListString,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A search service.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Search {
        /// Where it is.
        url: String,
        /// The key.
        key: Option<Secret>,
        /// How many.
        #[serde(default)]
        #[schemars(range(min = 0, max = 9))]
        limit: u8,
    }

    fn decoded(value: Value) -> Result<Decoded<Search>, ToolError> {
        decode("search", &schema_of::<Search>().unwrap(), value)
    }

    #[test]
    fn null_equals_absent() {
        let config = decoded(json!({"url": "u", "key": null, "limit": null}))
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(config.config.key.is_none());
        assert_eq!((config.config.url.as_str(), config.config.limit), ("u", 0));
    }

    #[test]
    fn every_wrong_attribute_is_named_at_once() {
        let error = decoded(json!({"limit": 12, "uri": 5})).err().unwrap().to_string();
        for part in [
            "configuration of search: 3 arguments are wrong",
            "limit: wanted an integer from 0 to 9",
            "uri: unknown; did you mean url?",
            "url: missing",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_secret_is_declared_and_scrubbed() {
        let wire = to_wire(&schema_of::<Search>().unwrap());
        let key = wire.attributes.iter().find(|attribute| attribute.name == "key").unwrap();
        assert!(key.sensitive && key.default_json.is_none());
        let config = decoded(json!({"url": "u", "key": "hunter2"})).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.scrubber.text("401 for hunter2!"), "401 for [secret]!");
        assert_eq!(format!("{:?}", config.config.key), "Some(Secret(…))");
    }
}
