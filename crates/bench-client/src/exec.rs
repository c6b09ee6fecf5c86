//! Commands through the exec provider, beside starting them directly.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use goplugin::host::Launch;
use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::wire::value_to_struct;
use serde_json::{Value, json};
use tonic::transport::Channel;

/// Commands measured, after a tenth as many to warm up.
const COMMANDS: usize = 500;
/// What is streamed.
const STREAMED: u64 = 1 << 30;

/// `bash true` beside `bash -c true`, and a stream beside reading the same from a pipe.
pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let running = Launch::new(binary, CONTRACT).basic_env().start(None).await?;
    let idle = crate::memory(running.pid(), "VmRSS:")?;
    let mut client = ToolServiceClient::new(running.channel()).max_decoding_message_size(usize::MAX);
    let config = json!({"root": folder.path(), "state_dir": folder.path().join("state")});
    client.configure(pb::ConfigureRequest { config: Some(value_to_struct(config)) }).await?;
    let (mut ours, mut direct) = (Vec::with_capacity(COMMANDS), Vec::with_capacity(COMMANDS));
    for number in 0..COMMANDS + COMMANDS / 10 {
        let (took, _, sandbox) = bash(&mut client, folder.path(), "true").await?;
        let begun = Instant::now();
        ensure!(Command::new("bash").args(["-c", "true"]).status()?.success(), "bash fails");
        if number >= COMMANDS / 10 {
            ours.push(took);
            direct.push(begun.elapsed());
        }
        ensure!(!sandbox.is_empty(), "no sandbox is named");
    }
    let command = format!("head -c {STREAMED} /dev/zero");
    let (took, streamed, sandbox) = bash(&mut client, folder.path(), &command).await?;
    ensure!(streamed == STREAMED, "{streamed} bytes arrived");
    let peak = crate::memory(running.pid(), "VmHWM:")?;
    let piped = piped(&command)?;
    running.stop().await;
    let rate = |took: Duration| STREAMED as f64 / took.as_secs_f64();
    Ok(json!({
        "commands": COMMANDS,
        "sandbox": sandbox,
        "idle_bytes": idle,
        "bash_true_us": crate::spread(ours),
        "direct_us": crate::spread(direct),
        "streamed_bytes_per_second": rate(took),
        "piped_bytes_per_second": rate(piped),
        "peak_bytes": peak,
    }))
}

/// Runs a command: how long until its result, how many bytes of output came, and what confined it.
async fn bash(
    client: &mut ToolServiceClient<Channel>,
    folder: &Path,
    command: &str,
) -> anyhow::Result<(Duration, u64, String)> {
    let call = pb::ToolCall {
        id: format!("{:?}", Instant::now()),
        tool_name: "bash".to_owned(),
        arguments: Some(value_to_struct(json!({"command": command, "timeout_ms": 600_000}))),
        call_context: Some(CallContext {
            session_id: "bench".to_owned(),
            turn_id: String::new(),
            working_directory: folder.to_string_lossy().into_owned(),
        }),
    };
    let begun = Instant::now();
    let mut stream = client.invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
    let (mut bytes, mut payload) = (0, None);
    while let Some(message) = stream.message().await? {
        match message.event.and_then(|event| event.event) {
            Some(Event::OutputChunk(chunk)) => bytes += chunk.data.len() as u64,
            Some(Event::Result(result)) => payload = result.payload,
            _ => {}
        }
    }
    let took = begun.elapsed();
    let payload = provider_core::wire::struct_to_value(payload.context("no result")?);
    Ok((took, bytes, payload["sandbox"].as_str().unwrap_or_default().to_owned()))
}

/// How long reading the same from a pipe takes.
fn piped(command: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut child = Command::new("bash").args(["-c", command]).stdout(Stdio::piped()).spawn()?;
    let mut output = child.stdout.take().context("no pipe")?;
    let mut buffer = vec![0; 64 * 1024];
    while output.read(&mut buffer)? > 0 {}
    child.wait()?;
    Ok(begun.elapsed())
}
