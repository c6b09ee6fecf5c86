//! The part of `agent.hcl` that makes the kernel start what was installed.

use semver::Version;
use serde_json::{Map, Value};

use crate::lock_file::hcl_string;

/// A provider as `agent.hcl` names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Local name.
    pub name: String,
    /// Source address.
    pub source: String,
    /// Installed version.
    pub version: Version,
    /// The body of its `provider` block. Kernels evaluate nothing in it but `env()`, so it is values only.
    pub configuration: Map<String, Value>,
}

/// The `required_providers` block: each provider with its source, and with every version that is compatible with
/// the installed one.
#[must_use]
pub fn required_providers(entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let lines = entries.iter().map(|entry| {
        let constraint = format!("~> {}.{}", entry.version.major, entry.version.minor);
        // A version before the first stable one may break with any minor step; one more digit allows patches only.
        let constraint = if entry.version.major == 0 {
            format!("{constraint}.{}", entry.version.patch)
        } else {
            constraint
        };
        format!(
            "  {:width$} = {{ source = {}, version = {} }}\n",
            entry.name,
            hcl_string(&entry.source),
            hcl_string(&constraint)
        )
    });
    format!("required_providers {{\n{}}}\n", lines.collect::<String>())
}

/// An `agent.hcl`: [`required_providers`] and a `provider` block for each.
#[must_use]
pub fn agent_hcl(entries: &[Entry]) -> String {
    let blocks = entries.iter().map(|entry| {
        let width = entry.configuration.keys().map(String::len).max().unwrap_or(0);
        let lines =
            entry.configuration.iter().map(|(key, value)| format!("  {key:width$} = {}\n", hcl(value)));
        let body: String = lines.collect();
        let body = if body.is_empty() { "{}".to_owned() } else { format!("{{\n{body}}}") };
        format!("\nprovider {} {body}\n", hcl_string(&entry.name))
    });
    required_providers(entries) + &blocks.collect::<String>()
}

/// A value in HCL's syntax.
fn hcl(value: &Value) -> String {
    match value {
        Value::String(text) => hcl_string(text),
        Value::Array(items) => format!("[{}]", items.iter().map(hcl).collect::<Vec<_>>().join(", ")),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{} = {}", hcl_string(key), hcl(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(name: &str, version: &str, configuration: Value) -> Entry {
        Entry {
            name: name.to_owned(),
            source: format!("github.com/o/provider-{name}"),
            version: version.parse().unwrap(),
            configuration: serde_json::from_value(configuration).unwrap(),
        }
    }

    #[test]
    fn an_agent_file_has_a_block_for_each_provider() {
        let entries = [
            entry("filesystem", "0.1.0", json!({"allowed_roots": ["."], "read_only": true})),
            entry("user", "1.4.2", json!({})),
        ];
        insta::assert_snapshot!(agent_hcl(&entries), @r#"
        required_providers {
          filesystem = { source = "github.com/o/provider-filesystem", version = "~> 0.1.0" }
          user       = { source = "github.com/o/provider-user", version = "~> 1.4" }
        }

        provider "filesystem" {
          allowed_roots = ["."]
          read_only     = true
        }

        provider "user" {}
        "#);
    }

    #[test]
    fn every_value_can_be_read_back() {
        let configuration =
            json!({"a": "${x}", "b": [1, 2.5, false], "c": {"k-1": "v", "n": {"m": []}}, "d": {}});
        let text = agent_hcl(&[entry("x", "1.0.0", configuration.clone())]);
        let body = hcl_edit::parser::parse_body(&text).expect(&text);
        let block = body.get_blocks("provider").next().unwrap();
        assert_eq!(block.body.get_attribute("a").unwrap().value.as_str(), Some("${x}"));
        assert_eq!(block.body.attributes().count(), 4);
    }
}
