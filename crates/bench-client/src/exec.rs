//! Commands through the exec provider, beside starting them directly.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use crate::flood::Watch;
use crate::provider::Provider;
use crate::spread;

/// Commands measured, after a tenth as many to warm up.
const COMMANDS: usize = 500;
/// What is streamed, and how often.
const STREAMED: u64 = 1 << 30;
const STREAMS: usize = 3;

/// `bash true` beside `bash -c true`, and a stream beside reading the same from a pipe.
pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let config = json!({"root": folder.path(), "state_dir": folder.path().join("state")});
    let provider = Provider::start(binary, folder.path(), config).await?;
    let (mut ours, mut direct, mut sandbox) = (Vec::new(), Vec::new(), String::new());
    for number in 0..COMMANDS + COMMANDS / 10 {
        let (payload, took) = provider.call("bash", &json!({"command": "true"})).await?.result()?;
        payload["sandbox"].as_str().unwrap_or_default().clone_into(&mut sandbox);
        let begun = Instant::now();
        ensure!(Command::new("bash").args(["-c", "true"]).status()?.success(), "bash fails");
        if number >= COMMANDS / 10 {
            ours.push(took);
            direct.push(begun.elapsed());
        }
        ensure!(!sandbox.is_empty(), "no sandbox is named");
    }
    let idle = provider.idle.clone();
    provider.stop().await?;
    let mut figures = streams(binary, folder.path()).await?;
    figures["commands"] = json!(COMMANDS);
    figures["sandbox"] = json!(sandbox);
    figures["idle"] = idle;
    figures["bash_true"] = spread(ours);
    figures["direct"] = spread(direct);
    Ok(figures)
}

async fn streams(binary: &Path, folder: &Path) -> anyhow::Result<Value> {
    let config = json!({"root": folder, "state_dir": folder.join("state")});
    let provider = Provider::start(binary, folder, config).await?;
    let command = format!("head -c {STREAMED} /dev/zero");
    let (mut streamed, mut from_pipe, mut guard) = (Vec::new(), Vec::new(), 0);
    for _ in 0..STREAMS {
        let call = json!({"command": command, "timeout_ms": 600_000});
        let watch = Watch::start(provider.pid());
        let answer = provider.call("bash", &call).await?;
        guard = guard.max(watch.stop());
        ensure!(answer.output == STREAMED, "{} bytes arrived", answer.output);
        streamed.push(answer.result()?.1);
        from_pipe.push(piped(&command)?);
    }
    ensure!(guard > 0, "no guard was seen");
    let peak = provider.stop().await?;
    Ok(json!({
        "streamed_bytes": STREAMED,
        "streamed": spread(streamed),
        "piped": spread(from_pipe),
        "peak_bytes": peak,
        "guard_peak_bytes": guard,
    }))
}

/// How long reading the same from a pipe takes.
fn piped(command: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut child = Command::new("bash").args(["-c", command]).stdout(Stdio::piped()).spawn()?;
    let mut buffer = vec![0; 64 * 1024];
    if let Some(mut output) = child.stdout.take() {
        while output.read(&mut buffer)? > 0 {}
    }
    child.wait()?;
    Ok(begun.elapsed())
}
