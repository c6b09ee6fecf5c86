//! The schema subset of the wire, lowered from what `schemars` derives.
//!
//! The wire knows objects, strings with an optional closed set, numbers, booleans and arrays: no null, no
//! unions, no references, no integers. What a Rust type says beyond that (ranges, integrality, defaults) is put
//! into words in the description and enforced by [`crate::arguments`].

use std::collections::BTreeMap;

use harness_proto::schema::v1 as pb;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// One node of a lowered schema.
///
/// ```
/// use provider_core::prelude::*;
/// use provider_core::schema::Schema;
///
/// /// Reads lines.
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     /// How many.
///     #[schemars(range(min = 1))]
///     count: u32,
/// }
///
/// let schema = Schema::of::<Args>().unwrap();
/// assert_eq!(schema.description, "Reads lines.");
/// assert_eq!(schema.to_wire().required, ["count"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The type, with what belongs to it.
    pub kind: Kind,
    /// What the author's doc comment says, without the words added for limits and defaults.
    pub description: String,
    /// The value that stands in for an absent one.
    pub default: Option<Value>,
    /// Other names under which callers send this property.
    pub aliases: Vec<String>,
    /// Whether the value is a secret (configuration only).
    pub sensitive: bool,
}

/// The type of a schema node.
///
/// ```
/// use provider_core::schema::{Kind, Schema};
///
/// fn is_list(schema: &Schema) -> bool {
///     matches!(schema.kind, Kind::Array { .. })
/// }
/// # let _ = is_list;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A fixed set of properties.
    Object {
        /// Property name to schema.
        properties: BTreeMap<String, Schema>,
        /// Names that must be present, sorted.
        required: Vec<String>,
    },
    /// Any keys, every value of one type.
    Map(Box<Schema>),
    /// Text, from a closed set when `values` is not empty.
    String {
        /// The values allowed.
        values: Vec<String>,
    },
    /// A number within limits.
    Number {
        /// Whether the number must be whole.
        integer: bool,
        /// The least value allowed.
        minimum: Option<f64>,
        /// The greatest value allowed.
        maximum: Option<f64>,
    },
    /// True or false.
    Boolean,
    /// A list of items of one type.
    Array {
        /// What each item is.
        items: Box<Schema>,
        /// The least number of items.
        minimum: Option<usize>,
        /// The greatest number of items.
        maximum: Option<usize>,
    },
}

/// Why a Rust type has no place in the wire's subset.
///
/// ```
/// use provider_core::prelude::*;
/// use provider_core::schema::Schema;
///
/// /// Reads something.
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     path: String,
/// }
///
/// let error = Schema::of::<Args>().unwrap_err().to_string();
/// assert!(error.starts_with("Args.path: ") && error.contains("doc comment"), "{error}");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{type_name}{field}: {reason}")]
pub struct SchemaError {
    type_name: String,
    field: String,
    reason: String,
}

impl Schema {
    /// Lowers the schema of `T`.
    ///
    /// # Errors
    /// Names the type, the field and what the wire cannot carry, or which doc comment is missing.
    pub fn of<T: JsonSchema>() -> Result<Self, SchemaError> {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let root = settings.into_generator().into_root_schema_for::<T>();
        let lowering = Lowering { type_name: T::schema_name().into_owned() };
        lowering.node(root.as_value(), "")
    }

