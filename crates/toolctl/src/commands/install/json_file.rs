//! JSON files of others, changed where they are to be changed and nowhere else: comments, order and spelling stay.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value};

/// A document that can be changed in place.
pub(super) struct JsonFile {
    root: CstRootNode,
    /// The byte order mark that stood in front of it.
    mark: &'static str,
}

const MARK: &str = "\u{feff}";

impl JsonFile {
    /// Reads a document: JSON, perhaps with comments and trailing commas. Nothing at all is an empty object.
    ///
    /// # Errors
    /// It is no such document, or no object.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mark, text) = text.strip_prefix(MARK).map_or(("", text), |rest| (MARK, rest));
        let text = if text.trim().is_empty() { "{\n}\n" } else { text };
        let options = ParseOptions {
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            ..ParseOptions::default()
        };
        let root = CstRootNode::parse(text, &options).map_err(|error| format!("it is not JSON: {error}"))?;
        if root.object_value().is_none() {
            return Err("it is no JSON object".to_owned());
        }
        Ok(Self { root, mark })
    }

    /// The document as text; `None` where nothing is left in it.
    pub(super) fn finish(self) -> Option<String> {
        let text = self.root.to_string();
        let empty = text.split_whitespace().collect::<String>() == "{}";
        (!empty).then(|| format!("{}{text}", self.mark))
    }

    /// Gives the member behind these names the value, with the objects on the way.
    ///
    /// # Errors
    /// Something on the way is there and no object.
    pub(super) fn set(&self, names: &[&str], value: &Value) -> Result<(), String> {
        let Some((last, way)) = names.split_last() else { return Ok(()) };
        let object = self.object(way)?;
        match object.get(last) {
            Some(member) if member.to_serde_value().as_ref() == Some(value) => {}
            Some(member) => member.set_value(input(value)),
            None => {
                object.append(last, input(value));
            }
        }
        Ok(())
    }

    /// Takes the member behind these names away, and objects that have nothing else.
    pub(super) fn remove(&self, names: &[&str]) {
        let Some((last, way)) = names.split_last() else { return };
        let Some(object) = self.existing(way) else { return };
        if let Some(member) = object.get(last) {
            member.remove();
            self.prune(way);
        }
    }

    /// Sees to it that the list behind these names has exactly one of the values for which `is_ours` holds, and that it is
    /// this one.
    ///
    /// # Errors
    /// Something on the way is there and no object, or what is there is no list.
    pub(super) fn put_in_list(
        &self,
        names: &[&str],
        value: &Value,
        is_ours: impl Fn(&Value) -> bool,
    ) -> Result<(), String> {
        let Some((last, way)) = names.split_last() else { return Ok(()) };
        let object = self.object(way)?;
        let Some(list) = object.array_value_or_create(last) else {
            return Err(format!("{} is no list", names.join(".")));
        };
        let mut ours = ours(list.elements(), is_ours).into_iter();
        match ours.next() {
            None => {
                list.append(input(value));
            }
            Some(first) => {
                if first.to_serde_value().as_ref() != Some(value) {
                    replace(first, value);
                }
                ours.for_each(CstNode::remove);
            }
        }
        Ok(())
    }

    /// Takes what is ours out of the list behind these names, and with it what has nothing else.
    pub(super) fn take_from_list(&self, names: &[&str], is_ours: impl Fn(&Value) -> bool) {
        let Some((last, way)) = names.split_last() else { return };
        let Some(list) = self.existing(way).and_then(|object| object.array_value(last)) else { return };
        let ours = ours(list.elements(), is_ours);
        if ours.is_empty() {
            return;
        }
        ours.into_iter().for_each(CstNode::remove);
        if list.elements().is_empty()
            && let Some(member) = self.existing(way).and_then(|object| object.get(last))
        {
            member.remove();
            self.prune(way);
        }
    }

    fn object(&self, way: &[&str]) -> Result<CstObject, String> {
        let mut object = self.root.object_value_or_set();
        for (depth, name) in way.iter().enumerate() {
            object = object
                .object_value_or_create(name)
                .ok_or_else(|| format!("{} is no object", way[..=depth].join(".")))?;
        }
        Ok(object)
    }

    fn existing(&self, way: &[&str]) -> Option<CstObject> {
        way.iter().try_fold(self.root.object_value()?, |object, name| object.object_value(name))
    }

    /// Takes away the objects on the way that have become empty.
    fn prune(&self, way: &[&str]) {
        for depth in (1..=way.len()).rev() {
            let Some(object) = self.existing(&way[..depth]) else { return };
            // Comments are somebody's too.
            if object.children().iter().any(|child| child.is_comment()) || !object.properties().is_empty() {
                return;
            }
            if let Some(member) =
                self.existing(&way[..depth - 1]).and_then(|parent| parent.get(way[depth - 1]))
            {
                member.remove();
            }
        }
    }
}

