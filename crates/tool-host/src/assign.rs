//! `key=value` as people type it on a command line, brought into the type that a schema declares.

use std::str::FromStr;

use serde_json::Value;

use crate::catalogue::AttributeKind;
use crate::event::Object;
use crate::schema::{Schema, Shape};
use provider_core::nearest;

/// One `key=value`, or `key:=JSON`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The name before the sign.
    pub key: String,
    /// What comes after it.
    pub value: Given,
}

/// A value as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// Text, whose type the schema decides.
    Text(String),
    /// JSON, taken as it is.
    Json(Value),
}

/// Why an assignment cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// There is no `=`, or nothing before it.
    #[error("{0:?} is not an assignment: write key=value, or key:=JSON")]
    NotAnAssignment(String),
    /// The text after `:=` is not JSON.
    #[error("{key}: not JSON: {reason}")]
    NotJson {
        /// The key.
        key: String,
        /// What the parser says.
        reason: String,
    },
    /// The text is not of the declared type.
    #[error("{key}: wanted {wanted}, got {got:?}")]
    WrongType {
        /// The key.
        key: String,
        /// The declared type.
        wanted: String,
        /// The text.
        got: String,
    },
    /// The key was given more than once and is no list.
    #[error("{0} is given more than once")]
    Repeated(String),
    /// There is no such key.
    #[error("there is no {what} {key}{}", did_you_mean(.nearest.as_deref()))]
    Unknown {
        /// What kind of name it is, for example `configuration attribute`.
        what: &'static str,
        /// The key.
        key: String,
        /// The declared name that looks most like it.
        nearest: Option<String>,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

impl FromStr for Assignment {
    type Err = AssignError;

    fn from_str(text: &str) -> Result<Self, AssignError> {
        let malformed = || AssignError::NotAnAssignment(text.to_owned());
        let (key, value) = text.split_once('=').ok_or_else(malformed)?;
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => (key, Given::Json(parse_json(key, value)?)),
            None => (key, Given::Text(value.to_owned())),
        };
        if key.is_empty() || key.chars().any(char::is_whitespace) {
            return Err(malformed());
        }
        Ok(Self { key: key.to_owned(), value })
    }
}

fn parse_json(key: &str, text: &str) -> Result<Value, AssignError> {
    serde_json::from_str(text)
        .map_err(|error| AssignError::NotJson { key: key.to_owned(), reason: error.to_string() })
}

/// The type that a text is read as.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Text,
    Number,
    Bool,
    List(Box<Self>),
    Object,
    /// JSON if it is JSON, else text: the declaration is open, or knows the key only as an alias.
    Open,
}

impl From<&Schema> for Type {
    fn from(schema: &Schema) -> Self {
        match &schema.shape {
            Shape::String { .. } => Self::Text,
            Shape::Number => Self::Number,
            Shape::Boolean => Self::Bool,
            Shape::Array(items) => Self::List(Box::new(items.as_deref().map_or(Self::Open, Self::from))),
            Shape::Object { .. } => Self::Object,
            Shape::Any => Self::Open,
        }
    }
}

impl From<&AttributeKind> for Type {
    fn from(kind: &AttributeKind) -> Self {
        match kind {
            AttributeKind::String => Self::Text,
            AttributeKind::Number => Self::Number,
            AttributeKind::Bool => Self::Bool,
            AttributeKind::ListString => Self::List(Box::new(Self::Text)),
            AttributeKind::ListNumber => Self::List(Box::new(Self::Number)),
            AttributeKind::MapString | AttributeKind::Object(_) => Self::Object,
            AttributeKind::Unspecified => Self::Open,
        }
    }
}

impl Type {
    fn name(&self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::List(items) => format!("a JSON array, or one item ({})", items.name()),
            Self::Object => "a JSON object".to_owned(),
            Self::Open => "JSON".to_owned(),
        }
    }

    fn read(&self, key: &str, text: &str) -> Result<Value, AssignError> {
        let json = || serde_json::from_str::<Value>(text).ok();
        let value = match self {
            Self::Text => Some(Value::from(text)),
            Self::Number => json().filter(Value::is_number),
            Self::Bool => json().filter(Value::is_boolean),
            Self::Object => json().filter(Value::is_object),
            Self::Open => Some(json().unwrap_or_else(|| Value::from(text))),
            Self::List(items) => match json().filter(Value::is_array) {
                Some(list) => Some(list),
                None => return Ok(Value::Array(vec![items.read(key, text)?])),
            },
        };
        value.ok_or_else(|| AssignError::WrongType {
            key: key.to_owned(),
            wanted: self.name(),
            got: text.to_owned(),
        })
    }
}

