//! Arguments as models really send them, brought into the declared shape or refused in one error.
//!
//! Null means absent, `"5"` and `5.0` mean 5, `"true"` means true, a JSON string where an object or array is
//! wanted is parsed, declared aliases are accepted. Every repair is reported; everything else is refused, all
//! wrong fields at once.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::ToolError;
use crate::nearest::nearest;
use crate::schema::{Kind, Schema};

/// Arguments in the declared shape, with what had to be changed to get there.
///
/// ```
/// use provider_core::arguments::Repaired;
/// use serde_json::json;
///
/// let repaired = Repaired { value: json!({"count": 5}), notes: vec!["count: took \"5\" as 5".to_owned()] };
/// assert!(!repaired.notes.is_empty(), "the result tells of every repair");
/// ```
#[derive(Debug, PartialEq)]
pub struct Repaired {
    /// The arguments: declared names, right types, no nulls.
    pub value: Value,
    /// One sentence per repair.
    pub notes: Vec<String>,
}

/// Brings `value` into the shape of `schema`.
///
/// # Errors
/// `invalid_arguments`, listing every wrong field with what was wanted and what came. `subject` opens the
/// message, for example the tool's name.
///
/// ```
/// use provider_core::arguments::repair;
/// use provider_core::prelude::*;
/// use provider_core::schema::Schema;
/// use serde_json::json;
///
/// /// Reads lines.
/// #[derive(Deserialize, JsonSchema)]
/// struct Args {
///     /// How many.
///     count: u32,
/// }
///
/// let schema = Schema::of::<Args>().unwrap();
/// let repaired = repair("read", &schema, json!({"count": "5"})).unwrap();
/// assert_eq!(repaired.value, json!({"count": 5}));
/// assert_eq!(repaired.notes.len(), 1);
/// let error = repair("read", &schema, json!({"cuont": 5})).unwrap_err();
/// assert!(error.message().contains("count"));
/// ```
pub fn repair(subject: &str, schema: &Schema, value: Value) -> Result<Repaired, ToolError> {
    let mut work = Work::default();
    let repaired = work.node(schema, value, &Path::Root);
    if work.wrong.is_empty() {
        let value = repaired.unwrap_or_else(|| Value::Object(Map::new()));
        return Ok(Repaired { value, notes: work.notes });
    }
    Err(work.into_error(subject, schema))
}

/// Wrong fields named in one error; a model that sends hundreds has misunderstood the tool, not the fields.
const SHOWN_FIELDS: usize = 20;

/// Where in the arguments we are, for messages: `edits[2].path`.
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(Self::Root, name) => (*name).to_owned(),
            Self::Member(parent, name) => format!("{}.{name}", parent.text()),
            Self::Item(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }
}

#[derive(Default)]
struct Work {
    notes: Vec<String>,
    wrong: Vec<(String, String)>,
}

impl Work {
    fn refuse(&mut self, path: &Path<'_>, reason: impl Into<String>) -> Option<Value> {
        self.wrong.push((path.text(), reason.into()));
        None
    }

    fn mismatch(&mut self, path: &Path<'_>, schema: &Schema, value: &Value) -> Option<Value> {
        self.refuse(path, format!("wanted {}, got {}", with_article(&schema.wanted()), shown(value)))
    }

    fn note(&mut self, path: &Path<'_>, what: impl std::fmt::Display) {
        let name = path.text();
        let name = if name.is_empty() { "arguments" } else { &name };
        self.notes.push(format!("{name}: {what}"));
    }

    fn node(&mut self, schema: &Schema, value: Value, path: &Path<'_>) -> Option<Value> {
        match &schema.kind {
            Kind::Object { properties, required } => {
                let map = self.object(schema, value, path)?;
                self.members(properties, required, map, path)
            }
            Kind::Map(values) => {
                let map = self.object(schema, value, path)?;
                let mut out = Map::new();
                for (key, value) in map {
                    if !value.is_null() {
                        let value = self.node(values, value, &Path::Member(path, &key));
                        out.insert(key, value.unwrap_or(Value::Null));
                    }
                }
                Some(Value::Object(out))
            }
            Kind::String { values } => match value {
                Value::String(text) if values.is_empty() || values.contains(&text) => {
                    Some(Value::String(text))
                }
                other => self.mismatch(path, schema, &other),
            },
            Kind::Number { integer, minimum, maximum } => {
                self.number(schema, value, path, *integer, (*minimum, *maximum))
            }
            Kind::Boolean => self.boolean(schema, value, path),
            Kind::Array { items, minimum, maximum } => {
                self.array(schema, value, path, items, (*minimum, *maximum))
            }
        }
    }

