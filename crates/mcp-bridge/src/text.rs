//! A result as a model reads it: what its provider shows people, and below it what that leaves out.
//!
//! Nothing of a payload is lost on the way. A picture for people shows the file, the hits, the output; whether there is
//! more, and how to get it, stands in fields that it does not show. Those follow as one line of JSON.

use serde_json::{Map, Value};
use tool_host::Object;

/// An image that a result holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) mime_type: String,
    /// Base64.
    pub(crate) data: String,
}

/// Takes the image out of a payload: the field `media` of files and pages that are one.
pub(crate) fn take_image(payload: &mut Object) -> Option<Image> {
    let media = payload.get_mut("media")?.as_object_mut()?;
    let mime_type = media.get("mime_type")?.as_str().filter(|mime| mime.starts_with("image/"))?.to_owned();
    match media.remove("data_base64")? {
        Value::String(data) => Some(Image { mime_type, data }),
        _ => None,
    }
}

/// The payload as text: the picture of it, if there is one, then notes, then the fields that the picture does not show.
pub(crate) fn readable(payload: &Object, picture: Option<&str>) -> String {
    // Some providers draw what has no shape as JSON, which it is already.
    let is_drawn = |picture: &&str| !picture.is_empty() && !picture.starts_with('{');
    let Some(picture) = picture.filter(is_drawn) else {
        return Value::Object(payload.clone()).to_string();
    };
    let mut parts = vec![picture.to_owned()];
    let rest: Map<String, Value> = payload
        .iter()
        .filter(|(name, value)| *name != "notes" && !is_shown(value, picture))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for note in payload.get("notes").and_then(Value::as_array).into_iter().flatten() {
        if let Some(note) = note.as_str().filter(|note| !picture.contains(note)) {
            parts.push(format!("note: {note}"));
        }
    }
    if !rest.is_empty() {
        parts.push(Value::Object(rest).to_string());
    }
    parts.join("\n\n")
}

/// Whether the picture shows the value. Of lists and objects it shows what matters, which is most of their texts; numbers
/// and switches are short, and never taken for shown.
fn is_shown(value: &Value, picture: &str) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => shows_text(text, picture),
        Value::Bool(_) | Value::Number(_) => false,
        Value::Array(_) | Value::Object(_) => {
            let mut texts = Vec::new();
            collect_texts(value, &mut texts);
            let shown = texts.iter().filter(|text| shows_text(text, picture)).count();
            is_empty(value) || (!texts.is_empty() && shown * 2 >= texts.len())
        }
    }
}

/// Whether it is a list or an object without anything in it, which says nothing.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// Whether every line stands in the picture. How a diff says which files and lines it is about differs.
fn shows_text(text: &str, picture: &str) -> bool {
    let header = |line: &str| ["--- ", "+++ ", "@@ "].iter().any(|mark| line.starts_with(mark));
    text.lines().filter(|line| !header(line)).all(|line| picture.contains(line.trim()))
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect_texts(member, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[track_caller]
    fn check(payload: Value, picture: Option<&str>, expected: &str) {
        assert_eq!(readable(&object(payload), picture), expected);
    }

    #[test]
    fn what_the_picture_leaves_out_follows() {
        check(
            json!({"path": "a.txt", "content": "one\ntwo\n", "truncated": true, "next_offset": 3}),
            Some("one\ntwo"),
            "one\ntwo\n\n{\"next_offset\":3,\"path\":\"a.txt\",\"truncated\":true}",
        );
        check(json!({"content": "all", "errors": []}), Some("all"), "all");
    }

    #[test]
    fn notes_are_read_as_such() {
        check(
            json!({"paths": ["a"], "notes": ["\"5\" was read as 5"]}),
            Some("path\na"),
            "path\na\n\nnote: \"5\" was read as 5",
        );
    }

    #[test]
    fn lists_are_shown_by_their_texts() {
        let picture = "src/a.rs\n     3: let a = 1;";
        let hits = json!([{"path": "src/a.rs", "line": 3, "text": "let a = 1;"}]);
        check(
            json!({"matches": hits, "total_matches": 1}),
            Some(picture),
            &format!("{picture}\n\n{{\"total_matches\":1}}"),
        );
        let survivors = json!([{"pid": 7, "command": "sleep 9"}]);
        check(
            json!({"survivors": survivors}),
            Some("done"),
            "done\n\n{\"survivors\":[{\"command\":\"sleep 9\",\"pid\":7}]}",
        );
    }

    #[test]
    fn a_diff_is_not_repeated() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        check(json!({"diff": diff}), Some("@@ -1,1 +1,1 @@\n-a\n+b"), "@@ -1,1 +1,1 @@\n-a\n+b");
    }

    #[test]
    fn without_a_picture_it_is_json() {
        check(json!({"a": 1}), None, "{\"a\":1}");
        check(json!({"a": 1}), Some(""), "{\"a\":1}");
        check(json!({"a": 1}), Some("{\n  \"a\": 1\n}"), "{\"a\":1}");
    }

    #[test]
    fn an_image_is_taken_out_and_other_media_stay() {
        let mut payload =
            object(json!({"path": "a.png", "media": {"mime_type": "image/png", "data_base64": "AA=="}}));
        let image = Image { mime_type: "image/png".to_owned(), data: "AA==".to_owned() };
        assert_eq!(take_image(&mut payload), Some(image));
        assert_eq!(Value::Object(payload), json!({"path": "a.png", "media": {"mime_type": "image/png"}}));
        let mut sound = object(json!({"media": {"mime_type": "audio/wav", "data_base64": "AA=="}}));
        assert_eq!(take_image(&mut sound), None);
        assert!(sound["media"].get("data_base64").is_some());
    }
}
