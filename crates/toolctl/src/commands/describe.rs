//! `toolctl describe`: a provider or a tool, for people.

use std::time::Duration;

use serde_json::json;
use tool_host::Provider;
use tool_host::catalogue::{Attribute, Concurrency, FORMAT_VERSION, Kind, Tool, dump, tool_json};
use tool_host::schema::{Schema, Shape};

use crate::cli::Describe;
use crate::exit::{Exit, Failure};
use crate::open::Setup;
use crate::paint::{Ink, Look, Table, cell, safe};
use crate::shell::Shell;

pub(super) async fn run(args: Describe, shell: &Shell) -> Result<Exit, Failure> {
    super::verbosity(args.shared.verbose, shell);
    let provider = Setup::new(&args.shared)?.launch(&args.provider, shell).await?;
    let tool = args.tool.as_deref().map(|name| provider.tool(name)).transpose().map_err(Failure::usage)?;
    match (tool, shell.json()) {
        (None, true) => shell.json_document(&dump(provider.identity(), provider.catalogue())),
        (Some(tool), true) => {
            shell.json_document(&json!({
                "format_version": FORMAT_VERSION,
                "provider": provider.identity(),
                "tool": tool_json(tool),
            }));
        }
        (None, false) => shell.data(&provider_text(&provider, shell.out())),
        (Some(tool), false) => shell.data(&tool_text(&args.provider, tool, shell.out())),
    }
    provider.stop().await;
    Ok(Exit::Done)
}

fn provider_text(provider: &Provider, look: Look) -> String {
    let (identity, catalogue) = (provider.identity(), provider.catalogue());
    let name = look.ink(Ink::Bold, &cell(&identity.name));
    let mut text = format!("{name} {}\n{}\n", cell(&identity.version), cell(&identity.source));
    let mut tools = Table::new(&["tool", "kind", "risk", "about"]);
    for tool in &catalogue.tools {
        tools.row(&[tool.name.as_str(), &tool.kind.to_string(), &tool.risk.to_string(), tool.summary()]);
    }
    section(&mut text, "Tools", tools, look);
    if !catalogue.config.is_empty() {
        let mut config = Table::new(&["attribute", "type", "default", "about"]);
        for attribute in &catalogue.config {
            config.row(&attribute_row(attribute));
        }
        section(&mut text, "Configuration", config, look);
    }
    if !catalogue.slash_commands.is_empty() {
        let mut commands = Table::new(&["command", "about"]);
        for command in &catalogue.slash_commands {
            commands.row(&[format!("/{}", command.name), command.description.clone()]);
        }
        section(&mut text, "Slash commands", commands, look);
    }
    if !catalogue.hook_points.is_empty() {
        text.push_str(&format!("\nHooks: {}\n", cell(&catalogue.hook_points.join(", "))));
    }
    text
}

fn attribute_row(attribute: &Attribute) -> [String; 4] {
    let mut kind = attribute.kind.to_string();
    if attribute.sensitive {
        kind.push_str(", secret");
    }
    let default = match (&attribute.default, attribute.required) {
        (_, true) => "required".to_owned(),
        (Some(default), false) => default.to_string(),
        (None, false) => String::new(),
    };
    [attribute.name.clone(), kind, default, attribute.description.clone()]
}

fn tool_text(provider: &str, tool: &Tool, look: Look) -> String {
    let signature = format!("{}({})", tool.name, parameters(&tool.input));
    let mut text = format!("{}\n\n{}\n\n", look.ink(Ink::Bold, &cell(&signature)), safe(&tool.description));
    text.push_str(&format!("{}\n", facts(tool)));
    section(&mut text, "Arguments", fields(&tool.input), look);
    section(&mut text, "Result", fields(&tool.output), look);
    text.push_str(&format!("\n{}\n  {}\n", look.ink(Ink::Bold, "Example"), cell(&example(provider, tool))));
    text
}

/// What can be known before a call, in a line.
fn facts(tool: &Tool) -> String {
    let mut facts = vec![format!("{}, risk {}", tool.kind, tool.risk)];
    if tool.kind != Kind::Interactive {
        facts.push(match &tool.concurrency {
            Concurrency::Exclusive => "runs alone".to_owned(),
            Concurrency::Shared { keys } if keys.is_empty() => "runs beside others".to_owned(),
            Concurrency::Shared { keys } => format!("one at a time per {}", cell(&keys.join(" and "))),
        });
    }
    if let Some(timeout) = tool.timeout {
        facts.push(format!("time limit {}", time(timeout)));
    }
    if tool.idempotent {
        facts.push("can be repeated".to_owned());
    }
    if tool.terminates_turn {
        facts.push("ends the turn".to_owned());
    }
    facts.join("; ")
}

fn time(duration: Duration) -> String {
    format!("{duration:?}")
}

/// Names of an object's properties, the required ones first.
fn ordered(schema: &Schema) -> Vec<(&str, &Schema)> {
    let required = match &schema.shape {
        Shape::Object { required, .. } => required.as_slice(),
        _ => &[],
    };
    let first = required.iter().filter_map(|name| Some((name.as_str(), schema.property(name)?)));
    first.chain(schema.properties().filter(|(name, _)| !schema.requires(name))).collect()
}

fn parameters(schema: &Schema) -> String {
    let parameter = |(name, _): (&str, &Schema)| {
        if schema.requires(name) { name.to_owned() } else { format!("{name}?") }
    };
    ordered(schema).into_iter().map(parameter).collect::<Vec<_>>().join(", ")
}

fn fields(schema: &Schema) -> Table {
    let mut table = Table::new(&["name", "type", "about"]);
    add_fields(&mut table, schema, "");
    table
}

/// One row per property, and below it one per property of what it holds.
fn add_fields(table: &mut Table, schema: &Schema, prefix: &str) {
    for (name, node) in ordered(schema) {
        let mark = if schema.requires(name) { "" } else { "?" };
        let path = format!("{prefix}{name}");
        table.row(&[format!("{path}{mark}"), node.wanted(), node.description.clone()]);
        match &node.shape {
            Shape::Array(Some(items)) => add_fields(table, items, &format!("{path}[].")),
            _ => add_fields(table, node, &format!("{path}.")),
        }
    }
}

/// A command that calls the tool with everything it needs.
fn example(provider: &str, tool: &Tool) -> String {
    let value = |node: &Schema| match &node.shape {
        Shape::String { values } => values.first().cloned().unwrap_or_else(|| "TEXT".to_owned()),
        Shape::Number => "1".to_owned(),
        Shape::Boolean => "true".to_owned(),
        Shape::Array(_) => "'[…]'".to_owned(),
        Shape::Object { .. } => "'{…}'".to_owned(),
        Shape::Any => "JSON".to_owned(),
    };
    let mut command = format!("toolctl call {provider} {}", tool.name);
    for (name, node) in ordered(&tool.input).into_iter().filter(|(name, _)| tool.input.requires(name)) {
        command.push_str(&format!(" {name}={}", value(node)));
    }
    command
}

fn section(text: &mut String, title: &str, table: Table, look: Look) {
    text.push_str(&format!("\n{}\n", look.ink(Ink::Bold, title)));
    let inner = Look { width: look.width.map(|width| width.saturating_sub(2)), ..look };
    for line in table.lines(inner) {
        text.push_str(&format!("  {line}\n"));
    }
}