    fn object(&mut self, schema: &Schema, value: Value, path: &Path<'_>) -> Option<Map<String, Value>> {
        match value {
            Value::Object(map) => Some(map),
            Value::Null if matches!(path, Path::Root) => Some(Map::new()),
            Value::String(text) => match parse_nested(&text) {
                Ok(Value::Object(map)) => {
                    self.note(path, "read from a JSON string");
                    Some(map)
                }
                Ok(_) => self.mismatch(path, schema, &Value::String(text)).and(None),
                Err(error) => self
                    .refuse(path, format!("wanted an object, got a string that is not JSON: {error}"))
                    .and(None),
            },
            other => self.mismatch(path, schema, &other).and(None),
        }
    }

    fn members(
        &mut self,
        properties: &BTreeMap<String, Schema>,
        required: &[String],
        map: Map<String, Value>,
        path: &Path<'_>,
    ) -> Option<Value> {
        let mut found: BTreeMap<&str, Value> = BTreeMap::new();
        for (key, value) in map {
            let Some((name, value)) = self.name(properties, &key, value, path) else { continue };
            match found.get(name) {
                Some(first) if *first != value => {
                    let reason = format!("given twice, under {name} and another name, with different values");
                    self.refuse(&Path::Member(path, name), reason);
                }
                _ => drop(found.insert(name, value)),
            }
        }
        let mut out = Map::new();
        for (name, schema) in properties {
            match found.remove(name.as_str()) {
                Some(value) => {
                    if let Some(value) = self.node(schema, value, &Path::Member(path, name)) {
                        out.insert(name.clone(), value);
                    }
                }
                None if required.contains(name) => {
                    self.refuse(
                        &Path::Member(path, name),
                        format!("missing; wanted {}", with_article(&schema.wanted())),
                    );
                }
                None => {}
            }
        }
        Some(Value::Object(out))
    }

