//! Tools as the protocol declares them.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use tool_host::source::{Annotations, SourceTool};

use crate::limits::fit;
use crate::toolbox::{Entry, Shelf};

/// `execute`.
pub(super) fn program(tool: &SourceTool) -> Tool {
    let mut declared = Tool::new(tool.name.clone(), fit(&tool.description), object(&tool.input_schema))
        .with_annotations(annotations(tool.annotations));
    declared.title.clone_from(&tool.title);
    declared
}

/// Every tool by itself; with `structured` they promise the value of their result.
pub(super) fn separate(shelf: &Shelf, structured: bool) -> Vec<Tool> {
    shelf.entries.iter().zip(&shelf.names).map(|(entry, name)| one(entry, name, structured)).collect()
}

fn one(entry: &Entry, name: &str, structured: bool) -> Tool {
    let mut declared = Tool::new(name.to_owned(), fit(&entry.tool.description), object(&entry.input_schema))
        .with_annotations(annotations(entry.annotations));
    declared.title.clone_from(&entry.title);
    if structured {
        declared.output_schema = entry.output_schema.as_ref().map(object);
    }
    declared
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

fn annotations(hints: Annotations) -> ToolAnnotations {
    ToolAnnotations::from_raw(None, hints.read_only, hints.destructive, hints.idempotent, hints.open_world)
}
