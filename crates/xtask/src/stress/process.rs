//! A provider's program as a process that a run starts, calls and ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use tool_host::{Call, LaunchOptions, Object, Provider, ProviderSource};

/// How long anything may take on a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// A provider's program: built, unless this is a test, which is built together with it.
pub(super) fn built(package: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("no folder")?;
    let is_test = folder.ends_with("deps");
    let binary = if is_test { folder.parent().context("no folder")? } else { folder }.join(package);
    if !is_test || !binary.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(crate::workspace_root()).args(["build", "--quiet", "--package", package]);
        ensure!(command.status()?.success(), "the provider does not build");
    }
    ensure!(binary.exists(), "{} is missing", binary.display());
    Ok(binary)
}

/// Starts the program and configures it.
pub(super) async fn started(binary: &Path, config: Value) -> anyhow::Result<Provider> {
    let source = ProviderSource::Path(binary.to_owned());
    let provider = Provider::launch(&source, LaunchOptions::default()).await?;
    provider.configure(object(config)?).await?;
    Ok(provider)
}

/// A call from `directory`.
pub(super) fn call(directory: &Path, tool: &str, arguments: Value) -> anyhow::Result<Call> {
    Ok(Call { working_directory: directory.to_owned(), ..Call::new(tool, object(arguments)?, "s") })
}

/// Makes a call and waits for how it ends.
pub(super) async fn outcome(provider: &Provider, call: Call) -> anyhow::Result<tool_host::Outcome> {
    let tool = call.tool.clone();
    let outcome = tokio::time::timeout(LIMIT, provider.invoke(call).outcome()).await;
    outcome.with_context(|| format!("{tool} does not end"))
}

/// Waits until nothing of the process is left but perhaps its number.
pub(super) async fn gone(pid: u32) -> anyhow::Result<()> {
    let limit = Instant::now() + LIMIT;
    while Instant::now() < limit {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state follows the name, which may have anything in it but is in parentheses.
        if stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z")) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bail!("process {pid} does not end")
}

/// A JSON object.
pub(super) fn object(value: Value) -> anyhow::Result<Object> {
    match value {
        Value::Object(object) => Ok(object),
        other => bail!("{other} is no object"),
    }
}