fn ours(elements: Vec<CstNode>, is_ours: impl Fn(&Value) -> bool) -> Vec<CstNode> {
    elements.into_iter().filter(|node| node.to_serde_value().is_some_and(|value| is_ours(&value))).collect()
}

fn replace(node: CstNode, value: &Value) {
    if let Some(object) = node.as_object() {
        object.replace_with(input(value));
    } else if let Some(text) = node.as_string_lit() {
        text.replace_with(input(value));
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(pairs(members)),
    }
}

fn pairs(members: &Map<String, Value>) -> Vec<(String, CstInputValue)> {
    members.iter().map(|(name, value)| (name.clone(), input(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server() -> Value {
        json!({"type": "stdio", "command": "toolctl", "args": ["mcp"]})
    }

    fn put(text: &str) -> String {
        let file = JsonFile::parse(text).unwrap();
        file.set(&["mcpServers", "toolctl"], &server()).unwrap();
        file.put_in_list(&["instructions"], &json!("ours.md"), |value| *value == "ours.md").unwrap();
        file.finish().unwrap()
    }

    fn take(text: &str) -> Option<String> {
        let file = JsonFile::parse(text).unwrap();
        file.remove(&["mcpServers", "toolctl"]);
        file.take_from_list(&["instructions"], |value| *value == "ours.md");
        file.finish()
    }

    /// Put in twice it is the same, it says what it should, and taken out again it is what it was, byte for byte.
    #[track_caller]
    fn check(text: &str) {
        let with = put(text);
        assert_eq!(put(&with), with, "twice");
        let file = JsonFile::parse(&with).unwrap();
        let value = file.root.to_serde_value().unwrap();
        assert_eq!(value["mcpServers"]["toolctl"], server(), "{with}");
        assert!(value["instructions"].as_array().unwrap().contains(&json!("ours.md")), "{with}");
        assert_eq!(take(&with).unwrap_or_default(), text, "taken out of {with}");
    }

    #[test]
    fn foreign_members_and_comments_stay_byte_for_byte() {
        check("");
        check("{\n  // mine\n  \"a\": 1, /* odd */\n  \"b\":   [1,2 ,3]\n}\n");
        check("{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"} // theirs\n\t}\n}\n");
        check("{\n  \"instructions\": [\n    \"theirs.md\"\n  ],\n  \"z\": {}\n}");
        check("\u{feff}{\r\n  \"a\": \"\\u00e9\"\r\n}\r\n");
        check("// head\n{\n  \"a\": 1\n}\n// tail\n");
        check("{\n  \"a\": 1,\n}\n");
    }

    #[test]
    fn an_entry_that_is_other_is_replaced_and_keeps_its_place() {
        let text = "{\n  \"mcpServers\": {\n    \"toolctl\": {\"command\": \"old\"},\n    \"z\": 1\n  }\n}\n";
        let with = put(text);
        let value: Value = JsonFile::parse(&with).unwrap().root.to_serde_value().unwrap();
        assert_eq!(value["mcpServers"]["toolctl"], server());
        assert!(with.find("toolctl").unwrap() < with.find("\"z\"").unwrap());
    }

    #[test]
    fn what_is_not_as_it_should_be_is_left_alone() {
        for (text, why) in
            [("[]", "it is no JSON object"), ("{\"mcpServers\": []}", "mcpServers is no object")]
        {
            let set = JsonFile::parse(text).and_then(|file| file.set(&["mcpServers", "toolctl"], &server()));
            assert_eq!(set, Err(why.to_owned()));
        }
        let file = JsonFile::parse("{\"instructions\": \"x\"}").unwrap();
        let put = file.put_in_list(&["instructions"], &json!("y"), |_| false);
        assert_eq!(put, Err("instructions is no list".to_owned()));
        assert!(JsonFile::parse("{\"a\": }").is_err());
        assert!(JsonFile::parse("{'a': 1}").is_err());
    }

    #[test]
    fn what_is_not_there_cannot_be_taken() {
        let text = "{\"mcpServers\": {}, \"instructions\": []}\n";
        assert_eq!(take(text).unwrap(), text);
    }
}