    /// What a caller must send, in words: `integer from 1 to 10`, `one of "a", "b"`.
    pub fn wanted(&self) -> String {
        match &self.kind {
            Kind::Object { .. } | Kind::Map(_) => "object".to_owned(),
            Kind::String { values } if values.is_empty() => "string".to_owned(),
            Kind::String { values } => {
                let quoted: Vec<_> = values.iter().map(|value| format!("\"{value}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Kind::Number { integer, minimum, maximum } => {
                let noun = if *integer { "integer" } else { "number" };
                format!("{noun}{}", range(*minimum, *maximum))
            }
            Kind::Boolean => "boolean".to_owned(),
            Kind::Array { items, .. } => format!("array of {}", items.plural()),
        }
    }

    fn plural(&self) -> String {
        match &self.kind {
            Kind::Object { .. } | Kind::Map(_) => "objects".to_owned(),
            Kind::String { values } if values.is_empty() => "strings".to_owned(),
            Kind::Array { .. } => "arrays".to_owned(),
            Kind::Boolean => "booleans".to_owned(),
            Kind::Number { integer: true, .. } => "integers".to_owned(),
            Kind::Number { .. } => "numbers".to_owned(),
            Kind::String { .. } => self.wanted(),
        }
    }

    /// The description with integrality, range and default said in words, as the model reads it.
    pub fn full_description(&self) -> String {
        let mut facts = Vec::new();
        match &self.kind {
            Kind::Number { integer, minimum, maximum }
                if *integer || minimum.is_some() || maximum.is_some() =>
            {
                facts.push(self.wanted());
            }
            Kind::Array { minimum, maximum, .. } if minimum.is_some() || maximum.is_some() => {
                facts.push(count(*minimum, *maximum));
            }
            _ => {}
        }
        if let Some(default) = &self.default {
            facts.push(format!("default {default}"));
        }
        if facts.is_empty() {
            return self.description.clone();
        }
        format!("{} ({})", self.description, facts.join("; "))
    }

    /// The wire form.
    pub fn to_wire(&self) -> pb::Schema {
        let mut wire = pb::Schema { description: self.full_description(), ..pb::Schema::default() };
        let kind = match &self.kind {
            Kind::Object { properties, required } => {
                wire.properties =
                    properties.iter().map(|(name, node)| (name.clone(), node.to_wire())).collect();
                wire.required = required.clone();
                pb::SchemaType::Object
            }
            Kind::Map(_) => pb::SchemaType::Object,
            Kind::String { values } => {
                wire.enum_values = values.clone();
                pb::SchemaType::String
            }
            Kind::Number { .. } => pb::SchemaType::Number,
            Kind::Boolean => pb::SchemaType::Boolean,
            Kind::Array { items, .. } => {
                wire.items = Some(Box::new(items.to_wire()));
                pb::SchemaType::Array
            }
        };
        wire.r#type = kind.into();
        wire
    }

    /// Adds the optional `notes` list that every result may carry.
    pub(crate) fn with_notes(mut self) -> Self {
        if let Kind::Object { properties, .. } = &mut self.kind {
            let text = Self::plain(Kind::String { values: Vec::new() }, "One note.");
            let kind = Kind::Array { items: Box::new(text), minimum: None, maximum: None };
            let notes = Self::plain(
                kind,
                "What the caller should know besides the result: repaired arguments, limits met.",
            );
            properties.entry("notes".to_owned()).or_insert(notes);
        }
        self
    }

    fn plain(kind: Kind, description: &str) -> Self {
        Self {
            kind,
            description: description.to_owned(),
            default: None,
            aliases: Vec::new(),
            sensitive: false,
        }
    }

    /// A one-line example with the required properties, for error messages.
    pub fn example(&self) -> Value {
        match &self.kind {
            Kind::Object { properties, required } => {
                let member = |name: &String| Some((name.clone(), properties.get(name)?.example()));
                Value::Object(required.iter().filter_map(member).collect())
            }
            Kind::Map(_) => Value::Object(Map::new()),
            Kind::String { values } => {
                values.first().map_or_else(|| "…".into(), |value| value.as_str().into())
            }
            Kind::Number { minimum, .. } => serde_json::json!(minimum.map_or(1, |least| least as i64)),
            Kind::Boolean => true.into(),
            Kind::Array { items, .. } => Value::Array(vec![items.example()]),
        }
    }
}

fn range(minimum: Option<f64>, maximum: Option<f64>) -> String {
    match (minimum, maximum) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    }
}

fn count(minimum: Option<usize>, maximum: Option<usize>) -> String {
    match (minimum, maximum) {
        (Some(least), Some(most)) => format!("{least} to {most} items"),
        (Some(least), None) => format!("at least {least} items"),
        (None, Some(most)) => format!("at most {most} items"),
        (None, None) => String::new(),
    }
}

/// Turns one JSON Schema document into our subset, remembering what it is about for messages.
struct Lowering {
    type_name: String,
}

impl Lowering {
    fn fail<T>(&self, field: &str, reason: impl Into<String>) -> Result<T, SchemaError> {
        let field = if field.is_empty() { String::new() } else { format!(".{field}") };
        Err(SchemaError { type_name: self.type_name.clone(), field, reason: reason.into() })
    }

