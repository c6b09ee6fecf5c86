//! What is wrong with a field, and the one list of everything that is.

use std::fmt;

use serde_json::{Map, Value};

/// One wrong field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is, for example `permissions.net.hosts[1]`; empty for the document itself.
    pub field: String,
    /// What is wrong with it, and what it should be.
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.is_empty() {
            true => f.write_str(&self.problem),
            false => write!(f, "{}: {}", self.field, self.problem),
        }
    }
}

/// Collects what is wrong while a document is read to its end.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Problem { field: field.into(), problem: problem.into() });
    }

    /// What `parsed` is, unless it is wrong.
    pub(crate) fn keep<T, E: fmt::Display>(&mut self, field: &str, parsed: Result<T, E>) -> Option<T> {
        parsed.map_err(|problem| self.add(field, problem.to_string())).ok()
    }

    pub(crate) fn into_list(self) -> Vec<Problem> {
        self.0
    }

    /// A text that must be there.
    pub(crate) fn text<'a>(
        &mut self,
        object: &'a Map<String, Value>,
        key: &str,
        at: &str,
    ) -> Option<&'a str> {
        let Some(value) = object.get(key) else {
            self.add(at, "is missing: wanted a text");
            return None;
        };
        self.as_text(value, at)
    }

    pub(crate) fn as_text<'a>(&mut self, value: &'a Value, at: &str) -> Option<&'a str> {
        match value {
            Value::String(text) if text.trim().is_empty() => {
                self.add(at, "is empty: wanted a text");
                None
            }
            Value::String(text) => Some(text),
            other => {
                self.add(at, format!("wanted a text, got {}", shape(other)));
                None
            }
        }
    }

    pub(crate) fn as_object<'a>(&mut self, value: &'a Value, at: &str) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.add(at, format!("wanted an object, got {}", shape(value)));
        }
        object
    }

    /// The texts of a list, each with its place.
    pub(crate) fn as_texts<'a>(&mut self, value: &'a Value, at: &str) -> Vec<(String, &'a str)> {
        let Some(list) = value.as_array() else {
            self.add(at, format!("wanted a list of texts, got {}", shape(value)));
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            let place = format!("{at}[{index}]");
            if let Some(text) = self.as_text(value, &place) {
                texts.push((place, text));
            }
        }
        texts
    }
}

/// A value's kind, in words.
pub(crate) fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
