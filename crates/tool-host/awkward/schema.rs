//! What the awkward provider declares.

use std::collections::BTreeMap;

use harness_proto::config::v1 as config;
use harness_proto::schema::v1::{Schema, SchemaType};
use harness_proto::tool::v1 as pb;

fn node(r#type: SchemaType) -> Schema {
    Schema { r#type: r#type.into(), description: "A value.".into(), ..Schema::default() }
}

fn object(properties: &[(&str, SchemaType)], required: &[&str]) -> Schema {
    let properties: BTreeMap<_, _> =
        properties.iter().map(|(name, kind)| ((*name).to_owned(), node(*kind))).collect();
    let required = required.iter().map(|name| (*name).to_owned()).collect();
    Schema { properties, required, ..node(SchemaType::Object) }
}

fn tool(name: &str, kind: pb::ToolKind, keys: Option<&[&str]>) -> pb::ToolSchema {
    let input = object(
        &[("path", SchemaType::String), ("wait_for", SchemaType::Number), ("hold_ms", SchemaType::Number)],
        &[],
    );
    let concurrency = pb::ConcurrencySpec {
        safe: keys.is_some(),
        key_fields: keys.unwrap_or_default().iter().map(|key| (*key).to_owned()).collect(),
    };
    pb::ToolSchema {
        name: name.into(),
        kind: kind.into(),
        risk: if kind == pb::ToolKind::Resource { pb::RiskClass::High } else { pb::RiskClass::ReadOnly }
            .into(),
        description: format!("Behaves as {name}. Not for real use."),
        input_schema: Some(input),
        output_schema: Some(object(&[("text", SchemaType::String), ("note", SchemaType::String)], &["text"])),
        streaming: true,
        concurrency: (kind != pb::ToolKind::Interactive).then_some(concurrency),
        ..pb::ToolSchema::default()
    }
}

/// Everything.
pub(crate) fn all() -> pb::GetSchemaResponse {
    use pb::ToolKind::{DataSource, Interactive, Resource, Unspecified};
    let shared: Option<&[&str]> = Some(&[]);
    let wrong = [
        "no_terminal",
        "two_terminals",
        "chunk_after_terminal",
        "null_field",
        "missing_field",
        "no_payload",
        "crash",
        "status",
        "claims_crash",
        "hang",
        "stubborn",
        "polite",
        "events",
        "callbacks",
        "fail",
        "fine",
        "picture",
        "environment",
    ];
    let mut tools: Vec<_> = wrong.iter().map(|name| tool(name, DataSource, shared)).collect();
    tools.push(tool("enter_shared", DataSource, shared));
    tools.push(tool("enter_keyed", DataSource, Some(&["path"])));
    tools.push(tool("enter_alone", DataSource, None));
    tools.push(tool("change", Resource, shared));
    tools.push(tool("change_unseen", Resource, shared));
    tools.push(tool("fail_preview", Resource, shared));
    tools.push(tool("no_kind", Unspecified, shared));
    tools.push(tool("fine", DataSource, shared));
    let mut ask = tool("ask", Interactive, shared);
    ask.input_schema =
        Some(object(&[("question", SchemaType::String), ("options", SchemaType::Array)], &["question"]));
    ask.output_schema = Some(object(&[("answer", SchemaType::String)], &["answer"]));
    tools.push(ask);
    let attribute = |name: &str, kind: config::AttrType| config::ConfigAttribute {
        name: name.into(),
        r#type: kind.into(),
        description: "An attribute.".into(),
        ..config::ConfigAttribute::default()
    };
    let attributes = vec![
        attribute("root", config::AttrType::String),
        attribute("refuse", config::AttrType::Bool),
        attribute("limit", config::AttrType::Number),
    ];
    pb::GetSchemaResponse {
        tools,
        config_schema: Some(config::ConfigSchema { attributes }),
        ..pb::GetSchemaResponse::default()
    }
}
