//! The other side: tools of an MCP server, called by a host and by programs.

use std::time::Duration;

use mcp_bridge::{McpError, McpServer};
use serde_json::{Value, json};
use tool_host::catalogue::{Kind, Risk};
use tool_host::source::ToolResult;
use tool_host::{Call, CallError, Category, Event, Source};

use crate::fixture::{code, example, host, over, toolbox};
use crate::wire::{Wire, text};

async fn server() -> Source {
    let command = [example().into_os_string(), "--stdio".into(), "--structured".into()];
    McpServer::new("other", command).start().await.unwrap()
}

fn call(tool: &str, arguments: Value) -> Call {
    Call::new(tool, arguments.as_object().unwrap().clone(), "s")
}

async fn result(source: &Source, tool: &str, arguments: Value) -> Result<ToolResult, CallError> {
    ToolResult::of(host().call_source(source, call(tool, arguments)).outcome().await)
}

#[tokio::test]
async fn a_server_is_a_source_of_tools() {
    let source = server().await;
    assert_eq!(source.identity().version, "1.0.0");
    let add = source.tool("add").unwrap();
    assert_eq!(add.output_schema.as_ref().unwrap()["required"], json!(["sum"]));
    assert_eq!((add.gate().kind, add.gate().risk), (Kind::DataSource, Risk::ReadOnly));
    let sum = result(&source, "add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(sum.structured, Some(json!({"sum": 3.0})));
    let image = result(&source, "test_image_content", json!({})).await.unwrap();
    assert!(image.has_media() && image.content[0]["mimeType"] == "image/png", "{image:?}");
    let failed = result(&source, "test_error_handling", json!({})).await.unwrap();
    assert!(failed.failed && failed.text_of_content().contains("intentionally"), "{failed:?}");
    let none = result(&source, "ad", json!({})).await.unwrap_err();
    assert!(none.message.contains("did you mean add?"), "{none}");
    source.stop().await;
    let gone = result(&source, "add", json!({"a": 1, "b": 2})).await.unwrap_err();
    assert_eq!(gone.category, Category::ProcessCrashed);
}

#[tokio::test]
async fn progress_comes_through() {
    let source = server().await;
    let mut made = host().call_source(&source, call("test_tool_with_progress", json!({})));
    let mut told = Vec::new();
    while let Some(event) = made.next().await {
        if let Event::Progress { fraction_complete, .. } = event {
            told.push(fraction_complete.unwrap());
        }
    }
    assert_eq!(told, [0.0, 0.5, 1.0]);
    source.stop().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_and_the_server_goes_on() {
    let source = server().await;
    let made = host().call_source(&source, call("test_slow", json!({})));
    let canceller = made.canceller();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        canceller.cancel();
    });
    let start = std::time::Instant::now();
    assert_eq!(made.outcome().await.unwrap_err().category, Category::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(result(&source, "test_simple_text", json!({})).await.is_ok());
    source.stop().await;
}

#[tokio::test]
async fn programs_call_a_server_as_they_call_a_plugin() {
    let toolbox = toolbox(vec![server().await]);
    let mut wire = Wire::initialized(&over(toolbox.clone(), code()), json!({})).await;
    let program = "const {sum} = await tools.other.add({a: 1, b: 2}); \
                   const [image] = await tools.other.test_image_content(); \
                   const said = await tools.other.test_simple_text(); \
                   const failed = await tools.other.test_error_handling().catch(e => e.message); \
                   return [sum, image.type, said.length > 9, failed]";
    let answer = wire.request("tools/call", json!({"name": "execute", "arguments": {"code": program}})).await;
    assert_eq!(text(&answer), "[3,\"image\",true,\"This tool intentionally returns an error for testing\"]");
    toolbox.stop().await;
}

#[tokio::test]
async fn what_is_no_server_is_said() {
    let none = McpServer::new("none", ["/does/not/exist"]).start().await.unwrap_err();
    assert!(matches!(none, McpError::Start { .. }), "{none}");
    let silent = McpServer::new("silent", ["/bin/true"]).start().await.unwrap_err();
    assert!(matches!(silent, McpError::Silent { .. }), "{silent}");
    let empty = McpServer::new("empty", Vec::<String>::new()).start().await.unwrap_err();
    assert!(matches!(empty, McpError::NoCommand(_)), "{empty}");
}

#[tokio::test]
async fn a_server_that_dies_fails_its_calls() {
    let source = server().await;
    let made = host().call_source(&source, call("test_slow", json!({})));
    source.stop().await;
    let error =
        tokio::time::timeout(Duration::from_secs(30), made.outcome()).await.expect("it hangs").unwrap_err();
    assert!(matches!(error.category, Category::ProcessCrashed | Category::Unknown), "{error:?}");
}
