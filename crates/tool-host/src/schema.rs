//! A schema node as the wire carries it: checked against values, shown as JSON Schema.

use std::collections::BTreeMap;

use harness_proto::schema::v1 as pb;
use serde_json::{Map, Value, json};

/// One node of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// What the value is for.
    pub description: String,
    /// What the value may be.
    pub shape: Shape,
}

/// What a value may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// An object. Properties that are not declared are allowed.
    Object {
        /// The declared properties.
        properties: BTreeMap<String, Schema>,
        /// Those that must be present, in declared order.
        required: Vec<String>,
    },
    /// Text, from a closed set when `values` is not empty.
    String {
        /// The values allowed.
        values: Vec<String>,
    },
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list; `None` accepts any items.
    Array(Option<Box<Schema>>),
    /// Anything: the provider left the type open.
    Any,
}

/// The first place where a value leaves its schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Violation {
    /// Where, for example `files[2].path`; `payload` at the top.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl From<pb::Schema> for Schema {
    fn from(wire: pb::Schema) -> Self {
        let shape = match wire.r#type() {
            pb::SchemaType::Unspecified => Shape::Any,
            pb::SchemaType::Object => Shape::Object {
                properties: wire.properties.into_iter().map(|(name, node)| (name, node.into())).collect(),
                required: wire.required,
            },
            pb::SchemaType::String => Shape::String { values: wire.enum_values },
            pb::SchemaType::Number => Shape::Number,
            pb::SchemaType::Boolean => Shape::Boolean,
            pb::SchemaType::Array => Shape::Array(wire.items.map(|items| Box::new((*items).into()))),
        };
        Self { description: wire.description, shape }
    }
}

impl Schema {
    /// A node that accepts anything.
    pub fn any() -> Self {
        Self { description: String::new(), shape: Shape::Any }
    }

    /// The declared properties, by name; none unless this is an object.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Self)> {
        let properties = match &self.shape {
            Shape::Object { properties, .. } => Some(properties),
            _ => None,
        };
        properties.into_iter().flatten().map(|(name, node)| (name.as_str(), node))
    }

    /// The declared property of that name.
    pub fn property(&self, name: &str) -> Option<&Self> {
        match &self.shape {
            Shape::Object { properties, .. } => properties.get(name),
            _ => None,
        }
    }

    /// Whether the property must be present.
    pub fn requires(&self, name: &str) -> bool {
        matches!(&self.shape, Shape::Object { required, .. } if required.iter().any(|needed| needed == name))
    }

    /// What a value must be, in words: `array of strings`, `"lf" | "crlf"`.
    pub fn wanted(&self) -> String {
        match &self.shape {
            Shape::Object { .. } => "object".to_owned(),
            Shape::String { values } if values.is_empty() => "string".to_owned(),
            Shape::String { values } => {
                values.iter().map(|value| format!("\"{value}\"")).collect::<Vec<_>>().join(" | ")
            }
            Shape::Number => "number".to_owned(),
            Shape::Boolean => "boolean".to_owned(),
            Shape::Array(Some(items)) => match items.shape {
                Shape::String { ref values } if !values.is_empty() => format!("array of {}", items.wanted()),
                _ => format!("array of {}s", items.wanted()),
            },
            Shape::Array(None) => "array".to_owned(),
            Shape::Any => "any value".to_owned(),
        }
    }

    /// Checks a value the way the kernel does: null satisfies no typed node, undeclared keys are allowed.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self, value: &Value) -> Result<(), Violation> {
        self.check_at(value, &mut Vec::new())
    }

    fn check_at<'a>(&'a self, value: &'a Value, path: &mut Vec<Step<'a>>) -> Result<(), Violation> {
        match (&self.shape, value) {
            (Shape::Any, _) | (Shape::Number, Value::Number(_)) | (Shape::Boolean, Value::Bool(_)) => Ok(()),
            (Shape::String { values }, Value::String(text)) => {
                if values.is_empty() || values.contains(text) {
                    return Ok(());
                }
                Err(violation(path, format!("\"{text}\" is not {}", self.wanted())))
            }
            (Shape::Array(None), Value::Array(_)) => Ok(()),
            (Shape::Array(Some(items)), Value::Array(values)) => {
                for (index, value) in values.iter().enumerate() {
                    path.push(Step::Item(index));
                    items.check_at(value, path)?;
                    path.pop();
                }
                Ok(())
            }
            (Shape::Object { properties, required }, Value::Object(map)) => {
                if let Some(missing) = required.iter().find(|name| !map.contains_key(name.as_str())) {
                    path.push(Step::Member(missing));
                    return Err(violation(path, "is required and missing".to_owned()));
                }
                for (name, value) in map {
                    let Some(node) = properties.get(name) else { continue };
                    path.push(Step::Member(name));
                    node.check_at(value, path)?;
                    path.pop();
                }
                Ok(())
            }
            (_, value) => Err(violation(path, format!("wanted {}, got {}", self.wanted(), type_name(value)))),
        }
    }

    /// The node as JSON Schema.
    pub fn to_json_schema(&self) -> Value {
        let mut out = match &self.shape {
            Shape::Any => json!({}),
            Shape::Number => json!({"type": "number"}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::String { values } if values.is_empty() => json!({"type": "string"}),
            Shape::String { values } => json!({"type": "string", "enum": values}),
            Shape::Array(None) => json!({"type": "array"}),
            Shape::Array(Some(items)) => json!({"type": "array", "items": items.to_json_schema()}),
            Shape::Object { properties, required } => {
                let properties: Map<_, _> =
                    properties.iter().map(|(name, node)| (name.clone(), node.to_json_schema())).collect();
                json!({"type": "object", "properties": properties, "required": required})
            }
        };
        if let (Value::Object(map), false) = (&mut out, self.description.is_empty()) {
            map.insert("description".to_owned(), self.description.clone().into());
        }
        out
    }
}

