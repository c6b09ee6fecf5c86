use serde_json::{Value, json};
use tool_host::catalogue::dump;

use crate::change::{Effect, Rule};
use crate::{Declaration, compare};

/// A provider that has one of everything.
fn full() -> Value {
    json!({
        "format_version": "1.0",
        "provider": {
            "name": "notes", "version": "1.0.0", "source": "example.org/notes", "category": "tool", "protocol_version": 1,
        },
        "tools": [
            {
                "name": "add", "kind": "resource", "risk": "moderate", "description": "Adds.", "streaming": true,
                "idempotent": false, "terminates_turn": false, "default_timeout_ms": 60000,
                "concurrency": {"safe": true, "key_fields": ["text"]},
                "input_schema": {
                    "type": "object", "required": ["text"], "properties": {
                        "text": {"type": "string", "description": "The note."},
                        "color": {"type": "string", "enum": ["red", "blue"]},
                        "tags": {"type": "array", "items": {"type": "string"}},
                        "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": []},
                        "pinned": {"type": "boolean"},
                        "rows": {"type": "array"},
                        "extra": {},
                    },
                },
                "output_schema": {
                    "type": "object", "required": ["id"], "properties": {
                        "id": {"type": "string"},
                        "state": {"type": "string", "enum": ["new", "old"]},
                        "extra": {},
                    },
                },
            },
            {
                "name": "ask", "kind": "interactive", "risk": "read_only", "description": "Asks.", "streaming": false,
                "idempotent": true, "terminates_turn": false,
                "input_schema": {"type": "object", "properties": {}, "required": []},
                "output_schema": {"type": "object", "properties": {}, "required": []},
            },
        ],
        "config": [
            {"name": "folder", "type": "string", "required": true, "sensitive": false, "description": "Where."},
            {"name": "limit", "type": "number", "required": false, "sensitive": false, "description": "", "default": 5},
            {"name": "key", "type": "string", "required": false, "sensitive": true, "description": ""},
            {"name": "deny", "type": "list_of_strings", "required": false, "sensitive": false, "description": ""},
            {"name": "env", "type": "map_of_strings", "required": false, "sensitive": false, "description": ""},
            {"name": "proxy", "type": "object", "required": false, "sensitive": false, "description": "", "attributes": [
                {"name": "url", "type": "string", "required": true, "sensitive": false, "description": ""},
            ]},
        ],
        "hook_points": ["pre-tool-call"],
        "slash_commands": [{"name": "note", "description": "Adds a note", "template": "Note {text}"}],
    })
}

fn read(document: &Value) -> Declaration {
    Declaration::from_json(&document.to_string()).unwrap()
}

/// Sets what `pointer` leads to; null takes it away, the last name may be new.
fn set(document: &mut Value, pointer: &str, value: Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.remove(last).unwrap()),
        Value::Object(map) => drop(map.insert(last.to_owned(), value)),
        Value::Array(list) if value.is_null() => drop(list.remove(last.parse().unwrap())),
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => list[last.parse::<usize>().unwrap()] = value,
        other => panic!("{parent} is {other}"),
    }
}

/// Makes one change to the full provider and wants exactly these rules and sentences of it.
#[track_caller]
fn check(pointer: &str, value: Value, expected: &[&str]) {
    let (old, mut new) = (full(), full());
    set(&mut new, pointer, value);
    let changes = compare(&read(&old), &read(&new));
    let line =
        |change: &crate::Change| format!("{} {}: {change}", change.rule.effect(), change.rule.as_str());
    assert_eq!(changes.iter().map(line).collect::<Vec<_>>(), expected);
}

/// A tool without arguments.
fn plain_tool(name: &str) -> Value {
    json!({"name": name, "kind": "data_source", "risk": "read_only", "input_schema": {}, "output_schema": {}})
}

