//! Searches beside ripgrep and fd, on the tree that is given: each pair takes turns, so that both meet the same
//! machine.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use goplugin::host::{Launch, Running};
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::wire::{struct_to_value, value_to_struct};
use serde_json::{Value, json};
use tonic::transport::Channel;

/// Turns of each pair, after one to warm up.
const TURNS: usize = 9;

/// One thing to measure: a call, and the command that does the same.
struct Pair {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    command: &'static [&'static str],
    /// Searched instead of the whole tree.
    folder: Option<&'static str>,
    /// Whether the provider is started anew for every turn, so that it remembers nothing.
    fresh: bool,
}

fn pairs() -> Vec<Pair> {
    let grep = |name, arguments, command| Pair {
        name,
        tool: "grep",
        arguments,
        command,
        folder: None,
        fresh: false,
    };
    vec![
        grep(
            "grep_literal",
            json!({"pattern": "EXPORT_SYMBOL_NS_GPL", "case": "sensitive", "context": 0}),
            &["rg", "-n", "EXPORT_SYMBOL_NS_GPL", "."],
        ),
        grep(
            "grep_regex",
            json!({"pattern": r"\w+_SUSPEND\b.*=", "case": "sensitive", "context": 0}),
            &["rg", "-n", r"\w+_SUSPEND\b.*=", "."],
        ),
        grep(
            "grep_no_hit",
            json!({"pattern": "no such text anywhere", "case": "sensitive"}),
            &["rg", "-n", "no such text anywhere", "."],
        ),
        grep(
            "grep_million",
            json!({"pattern": r"(return|static)", "case": "sensitive", "limit": 1000, "context": 0}),
            &["rg", "-n", r"(return|static)", "."],
        ),
        Pair {
            folder: Some("folder-of-40"),
            ..grep(
                "grep_small",
                json!({"pattern": "needle", "case": "sensitive", "context": 0}),
                &["rg", "-n", "needle", "."],
            )
        },
        Pair {
            name: "glob_cold",
            tool: "glob",
            arguments: json!({"pattern": "**/*.c"}),
            command: &["fd", "--glob", "**/*.c", "--full-path", "."],
            folder: None,
            fresh: true,
        },
    ]
}

/// What is asked twice in one session: the second answer beside the first.
const AGAIN: &[(&str, &str, &str)] = &[
    ("glob_again", "glob", r#"{"pattern": "**/*.c"}"#),
    ("find_file_again", "find_file", r#"{"query": "usbcore"}"#),
];

/// Measures everything on `tree`, with a provider of its own.
pub(crate) async fn measure(binary: &Path, tree: &Path) -> anyhow::Result<Value> {
    small_folder(tree)?;
    let mut figures = serde_json::Map::new();
    let provider = Provider::start(binary, tree).await?;
    for pair in pairs() {
        let folder = pair.folder.map_or_else(|| tree.to_path_buf(), |name| tree.join(name));
        let (mut ours, mut theirs, mut answer) = (Vec::new(), Vec::new(), Value::Null);
        for turn in 0..=TURNS {
            let own = if pair.fresh { Some(Provider::start(binary, tree).await?) } else { None };
            let (took, payload) =
                own.as_ref().unwrap_or(&provider).call(pair.tool, &pair.arguments, &folder).await?;
            if let Some(own) = own {
                own.running.stop().await;
            }
            let drained = drain(pair.command, &folder)?;
            if turn > 0 {
                ours.push(took);
                theirs.push(drained);
            }
            answer = payload;
        }
        let command = pair.command.join(" ");
        let found = json!({
            "hits": answer["total_matches"].as_u64().or(answer["total"].as_u64()),
            "searched": answer["searched_files"],
        });
        figures.insert(
            pair.name.to_owned(),
            json!({"ours_us": crate::spread(ours), "peer_us": crate::spread(theirs), "peer": command, "found": found}),
        );
    }
    provider.running.stop().await;
    for (name, tool, arguments) in AGAIN {
        figures
            .insert((*name).to_owned(), again(binary, tree, tool, &serde_json::from_str(arguments)?).await?);
    }
    Ok(Value::Object(figures))
}

/// The first call of a session, and the next ones.
async fn again(binary: &Path, tree: &Path, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
    let (mut first, mut next) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let provider = Provider::start(binary, tree).await?;
        first.push(provider.call(tool, arguments, tree).await?.0);
        // What is remembered may be put in order after the first answer.
        tokio::time::sleep(Duration::from_millis(500)).await;
        next.push(provider.call(tool, arguments, tree).await?.0);
        provider.running.stop().await;
    }
    Ok(
        json!({"ours_us": crate::spread(next), "peer_us": crate::spread(first), "peer": "the first call of the session"}),
    )
}

fn small_folder(tree: &Path) -> anyhow::Result<()> {
    let folder = tree.join("folder-of-40");
    std::fs::create_dir_all(&folder)?;
    for number in 0..40 {
        let text = format!("line of file {number}\n").repeat(200) + "a needle\n";
        std::fs::write(folder.join(format!("{number}.txt")), text)?;
    }
    Ok(())
}

/// How long a command takes whose output is read and thrown away.
fn drain(command: &[&str], folder: &Path) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} is needed to compare with", command[0]))?;
    let (mut buffer, mut stdout) = (vec![0; 1 << 16], child.stdout.take().context("no stdout")?);
    while stdout.read(&mut buffer)? > 0 {}
    let status = child.wait()?;
    ensure!(status.code().is_some_and(|code| code < 2), "{} fails", command.join(" "));
    Ok(begun.elapsed())
}

struct Provider {
    running: Running,
    client: ToolServiceClient<Channel>,
}

impl Provider {
    async fn start(binary: &Path, root: &Path) -> anyhow::Result<Self> {
        let running = Launch::new(binary, CONTRACT).basic_env().start(None).await?;
        let mut client = ToolServiceClient::new(running.channel()).max_decoding_message_size(usize::MAX);
        let config = json!({"allowed_roots": [root.to_string_lossy()], "deadline_ms": 600_000});
        client.configure(pb::ConfigureRequest { config: Some(value_to_struct(config)) }).await?;
        Ok(Self { running, client })
    }

    /// The time from the request to the end of the stream, and the result.
    async fn call(&self, tool: &str, arguments: &Value, folder: &Path) -> anyhow::Result<(Duration, Value)> {
        let call = pb::ToolCall {
            id: format!("{tool}-1"),
            tool_name: tool.to_owned(),
            arguments: Some(value_to_struct(arguments.clone())),
            call_context: Some(harness_proto::common::v1::CallContext {
                session_id: "bench".to_owned(),
                turn_id: String::new(),
                working_directory: folder.to_string_lossy().into_owned(),
            }),
        };
        let begun = Instant::now();
        let mut stream =
            self.client.clone().invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
        let mut last = None;
        while let Some(message) = stream.message().await? {
            last = message.event.and_then(|event| event.event);
        }
        let took = begun.elapsed();
        let Some(Event::Result(result)) = last else { anyhow::bail!("{tool} answered {last:?}") };
        let payload = struct_to_value(result.payload.unwrap_or_default());
        ensure!(payload["timed_out"] != true, "{tool} ran out of time");
        Ok((took, payload))
    }
}