/// One step on the way from the top of a value to the place that is wrong.
#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

fn violation(path: &[Step<'_>], reason: String) -> Violation {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Member(name) if text.is_empty() => text.push_str(name),
            Step::Member(name) => text.push_str(&format!(".{name}")),
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    if text.is_empty() {
        text.push_str("payload");
    }
    Violation { path: text, reason }
}

/// What kind of JSON value it is, in a word.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(properties: &[(&str, Shape)], required: &[&str]) -> Schema {
        let node = |shape: &Shape| Schema { description: String::new(), shape: shape.clone() };
        let properties = properties.iter().map(|(name, shape)| ((*name).to_owned(), node(shape))).collect();
        let required = required.iter().map(|name| (*name).to_owned()).collect();
        node(&Shape::Object { properties, required })
    }

    fn text() -> Shape {
        Shape::String { values: Vec::new() }
    }

    #[track_caller]
    fn check(schema: &Schema, value: Value, expected: &str) {
        let got = schema.check(&value).map_or_else(|violation| violation.to_string(), |()| "ok".to_owned());
        assert_eq!(got, expected);
    }

    #[test]
    fn null_satisfies_no_typed_node() {
        let schema = object(&[("path", text()), ("size", Shape::Number)], &["path"]);
        check(&schema, json!({"path": "a", "more": null}), "ok");
        check(&schema, json!({"path": null}), "path: wanted string, got null");
        check(&schema, json!({"path": "a", "size": null}), "size: wanted number, got null");
        check(&schema, json!({"size": 1}), "path: is required and missing");
        check(&schema, json!([]), "payload: wanted object, got array");
    }

    #[test]
    fn the_path_of_a_violation_leads_to_it() {
        let row = object(&[("name", text())], &["name"]);
        let schema = object(&[("rows", Shape::Array(Some(Box::new(row))))], &[]);
        check(&schema, json!({"rows": [{"name": "a"}, {}]}), "rows[1].name: is required and missing");
    }

    #[test]
    fn a_closed_set_is_closed_and_an_open_node_is_open() {
        let schema = object(
            &[("eol", Shape::String { values: vec!["lf".into(), "crlf".into()] }), ("any", Shape::Any)],
            &[],
        );
        check(&schema, json!({"eol": "lf", "any": null}), "ok");
        check(&schema, json!({"eol": "cr"}), "eol: \"cr\" is not \"lf\" | \"crlf\"");
    }
}