#[test]
fn a_declaration_equals_itself_also_through_json() {
    let declaration = read(&full());
    assert_eq!(compare(&declaration, &declaration), []);
    let written = dump(&declaration.identity, &declaration.catalogue);
    assert_eq!(read(&written), declaration);
}

#[test]
fn another_version_is_no_change() {
    check("/provider/version", json!("2.0.0"), &[]);
}

#[test]
fn identity() {
    check(
        "/provider/name",
        json!("memos"),
        &["breaking provider_renamed: provider: its name was notes and is memos"],
    );
    check(
        "/provider/source",
        json!("example.org/memos"),
        &["breaking source_changed: provider: its source was example.org/notes and is example.org/memos"],
    );
    check(
        "/provider/protocol_version",
        json!(2),
        &["breaking protocol_changed: provider: its protocol version was 1 and is 2"],
    );
}

#[test]
fn tools_come_and_go() {
    check("/tools/1", Value::Null, &["breaking tool_removed: ask: the tool is gone"]);
    check(
        "/tools/-",
        plain_tool("list"),
        &["compatible tool_added: list: the tool is new: data_source, risk read_only"],
    );
}

#[test]
fn a_renamed_tool_is_gone_and_new_and_the_breaking_half_comes_first() {
    check(
        "/tools/1/name",
        json!("ask_user"),
        &[
            "breaking tool_removed: ask: the tool is gone",
            "compatible tool_added: ask_user: the tool is new: interactive, risk read_only",
        ],
    );
}

#[test]
fn kind_and_risk() {
    check(
        "/tools/0/kind",
        json!("data_source"),
        &["breaking kind_changed: add: it was a resource and is a data_source"],
    );
    check(
        "/tools/0/risk",
        json!("high"),
        &["breaking risk_raised: add: its risk was raised from moderate to high"],
    );
    check(
        "/tools/0/risk",
        json!("low"),
        &["compatible risk_lowered: add: its risk was lowered from moderate to low"],
    );
    check(
        "/tools/0/risk",
        json!("unspecified"),
        &["breaking risk_raised: add: its risk was raised from moderate to unspecified"],
    );
}

#[test]
fn promises_about_calls() {
    check(
        "/tools/0/streaming",
        json!(false),
        &["compatible streaming_stopped: add: only its outcome comes now"],
    );
    check(
        "/tools/1/streaming",
        json!(true),
        &["breaking streaming_started: ask: events may come before its outcome now"],
    );
    check(
        "/tools/0/idempotent",
        json!(true),
        &["compatible idempotence_gained: add: repeating a call is the same as making it once now"],
    );
    check(
        "/tools/1/idempotent",
        json!(false),
        &["breaking idempotence_lost: ask: repeating a call is no longer the same as making it once"],
    );
    check("/tools/0/terminates_turn", json!(true), &["breaking turn_end_changed: add: it ends the turn now"]);
    check(
        "/tools/0/concurrency/key_fields",
        json!([]),
        &["compatible concurrency_changed: add: it ran one at a time per text and runs beside others"],
    );
    check(
        "/tools/0/concurrency/safe",
        json!(false),
        &["compatible concurrency_changed: add: it ran one at a time per text and runs alone"],
    );
}

#[test]
fn time_limits_and_the_hosts_own_where_none_is_declared() {
    check(
        "/tools/0/default_timeout_ms",
        json!(1500),
        &["breaking timeout_shortened: add: its time limit was 60s and is 1.5s"],
    );
    check(
        "/tools/0/default_timeout_ms",
        Value::Null,
        &["breaking timeout_shortened: add: its time limit was 60s and is 30s"],
    );
    check(
        "/tools/0/default_timeout_ms",
        json!(90_000),
        &["compatible timeout_extended: add: its time limit was 60s and is 90s"],
    );
    check("/tools/1/default_timeout_ms", json!(30_000), &[]);
}

const INPUT: &str = "/tools/0/input_schema/properties";
const OUTPUT: &str = "/tools/0/output_schema/properties";

