//! Files that are not small: a window of a huge one, an edit of a large one, an edit that has to be explained.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use goplugin::host::{Launch, Running};
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::wire::value_to_struct;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::{memory, spread};

/// Bytes of the huge file, of which a window at line [`WINDOW_LINE`] is read.
const HUGE: u64 = 2 << 30;
const WINDOW_LINE: u64 = 10_000_000;
/// Bytes of the large file, of which one line is edited.
const LARGE: u64 = 200_000_000;
/// Lines of the file in which a text is looked for that is not there.
const EXPLAINED_LINES: u64 = 20_000;
/// How often a thing is measured.
const TIMES: usize = 5;

/// Measures each in a process of its own, so that its peak of memory is its own too.
pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let (window, window_peak) = window(binary, folder.path()).await?;
    let (edit, edit_peak, copy) = edit(binary, folder.path()).await?;
    let explain = explain(binary, folder.path()).await?;
    Ok(json!({
        "window_us": window, "window_peak_bytes": window_peak,
        "edit_us": spread(edit), "edit_peak_bytes": edit_peak, "copy_us": spread(copy),
        "explain_us": spread(explain),
    }))
}

async fn window(binary: &Path, folder: &Path) -> anyhow::Result<(Value, u64)> {
    let path = lines(&folder.join("huge"), HUGE)?;
    let provider = Provider::start(binary, folder).await?;
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let arguments = json!({"path": "huge", "offset": WINDOW_LINE, "limit": 10});
        let (result, time) = provider.call("read_file", arguments).await?;
        let content = result["content"].as_str().unwrap_or_default();
        ensure!(content.starts_with(&line(WINDOW_LINE)), "another window: {content:?}");
        took.push(time);
    }
    let peak = provider.stop().await?;
    std::fs::remove_file(path)?;
    Ok((spread(took), peak))
}

async fn edit(binary: &Path, folder: &Path) -> anyhow::Result<(Vec<Duration>, u64, Vec<Duration>)> {
    let path = lines(&folder.join("large"), LARGE)?;
    let copy_path = folder.join("copy");
    let provider = Provider::start(binary, folder).await?;
    let (mut edits, mut copies) = (Vec::new(), Vec::new());
    for time in 0..TIMES {
        run(Command::new("sync").arg(folder))?;
        let begun = Instant::now();
        run(Command::new("cp").args([&path, &copy_path]))?;
        run(Command::new("sync").arg(&copy_path))?;
        copies.push(begun.elapsed());
        std::fs::remove_file(&copy_path)?;
        run(Command::new("sync").arg(folder))?;
        let number = 700_000 + time as u64;
        let old = line(number);
        let arguments =
            json!({"path": "large", "old_str": old.trim_end(), "new_str": format!("edited {number}")});
        let (result, time) = provider.call("edit_file", arguments).await?;
        ensure!(result["changed"] == true, "nothing was changed: {result}");
        edits.push(time);
    }
    let peak = provider.stop().await?;
    std::fs::remove_file(path)?;
    Ok((edits, peak, copies))
}

async fn explain(binary: &Path, folder: &Path) -> anyhow::Result<Vec<Duration>> {
    let word = |number: u64| ["alpha", "beta", "gamma", "delta", "epsilon"][(number % 5) as usize];
    let line = |number: u64| {
        format!("    let {}_{number} = compute({}, {});", word(number), number * 7, word(number / 5))
    };
    let text: String = (0..EXPLAINED_LINES).map(|number| line(number) + "\n").collect();
    std::fs::write(folder.join("source"), text)?;
    let wanted: Vec<String> = (12_000..12_008).map(line).collect();
    let wanted = wanted.join("\n").replace("compute(84028", "computed(84028");
    let provider = Provider::start(binary, folder).await?;
    let mut took = Vec::new();
    for _ in 0..4 * TIMES {
        let arguments = json!({"path": "source", "old_str": wanted, "new_str": "x"});
        let (error, time) = provider.attempt("edit_file", arguments).await?;
        ensure!(error.is_err_and(|message| message.contains("12005")), "it is not explained");
        took.push(time);
    }
    provider.stop().await?;
    Ok(took)
}

/// A provider in a process of its own.
struct Provider {
    running: Running,
    client: ToolServiceClient<Channel>,
    folder: PathBuf,
}

impl Provider {
    async fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let running = Launch::new(binary, CONTRACT).basic_env().start(None).await?;
        let mut client = ToolServiceClient::new(running.channel());
        let state = folder.join("state");
        let config =
            json!({"allowed_roots": [folder.to_string_lossy()], "state_dir": state.to_string_lossy()});
        client.configure(pb::ConfigureRequest { config: Some(value_to_struct(config)) }).await?;
        Ok(Self { running, client, folder: folder.to_owned() })
    }

    /// The result of a call, or the message of its error, and the time from the request to that.
    async fn attempt(
        &self,
        tool: &str,
        arguments: Value,
    ) -> anyhow::Result<(Result<Value, String>, Duration)> {
        let call = pb::ToolCall {
            id: format!("{:?}", Instant::now()),
            tool_name: tool.to_owned(),
            arguments: Some(value_to_struct(arguments)),
            call_context: Some(harness_proto::common::v1::CallContext {
                session_id: "bench".to_owned(),
                turn_id: String::new(),
                working_directory: self.folder.to_string_lossy().into_owned(),
            }),
        };
        let begun = Instant::now();
        let mut stream =
            self.client.clone().invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
        let mut outcome = None;
        while let Some(message) = stream.message().await? {
            match message.event.and_then(|event| event.event) {
                Some(Event::Result(result)) => {
                    let payload = result.payload.map(provider_core::wire::struct_to_value);
                    outcome = Some((Ok(payload.unwrap_or_default()), begun.elapsed()));
                }
                Some(Event::Error(error)) => {
                    let message = error.message;
                    outcome = Some((Err(message), begun.elapsed()));
                }
                _ => {}
            }
        }
        outcome.context("the call has no end")
    }

    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<(Value, Duration)> {
        let (outcome, took) = self.attempt(tool, arguments).await?;
        Ok((outcome.map_err(anyhow::Error::msg)?, took))
    }

    /// Ends the process; answers the most memory it ever had.
    async fn stop(self) -> anyhow::Result<u64> {
        ensure!(memory(self.running.pid(), "VmRSS:")? > 0, "the provider is gone");
        let peak = memory(self.running.pid(), "VmHWM:")?;
        self.running.stop().await;
        Ok(peak)
    }
}

/// A line of about 190 bytes that no other equals.
fn line(number: u64) -> String {
    format!("line {number:>12} {}\n", "the quick brown fox jumps over the lazy dog ".repeat(4))
}

/// Writes numbered lines, from 1, until the file has `size` bytes.
fn lines(path: &Path, size: u64) -> anyhow::Result<PathBuf> {
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut written = 0;
    for number in 1.. {
        let line = line(number);
        file.write_all(line.as_bytes())?;
        written += line.len() as u64;
        if written >= size {
            break;
        }
    }
    file.into_inner()?.sync_all()?;
    Ok(path.to_owned())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    ensure!(command.status()?.success(), "{command:?} fails");
    Ok(())
}
