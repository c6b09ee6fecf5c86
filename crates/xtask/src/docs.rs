//! `cargo xtask docs`: `catalog.md`, `docs/tools/` and what else is written from declarations.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use harness_proto::config::v1::{AttrType, ConfigAttribute};
use harness_proto::schema::v1::{Schema, SchemaType};
use harness_proto::tool::v1::{ConcurrencySpec, GetSchemaResponse, ToolKind, ToolSchema};
use provider_core::{Catalogue, Provider};

use crate::requirements;

/// First line of every generated page.
const NOTICE: &str =
    "<!-- Written by `cargo xtask docs` from the declarations of the tools. Do not edit. -->\n\n";

/// Arguments of `cargo xtask docs`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Change nothing, and fail if a page is not as it would be written.
    #[arg(long)]
    check: bool,
}

/// Writes the pages, or checks them.
///
/// # Errors
/// A page cannot be written, or with `--check` is stale.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    if arguments.check {
        let stale = stale_pages(&root)?;
        if !stale.is_empty() {
            bail!("stale: {}; run `cargo xtask docs`", stale.join(", "));
        }
        return Ok(());
    }
    for (path, text) in pages(&root)? {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// The pages below `root` that differ from what would be written.
///
/// # Errors
/// The declarations cannot be served.
pub fn stale_pages(root: &Path) -> anyhow::Result<Vec<String>> {
    let differs = |(path, text): &(PathBuf, String)| {
        std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text)
    };
    Ok(pages(root)?.into_iter().filter(differs).map(|(path, _)| path.display().to_string()).collect())
}

/// The providers of the catalog, in its order.
pub(crate) fn providers() -> anyhow::Result<Vec<(&'static str, GetSchemaResponse)>> {
    Ok(vec![
        declared::<provider_filesystem::Filesystem>()?,
        declared::<provider_search::Search>()?,
        declared::<provider_exec::Exec>()?,
        declared::<provider_web::Web>()?,
        declared::<provider_user::User>()?,
        declared::<provider_task::Tasks>()?,
        declared::<provider_agent::Agents>()?,
        declared::<provider_code::Code>()?,
    ])
}

fn declared<P: Provider>() -> anyhow::Result<(&'static str, GetSchemaResponse)> {
    Ok((P::NAME, Catalogue::<P>::of()?.to_wire().clone()))
}

fn pages(root: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let providers = providers()?;
    let mut pages = vec![(PathBuf::from("catalog.md"), catalog(&providers))];
    for (provider, schema) in &providers {
        let folder = Path::new("docs/tools").join(provider);
        pages.push((folder.join("README.md"), configuration(provider, schema)));
        let tool = |tool: &ToolSchema| (folder.join(format!("{}.md", tool.name)), page(provider, tool));
        pages.extend(schema.tools.iter().map(tool));
    }
    pages.push((PathBuf::from("docs/shell-read.md"), shell_read()));
    pages.push((PathBuf::from(requirements::PAGE), requirements::page(root)?));
    Ok(pages)
}

/// What `shell_read` may run, from the list that it checks against.
fn shell_read() -> String {
    format!("{NOTICE}# What shell_read runs\n\n{}", provider_exec::engine::allowed::page())
}

fn catalog(providers: &[(&str, GetSchemaResponse)]) -> String {
    let mut text = format!("{NOTICE}# Catalog\n\nEvery operation. `?` marks what may be absent.\n");
    for (provider, schema) in providers {
        let _ = write!(text, "\n## [{provider}](docs/tools/{provider}/README.md)\n\n");
        text.push_str("| operation | kind, risk | runs beside | timeout | arguments | result |\n|---|---|---|---|---|---|\n");
        for tool in &schema.tools {
            let _ = writeln!(
                text,
                "| [{name}](docs/tools/{provider}/{name}.md) | {} | {} | {} | {} | {} |",
                classification(tool),
                concurrency(tool.concurrency.as_ref()),
                timeout(tool),
                fields(tool.input_schema.as_ref()),
                fields(tool.output_schema.as_ref()),
                name = tool.name,
            );
        }
    }
    text
}

fn classification(tool: &ToolSchema) -> String {
    let kind = short(tool.kind().as_str_name(), "TOOL_KIND_");
    match tool.kind() {
        ToolKind::Resource => format!("{kind}, {}", short(tool.risk().as_str_name(), "RISK_CLASS_")),
        _ => kind,
    }
}

fn short(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_ascii_lowercase()
}

fn concurrency(spec: Option<&ConcurrencySpec>) -> String {
    match spec {
        None => "one at a time".to_owned(),
        Some(spec) if !spec.safe => "nothing".to_owned(),
        Some(spec) if spec.key_fields.is_empty() => "anything".to_owned(),
        Some(spec) => format!("calls with another {}", spec.key_fields.join(", ")),
    }
}

