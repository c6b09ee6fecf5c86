//! Results of tools, in the shape that travels.

use serde_json::{Value, json};
use tool_host::source::ToolResult;
use tool_host::{CallError, Category, Object};

/// The result that a value returned by a tool is: a text as it is, a whole result as it is, and anything else as JSON
/// text and as the value itself.
///
/// ```
/// use plugin_wire::result_of;
/// use serde_json::json;
///
/// assert_eq!(result_of(json!("sunny")).structured, None);
/// assert_eq!(result_of(json!({"sum": 3})).structured, Some(json!({"sum": 3})));
/// let whole = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
/// assert!(result_of(whole).failed);
/// ```
pub fn result_of(value: Value) -> ToolResult {
    match value {
        Value::String(text) => ToolResult::text(text),
        Value::Null => ToolResult::text(""),
        value if is_whole(&value) => {
            let text = value.to_string();
            serde_json::from_value(value).unwrap_or_else(|_| ToolResult::text(text))
        }
        value => structured(value),
    }
}

/// A result that is a value: its JSON as text, and the value beside it.
pub fn structured(value: Value) -> ToolResult {
    ToolResult { structured: Some(value.clone()), ..ToolResult::text(value.to_string()) }
}

/// Whether the value has the shape of a whole result: a list of content, each item with its type.
fn is_whole(value: &Value) -> bool {
    let is_item = |item: &Value| item.get("type").is_some_and(Value::is_string);
    value.get("content").and_then(Value::as_array).is_some_and(|content| content.iter().all(is_item))
}

/// The failed result that an agent reads.
pub fn failed(message: impl Into<String>) -> ToolResult {
    ToolResult { failed: true, ..ToolResult::text(message) }
}

/// What an error of a call reads like: its category and its message, and what the call had done before it was given up.
pub fn failure(error: &CallError, reported: &Reported) -> ToolResult {
    let mut text = format!("{}: {}", error.category, error.message);
    if error.category == Category::Cancelled {
        for note in &reported.notes {
            text.push_str(&format!("\n{note}"));
        }
        if !reported.output.is_empty() {
            text.push_str(&format!("\n{}", String::from_utf8_lossy(&reported.output)));
        }
    }
    if let Some(last_words) = error.details.get("stderr").and_then(Value::as_str) {
        text.push_str(&format!("\n{last_words}"));
    }
    failed(text)
}

/// How much of a call's output is kept for its report, in bytes: the end of it.
const KEPT_OUTPUT: usize = 16 * 1024;

/// What a call reported before its end.
#[derive(Debug, Default)]
pub struct Reported {
    notes: Vec<String>,
    output: Vec<u8>,
}

impl Reported {
    /// Takes an event.
    pub fn take(&mut self, event: &tool_host::Event) {
        match event {
            tool_host::Event::OutputChunk { data, .. } => {
                self.output.extend_from_slice(data.as_bytes());
                let surplus = self.output.len().saturating_sub(KEPT_OUTPUT);
                self.output.drain(..surplus);
            }
            tool_host::Event::PartialResult { payload } => self.notes.extend(note(payload)),
            tool_host::Event::Progress { .. } | tool_host::Event::ExitStatus { .. } => {}
        }
    }
}

/// What a partial result says in words.
fn note(payload: &Object) -> Option<String> {
    match payload.get("note")?.as_str() {
        Some(note) => Some(note.to_owned()),
        None => Some(json!(payload).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: Value, expected: Value) {
        assert_eq!(serde_json::to_value(result_of(value)).unwrap(), expected);
    }

    #[test]
    fn a_text_is_one_text_item_and_nothing_beside_it() {
        check(json!("a\nb"), json!({"content": [{"type": "text", "text": "a\nb"}]}));
        check(json!(null), json!({"content": [{"type": "text", "text": ""}]}));
    }

    #[test]
    fn any_other_value_is_its_json_and_itself() {
        for value in [
            json!({"b": 1, "a": "\u{2028}"}),
            json!([1, "x"]),
            json!(3),
            json!(false),
            json!({"content": "x"}),
        ] {
            let result = result_of(value.clone());
            assert_eq!(result.structured, Some(value.clone()));
            let text = result.text_of_content();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn a_whole_result_passes_as_it_is() {
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        check(json!({"content": [image]}), json!({"content": [image]}));
        let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        check(failed.clone(), failed);
    }
}
