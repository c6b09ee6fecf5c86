//! The calls file: what to configure a provider with and what to ask of it.
//!
//! `docs/conformance.md` documents the format for those who write one.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::Value;
use tool_host::{Category, Object};

use crate::topics;

/// A calls file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Version of the format, `1.0`.
    pub format_version: String,
    /// A configuration the provider accepts.
    #[serde(default)]
    pub config: Object,
    /// Configurations it must refuse.
    #[serde(default)]
    pub refused_configs: Vec<RefusedConfig>,
    /// Environment variables of the provider, beyond `PATH`, `HOME` and `TMPDIR`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What lies in the scratch root, by relative path. A path that ends with `/` is a directory.
    #[serde(default)]
    pub files: BTreeMap<String, File>,
    /// Pages of a small HTTP server on the loopback interface, by path; `{http}` names it.
    #[serde(default)]
    pub http: BTreeMap<String, Page>,
    /// The tools whose work is a child process, and which therefore report its exit.
    #[serde(default)]
    pub process_tools: Vec<String>,
    /// The calls, made in this order in one session.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Requirements that this provider cannot show, each with the reason; `CANCEL-01..03` are three.
    #[serde(default)]
    pub not_reached: BTreeMap<String, String>,
}

/// A configuration that must be refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedConfig {
    /// Laid over the good configuration; null takes an attribute away.
    pub config: Object,
    /// What the refusal must mention, usually the names of the wrong attributes.
    #[serde(default)]
    pub names: Vec<String>,
}

/// What lies at a path of the scratch root.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum File {
    /// A text file; for a path that ends with `/`, null.
    Text(Option<String>),
    /// Anything else.
    Other(OtherFile),
}

/// A file that is more than a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherFile {
    /// Its text.
    pub text: Option<String>,
    /// Its bytes.
    pub base64: Option<String>,
    /// What it points at, if it is a symbolic link.
    pub symlink: Option<String>,
    /// Its permissions, in octal, for example `755`.
    pub mode: Option<String>,
}

/// A page of the HTTP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Page {
    /// A body, with status 200 and `text/plain`.
    Text(String),
    /// Anything else.
    Other(OtherPage),
}

/// A page that is more than a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherPage {
    /// The status; 200 unless said otherwise.
    pub status: Option<u16>,
    /// Header fields.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// How long the answer takes.
    #[serde(default)]
    pub delay_ms: u64,
}

/// One call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Object,
    /// `result`, or the category of the error it ends with.
    #[serde(default)]
    pub expect: Expect,
    /// What the result contains: members that are listed must be there and equal, at any depth.
    pub payload: Option<Object>,
    /// What the message of the error mentions.
    #[serde(default)]
    pub message: Vec<String>,
    /// Texts that the preview shows.
    #[serde(default)]
    pub preview: Vec<String>,
    /// What all chunks of standard output together are.
    pub stdout: Option<String>,
    /// What all chunks of standard error together are.
    pub stderr: Option<String>,
    /// The exit code that is reported in an event of its own.
    pub exit_code: Option<i32>,
    /// Directory below the scratch root that the call comes from.
    pub cwd: Option<String>,
    /// Values of the result to use in later calls: `{name}` stands for what the JSON pointer finds.
    #[serde(default)]
    pub keep: BTreeMap<String, String>,
    /// Whether it runs for at least half a minute by itself. Such a call is only made to be ended.
    #[serde(default)]
    pub long: bool,
}

/// How a call ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Expect {
    /// With a result.
    #[default]
    Result,
    /// With an error of this category.
    Error(Category),
}

impl TryFrom<String> for Expect {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "result" => Ok(Self::Result),
            other => Category::parse(other)
                .map(Self::Error)
                .ok_or_else(|| format!("{other:?} is neither \"result\" nor the category of an error")),
        }
    }
}

/// Why a calls file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    /// It is not JSON, or not of the documented shape.
    #[error("{0}")]
    Shape(#[from] serde_json::Error),
    /// It is of a version this program does not know.
    #[error("format_version is {0:?}; this program knows \"1.0\"")]
    Version(String),
    /// It excuses a requirement that does not exist.
    #[error("not_reached names {0}, which is no requirement")]
    Requirement(String),
    /// A file cannot be made as written.
    #[error("files: {path}: {reason}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

impl Calls {
    /// Reads a calls file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, CallsError> {
        let calls: Self = serde_json::from_str(text)?;
        if calls.format_version != "1.0" {
            return Err(CallsError::Version(calls.format_version));
        }
        if let Some(unknown) = calls.not_reached.keys().find(|key| named(key).is_none()) {
            return Err(CallsError::Requirement(unknown.clone()));
        }
        for (path, file) in &calls.files {
            file.check(path).map_err(|reason| CallsError::File { path: path.clone(), reason })?;
        }
        Ok(calls)
    }

    /// The reason for not reaching a requirement, if there is one.
    pub(crate) fn excuse(&self, id: &str) -> Option<&String> {
        let named = |key: &str| named(key).is_some_and(|ids| ids.contains(&id));
        self.not_reached.iter().find_map(|(key, reason)| named(key).then_some(reason))
    }

    /// The calls of one tool that end with a result by themselves.
    pub(crate) fn positive<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.tool == tool && call.is_positive())
    }

    /// The first call that runs until it is ended.
    pub(crate) fn long(&self) -> Option<&Call> {
        self.calls.iter().find(|call| call.long)
    }
}

/// The requirements that a key of `not_reached` names: one, or several of one topic in a row. `None` where there is no
/// such.
fn named(key: &str) -> Option<Vec<&'static str>> {
    let (first, last) = match key.split_once("..") {
        None => (key, key.to_owned()),
        Some((first, number)) => (first, format!("{}-{number}", first.split_once('-')?.0)),
    };
    let ids: Vec<&'static str> = topics::all().map(|requirement| requirement.id).collect();
    let place = |wanted: &str| ids.iter().position(|id| *id == wanted);
    ids.get(place(first)?..=place(&last)?).filter(|ids| !ids.is_empty()).map(<[_]>::to_vec)
}

