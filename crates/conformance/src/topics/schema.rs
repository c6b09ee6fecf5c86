//! What the provider declares.

use std::collections::BTreeSet;

use harness_proto::config::v1::{AttrType, ConfigAttribute};
use harness_proto::schema::v1::{Schema, SchemaType};
use harness_proto::tool::v1::{GetSchemaResponse, RiskClass, ToolKind, ToolSchema};
use serde_json::Value;

use crate::judge::Judge;
use crate::requirement::requirements;

requirements! {
    ANSWERED = "SCHEMA-01" Must
        "GetSchema is answered before Configure",
        "a GetSchemaResponse with at least one tool";
    NAMES = "SCHEMA-02" Must
        "Every tool has a name of its own",
        "names that are not empty and differ";
    NAME_FORM = "SCHEMA-03" Should
        "Names survive every model vendor",
        "names of a-z, 0-9 and _ only";
    DESCRIPTION = "SCHEMA-04" Must
        "Every tool has a description",
        "a text that is not empty: the model chooses by it";
    KIND = "SCHEMA-05" Must
        "Every tool has a kind",
        "RESOURCE, DATA_SOURCE or INTERACTIVE";
    RISK = "SCHEMA-06" Must
        "The risk fits the kind",
        "READ_ONLY exactly for DATA_SOURCE and INTERACTIVE; LOW to CRITICAL for RESOURCE";
    CONCURRENCY = "SCHEMA-07" Must
        "Concurrency is declared, except for interactive tools",
        "a ConcurrencySpec for RESOURCE and DATA_SOURCE, none for INTERACTIVE";
    KEYS_SAFE = "SCHEMA-08" Must
        "Keys are only declared by tools that are safe",
        "key_fields empty unless safe is true";
    KEYS_KNOWN = "SCHEMA-09" Must
        "Keys are arguments",
        "every key_field among the top-level properties of the input schema, once";
    TIMEOUT_VALID = "SCHEMA-10" Must
        "A declared timeout is a time",
        "a default_timeout above zero";
    TIMEOUT = "SCHEMA-11" Should
        "Every tool that is invoked declares its timeout",
        "default_timeout present for RESOURCE and DATA_SOURCE";
    TERMINATES = "SCHEMA-12" Must
        "Only a resource ends the turn",
        "terminates_turn false for DATA_SOURCE and INTERACTIVE";
    INPUT = "SCHEMA-13" Must
        "Every tool has an input schema",
        "an OBJECT";
    OUTPUT = "SCHEMA-14" Must
        "Every tool has an output schema",
        "an OBJECT: a result's payload is one";
    TYPED = "SCHEMA-15" Must
        "Every node of a schema has a type",
        "no SCHEMA_TYPE_UNSPECIFIED at any depth";
    REQUIRED = "SCHEMA-16" Must
        "What is required is declared",
        "every entry of required among the properties, once";
    ITEMS = "SCHEMA-17" Must
        "Arrays, and only arrays, have items",
        "items present for ARRAY and absent elsewhere";
    PROPERTIES = "SCHEMA-18" Must
        "Only objects have properties",
        "properties and required empty elsewhere";
    ENUM = "SCHEMA-19" Must
        "Only strings have a closed set, and its values differ",
        "enum_values empty elsewhere, without duplicates";
    FIELD_DESCRIPTION = "SCHEMA-20" Should
        "Every argument has a description",
        "a text at every property of the input schema, at any depth";
    ATTRIBUTE_NAMES = "SCHEMA-21" Must
        "Every attribute of the configuration has a name of its own",
        "names that are not empty, differ, and are not environment, which is the kernel's";
    ATTRIBUTE_TYPES = "SCHEMA-22" Must
        "Every attribute has a type, and objects their attributes",
        "no ATTR_TYPE_UNSPECIFIED; object_attributes exactly for OBJECT";
    ATTRIBUTE_DEFAULTS = "SCHEMA-23" Must
        "Defaults are JSON of the attribute's type",
        "default_json that parses to a value of the type, only on attributes that are not required";
    SENSITIVE_DEFAULT = "SCHEMA-24" Must
        "A secret has no default",
        "default_json absent where sensitive is true";
    STABLE = "SCHEMA-25" Must
        "GetSchema is always answered the same",
        "equal answers when asked twenty times, after Configure, and from another process";
    SAME_BYTES = "SCHEMA-26" Should
        "The answer to GetSchema is the same to the byte",
        "equal bytes before and after Configure (a library that writes maps in random order cannot show this)";
    OFFLINE = "SCHEMA-27" Must
        "GetSchema needs no network",
        "the same answer from a process in a network namespace without any connection";
    COMMANDS = "SCHEMA-28" Must
        "Every slash command has a name of its own, a description and a template",
        "names that are not empty, differ and have no slash; texts that are not empty";
    HOOKS = "SCHEMA-29" Must
        "The hook points it advertises are served",
        "known hook points, and an answer other than UNIMPLEMENTED from HookSubscriberService";
}

