//! Calls that are cancelled on the way: how long the provider goes on working for them.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::settled;
use crate::provider::Provider;
use crate::spread;

/// Calls of each kind that are cancelled.
const TIMES: u32 = 50;
/// Calls that would go on for longer are cancelled within this time.
const COURSE: Duration = Duration::from_millis(800);
/// The thread that keeps in memory what was walked; it works for no call.
const KEEPER: &str = "keep-tree";
/// A process that did nothing for so long is done.
const QUIET: Duration = Duration::from_millis(40);

const CALLS: &[(&str, &str)] = &[
    ("grep", r#"{"pattern": "no such text anywhere"}"#),
    ("grep", r#"{"pattern": "\\w+\\s+\\w+", "limit": 10000, "context": 3}"#),
    ("grep", r#"{"pattern": "(?<!x)[a-z]+(?=_lock)", "limit": 100}"#),
    ("grep", r#"{"pattern": "return[^;]*\\n[^;]*\\n\\}", "multiline": true}"#),
    ("glob", r#"{"pattern": "**/*.c", "sort": "modified", "limit": 100000}"#),
    ("find_file", r#"{"query": "driver core usb", "limit": 10000}"#),
];

pub(crate) async fn measure(binary: &Path, tree: &Path) -> anyhow::Result<Value> {
    let mut figures = Vec::new();
    for (tool, arguments) in CALLS {
        figures.push(cancelled(binary, tree, tool, &serde_json::from_str(arguments)?).await?);
    }
    Ok(Value::Array(figures))
}

/// Cancels a call at one point of its course after another.
async fn cancelled(binary: &Path, tree: &Path, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
    let config = json!({"allowed_roots": [tree], "deadline_ms": 600_000});
    let whole = {
        let provider = Provider::start(binary, tree, config.clone()).await?;
        let (_, took) = provider.call(tool, arguments).await?.result()?;
        provider.stop().await?;
        took
    };
    // What was never answered is not kept, so that each of these walks anew.
    let provider = Provider::start(binary, tree, config).await?;
    let mut ends = Vec::new();
    for number in 0..TIMES {
        let mut stream = provider.begin(tool, arguments).await?;
        let due = whole.min(COURSE) * (number + 1) / (TIMES + 2);
        let read = async { while let Ok(Some(_)) = stream.message().await {} };
        let ended = tokio::time::timeout(due, read).await.is_ok();
        let begun = Instant::now();
        drop(stream);
        // The connection sends what was dropped while the runtime goes on, so the watch is elsewhere.
        let pid = provider.pid();
        let last = tokio::task::spawn_blocking(move || settled(pid, Some(KEEPER), QUIET)).await?;
        if !ended {
            ends.push(last.saturating_duration_since(begun));
        }
    }
    let cancelled = ends.len();
    provider.stop().await?;
    Ok(json!({
        "tool": tool,
        "arguments": arguments,
        "whole_seconds": whole.as_secs_f64(),
        "cancelled": cancelled,
        "goes_on": spread(ends),
    }))
}
