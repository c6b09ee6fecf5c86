//! `cargo xtask bench`: what has a budget, measured beside a peer in one run, written to `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use provider_core::CONTRACT;
use serde_json::Value;

/// Launches measured.
const STARTS: usize = 200;

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the page instead of writing docs/benchmarks.md.
    #[arg(long)]
    dry_run: bool,
    /// A large tree to search: the sources of a kernel, of a registry, or both. Needs rg and fd, the newest, in PATH.
    #[arg(long)]
    tree: Option<PathBuf>,
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
    let [provider, client, search, exec] = build(&root)?;
    let mut rows = vec![start(&provider)?];
    rows.extend(calls(&client, &provider)?);
    rows.extend(commands(&client, &exec)?);
    rows.extend(files(&client, &provider)?);
    let mut page = page(&rows);
    match &arguments.tree {
        Some(tree) => page.push_str(&searches(&client, &search, tree)?),
        None => page.push_str("\nSearches were not measured in this run: they need `--tree`.\n"),
    }
    if arguments.dry_run {
        use std::io::Write as _;
        std::io::stdout().write_all(page.as_bytes())?;
        return Ok(());
    }
    let path = root.join("docs/benchmarks.md");
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

/// Builds the provider and the client as they are packaged; answers their paths.
fn build(root: &Path) -> anyhow::Result<[PathBuf; 4]> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["build", "--profile", "dist"]);
    const PROGRAMS: [&str; 4] = ["provider-filesystem", "bench-client", "provider-search", "provider-exec"];
    command.args(PROGRAMS.iter().flat_map(|name| ["--package", name]));
    ensure!(command.status()?.success(), "the programs do not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(PROGRAMS.map(|name| target.join("dist").join(name)))
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

/// What the optimised client measures: calls on one connection, and memory.
fn calls(client: &Path, provider: &Path) -> anyhow::Result<Vec<Row>> {
    let output = Command::new(client).arg(provider).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the client fails");
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    let bytes = |name: &str| figures[name].as_f64().with_context(|| format!("no {name}"));
    let (idle, configured) = (bytes("idle_bytes")?, bytes("configured_bytes")?);
    let (reads, bare) = (Spread::read(&figures["read_file_us"])?, Spread::read(&figures["describe_us"])?);
    Ok(vec![
        Row {
            what: "idle memory of provider-filesystem, started and connected",
            budget: "≤ 6 MB RSS",
            met: idle <= 6e6,
            ours: megabytes(idle),
            peer: format!("after Configure, which compiles the path patterns: {}", megabytes(configured)),
        },
        Row {
            what: "one read_file of a 10 KB file over gRPC",
            budget: "p50 ≤ 150 µs",
            met: reads.median <= Duration::from_micros(150),
            peer: format!(
                "the bare RPC Describe on the same connection: {bare}; ratio {:.2}",
                reads.ratio(&bare)
            ),
            ours: reads.to_string(),
        },
    ])
}

/// What is searched for, what it must not exceed of its peer's time, and how it is written down.
const SEARCHES: &[(&str, f64, &str)] = &[
    ("grep_literal", 1.0, "grep for a literal with few hits"),
    ("grep_regex", 1.0, "grep for a regular expression"),
    ("grep_no_hit", 1.0, "grep for what is not there"),
    ("grep_million", 0.7, "grep with a million hits, limit 1,000, exact totals"),
    ("grep_small", 0.3, "grep in a folder of 40 files"),
    ("glob_cold", 1.0, "glob, nothing remembered"),
    ("glob_again", 0.5, "glob asked again in one session"),
    ("find_file_again", 0.5, "find_file asked again in one session"),
];

/// Calls beside commands that do the same, on one large tree.
fn searches(client: &Path, provider: &Path, tree: &Path) -> anyhow::Result<String> {
    let output = Command::new(client).arg(provider).arg(tree).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the client fails");
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    let mut text = String::from(
        "\n## Searches\n\nOn one large tree with a warm file cache; calls over gRPC beside commands whose output is \
         read to the end, in turns.\n\n\
         | what | budget: of the peer's time | ratio | met | measured | beside it | command |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, budget, what) in SEARCHES {
        let figure = &figures[*name];
        let (ours, peer) = (Spread::read(&figure["ours_us"])?, Spread::read(&figure["peer_us"])?);
        let ratio = ours.ratio(&peer);
        let hits = figure["found"]["hits"].as_u64().map_or_else(String::new, |hits| format!(", {hits} hits"));
        let met = if ratio <= *budget { "yes" } else { "no" };
        let command = figure["peer"].as_str().unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(
            text,
            "| {what}{hits} | ≤ {budget} | {ratio:.2} | {met} | {ours} | {peer} | `{command}` |"
        );
    }
    Ok(text)
}

/// Commands through the exec provider, beside starting them directly.
fn commands(client: &Path, provider: &Path) -> anyhow::Result<Vec<Row>> {
    let output = Command::new(client).arg("exec").arg(provider).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the client fails");
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| figures[name].as_f64().with_context(|| format!("no {name}"));
    let (ours, direct) = (Spread::read(&figures["bash_true_us"])?, Spread::read(&figures["direct_us"])?);
    let (streamed, piped) = (number("streamed_bytes_per_second")?, number("piped_bytes_per_second")?);
    let (idle, peak) = (number("idle_bytes")?, number("peak_bytes")?);
    let sandbox = figures["sandbox"].as_str().unwrap_or_default();
    Ok(vec![
        Row {
            what: "idle memory of provider-exec, started and connected",
            budget: "≤ 6 MB RSS",
            met: idle <= 6e6,
            ours: megabytes(idle),
            peer: "before Configure, which starts the warm guard".to_owned(),
        },
        Row {
            what: "bash `true`, from the request to the result",
            budget: "≤ 1.5 × a direct spawn",
            met: ours.ratio(&direct) <= 1.5,
            peer: format!(
                "spawning `bash -c true` and waiting: {direct}; ratio {:.2}; sandbox {sandbox}",
                ours.ratio(&direct)
            ),
            ours: ours.to_string(),
        },
        Row {
            what: "bash streaming 1 GiB of output",
            budget: "≥ 800 MB/s, RSS ≤ 64 MB",
            met: streamed >= 8e8 && peak <= 64e6,
            ours: format!("{} a second, peak {}", megabytes(streamed), megabytes(peak)),
            peer: format!("reading the same from a pipe: {} a second", megabytes(piped)),
        },
    ])
}

/// What the client measures on files that are not small.
fn files(client: &Path, provider: &Path) -> anyhow::Result<Vec<Row>> {
    let output = Command::new(client).arg(provider).arg("files").stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the client fails");
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    let bytes = |name: &str| figures[name].as_f64().with_context(|| format!("no {name}"));
    let (window_peak, edit_peak) = (bytes("window_peak_bytes")?, bytes("edit_peak_bytes")?);
    let (window, edit) = (Spread::read(&figures["window_us"])?, Spread::read(&figures["edit_us"])?);
    let (copy, explain) = (Spread::read(&figures["copy_us"])?, Spread::read(&figures["explain_us"])?);
    Ok(vec![
        Row {
            what: "ten lines at line 10 million of a file of 2 GiB",
            budget: "RSS ≤ 64 MB",
            met: window_peak <= 64e6,
            ours: format!("peak {}", megabytes(window_peak)),
            peer: window.to_string(),
        },
        Row {
            what: "edit of one line of a file of 200 MB",
            budget: "RSS ≤ 64 MB; ≤ 2× `cp` and `sync`",
            met: edit_peak <= 64e6 && edit.ratio(&copy) <= 2.0,
            ours: format!("peak {}; {edit}", megabytes(edit_peak)),
            peer: format!("`cp large copy; sync copy`: {copy}; ratio {:.2}", edit.ratio(&copy)),
        },
        Row {
            what: "why a text of eight lines is not in a file of 20,000 lines",
            budget: "≤ 200 ms",
            met: explain.median <= Duration::from_millis(200),
            ours: explain.to_string(),
            peer: "the whole call of edit_file over gRPC".to_owned(),
        },
    ])
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
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

    /// Reads `[median, 99th percentile]` in microseconds.
    fn read(figures: &Value) -> anyhow::Result<Self> {
        let at = |index: usize| figures[index].as_f64().map(|figure| Duration::from_secs_f64(figure / 1e6));
        Ok(Self { median: at(0).context("no median")?, high: at(1).context("no 99th percentile")? })
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
    let _ = writeln!(text, "\n{STARTS} starts, 5,000 calls of each kind; {cores} cores.");
    text
}