/// Holds a declaration against the rules that can be read from it.
pub(crate) fn judge(judge: &Judge, schema: &GetSchemaResponse) {
    names(judge, &schema.tools);
    for tool in &schema.tools {
        classification(judge, tool);
        concurrency(judge, tool);
        timeout(judge, tool);
        schemas(judge, tool);
    }
    if let Some(config) = &schema.config_schema {
        let rule = &mut |requirement, finding| judge.rule(requirement, finding);
        attributes("", &config.attributes, rule);
        if !config.attributes.iter().any(|attribute| attribute.default_json.is_some()) {
            judge.unreached(ATTRIBUTE_DEFAULTS, "no attribute has a default");
        }
    }
    if schema.config_schema.as_ref().is_none_or(|config| config.attributes.is_empty()) {
        let none = [ATTRIBUTE_NAMES, ATTRIBUTE_TYPES, ATTRIBUTE_DEFAULTS, SENSITIVE_DEFAULT];
        judge.all_unreached(&none, "it has no configuration");
    }
    commands(judge, schema);
    let none = [KEYS_SAFE, KEYS_KNOWN, TIMEOUT_VALID, TIMEOUT];
    judge.all_unreached(&none, "it has neither a resource nor a data source");
}

fn label(tool: &ToolSchema) -> &str {
    if tool.name.is_empty() { "a tool without a name" } else { &tool.name }
}

fn names(judge: &Judge, tools: &[ToolSchema]) {
    let mut known = BTreeSet::new();
    for tool in tools {
        let name = &tool.name;
        judge.demand(NAMES, !name.is_empty(), || "a tool has no name".to_owned());
        if name.is_empty() {
            continue;
        }
        judge.demand(NAMES, known.insert(name), || format!("{name} is declared twice"));
        let plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        judge.demand(NAME_FORM, plain, || format!("{name:?}"));
    }
}

fn classification(judge: &Judge, tool: &ToolSchema) {
    let name = label(tool);
    let kind = tool.kind();
    judge.demand(DESCRIPTION, !tool.description.trim().is_empty(), || format!("{name} has none"));
    judge.demand(KIND, kind != ToolKind::Unspecified, || format!("{name} has none"));
    judge.demand(TERMINATES, kind == ToolKind::Resource || !tool.terminates_turn, || {
        format!("{name} does and is {}", kind.as_str_name())
    });
    if kind == ToolKind::Unspecified {
        return;
    }
    let risk = tool.risk();
    let fits = match risk {
        RiskClass::Unspecified => false,
        RiskClass::ReadOnly => kind != ToolKind::Resource,
        _ => kind == ToolKind::Resource,
    };
    judge.demand(RISK, fits, || format!("{name} is {} with {}", kind.as_str_name(), risk.as_str_name()));
}

