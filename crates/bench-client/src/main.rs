//! The optimised client of `cargo xtask bench`: launches the provider binary it is given, measures, and prints one
//! JSON object. It is a program of its own because an unoptimised client would measure itself.

mod exec;
mod files;
mod search;

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use goplugin::host::Launch;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::wire::value_to_struct;
use serde_json::{Value, json};
use tonic::transport::Channel;

/// Calls measured, after a tenth as many to warm up.
const CALLS: usize = 5_000;
/// The file that is read, in bytes.
const FILE_SIZE: usize = 10_000;

fn main() -> anyhow::Result<()> {
    let usage =
        "usage: bench-client PROVIDER-BINARY [files | TREE-TO-SEARCH], or bench-client exec PROVIDER-BINARY";
    let mut arguments = std::env::args_os().skip(1).peekable();
    let exec = arguments.next_if(|first| first == "exec").is_some();
    let binary = arguments.next().context(usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let figures = runtime.block_on(async {
        match arguments.next() {
            None if exec => exec::measure(Path::new(&binary)).await,
            None => measure(Path::new(&binary)).await,
            Some(what) if what == "files" => files::measure(Path::new(&binary)).await,
            Some(tree) => search::measure(Path::new(&binary), Path::new(&tree)).await,
        }
    })?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

/// One read_file after another on one connection, beside the bare RPC Describe on the same connection, and what the
/// process holds in memory before.
async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let line = "the quick brown fox jumps over the lazy dog, again and again\n";
    std::fs::write(folder.path().join("file.txt"), line.repeat(FILE_SIZE / line.len()))?;
    let running = Launch::new(binary, CONTRACT).basic_env().start(None).await?;
    let idle = memory(running.pid(), "VmRSS:")?;
    let mut client = ToolServiceClient::new(running.channel());
    let config = json!({"allowed_roots": [folder.path().to_string_lossy()]});
    client.configure(pb::ConfigureRequest { config: Some(value_to_struct(config)) }).await?;
    let configured = memory(running.pid(), "VmRSS:")?;

    let (mut reads, mut bare) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    for number in 0..CALLS + CALLS / 10 {
        let read_took = read_file(&mut client, folder.path(), number).await?;
        let begun = Instant::now();
        client.describe(pb::DescribeRequest {}).await?;
        if number >= CALLS / 10 {
            reads.push(read_took);
            bare.push(begun.elapsed());
        }
    }
    running.stop().await;
    Ok(json!({
        "calls": CALLS,
        "idle_bytes": idle,
        "configured_bytes": configured,
        "read_file_us": spread(reads),
        "describe_us": spread(bare),
    }))
}

/// The time from the request to the result.
async fn read_file(
    client: &mut ToolServiceClient<Channel>,
    folder: &Path,
    number: usize,
) -> anyhow::Result<Duration> {
    let call = pb::ToolCall {
        id: number.to_string(),
        tool_name: "read_file".to_owned(),
        arguments: Some(value_to_struct(json!({"path": "file.txt"}))),
        call_context: Some(harness_proto::common::v1::CallContext {
            session_id: "bench".to_owned(),
            turn_id: String::new(),
            working_directory: folder.to_string_lossy().into_owned(),
        }),
    };
    let begun = Instant::now();
    let mut stream = client.invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
    let event = stream.message().await?.and_then(|message| message.event).and_then(|event| event.event);
    let took = begun.elapsed();
    // Read to the end: a stream that is dropped before is reset, which is not what a host does.
    match (event, stream.message().await?) {
        (Some(Event::Result(_)), None) => Ok(took),
        (other, after) => bail!("read_file answered {other:?}, then {after:?}"),
    }
}

/// The memory of a process, from the line of the kernel's account of it that begins with `what`.
fn memory(pid: u32, what: &'static str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).context(what)?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

/// Median and 99th percentile, in microseconds.
fn spread(mut durations: Vec<Duration>) -> Value {
    durations.sort_unstable();
    let at = |share: usize| durations.get(durations.len() * share / 100).copied().unwrap_or_default();
    json!([at(50).as_secs_f64() * 1e6, at(99).as_secs_f64() * 1e6])
}
