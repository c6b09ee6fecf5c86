//! A provider in a process of its own, and calls to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use goplugin::host::{Launch, Running};
use harness_proto::common::v1::CallContext;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::wire::{struct_to_value, value_to_struct};
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::process::memory;

pub(crate) struct Provider {
    running: Running,
    client: ToolServiceClient<Channel>,
    /// The working directory of every call.
    folder: PathBuf,
    /// What it held in memory before it was configured, in bytes: `rss` in all, `own` without pages of files.
    pub(crate) idle: Value,
}

/// What became of a call.
pub(crate) struct Answer {
    /// The payload of its result, or the message of its error.
    pub(crate) outcome: Result<Value, String>,
    /// From the request to the end of the stream.
    pub(crate) took: Duration,
    /// Bytes of output that came on the way.
    pub(crate) output: u64,
}

impl Answer {
    /// The payload and the time, of a call that must not fail.
    pub(crate) fn result(self) -> anyhow::Result<(Value, Duration)> {
        let payload = self.outcome.map_err(anyhow::Error::msg)?;
        ensure!(payload["timed_out"] != true, "it ran out of time");
        Ok((payload, self.took))
    }
}

impl Provider {
    pub(crate) async fn start(binary: &Path, folder: &Path, config: Value) -> anyhow::Result<Self> {
        let running = Launch::new(binary, CONTRACT).basic_env().start(None).await?;
        let pid = running.pid();
        let idle = json!({"rss": memory(pid, "VmRSS:")?, "own": memory(pid, "RssAnon:")?});
        let mut client = ToolServiceClient::new(running.channel()).max_decoding_message_size(usize::MAX);
        client.configure(pb::ConfigureRequest { config: Some(value_to_struct(config)) }).await?;
        Ok(Self { running, client, folder: folder.to_owned(), idle })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The bare RPC: what a call costs that does nothing.
    pub(crate) async fn describe(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.client.clone().describe(pb::DescribeRequest {}).await?;
        Ok(begun.elapsed())
    }

    /// Begins a call. To drop the stream is to cancel it.
    pub(crate) async fn begin(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> anyhow::Result<tonic::Streaming<pb::InvokeResponse>> {
        let call = pb::ToolCall {
            id: format!("{:?}", Instant::now()),
            tool_name: tool.to_owned(),
            arguments: Some(value_to_struct(arguments.clone())),
            call_context: Some(CallContext {
                session_id: "bench".to_owned(),
                turn_id: String::new(),
                working_directory: self.folder.to_string_lossy().into_owned(),
            }),
        };
        Ok(self.client.clone().invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> anyhow::Result<Answer> {
        let begun = Instant::now();
        let mut stream = self.begin(tool, arguments).await?;
        let (mut output, mut end) = (0, None);
        while let Some(message) = stream.message().await? {
            match message.event.and_then(|event| event.event) {
                Some(Event::OutputChunk(chunk)) => output += chunk.data.len() as u64,
                Some(other @ (Event::Result(_) | Event::Error(_))) => end = Some(other),
                _ => {}
            }
        }
        let took = begun.elapsed();
        let outcome = match end.with_context(|| format!("{tool} has no end"))? {
            Event::Result(result) => Ok(result.payload.map(struct_to_value).unwrap_or_default()),
            Event::Error(error) => Err(format!("{tool}: {}", error.message)),
            _ => Err(String::new()),
        };
        Ok(Answer { outcome, took, output })
    }

    /// The most memory that the process has had so far.
    pub(crate) fn peak(&self) -> anyhow::Result<u64> {
        ensure!(memory(self.pid(), "VmRSS:")? > 0, "the provider is gone");
        memory(self.pid(), "VmHWM:")
    }

    /// Ends the process; answers the most memory it ever had.
    pub(crate) async fn stop(self) -> anyhow::Result<u64> {
        let peak = self.peak()?;
        self.running.stop().await;
        Ok(peak)
    }
}