/// Puts assignments over `base`, typed by `lookup`.
fn apply(
    base: &mut Object,
    assignments: &[Assignment],
    lookup: impl Fn(&str) -> Result<Type, AssignError>,
) -> Result<(), AssignError> {
    let mut given = Object::new();
    for Assignment { key, value } in assignments {
        let wanted = lookup(key)?;
        let value = match value {
            Given::Json(value) => value.clone(),
            Given::Text(text) => wanted.read(key, text)?,
        };
        match (given.get_mut(key), value) {
            (None, value) => drop(given.insert(key.clone(), value)),
            (Some(Value::Array(list)), Value::Array(more)) if matches!(wanted, Type::List(_)) => {
                list.extend(more)
            }
            (Some(_), _) => return Err(AssignError::Repeated(key.clone())),
        }
    }
    base.extend(given);
    Ok(())
}

/// Puts assignments over a tool's arguments.
///
/// A key that the schema does not declare may be an alias that the provider knows, so it is passed on: as JSON
/// if it is JSON, else as text. A repeated key adds to a list.
///
/// # Errors
/// The first text that is not of its declared type, or a repeated key that is no list.
pub fn apply_to_arguments(
    schema: &Schema,
    base: &mut Object,
    assignments: &[Assignment],
) -> Result<(), AssignError> {
    apply(base, assignments, |key| Ok(schema.property(key).map_or(Type::Open, Type::from)))
}

/// Puts assignments over a configuration.
///
/// # Errors
/// As [`apply_to_arguments`], and a key that is not among `attributes`.
pub(crate) fn apply_to_config<'a>(
    attributes: impl Iterator<Item = (&'a str, &'a AttributeKind)> + Clone,
    base: &mut Object,
    assignments: &[Assignment],
) -> Result<(), AssignError> {
    apply(base, assignments, |key| {
        let found = attributes.clone().find(|(name, _)| *name == key);
        found.map(|(_, kind)| Type::from(kind)).ok_or_else(|| AssignError::Unknown {
            what: "configuration attribute",
            key: key.to_owned(),
            nearest: nearest(key, attributes.clone().map(|(name, _)| name)).map(str::to_owned),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let node = |shape| Schema { description: String::new(), shape };
        let text = || node(Shape::String { values: Vec::new() });
        let properties = [
            ("path", text()),
            ("limit", node(Shape::Number)),
            ("all", node(Shape::Boolean)),
            ("names", node(Shape::Array(Some(Box::new(text()))))),
            ("extra", node(Shape::Object { properties: [].into(), required: Vec::new() })),
        ];
        let properties = properties.into_iter().map(|(name, node)| (name.to_owned(), node)).collect();
        node(Shape::Object { properties, required: Vec::new() })
    }

    #[track_caller]
    fn check(typed: &[&str], expected: Result<Value, &str>) {
        let mut out = Object::new();
        let got = typed
            .iter()
            .map(|text| text.parse())
            .collect::<Result<Vec<Assignment>, _>>()
            .and_then(|assignments| apply_to_arguments(&schema(), &mut out, &assignments));
        let got = got.map(|()| Value::Object(out)).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[test]
    fn text_stays_text_whatever_it_looks_like() {
        check(&["path=5"], Ok(json!({"path": "5"})));
        check(&["path={\"a\":1}"], Ok(json!({"path": "{\"a\":1}"})));
        check(&["path=a=b"], Ok(json!({"path": "a=b"})));
        check(&["path="], Ok(json!({"path": ""})));
        check(&["path:=null"], Ok(json!({"path": null})));
    }

    #[test]
    fn declared_types_are_read() {
        check(&["limit=5", "all=true"], Ok(json!({"limit": 5, "all": true})));
        check(&["limit=-1.5"], Ok(json!({"limit": -1.5})));
        check(&["extra={\"a\":[1]}"], Ok(json!({"extra": {"a": [1]}})));
        check(&["limit=many"], Err("limit: wanted a number, got \"many\""));
        check(&["all=yes"], Err("all: wanted true or false, got \"yes\""));
    }

    #[test]
    fn a_list_is_json_or_grows_by_repetition() {
        check(&["names=[\"a\",\"b\"]"], Ok(json!({"names": ["a", "b"]})));
        check(&["names=a", "names=b c"], Ok(json!({"names": ["a", "b c"]})));
        check(&["path=a", "path=b"], Err("path is given more than once"));
    }

    #[test]
    fn an_undeclared_key_is_json_or_text() {
        check(&["file_path=a.txt", "n=5", "o={}"], Ok(json!({"file_path": "a.txt", "n": 5, "o": {}})));
    }

    #[test]
    fn what_is_no_assignment_is_refused() {
        check(&["path"], Err("\"path\" is not an assignment: write key=value, or key:=JSON"));
        check(&["=x"], Err("\"=x\" is not an assignment: write key=value, or key:=JSON"));
        check(&["limit:=five"], Err("limit: not JSON: expected ident at line 1 column 2"));
    }
}