    fn node(&self, value: &Value, field: &str) -> Result<Schema, SchemaError> {
        let Some(map) = value.as_object() else {
            return self.fail(field, "accepts any value; the wire needs one type");
        };
        if map.contains_key("$ref") {
            return self.fail(field, "refers to itself; the wire has no references");
        }
        let mut schema = match map.get("oneOf").or_else(|| map.get("anyOf")).and_then(Value::as_array) {
            Some(branches) => self.branches(branches, field)?,
            None => self.typed(map, field)?,
        };
        if let Some(text) = map.get("description").and_then(Value::as_str) {
            // A doc comment is wrapped in the source; the model reads one flowing text.
            schema.description = unwrap_lines(text);
        }
        if schema.description.is_empty() && !field.ends_with("[]") {
            return self.fail(field, "needs a doc comment: the model reads it as the description");
        }
        schema.default = map.get("default").filter(|default| !default.is_null()).cloned().or(schema.default);
        schema.sensitive = map.get("x-sensitive").and_then(Value::as_bool).unwrap_or(schema.sensitive);
        if let Some(aliases) = map.get("x-aliases").and_then(Value::as_array) {
            schema.aliases = aliases.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        Ok(schema)
    }

    /// `Option<T>` and enums of unit variants arrive as branches.
    fn branches(&self, branches: &[Value], field: &str) -> Result<Schema, SchemaError> {
        let real: Vec<_> =
            branches.iter().filter(|branch| branch.get("type") != Some(&"null".into())).collect();
        if let [only] = real[..] {
            return self.node(only, &format!("{field}[]")).map(|schema| Schema { ..schema });
        }
        let mut values = Vec::new();
        let mut texts = Vec::new();
        for branch in real {
            let Some(listed) = closed_set(branch) else {
                return self.fail(field, "is a union; the wire knows only enums of unit variants");
            };
            if let ([value], Some(text)) = (&listed[..], branch.get("description").and_then(Value::as_str)) {
                texts.push(format!("{value}: {}", unwrap_lines(text)));
            }
            values.extend(listed);
        }
        Ok(Schema::plain(Kind::String { values }, &texts.join(" ")))
    }

    fn typed(&self, map: &Map<String, Value>, field: &str) -> Result<Schema, SchemaError> {
        let kind = match type_name(map) {
            Some("object") => self.object(map, field)?,
            Some("string") => {
                Kind::String { values: closed_set(&Value::Object(map.clone())).unwrap_or_default() }
            }
            Some(name @ ("number" | "integer")) => Kind::Number {
                integer: name == "integer",
                minimum: map.get("minimum").and_then(Value::as_f64),
                maximum: map.get("maximum").and_then(Value::as_f64),
            },
            Some("boolean") => Kind::Boolean,
            Some("array") => {
                let Some(items) = map.get("items") else {
                    return self.fail(field, "is an array whose items have no single type");
                };
                let bound = |name: &str| map.get(name).and_then(Value::as_u64).map(|bound| bound as usize);
                let items = Box::new(self.node(items, &format!("{field}[]"))?);
                Kind::Array { items, minimum: bound("minItems"), maximum: bound("maxItems") }
            }
            _ => {
                return self.fail(
                    field,
                    "has no place in the wire's subset (object, string, number, boolean, array)",
                );
            }
        };
        Ok(Schema::plain(kind, ""))
    }

    fn object(&self, map: &Map<String, Value>, field: &str) -> Result<Kind, SchemaError> {
        if let Some(values) = map.get("additionalProperties").filter(|extra| extra.is_object()) {
            return Ok(Kind::Map(Box::new(self.node(values, &format!("{field}[]"))?)));
        }
        let mut properties = BTreeMap::new();
        for (name, value) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
            properties.insert(name.clone(), self.node(value, &path)?);
        }
        let listed = map.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required: Vec<_> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
        required.sort();
        Ok(Kind::Object { properties, required })
    }
}

/// The type of a node; `["string", "null"]` is a string that may be absent.
fn type_name(map: &Map<String, Value>) -> Option<&str> {
    match map.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut real = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            real.next().filter(|_| real.next().is_none())
        }
        _ => None,
    }
}