fn concurrency(judge: &Judge, tool: &ToolSchema) {
    let name = label(tool);
    match (&tool.concurrency, tool.kind()) {
        (None, ToolKind::Interactive) => judge.pass(CONCURRENCY),
        (None, ToolKind::Unspecified) => {}
        (None, _) => judge.fail(CONCURRENCY, format!("{name} declares none")),
        (Some(_), ToolKind::Interactive) => {
            judge.fail(CONCURRENCY, format!("{name} is interactive and declares one"));
        }
        (Some(spec), _) => {
            judge.pass(CONCURRENCY);
            let keys = &spec.key_fields;
            judge.demand(KEYS_SAFE, spec.safe || keys.is_empty(), || {
                format!("{name} has the keys {keys:?} and is not safe")
            });
            let properties = tool.input_schema.as_ref().map(|input| &input.properties);
            let mut known = BTreeSet::new();
            for key in keys {
                let declared = properties.is_some_and(|properties| properties.contains_key(key));
                judge.demand(KEYS_KNOWN, declared && known.insert(key), || {
                    format!("{name} has the key {key}, which is no argument of it or is listed twice")
                });
            }
            judge.unreached(KEYS_KNOWN, "no tool declares keys");
        }
    }
}

fn timeout(judge: &Judge, tool: &ToolSchema) {
    let name = label(tool);
    match &tool.default_timeout {
        Some(timeout) => {
            let positive =
                timeout.seconds >= 0 && timeout.nanos >= 0 && timeout.seconds + i64::from(timeout.nanos) > 0;
            judge.demand(TIMEOUT_VALID, positive, || {
                format!("{name} declares {} s and {} ns", timeout.seconds, timeout.nanos)
            });
            judge.pass(TIMEOUT);
        }
        None if tool.kind() == ToolKind::Interactive => {}
        None => judge.fail(TIMEOUT, format!("{name} declares none; hosts then allow 30 s")),
    }
    judge.unreached(TIMEOUT_VALID, "no tool declares a timeout");
}

fn schemas(judge: &Judge, tool: &ToolSchema) {
    let name = label(tool);
    for (requirement, word, schema) in
        [(INPUT, "input", &tool.input_schema), (OUTPUT, "output", &tool.output_schema)]
    {
        let Some(schema) = schema else {
            judge.fail(requirement, format!("{name} has no {word} schema"));
            continue;
        };
        let kind = schema.r#type();
        // A missing type has a rule of its own.
        judge.demand(requirement, matches!(kind, SchemaType::Object | SchemaType::Unspecified), || {
            format!("the {word} schema of {name} is {}", kind.as_str_name())
        });
        node(judge, &format!("{name} {word}"), schema);
        if word == "input" {
            descriptions(judge, name, schema);
        }
    }
}

/// Holds one node and those below it against the rules.
fn node(judge: &Judge, path: &str, schema: &Schema) {
    let kind = schema.r#type();
    judge.demand(TYPED, kind != SchemaType::Unspecified, || format!("{path} has none"));
    if kind != SchemaType::Unspecified {
        let is = |wanted| kind == wanted;
        judge.demand(ITEMS, is(SchemaType::Array) == schema.items.is_some(), || {
            let has = if schema.items.is_some() { "has items" } else { "has no items" };
            format!("{path} is {} and {has}", kind.as_str_name())
        });
        let bare = schema.properties.is_empty() && schema.required.is_empty();
        judge.demand(PROPERTIES, is(SchemaType::Object) || bare, || {
            format!("{path} is {} and has properties", kind.as_str_name())
        });
        let distinct: BTreeSet<_> = schema.enum_values.iter().collect();
        let closed = is(SchemaType::String) || schema.enum_values.is_empty();
        judge.demand(ENUM, closed && distinct.len() == schema.enum_values.len(), || {
            format!("{path} is {} with the values {:?}", kind.as_str_name(), schema.enum_values)
        });
    }
    if schema.r#type() == SchemaType::Object {
        let mut known = BTreeSet::new();
        for name in &schema.required {
            let declared = schema.properties.contains_key(name) && known.insert(name);
            judge.demand(REQUIRED, declared, || {
                format!("{path} requires {name}, which it does not declare or requires twice")
            });
        }
        judge.unreached(REQUIRED, "no schema requires anything");
    }
    for (name, property) in &schema.properties {
        node(judge, &format!("{path}.{name}"), property);
    }
    if let Some(items) = &schema.items {
        node(judge, &format!("{path}[]"), items);
    }
}