    /// The declared property that `key` means; null values are absent.
    fn name<'a>(
        &mut self,
        properties: &'a BTreeMap<String, Schema>,
        key: &str,
        value: Value,
        path: &Path<'_>,
    ) -> Option<(&'a str, Value)> {
        if let Some((name, _)) = properties.get_key_value(key) {
            return (!value.is_null()).then_some((name, value));
        }
        let alias = properties.iter().find(|(_, schema)| schema.aliases.iter().any(|alias| alias == key));
        if let Some((name, _)) = alias {
            if value.is_null() {
                return None;
            }
            self.note(&Path::Member(path, key), format_args!("taken as {name}"));
            return Some((name, value));
        }
        let reason = match nearest(key, properties.keys().map(String::as_str)) {
            Some(name) => format!("unknown; did you mean {name}?"),
            None if properties.is_empty() => "unknown; there are no arguments".to_owned(),
            None => {
                format!("unknown; known are {}", properties.keys().cloned().collect::<Vec<_>>().join(", "))
            }
        };
        self.refuse(&Path::Member(path, key), reason);
        None
    }

    fn number(
        &mut self,
        schema: &Schema,
        value: Value,
        path: &Path<'_>,
        integer: bool,
        (minimum, maximum): (Option<f64>, Option<f64>),
    ) -> Option<Value> {
        let (number, repaired) = match &value {
            Value::Number(number) => (number.as_f64(), false),
            Value::String(text) => {
                (text.trim().parse::<f64>().ok().filter(|number| number.is_finite()), true)
            }
            _ => (None, false),
        };
        let fits = |number: &f64| {
            minimum.is_none_or(|least| *number >= least) && maximum.is_none_or(|most| *number <= most)
        };
        let exact = |number: &f64| {
            !integer || (number.fract() == 0.0 && number.abs() <= crate::wire::MAX_EXACT_INTEGER)
        };
        let Some(number) = number.filter(fits).filter(exact) else {
            return self.mismatch(path, schema, &value);
        };
        if repaired {
            self.note(path, format_args!("the string {value} was read as a number"));
        }
        if integer { Some(Value::from(number as i64)) } else { Some(Value::from(number)) }
    }

    fn boolean(&mut self, schema: &Schema, value: Value, path: &Path<'_>) -> Option<Value> {
        let flag = match &value {
            Value::Bool(flag) => return Some(Value::Bool(*flag)),
            Value::Number(number) if number.as_f64() == Some(1.0) => true,
            Value::Number(number) if number.as_f64() == Some(0.0) => false,
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => return self.mismatch(path, schema, &value),
            },
            _ => return self.mismatch(path, schema, &value),
        };
        self.note(path, format_args!("{value} was read as {flag}"));
        Some(Value::Bool(flag))
    }

    fn array(
        &mut self,
        schema: &Schema,
        value: Value,
        path: &Path<'_>,
        items: &Schema,
        (minimum, maximum): (Option<usize>, Option<usize>),
    ) -> Option<Value> {
        let list = match value {
            Value::Array(list) => list,
            Value::String(text) => match parse_nested(&text) {
                Ok(Value::Array(list)) => {
                    self.note(path, "read from a JSON string");
                    list
                }
                Ok(object @ Value::Object(_)) if wants_objects(items) => {
                    self.note(path, "one object in a JSON string was read as a list of one");
                    vec![object]
                }
                Ok(_) => return self.mismatch(path, schema, &Value::String(text)),
                Err(error) => {
                    let reason =
                        format!("wanted an {}, got a string that is not JSON: {error}", schema.wanted());
                    return self.refuse(path, reason);
                }
            },
            object @ Value::Object(_) if wants_objects(items) => {
                self.note(path, "one object was read as a list of one");
                vec![object]
            }
            other => return self.mismatch(path, schema, &other),
        };
        let out_of_range =
            minimum.is_some_and(|least| list.len() < least) || maximum.is_some_and(|most| list.len() > most);
        if out_of_range {
            return self.refuse(path, format!("has {} items; {}", list.len(), schema.full_description()));
        }
        let item = |(index, value)| self.node(items, value, &Path::Item(path, index)).unwrap_or(Value::Null);
        Some(Value::Array(list.into_iter().enumerate().map(item).collect()))
    }

    fn into_error(self, subject: &str, schema: &Schema) -> ToolError {
        let plural = if self.wrong.len() == 1 { "argument is" } else { "arguments are" };
        let mut message = format!("{subject}: {} {plural} wrong.", self.wrong.len());
        let mut fields = Vec::new();
        for (field, reason) in self.wrong.iter().take(SHOWN_FIELDS) {
            let field = if field.is_empty() { "arguments" } else { field };
            message.push_str(&format!("\n- {field}: {reason}"));
            fields.push(Value::from(field));
        }
        if let Some(more) = self.wrong.len().checked_sub(SHOWN_FIELDS).filter(|more| *more > 0) {
            message.push_str(&format!("\n- and {more} more"));
        }
        message.push_str(&format!("\nExample: {}", schema.example()));
        ToolError::invalid_arguments(message).with_detail("fields", Value::Array(fields))
    }
}

fn wants_objects(items: &Schema) -> bool {
    matches!(items.kind, Kind::Object { .. } | Kind::Map(_))
}

fn with_article(noun: &str) -> String {
    match noun.as_bytes().first() {
        Some(b'a' | b'i') => format!("an {noun}"),
        Some(b'o') if noun.starts_with("one of") => noun.to_owned(),
        Some(b'o') => format!("an {noun}"),
        _ => format!("a {noun}"),
    }
}

/// A value in a message: its type and, cut short, what it is.
fn shown(value: &Value) -> String {
    let noun = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "the boolean",
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(items) => return format!("an array of {}", items.len()),
        Value::Object(_) => return "an object".to_owned(),
    };
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{noun} {}…", &text[..cut]),
        None => format!("{noun} {text}"),
    }
}

/// Parses JSON that arrived as a string, perhaps encoded twice, perhaps with raw control characters in it.
fn parse_nested(text: &str) -> Result<Value, serde_json::Error> {
    let parsed = serde_json::from_str(text).or_else(|error| {
        let escaped = escape_control_characters(text);
        serde_json::from_str(&escaped).map_err(|_| error)
    })?;
    match parsed {
        Value::String(inner) => serde_json::from_str(&inner),
        other => Ok(other),
    }
}

