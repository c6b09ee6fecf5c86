//! `cargo xtask bench`: what has a budget, measured beside a peer in one run, written to `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use goplugin::host::Launch;
use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::tool_service_client::ToolServiceClient;
use provider_core::CONTRACT;
use provider_core::wire::value_to_struct;
use serde_json::json;
use tonic::transport::Channel;

/// Launches measured.
const STARTS: usize = 200;
/// Calls measured, after as many to warm up as a tenth of them.
const CALLS: usize = 5_000;
/// The file that is read, in bytes.
const FILE_SIZE: usize = 10_000;

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the page instead of writing docs/benchmarks.md.
    #[arg(long)]
    dry_run: bool,
}

/// One measured thing: the figure, its peer and its budget.
struct Row {
    what: &'static str,
    budget: &'static str,
    ours: String,
    peer: String,
    met: bool,
}

/// Builds the provider as it is packaged, measures, and writes the page.
///
/// # Errors
/// The provider cannot be built or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let root = crate::workspace_root();
    let binary = build(&root)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = vec![start(&binary)?];
    rows.extend(runtime.block_on(calls(&binary))?);
    let page = page(&rows);
    if arguments.dry_run {
        use std::io::Write as _;
        std::io::stdout().write_all(page.as_bytes())?;
        return Ok(());
    }
    let path = root.join("docs/benchmarks.md");
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["build", "--profile", "dist", "--package", "provider-filesystem"]);
    ensure!(command.status()?.success(), "the provider does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("dist/provider-filesystem"))
}

/// The time from spawning the provider to its handshake line, beside spawning `true`.
fn start(binary: &Path) -> anyhow::Result<Row> {
    let mut ours = Vec::with_capacity(STARTS);
    let mut peer = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        ours.push(one_start(binary)?);
        let begun = Instant::now();
        ensure!(Command::new("true").status()?.success(), "`true` fails");
        peer.push(begun.elapsed());
    }
    let (ours, peer) = (Spread::of(ours), Spread::of(peer));
    Ok(Row {
        what: "provider start to handshake line",
        budget: "≤ 3 ms",
        met: ours.median <= Duration::from_millis(3),
        peer: format!("spawning `true` and waiting: {peer}; ratio {:.2}", ours.ratio(&peer)),
        ours: ours.to_string(),
    })
}

fn one_start(binary: &Path) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut child = Command::new(binary)
        .env_clear()
        .env(CONTRACT.cookie_key, CONTRACT.cookie_value)
        .env("PLUGIN_PROTOCOL_VERSIONS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    let stdout = child.stdout.take().context("no stdout")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let took = begun.elapsed();
    // SIGTERM, so that the provider removes its socket.
    let ended = Command::new("kill").arg(child.id().to_string()).status()?.success();
    child.wait()?;
    ensure!(ended && line.starts_with("1|1|unix|"), "unexpected handshake {line:?}");
    Ok(took)
}

/// One read_file after another on one connection, beside the health check on the same connection; and what the
/// idle process holds in memory.
async fn calls(binary: &Path) -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let line = "the quick brown fox jumps over the lazy dog, again and again\n";
    std::fs::write(folder.path().join("file.txt"), line.repeat(FILE_SIZE / line.len()))?;
    let running = Launch::new(binary, CONTRACT).basic_env().start(None).await?;
    let idle = resident_bytes(running.pid())?;
    let mut client = ToolServiceClient::new(running.channel());
    let config = json!({"allowed_roots": [folder.path().to_string_lossy()]});
    client.configure(pb::ConfigureRequest { config: Some(value_to_struct(config)) }).await?;
    let configured = resident_bytes(running.pid())?;

    let (mut ours, mut peer) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
    for number in 0..CALLS + CALLS / 10 {
        let begun = Instant::now();
        read_file(&mut client, folder.path(), number).await?;
        let ours_took = begun.elapsed();
        let begun = Instant::now();
        client.describe(pb::DescribeRequest {}).await?;
        if number >= CALLS / 10 {
            ours.push(ours_took);
            peer.push(begun.elapsed());
        }
    }
    running.stop().await;
    let (ours, peer) = (Spread::of(ours), Spread::of(peer));
    Ok(vec![
        Row {
            what: "idle memory of provider-filesystem, started and connected",
            budget: "≤ 6 MB RSS",
            met: idle <= 6_000_000,
            ours: megabytes(idle),
            peer: format!("after Configure, which compiles the path patterns: {}", megabytes(configured)),
        },
        Row {
            what: "one read_file of a 10 KB file over gRPC",
            budget: "p50 ≤ 150 µs",
            met: ours.median <= Duration::from_micros(150),
            peer: format!(
                "the bare RPC Describe on the same connection: {peer}; ratio {:.2}",
                ours.ratio(&peer)
            ),
            ours: ours.to_string(),
        },
    ])
}

async fn read_file(
    client: &mut ToolServiceClient<Channel>,
    folder: &Path,
    number: usize,
) -> anyhow::Result<()> {
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
    let mut stream = client.invoke(pb::InvokeRequest { call: Some(call) }).await?.into_inner();
    let event = stream.message().await?.and_then(|message| message.event).and_then(|event| event.event);
    match event {
        Some(Event::Result(_)) => Ok(()),
        other => bail!("read_file answered {other:?}"),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn resident_bytes(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

/// Median and 99th percentile of some durations.
struct Spread {
    median: Duration,
    high: Duration,
}

impl Spread {
    fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |share: usize| durations.get(durations.len() * share / 100).copied().unwrap_or_default();
        Self { median: at(50), high: at(99) }
    }

    fn ratio(&self, peer: &Self) -> f64 {
        self.median.as_secs_f64() / peer.median.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "p50 {:.0} µs, p99 {:.0} µs",
            self.median.as_secs_f64() * 1e6,
            self.high.as_secs_f64() * 1e6
        )
    }
}

fn page(rows: &[Row]) -> String {
    let mut text = String::from(
        "<!-- Written by `cargo xtask bench`. Do not edit. -->\n\n# Benchmarks\n\n\
         Measured by `cargo xtask bench` in one run, with the provider built with `--profile dist`. Read the ratios; \
         the absolute figures depend on the machine.\n\n\
         | what | budget | measured | met | beside it, in the same run |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let met = if row.met { "yes" } else { "no" };
        let _ = writeln!(text, "| {} | {} | {} | {met} | {} |", row.what, row.budget, row.ours, row.peer);
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let _ = writeln!(text, "\n{STARTS} starts, {CALLS} calls; {cores} cores.");
    text
}