fn descriptions(judge: &Judge, path: &str, schema: &Schema) {
    for (name, property) in &schema.properties {
        let path = format!("{path}.{name}");
        judge.demand(FIELD_DESCRIPTION, !property.description.trim().is_empty(), || {
            format!("{path} has none")
        });
        descriptions(judge, &path, property);
    }
    if let Some(items) = &schema.items {
        descriptions(judge, &format!("{path}[]"), items);
    }
    judge.unreached(FIELD_DESCRIPTION, "no tool has arguments");
}

type Rule<'a> = dyn FnMut(&'static crate::Requirement, Result<(), String>) + 'a;

fn attributes(path: &str, attributes_of: &[ConfigAttribute], rule: &mut Rule<'_>) {
    let mut known = BTreeSet::new();
    for attribute in attributes_of {
        let name = format!("{path}{}", attribute.name);
        let usable = !attribute.name.is_empty()
            && (attribute.name != "environment" || !path.is_empty())
            && known.insert(&attribute.name);
        rule(
            ATTRIBUTE_NAMES,
            holds(usable, || format!("{name:?} is empty, kept by the kernel or there twice")),
        );
        let kind = attribute.r#type();
        let nested = !attribute.object_attributes.is_empty();
        let typed = kind != AttrType::Unspecified && (kind == AttrType::Object) == nested;
        rule(
            ATTRIBUTE_TYPES,
            holds(typed, || {
                format!(
                    "{name} is {} with {} attributes",
                    kind.as_str_name(),
                    attribute.object_attributes.len()
                )
            }),
        );
        let default = attribute.default_json.as_ref();
        let secret = attribute.sensitive && default.is_some();
        rule(SENSITIVE_DEFAULT, holds(!secret, || format!("{name} has one")));
        if let Some(text) = default.filter(|_| !attribute.sensitive) {
            let fits = !attribute.required
                && serde_json::from_str(text).is_ok_and(|value: Value| matches_type(&value, kind));
            rule(
                ATTRIBUTE_DEFAULTS,
                holds(fits, || {
                    let required = if attribute.required { " and required" } else { "" };
                    format!("{name} is {}{required} with the default {text}", kind.as_str_name())
                }),
            );
        }
        attributes(&format!("{name}."), &attribute.object_attributes, rule);
    }
}

fn holds(holds: bool, came: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(came()) }
}

/// Whether a value is of an attribute's type.
pub(crate) fn matches_type(value: &Value, kind: AttrType) -> bool {
    let all = |value: &Value, test: fn(&Value) -> bool| {
        value.as_array().is_some_and(|items| items.iter().all(test))
    };
    match kind {
        AttrType::Unspecified => true,
        AttrType::String => value.is_string(),
        AttrType::Number => value.is_number(),
        AttrType::Bool => value.is_boolean(),
        AttrType::ListString => all(value, Value::is_string),
        AttrType::ListNumber => all(value, Value::is_number),
        AttrType::MapString => value.as_object().is_some_and(|map| map.values().all(Value::is_string)),
        AttrType::Object => value.is_object(),
    }
}

fn commands(judge: &Judge, schema: &GetSchemaResponse) {
    let mut known = BTreeSet::new();
    for command in &schema.slash_commands {
        let complete = !command.name.is_empty()
            && !command.name.contains('/')
            && !command.description.is_empty()
            && !command.template.is_empty()
            && known.insert(&command.name);
        judge.demand(COMMANDS, complete, || {
            format!("the command {:?} is incomplete or there twice", command.name)
        });
    }
    judge.unreached(COMMANDS, "it has no slash commands");
}
