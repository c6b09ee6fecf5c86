//! What a plugin lists, as the host knows tools.

use serde_json::{Value, json};
use tool_host::source::{Annotations, SourceTool};

/// The longest name of a tool.
const LONGEST_NAME: usize = 64;
/// Tools that one plugin can have.
const MOST_TOOLS: usize = 1_000;
/// The scope of tools for work on plugins.
const PLUGINS_WORKSPACE: &str = "plugins-workspace";

/// The tools of an answer to `tools/list`, and what is wrong with those that are left out. `in_plugins_workspace`: whether
/// the session is one for working on plugins, which some tools are for.
pub fn listed(answer: &Value, in_plugins_workspace: bool) -> (Vec<SourceTool>, Vec<String>) {
    let (mut tools, mut warnings) = (Vec::<SourceTool>::new(), Vec::new());
    let Some(entries) = answer.get("tools").and_then(Value::as_array) else {
        return (tools, vec!["its answer to tools/list has no list of tools".to_owned()]);
    };
    if entries.len() > MOST_TOOLS {
        warnings.push(format!("it lists {} tools; the first {MOST_TOOLS} count", entries.len()));
    }
    for entry in entries.iter().take(MOST_TOOLS) {
        match tool(entry, in_plugins_workspace) {
            Ok(Some(tool)) if tools.iter().any(|known| known.name == tool.name) => {
                warnings.push(format!("the tool {} is listed twice; the first counts", tool.name));
            }
            Ok(Some(tool)) => tools.push(tool),
            Ok(None) => {}
            Err(why) => warnings.push(why),
        }
    }
    (tools, warnings)
}

/// `None` for a tool that is for other sessions.
fn tool(entry: &Value, in_plugins_workspace: bool) -> Result<Option<SourceTool>, String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").ok_or("a tool without a name is left out")?;
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-';
    if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(fits) {
        return Err(format!(
            "the tool {name:?} is left out: a name has 1 to {LONGEST_NAME} letters, digits, _ or -"
        ));
    }
    let left_out = |why: &str| format!("the tool {name} is left out: {why}");
    match entry.get("scope") {
        None | Some(Value::Null) => {}
        Some(Value::String(scope)) if scope == PLUGINS_WORKSPACE => {
            if !in_plugins_workspace {
                return Ok(None);
            }
        }
        Some(scope) => return Err(left_out(&format!("its scope {scope} is not known here"))),
    }
    let input_schema = input_schema(entry.get("inputSchema")).map_err(left_out)?;
    let output_schema = match entry.get("outputSchema") {
        None | Some(Value::Null) => None,
        Some(schema) if schema.is_object() => Some(schema.clone()),
        Some(_) => return Err(left_out("its outputSchema is no object")),
    };
    let annotations = entry.get("annotations").filter(|value| !value.is_null()).cloned();
    let annotations: Annotations = annotations
        .map_or_else(|| Ok(Annotations::default()), serde_json::from_value)
        .map_err(|error| left_out(&format!("its annotations are wrong: {error}")))?;
    let title = text("title");
    let description = text("description").unwrap_or_default();
    Ok(Some(SourceTool { name, title, description, input_schema, output_schema, annotations }))
}

/// An object schema with properties; without one a tool takes the empty object.
fn input_schema(schema: Option<&Value>) -> Result<Value, &'static str> {
    match schema {
        None | Some(Value::Null) => Ok(json!({"type": "object", "properties": {}})),
        Some(Value::Object(given)) => {
            if given.get("type").is_some_and(|kind| kind != "object") {
                return Err("its inputSchema is no schema of an object");
            }
            let mut schema = given.clone();
            schema.entry("type").or_insert_with(|| "object".into());
            schema.entry("properties").or_insert_with(|| json!({}));
            Ok(Value::Object(schema))
        }
        Some(_) => Err("its inputSchema is no object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of what is offered, and the warnings.
    #[track_caller]
    fn check(tools: Value, in_plugins_workspace: bool, names: &[&str], warnings: &[&str]) {
        let (got, told) = listed(&json!({ "tools": tools }), in_plugins_workspace);
        let got: Vec<&str> = got.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            (got.as_slice(), told.iter().map(String::as_str).collect::<Vec<_>>().as_slice()),
            (names, warnings)
        );
    }

    #[test]
    fn a_tool_without_a_schema_takes_the_empty_object() {
        let (tools, warnings) =
            listed(&json!({"tools": [{"name": "a", "description": "d", "title": "A"}]}), false);
        assert_eq!(warnings, [""; 0]);
        assert_eq!(tools[0].input_schema, json!({"type": "object", "properties": {}}));
        assert_eq!((tools[0].output_schema.as_ref(), tools[0].title.as_deref()), (None, Some("A")));
    }

    #[test]
    fn tools_for_work_on_plugins_are_there_only() {
        let tools = json!([{"name": "a"}, {"name": "b", "scope": "plugins-workspace"}]);
        check(tools.clone(), false, &["a"], &[]);
        check(tools, true, &["a", "b"], &[]);
        let unknown = json!([{"name": "b", "scope": "moon"}]);
        check(unknown, true, &[], &["the tool b is left out: its scope \"moon\" is not known here"]);
    }

    #[test]
    fn what_is_no_tool_is_left_out_and_told() {
        check(
            json!([{"name": "a.b"}, {}, {"name": "x"}, {"name": "x"}, {"name": "y", "inputSchema": {"type": "string"}}]),
            false,
            &["x"],
            &[
                "the tool \"a.b\" is left out: a name has 1 to 64 letters, digits, _ or -",
                "a tool without a name is left out",
                "the tool x is listed twice; the first counts",
                "the tool y is left out: its inputSchema is no schema of an object",
            ],
        );
        let (tools, warnings) = listed(&json!([]), false);
        assert_eq!((tools.len(), warnings.len()), (0, 1));
    }
}