fn closed_set(node: &Value) -> Option<Vec<String>> {
    if let Some(value) = node.get("const") {
        return value.as_str().map(|text| vec![text.to_owned()]);
    }
    let values = node.get("enum")?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Joins the lines of a wrapped doc comment; blank lines and list items stay line breaks.
fn unwrap_lines(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim().lines() {
        let line = line.trim();
        let starts_block = line.is_empty() || line.starts_with("- ") || line.starts_with("* ");
        if !out.is_empty() {
            out.push(if starts_block || out.ends_with('\n') { '\n' } else { ' ' });
        }
        out.push_str(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    fn describe<T: JsonSchema>() -> String {
        match Schema::of::<T>() {
            Ok(schema) => match schema.kind {
                Kind::Object { properties, required } => {
                    let show = |(name, node): (&String, &Schema)| {
                        let mark = if required.contains(name) { "" } else { "?" };
                        format!("{name}{mark}: {} | {}", node.wanted(), node.full_description())
                    };
                    properties.iter().map(show).collect::<Vec<_>>().join("\n")
                }
                kind => format!("{kind:?}"),
            },
            Err(error) => format!("error: {error}"),
        }
    }

    #[track_caller]
    fn check<T: JsonSchema>(expected: &str) {
        assert_eq!(describe::<T>(), expected);
    }

    /// How to sort.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        /// By name.
        Path,
        /// Newest first.
        Modified,
    }

    fn ten() -> u32 {
        10
    }

    /// All that the wire can carry.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Everything {
        /// A text.
        text: String,
        /// A count that is wrapped
        /// over two lines.
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 99))]
        count: u32,
        /// Maybe an order.
        order: Option<Order>,
        /// Some texts.
        list: Option<Vec<String>>,
        /// Any keys.
        map: BTreeMap<String, String>,
        /// A flag.
        flag: Option<bool>,
    }

    #[test]
    fn limits_and_defaults_are_said_in_words() {
        check::<Everything>(
            "count?: integer from 1 to 99 | A count that is wrapped over two lines. (integer from 1 to 99; default 10)\n\
             flag?: boolean | A flag.\n\
             list?: array of strings | Some texts.\n\
             map: object | Any keys.\n\
             order?: one of \"path\", \"modified\" | Maybe an order.\n\
             text: string | A text.",
        );
    }

    #[test]
    fn a_field_without_a_doc_comment_is_refused() {
        /// Fine.
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Silent {
            quiet: String,
        }
        check::<Silent>("error: Silent.quiet: needs a doc comment: the model reads it as the description");
    }

    #[test]
    fn a_union_is_refused_by_name() {
        /// Either.
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        enum Either {
            /// A text.
            Text(String),
            /// A number.
            Number(f64),
        }
        /// Fine.
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Holder {
            /// One of two.
            either: Either,
        }
        check::<Holder>("error: Holder.either: is a union; the wire knows only enums of unit variants");
    }
}
