//! Commands that print without end, or much: what the provider and the guard of the command hold in memory meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::process::guards_memory;
use crate::provider::Provider;

/// The commands, and how long they may run in milliseconds.
const FLOODS: &[(&str, u64)] =
    &[("yes", 10_000), ("cat /dev/zero", 10_000), ("head -c 2G /dev/urandom | base64", 300_000)];

pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let mut figures = Vec::new();
    for (command, limit) in FLOODS {
        figures.push(flood(binary, command, *limit).await?);
    }
    Ok(Value::Array(figures))
}

async fn flood(binary: &Path, command: &str, limit: u64) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let config = json!({"root": folder.path(), "state_dir": folder.path().join("state")});
    let provider = Provider::start(binary, folder.path(), config).await?;
    let watch = Watch::start(provider.pid());
    let answer = provider.call("bash", &json!({"command": command, "timeout_ms": limit})).await?;
    let guard = watch.stop();
    ensure!(answer.output > 1 << 20, "{command} printed {} bytes", answer.output);
    ensure!(guard > 0, "no guard was seen");
    let peak = provider.stop().await?;
    Ok(json!({
        "command": command,
        "bytes": answer.output,
        "seconds": answer.took.as_secs_f64(),
        "peak_bytes": peak,
        "guard_peak_bytes": guard,
    }))
}

/// A thread that looks at the guards again and again, since they end with their commands.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
}

impl Watch {
    pub(crate) fn start(pid: u32) -> Self {
        let watch = Self { over: Arc::default(), most: Arc::default() };
        let (over, most) = (watch.over.clone(), watch.most.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(guards_memory(pid), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        watch
    }

    pub(crate) fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed)
    }
}