impl Call {
    pub(crate) fn is_positive(&self) -> bool {
        self.expect == Expect::Result && !self.long
    }
}

impl File {
    fn check(&self, path: &str) -> Result<(), String> {
        let steps = std::path::Path::new(path).components();
        if !steps.into_iter().all(|step| matches!(step, std::path::Component::Normal(_))) || path.is_empty() {
            return Err("wanted a relative path without . and ..".to_owned());
        }
        let Self::Other(file) = self else { return Ok(()) };
        let given = [&file.text, &file.base64, &file.symlink].iter().filter(|given| given.is_some()).count();
        if given > 1 {
            return Err("text, base64 and symlink exclude each other".to_owned());
        }
        self.bytes()?;
        self.mode()?;
        Ok(())
    }

    /// What is in it.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().unwrap_or_default().into_bytes()),
            Self::Other(OtherFile { base64: Some(text), .. }) => {
                BASE64.decode(text).map_err(|error| format!("base64: {error}"))
            }
            Self::Other(file) => Ok(file.text.clone().unwrap_or_default().into_bytes()),
        }
    }

    /// Its permissions, where they are given.
    pub(crate) fn mode(&self) -> Result<Option<u32>, String> {
        match self {
            Self::Other(OtherFile { mode: Some(mode), .. }) => u32::from_str_radix(mode, 8)
                .map(Some)
                .map_err(|_| format!("mode: wanted an octal number, got {mode:?}")),
            _ => Ok(None),
        }
    }

    /// What it points at, if it is a link.
    pub(crate) fn symlink(&self) -> Option<&str> {
        match self {
            Self::Other(file) => file.symlink.as_deref(),
            Self::Text(_) => None,
        }
    }
}

impl Page {
    /// The page in full.
    pub(crate) fn full(&self) -> OtherPage {
        match self {
            Self::Text(body) => {
                OtherPage { status: None, headers: BTreeMap::new(), body: body.clone(), delay_ms: 0 }
            }
            Self::Other(page) => page.clone(),
        }
    }
}

/// A JSON value with every `{name}` in its texts replaced. A text that is nothing but a name becomes the value
/// itself, so that a number stays one; a name that is not known stays as it is.
pub(crate) fn fill(value: &Value, known: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => fill_text(text, known),
        Value::Array(items) => items.iter().map(|item| fill(item, known)).collect(),
        Value::Object(map) => Value::Object(fill_object(map, known)),
        other => other.clone(),
    }
}

/// The same for an object.
pub(crate) fn fill_object(map: &Object, known: &BTreeMap<String, Value>) -> Object {
    map.iter().map(|(name, value)| (name.clone(), fill(value, known))).collect()
}

fn fill_text(text: &str, known: &BTreeMap<String, Value>) -> Value {
    let whole = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if let Some(value) = whole.and_then(|name| known.get(name)) {
        return value.clone();
    }
    let mut out = text.to_owned();
    for (name, value) in known {
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        out = out.replace(&format!("{{{name}}}"), &plain);
    }
    Value::String(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: Value, expected: Value) {
        let known = BTreeMap::from([("root".to_owned(), json!("/r")), ("job".to_owned(), json!(7))]);
        assert_eq!(fill(&value, &known), expected);
    }

    #[test]
    fn names_are_filled_in_and_whole_values_keep_their_type() {
        check(json!({"a": ["{root}/x", "{job}", "n{job}"]}), json!({"a": ["/r/x", 7, "n7"]}));
        check(json!("{unknown} ${HOME} {}"), json!("{unknown} ${HOME} {}"));
    }

    #[test]
    fn one_reason_may_stand_for_several_requirements_in_a_row() {
        let reasons = json!({"CANCEL-02..04": "no long call", "INVOKE-22": "nobody to ask"});
        let calls = json!({"format_version": "1.0", "not_reached": reasons});
        let calls = Calls::parse(&calls.to_string()).unwrap();
        let excused: Vec<&str> =
            topics::all().map(|it| it.id).filter(|id| calls.excuse(id).is_some()).collect();
        assert_eq!(excused, ["INVOKE-22", "CANCEL-02", "CANCEL-03", "CANCEL-04"]);
        assert_eq!(calls.excuse("CANCEL-03").unwrap(), "no long call");
    }

    #[track_caller]
    fn refused(text: Value, expected: &str) {
        let error = Calls::parse(&text.to_string()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_wrong_calls_file_says_what_is_wrong() {
        refused(json!({}), "format_version");
        refused(json!({"format_version": "9.0"}), "this program knows \"1.0\"");
        refused(json!({"format_version": "1.0", "cals": []}), "cals");
        refused(json!({"format_version": "1.0", "calls": [{"tool": "t", "expect": "fine"}]}), "\"fine\"");
        refused(json!({"format_version": "1.0", "not_reached": {"INVOKE-99": "x"}}), "INVOKE-99");
        refused(json!({"format_version": "1.0", "not_reached": {"INVOKE-01..99": "x"}}), "INVOKE-01..99");
        refused(json!({"format_version": "1.0", "not_reached": {"INVOKE-03..02": "x"}}), "INVOKE-03..02");
        refused(json!({"format_version": "1.0", "files": {"../a": "x"}}), "without . and ..");
        refused(json!({"format_version": "1.0", "files": {"a": {"mode": "9"}}}), "octal");
        refused(json!({"format_version": "1.0", "files": {"a": {"text": "", "base64": ""}}}), "exclude");
    }
}