#[test]
fn arguments_come_and_go() {
    check(
        &format!("{INPUT}/pinned"),
        Value::Null,
        &["breaking argument_removed: add: the argument pinned is gone"],
    );
    check(
        &format!("{INPUT}/size"),
        json!({"type": "number"}),
        &["compatible argument_added: add: the argument size is new"],
    );
    check(
        "/tools/0/input_schema/required",
        json!(["text", "pinned"]),
        &["breaking argument_made_required: add: the argument pinned is required now"],
    );
    check(
        "/tools/0/input_schema/required",
        json!([]),
        &["compatible argument_made_optional: add: the argument text can be left out now"],
    );
    check(
        "/tools/1/input_schema",
        json!({"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}),
        &["breaking required_argument_added: ask: the required argument question is new"],
    );
}

#[test]
fn arguments_that_accept_less_break_and_those_that_accept_more_do_not() {
    check(
        &format!("{INPUT}/pinned"),
        json!({"type": "string"}),
        &["breaking argument_type_changed: add: the argument pinned was boolean and is string"],
    );
    check(
        &format!("{INPUT}/pinned"),
        json!({}),
        &["compatible argument_widened: add: the argument pinned was boolean and is any value"],
    );
    check(
        &format!("{INPUT}/extra"),
        json!({"type": "number"}),
        &["breaking argument_narrowed: add: the argument extra was any value and is number"],
    );
    check(
        &format!("{INPUT}/rows"),
        json!({"type": "array", "items": {"type": "number"}}),
        &["breaking argument_narrowed: add: the argument rows was array and is array of numbers"],
    );
    check(
        &format!("{INPUT}/tags/items"),
        Value::Null,
        &["compatible argument_widened: add: the argument tags was array of strings and is array"],
    );
}

#[test]
fn closed_sets_of_arguments() {
    check(
        &format!("{INPUT}/color/enum"),
        json!(["red", "green"]),
        &[
            "breaking argument_value_removed: add: the argument color has no value \"blue\" any more",
            "compatible argument_value_added: add: the argument color has the new value \"green\"",
        ],
    );
    check(
        &format!("{INPUT}/color/enum"),
        Value::Null,
        &["compatible argument_widened: add: the argument color was \"red\" | \"blue\" and is string"],
    );
    check(
        &format!("{INPUT}/text/enum"),
        json!(["a"]),
        &["breaking argument_narrowed: add: the argument text was string and is \"a\""],
    );
    check(&format!("{INPUT}/color/enum"), json!(["blue", "red"]), &[]);
}

#[test]
fn changes_inside_lists_and_objects_are_found_at_their_place() {
    check(
        &format!("{INPUT}/tags/items/type"),
        json!("number"),
        &["breaking argument_type_changed: add: the argument tags[] was string and is number"],
    );
    check(
        &format!("{INPUT}/place/required"),
        json!(["x"]),
        &["breaking argument_made_required: add: the argument place.x is required now"],
    );
}

#[test]
fn results_mirror_arguments() {
    check(
        &format!("{OUTPUT}/state"),
        Value::Null,
        &["breaking result_field_removed: add: the result field state is gone"],
    );
    check(
        &format!("{OUTPUT}/size"),
        json!({"type": "number"}),
        &["compatible result_field_added: add: the result field size is new"],
    );
    check(
        "/tools/0/output_schema/required",
        json!([]),
        &["breaking result_field_made_optional: add: the result field id can be missing now"],
    );
    check(
        "/tools/0/output_schema/required",
        json!(["id", "state"]),
        &["compatible result_field_made_required: add: the result field state is always there now"],
    );
    check(
        &format!("{OUTPUT}/id/type"),
        json!("number"),
        &["breaking result_type_changed: add: the result field id was string and is number"],
    );
    check(
        &format!("{OUTPUT}/id"),
        json!({}),
        &["breaking result_widened: add: the result field id was string and is any value"],
    );
    check(
        &format!("{OUTPUT}/extra"),
        json!({"type": "string"}),
        &["compatible result_narrowed: add: the result field extra was any value and is string"],
    );
    check(
        &format!("{OUTPUT}/state/enum"),
        json!(["new", "gone"]),
        &[
            "breaking result_value_added: add: the result field state has the new value \"gone\"",
            "compatible result_value_removed: add: the result field state has no value \"old\" any more",
        ],
    );
}

#[test]
fn texts() {
    check(
        "/tools/0/description",
        json!("Adds it."),
        &["compatible description_changed: add: its description changed"],
    );
    check(
        &format!("{INPUT}/text/description"),
        json!("A note."),
        &["compatible description_changed: add: the argument text has another description"],
    );
    check(
        "/config/0/description",
        json!("Where to."),
        &["compatible description_changed: configuration: folder has another description"],
    );
    check(
        "/slash_commands/0/description",
        json!("x"),
        &["compatible description_changed: commands: /note has another description"],
    );
}

#[test]
fn configuration() {
    let attribute = |name: &str, required: bool| json!({"name": name, "type": "string", "required": required, "sensitive": false});
    check(
        "/config/1",
        Value::Null,
        &["breaking attribute_removed: configuration: the attribute limit is gone"],
    );
    check(
        "/config/-",
        attribute("x", false),
        &["compatible attribute_added: configuration: the attribute x is new"],
    );
    check(
        "/config/-",
        attribute("x", true),
        &["breaking required_attribute_added: configuration: the required attribute x is new"],
    );
    check(
        "/config/2/required",
        json!(true),
        &["breaking attribute_made_required: configuration: key is required now"],
    );
    check(
        "/config/0/required",
        json!(false),
        &["compatible attribute_made_optional: configuration: folder can be left out now"],
    );
    check(
        "/config/3/type",
        json!("list_of_numbers"),
        &[
            "breaking attribute_type_changed: configuration: deny was a list of strings and is a list of numbers",
        ],
    );
    check(
        "/config/1/default",
        json!(6),
        &["breaking default_changed: configuration: limit is 6 when left out, and was 5"],
    );
    check(
        "/config/1/default",
        Value::Null,
        &["breaking default_changed: configuration: limit is nothing when left out, and was 5"],
    );
    check(
        "/config/0/sensitive",
        json!(true),
        &[
            "breaking made_sensitive: configuration: folder is a secret now, so a configuration must write it as env(\"NAME\")",
        ],
    );
    check(
        "/config/2/sensitive",
        json!(false),
        &["compatible made_plain: configuration: key is no longer a secret"],
    );
    check(
        "/config/5/attributes/0/required",
        json!(false),
        &["compatible attribute_made_optional: configuration: proxy.url can be left out now"],
    );
}

#[test]
fn hooks_and_commands() {
    check(
        "/hook_points/0",
        Value::Null,
        &["breaking hook_removed: hooks: pre-tool-call is no longer supported"],
    );
    check(
        "/hook_points/-",
        json!("plan-ready"),
        &["compatible hook_added: hooks: plan-ready is supported now"],
    );
    check("/slash_commands/0", Value::Null, &["breaking command_removed: commands: /note is gone"]);
    check(
        "/slash_commands/-",
        json!({"name": "memo"}),
        &["compatible command_added: commands: /memo is new"],
    );
    check(
        "/slash_commands/0/template",
        json!("x"),
        &["compatible command_changed: commands: /note expands to another text"],
    );
}

#[test]
fn every_rule_has_its_own_name_and_a_check_above() {
    let tests = include_str!("tests.rs");
    for rule in Rule::ALL {
        assert_eq!(Rule::ALL.iter().filter(|other| other.as_str() == rule.as_str()).count(), 1, "{rule:?}");
        let checked = format!("\"{} {}: ", rule.effect(), rule.as_str());
        assert!(tests.contains(&checked), "no check for {}", rule.as_str());
    }
    assert!(Effect::Breaking < Effect::Compatible);
}