/// Escapes the control characters inside string literals; those between values are white space and stay.
fn escape_control_characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    for character in text.chars() {
        match character {
            control if in_string && control < ' ' => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
        (in_string, escaped) = match character {
            _ if escaped => (in_string, false),
            '\\' if in_string => (true, true),
            '"' => (!in_string, false),
            _ => (in_string, false),
        };
    }
    out
}

/// Takes nulls out of objects: on the wire an absent optional is omitted.
pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// The first place where a result breaks its schema, the way the kernel checks it.
///
/// ```
/// use provider_core::arguments::first_violation;
/// use provider_core::prelude::*;
/// use provider_core::schema::Schema;
/// use serde_json::json;
///
/// /// What was found.
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Found {
///     /// How many there are.
///     total: u32,
/// }
///
/// let schema = Schema::of::<Found>().unwrap();
/// assert_eq!(first_violation(&schema, &json!({"total": 2})), None);
/// assert_eq!(first_violation(&schema, &json!({})).as_deref(), Some("total is missing"));
/// ```
pub fn first_violation(schema: &Schema, value: &Value) -> Option<String> {
    violation(schema, value, &Path::Root)
}

fn violation(schema: &Schema, value: &Value, path: &Path<'_>) -> Option<String> {
    let fits = match (&schema.kind, value) {
        (Kind::Object { properties, required }, Value::Object(map)) => {
            if let Some(name) = required.iter().find(|name| !map.contains_key(*name)) {
                return Some(format!("{} is missing", Path::Member(path, name).text()));
            }
            let check = |(name, schema): (&String, &Schema)| {
                violation(schema, map.get(name)?, &Path::Member(path, name))
            };
            return properties.iter().find_map(check);
        }
        (Kind::Map(values), Value::Object(map)) => {
            return map.iter().find_map(|(name, value)| violation(values, value, &Path::Member(path, name)));
        }
        (Kind::Array { items, .. }, Value::Array(list)) => {
            return list
                .iter()
                .enumerate()
                .find_map(|(index, value)| violation(items, value, &Path::Item(path, index)));
        }
        (Kind::String { values }, Value::String(text)) => values.is_empty() || values.contains(text),
        (Kind::Number { .. }, Value::Number(number)) => {
            number.as_f64().is_some_and(|number| number.is_finite() && number.abs() <= 1e300)
        }
        (Kind::Boolean, Value::Bool(_)) => true,
        _ => false,
    };
    (!fits)
        .then(|| format!("{}: wanted {}, got {}", path.text(), with_article(&schema.wanted()), shown(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde_json::json;

    /// One edit.
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Edit {
        /// The text.
        text: String,
    }

    /// Everything.
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Args {
        /// The path.
        #[schemars(extend("x-aliases" = ["file_path", "filename"]))]
        path: String,
        /// First line.
        offset: Option<i64>,
        /// A flag.
        flag: Option<bool>,
        /// Edits.
        edits: Option<Vec<Edit>>,
    }

    fn run(value: Value) -> Result<Repaired, ToolError> {
        repair("demo", &Schema::of::<Args>().unwrap(), value)
    }

    #[track_caller]
    fn check(value: Value, expected: Value, notes: &[&str]) {
        let repaired = run(value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(repaired.value, expected);
        assert_eq!(repaired.notes, notes);
    }

    #[track_caller]
    fn check_error(value: Value, expected: &[&str]) {
        let message = run(value).unwrap_err().to_string();
        for line in expected {
            assert!(message.contains(line), "{message}\nlacks: {line}");
        }
    }

    #[test]
    fn numbers_arrive_in_many_spellings() {
        for (sent, meant) in
            [(json!("2480"), 2480), (json!(" 50 "), 50), (json!("+50"), 50), (json!("5.0"), 5)]
        {
            let note = format!("offset: the string {sent} was read as a number");
            check(json!({"path": "a", "offset": sent}), json!({"path": "a", "offset": meant}), &[&note]);
        }
        for (sent, meant) in [(json!(5.0), 5), (json!(1e3), 1000)] {
            check(json!({"path": "a", "offset": sent}), json!({"path": "a", "offset": meant}), &[]);
        }
        check_error(
            json!({"path": "a", "offset": "abc"}),
            &["offset: wanted an integer, got the string \"abc\""],
        );
        check_error(json!({"path": "a", "offset": 1.5}), &["offset: wanted an integer, got the number 1.5"]);
        check_error(
            json!({"path": "a", "offset": "NaN"}),
            &["offset: wanted an integer, got the string \"NaN\""],
        );
    }

    #[test]
    fn booleans_arrive_as_words_and_digits() {
        for (sent, meant) in
            [(json!("true"), true), (json!("False"), false), (json!(1), true), (json!(0), false)]
        {
            let note = format!("flag: {sent} was read as {meant}");
            check(json!({"path": "a", "flag": sent}), json!({"path": "a", "flag": meant}), &[&note]);
        }
        check_error(json!({"path": "a", "flag": "yes"}), &["flag: wanted a boolean, got the string \"yes\""]);
        check_error(json!({"path": "a", "flag": 2}), &["flag: wanted a boolean, got the number 2"]);
    }

    #[test]
    fn a_list_arrives_as_json_text_and_its_content_stays_exact() {
        let edits = json!([{"text": "a\tb\\n\"é\""}]);
        let want = json!({"path": "a", "edits": edits});
        let text = edits.to_string();
        check(json!({"path": "a", "edits": text}), want.clone(), &["edits: read from a JSON string"]);
        let twice = Value::String(text.clone()).to_string();
        check(json!({"path": "a", "edits": twice}), want.clone(), &["edits: read from a JSON string"]);
        let raw = text.replace("\\t", "\t");
        check(json!({"path": "a", "edits": raw}), want.clone(), &["edits: read from a JSON string"]);
        let inner = json!([edits[0].to_string()]);
        check(json!({"path": "a", "edits": inner}), want.clone(), &["edits[0]: read from a JSON string"]);
        check(
            json!({"path": "a", "edits": edits[0]}),
            want,
            &["edits: one object was read as a list of one"],
        );
        check_error(
            json!({"path": "a", "edits": "[{\"text\": }]"}),
            &["edits: wanted an array of objects, got a string that is not JSON", "column"],
        );
    }

    #[test]
    fn null_means_absent() {
        check(json!({"path": "a", "offset": null}), json!({"path": "a"}), &[]);
        check_error(json!({"path": null}), &["path: missing; wanted a string"]);
    }

    #[test]
    fn aliases_are_taken_and_conflicts_refused() {
        check(json!({"file_path": "a"}), json!({"path": "a"}), &["file_path: taken as path"]);
        check_error(json!({"file_path": "a", "path": "b"}), &["path: given twice"]);
    }

    #[test]
    fn every_wrong_field_is_in_one_error() {
        check_error(
            json!({"pth": "a", "offset": "abc", "edits": [{"txt": 1}]}),
            &[
                "demo: 5 arguments are wrong.",
                "- pth: unknown; did you mean path?",
                "- path: missing",
                "- edits[0].txt: unknown; did you mean text?",
                "- edits[0].text: missing",
                "Example: {\"path\":\"…\"}",
            ],
        );
        check_error(json!({"path": ["a"]}), &["path: wanted a string, got an array of 1"]);
    }

    #[test]
    fn an_error_stays_short_however_much_is_wrong() {
        let many: Map<String, Value> = (0..20_000).map(|n| (format!("zzz{n}"), json!(1))).collect();
        let message = run(Value::Object(many)).unwrap_err().to_string();
        assert!(message.starts_with("demo: 20001 arguments are wrong."), "{message}");
        assert!(message.len() < 4_000 && message.contains("- and 19981 more"), "{message}");
    }

    #[test]
    fn a_result_with_a_null_or_a_hole_is_seen() {
        let schema = Schema::of::<Args>().unwrap();
        assert_eq!(first_violation(&schema, &json!({"path": "a"})), None);
        assert_eq!(first_violation(&schema, &json!({})).unwrap(), "path is missing");
        assert_eq!(
            first_violation(&schema, &json!({"path": null})).unwrap(),
            "path: wanted a string, got null"
        );
    }
}
