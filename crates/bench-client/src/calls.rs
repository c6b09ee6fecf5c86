//! One read_file after another on one connection, beside the bare RPC Describe on the same connection.

use std::path::Path;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::process::memory;
use crate::provider::Provider;
use crate::spread;

/// Calls measured, after a tenth as many to warm up.
const CALLS: usize = 5_000;
/// The file that is read, in bytes.
const FILE_SIZE: usize = 10_000;

pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let line = "the quick brown fox jumps over the lazy dog, again and again\n";
    let text = line.repeat(FILE_SIZE / line.len());
    std::fs::write(folder.path().join("file.txt"), &text)?;
    let config = json!({"allowed_roots": [folder.path().to_string_lossy()]});
    let provider = Provider::start(binary, folder.path(), config).await?;
    let configured = memory(provider.pid(), "VmRSS:")?;
    let (mut reads, mut bare) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    let arguments = json!({"path": "file.txt"});
    for number in 0..CALLS + CALLS / 10 {
        let (payload, took) = provider.call("read_file", &arguments).await?.result()?;
        ensure!(
            payload["content"].as_str().is_some_and(|content| content.len() >= text.len() - 1),
            "not the file"
        );
        let describe_took = provider.describe().await?;
        if number >= CALLS / 10 {
            reads.push(took);
            bare.push(describe_took);
        }
    }
    let idle = provider.idle.clone();
    provider.stop().await?;
    Ok(json!({
        "calls": CALLS,
        "idle": idle,
        "configured_bytes": configured,
        "read_file": spread(reads),
        "describe": spread(bare),
    }))
}
