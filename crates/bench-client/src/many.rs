//! A million files: what searching them holds in memory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::process::{memory, settled};
use crate::provider::Provider;

/// Files made, in directories of a thousand. Every hundredth has text, the others are empty.
const FILES: usize = 1_000_000;

/// What is asked of a process of its own, twice: after the first answer it may keep what it walked.
const CALLS: &[(&str, &str)] = &[
    ("grep", r#"{"pattern": "needle"}"#),
    ("grep", r#"{"pattern": "needle", "limit": 10000, "context": 2}"#),
    ("glob", r#"{"pattern": "**/*.txt"}"#),
    ("glob", r#"{"pattern": "**/*.txt", "limit": 100000, "sort": "modified"}"#),
    ("find_file", r#"{"query": "component note"}"#),
    ("find_file", r#"{"query": "component note", "limit": 10000}"#),
];

pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    make(folder.path())?;
    let mut figures = Vec::new();
    for (tool, arguments) in CALLS {
        figures.push(twice(binary, folder.path(), tool, &serde_json::from_str(arguments)?).await?);
    }
    Ok(json!({"files": FILES, "calls": figures}))
}

fn make(folder: &Path) -> anyhow::Result<()> {
    for directory in 0..FILES / 1_000 {
        let path = folder.join(format!("section-{:02}/component-{directory:04}", directory / 50));
        fs::create_dir_all(&path)?;
        for file in 0..1_000 {
            let text = if file % 100 == 0 { "some text\na needle in it\nmore text\n" } else { "" };
            fs::write(path.join(format!("note-of-the-component-{file:04}.txt")), text)?;
        }
    }
    Ok(())
}

async fn twice(binary: &Path, folder: &Path, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
    let config = json!({"allowed_roots": [folder], "deadline_ms": 600_000});
    let provider = Provider::start(binary, folder, config).await?;
    let (first, first_took) = provider.call(tool, arguments).await?.result()?;
    let pid = provider.pid();
    let first_peak = provider.peak()?;
    tokio::task::spawn_blocking(move || settled(pid, None, Duration::from_secs(1))).await?;
    let kept = memory(pid, "VmRSS:")?;
    let (again, again_took) = provider.call(tool, arguments).await?.result()?;
    let total = |payload: &Value| payload["total_matches"].as_u64().or(payload["total"].as_u64());
    ensure!(
        total(&first) == total(&again) && total(&first).is_some_and(|total| total >= 1_000),
        "{first}, {again}"
    );
    Ok(json!({
        "tool": tool,
        "arguments": arguments,
        "total": total(&first),
        "first_seconds": first_took.as_secs_f64(),
        "again_seconds": again_took.as_secs_f64(),
        "first_peak_bytes": first_peak,
        "kept_bytes": kept,
        "peak_bytes": provider.stop().await?,
    }))
}
