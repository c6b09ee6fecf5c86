//! The tools whose answers are content of every kind.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;
use tool_host::source::{Annotations, SourceTool, ToolResult};
use tool_host::{Call, CallError, Category, Event, Reporter, ToolSource};

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

/// The source.
pub(crate) struct Content {
    tools: Arc<Vec<SourceTool>>,
    changes: watch::Sender<u64>,
}

impl Default for Content {
    fn default() -> Self {
        let nothing = json!({"type": "object", "properties": {}});
        let pair = json!({
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "One number."},
                "b": {"type": "number", "description": "Another."},
            },
            "required": ["a", "b"],
        });
        let sum = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
        let plain = |name: &str, description: &str| tool(name, description, nothing.clone(), None);
        Self {
            tools: Arc::new(vec![
                plain("test_simple_text", "Answers with a text."),
                plain("test_image_content", "Answers with an image."),
                plain("test_audio_content", "Answers with a sound."),
                plain("test_embedded_resource", "Answers with a resource."),
                plain("test_multiple_content_types", "Answers with a text, an image and a resource."),
                plain("test_error_handling", "Fails."),
                plain("test_tool_with_progress", "Tells of its progress."),
                plain("test_slow", "Takes a minute, unless it is given up."),
                tool("add", "Adds two numbers.", pair, Some(sum)),
            ]),
            changes: watch::channel(0).0,
        }
    }
}

fn tool(name: &str, description: &str, input_schema: Value, output_schema: Option<Value>) -> SourceTool {
    SourceTool {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema,
        output_schema,
        annotations: Annotations { read_only: Some(true), ..Annotations::default() },
    }
}

impl ToolSource for Content {
    fn tools(&self) -> Arc<Vec<SourceTool>> {
        self.tools.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        reporter: &'a Reporter,
    ) -> BoxFuture<'a, Result<ToolResult, CallError>> {
        Box::pin(async move {
            match call.tool.as_str() {
                "test_simple_text" => Ok(ToolResult::text("This is a simple text response for testing.")),
                "test_image_content" => Ok(items([image()])),
                "test_audio_content" => {
                    Ok(items([json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})]))
                }
                "test_embedded_resource" => Ok(items([resource(
                    "test://embedded-resource",
                    "text/plain",
                    "This is an embedded resource content.",
                )])),
                "test_multiple_content_types" => Ok(items([
                    json!({"type": "text", "text": "Multiple content types test:"}),
                    image(),
                    resource(
                        "test://mixed-content-resource",
                        "application/json",
                        r#"{"test":"data","value":123}"#,
                    ),
                ])),
                "test_error_handling" => Ok(ToolResult {
                    failed: true,
                    ..ToolResult::text("This tool intentionally returns an error for testing")
                }),
                "test_tool_with_progress" => Ok(progress(reporter).await),
                "test_slow" => slow(reporter).await,
                "add" => add(call),
                other => Err(CallError::new(Category::NotFound, format!("there is no tool {other}"))),
            }
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn items<const N: usize>(content: [Value; N]) -> ToolResult {
    ToolResult { content: content.to_vec(), ..ToolResult::default() }
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}})
}

async fn progress(reporter: &Reporter) -> ToolResult {
    for done in [0.0, 0.5, 1.0] {
        let message = format!("{:.0} of 100", done * 100.0);
        reporter.send(Event::Progress { message, fraction_complete: Some(done) }).await;
        sleep(Duration::from_millis(50)).await;
    }
    ToolResult::text("done")
}

async fn slow(reporter: &Reporter) -> Result<ToolResult, CallError> {
    tokio::select! {
        () = sleep(Duration::from_secs(60)) => Ok(ToolResult::text("done")),
        () = reporter.cancelled() => Err(tool_host::call::cancelled()),
    }
}

fn add(call: &Call) -> Result<ToolResult, CallError> {
    let number = |name: &str| {
        call.arguments
            .get(name)
            .and_then(Value::as_f64)
            .ok_or_else(|| CallError::new(Category::InvalidArguments, format!("{name}: a number is wanted")))
    };
    let sum = json!({ "sum": number("a")? + number("b")? });
    Ok(ToolResult { structured: Some(sum.clone()), ..ToolResult::text(sum.to_string()) })
}