fn timeout(tool: &ToolSchema) -> String {
    tool.default_timeout
        .as_ref()
        .map_or_else(|| "none".to_owned(), |timeout| format!("{} s", timeout.seconds))
}

fn fields(schema: Option<&Schema>) -> String {
    let Some(schema) = schema else { return String::new() };
    let mark = |name: &String| if schema.required.contains(name) { name.clone() } else { format!("{name}?") };
    let (required, optional): (Vec<_>, Vec<_>) =
        schema.properties.keys().partition(|name| schema.required.contains(*name));
    required.into_iter().chain(optional).map(mark).collect::<Vec<_>>().join(", ")
}

fn page(provider: &str, tool: &ToolSchema) -> String {
    let mut text = format!("{NOTICE}# {}\n\n{}\n\n", tool.name, tool.description);
    let _ = writeln!(text, "- kind and risk: {}", classification(tool));
    let _ = writeln!(text, "- runs beside: {}", concurrency(tool.concurrency.as_ref()));
    let _ = writeln!(text, "- timeout: {}", timeout(tool));
    let _ = writeln!(
        text,
        "- repeating a call changes nothing more: {}",
        if tool.idempotent { "yes" } else { "no" }
    );
    let _ = write!(
        text,
        "\n```sh\ntoolctl call {provider} {}{}\n```\n",
        tool.name,
        example(tool.input_schema.as_ref())
    );
    for (title, schema) in [("Arguments", &tool.input_schema), ("Result", &tool.output_schema)] {
        let _ = write!(text, "\n## {title}\n\n| field | type | |\n|---|---|---|\n");
        if let Some(schema) = schema {
            rows(&mut text, "", schema);
        }
    }
    text
}

fn example(schema: Option<&Schema>) -> String {
    let Some(schema) = schema else { return String::new() };
    schema.required.iter().fold(String::new(), |text, name| format!("{text} {name}=…"))
}

fn rows(text: &mut String, prefix: &str, schema: &Schema) {
    let (required, optional): (BTreeMap<_, _>, BTreeMap<_, _>) =
        schema.properties.iter().partition(|(name, _)| schema.required.contains(*name));
    for (mark, properties) in [("", required), ("?", optional)] {
        for (name, node) in properties {
            let _ = writeln!(
                text,
                "| `{prefix}{name}`{mark} | {} | {} |",
                type_name(node),
                cell(&node.description)
            );
            let (inner, suffix) = match &node.items {
                Some(items) => (&**items, "[]."),
                None => (node, "."),
            };
            rows(text, &format!("{prefix}{name}{suffix}"), inner);
        }
    }
}

fn type_name(node: &Schema) -> String {
    match (node.r#type(), &node.items) {
        (SchemaType::Array, Some(items)) => format!("array of {}", type_name(items)),
        (SchemaType::String, _) if !node.enum_values.is_empty() => node.enum_values.join(", "),
        (other, _) => short(other.as_str_name(), "SCHEMA_TYPE_"),
    }
}

fn cell(description: &str) -> String {
    description.replace('|', "\\|").replace('\n', " ")
}

fn configuration(provider: &str, schema: &GetSchemaResponse) -> String {
    let mut text = format!("{NOTICE}# {provider}\n\n");
    for tool in &schema.tools {
        let summary = tool.description.split_inclusive(". ").next().unwrap_or_default().trim();
        let _ = writeln!(text, "- [{name}]({name}.md): {summary}", name = tool.name);
    }
    text.push_str("\n## Configuration\n\n| attribute | type | default | |\n|---|---|---|---|\n");
    let attributes = schema.config_schema.iter().flat_map(|config| &config.attributes);
    attributes.for_each(|attribute| attribute_row(&mut text, attribute));
    text
}

fn attribute_row(text: &mut String, attribute: &ConfigAttribute) {
    let default = match &attribute.default_json {
        Some(json) => format!("`{json}`"),
        None if attribute.required => "required".to_owned(),
        None => String::new(),
    };
    let kind = match attribute.r#type() {
        AttrType::ListString => "list of strings".to_owned(),
        AttrType::ListNumber => "list of numbers".to_owned(),
        AttrType::MapString => "map of strings".to_owned(),
        other => short(other.as_str_name(), "ATTR_TYPE_"),
    };
    let secret = if attribute.sensitive { ", secret" } else { "" };
    let _ = writeln!(
        text,
        "| `{}` | {kind}{secret} | {default} | {} |",
        attribute.name,
        cell(&attribute.description)
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_pages_are_as_they_would_be_written() {
        let stale = super::stale_pages(&crate::workspace_root()).unwrap();
        assert!(stale.is_empty(), "stale: {stale:?}; run `cargo xtask docs`");
    }
}
