//! How a call's end is told over the protocol.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use tool_host::source::ToolResult;
use tool_host::{CallError, Object, Outcome, tree_to_text};

use crate::text::{Image, readable, take_image};
use crate::toolbox::{Answered, Entry, Owner};

/// The result of a call of `execute`: its text.
pub(super) fn of_program(outcome: Outcome) -> CallToolResult {
    match ToolResult::of(outcome) {
        Ok(result) => of_content(result, false),
        // What stopped a program stands in its text; this is about the call itself.
        Err(error) => failed(&error),
    }
}

/// The result of a call of a tool of its own: for reading, or with `structured` as the value that the tool promises.
pub(super) async fn of_tool(entry: &Entry, structured: bool, outcome: Outcome) -> CallToolResult {
    match entry.ended(outcome) {
        Err(error) => failed(&error),
        Ok(Answered::Content(result)) => of_content(result, structured && entry.output_schema.is_some()),
        Ok(Answered::Payload(payload)) if structured => CallToolResult::structured(Value::Object(payload)),
        Ok(Answered::Payload(payload)) => for_reading(entry, payload).await,
    }
}

/// The payload as text, and the image that it holds.
async fn for_reading(entry: &Entry, mut payload: Object) -> CallToolResult {
    let image = take_image(&mut payload);
    let picture = match &entry.owner {
        // A provider that cannot show its result is read as JSON.
        Owner::Provider(provider) => {
            provider.render(&payload).await.ok().flatten().as_ref().map(tree_to_text)
        }
        Owner::Source(_) => None,
    };
    let mut content = vec![ContentBlock::text(readable(&payload, picture.as_deref()))];
    if let Some(Image { mime_type, data }) = image {
        content.push(ContentBlock::image(data, mime_type));
    }
    CallToolResult::success(content)
}

/// The result of another source's tool as it came, without the value unless it is promised.
fn of_content(result: ToolResult, structured: bool) -> CallToolResult {
    let ToolResult { content, structured: value, failed } = result;
    let mut content: Vec<ContentBlock> = content.into_iter().map(block).collect();
    if content.is_empty()
        && let Some(value) = &value
    {
        content.push(ContentBlock::text(value.to_string()));
    }
    let mut told = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    if structured {
        told.structured_content = value;
    }
    told
}

/// A content item; what the protocol does not know is told as JSON.
fn block(item: Value) -> ContentBlock {
    let text = item.to_string();
    serde_json::from_value(item).unwrap_or_else(|_| ContentBlock::text(text))
}

/// An error, with its category, for the model to read.
pub(super) fn failed(error: &CallError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!("{}: {}", error.category, error.message))])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(result: Value, structured: bool, expected: Value) {
        let told = of_content(serde_json::from_value(result).unwrap(), structured);
        let mut told = serde_json::to_value(told).unwrap();
        told.as_object_mut().unwrap().remove("resultType");
        assert_eq!(told, expected);
    }

    #[test]
    fn a_value_is_told_only_where_it_is_promised() {
        let result = json!({"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}});
        let text = json!([{"type": "text", "text": "3"}]);
        check(result.clone(), false, json!({"content": text, "isError": false}));
        check(result, true, json!({"content": text, "structuredContent": {"sum": 3}, "isError": false}));
    }

    #[test]
    fn an_image_passes_and_an_unknown_item_becomes_text() {
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        check(json!({"content": [image]}), false, json!({"content": [image], "isError": false}));
        check(
            json!({"content": [{"type": "smell", "data": 1}]}),
            false,
            json!({"content": [{"type": "text", "text": "{\"data\":1,\"type\":\"smell\"}"}], "isError": false}),
        );
    }

    #[test]
    fn a_value_alone_is_also_text() {
        check(
            json!({"structuredContent": [1]}),
            true,
            json!({"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1], "isError": false}),
        );
    }
}
