//! Starting providers, what they hold in memory when idle, and small calls.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use provider_core::CONTRACT;
use serde_json::Value;

use super::Bench;
use super::figures::{Row, Section, Spread, megabytes, number};

/// Launches measured of each provider.
const STARTS: usize = 200;

pub(super) fn calls(bench: &Bench) -> anyhow::Result<Section> {
    let mut rows = Vec::new();
    for provider in ["provider-filesystem", "provider-search", "provider-exec"] {
        rows.push(start(&bench.program(provider), provider)?);
    }
    let figures = bench.client("calls", "provider-filesystem")?;
    let configured = number(&figures, "configured_bytes")?;
    let (reads, bare) = (Spread::read(&figures["read_file"])?, Spread::read(&figures["describe"])?);
    let configured = format!("{} in all after Configure", megabytes(configured));
    rows.push(idle_row("provider-filesystem", &figures, &configured)?);
    rows.push(Row {
        what: "read_file of a file of 10 KB, over gRPC".to_owned(),
        budget: "p50 ≤ 150 µs".to_owned(),
        met: Some(reads.median <= Duration::from_micros(150)),
        beside: format!(
            "the bare RPC Describe, on the same connection in turns: {bare}; ratio {}",
            reads.beside(&bare)
        ),
        measured: reads.to_string(),
    });
    Ok(Section {
        title: "Starting and small calls",
        about: format!(
            "{STARTS} starts of each, from spawning the program to its handshake line; 5,000 calls by \
             `bench-client calls provider-filesystem`."
        ),
        rows,
    })
}

/// What a provider holds before it is configured.
pub(super) fn idle_row(provider: &str, figures: &Value, beside: &str) -> anyhow::Result<Row> {
    let (bytes, own) = (number(&figures["idle"], "rss")?, number(&figures["idle"], "own")?);
    let files = format!(
        "{} of it are its own, the rest is pages of program files, which processes share and the system takes back",
        megabytes(own)
    );
    Ok(Row {
        what: format!("idle memory of {provider}, started and connected"),
        budget: "≤ 6 MB RSS".to_owned(),
        measured: megabytes(bytes),
        met: Some(bytes <= 6e6),
        beside: [files.as_str(), beside]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
    })
}

/// The time from spawning the provider to its handshake line, beside spawning `true`.
fn start(binary: &Path, name: &str) -> anyhow::Result<Row> {
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
        what: format!("start of {name} to its handshake line"),
        budget: "≤ 3 ms".to_owned(),
        met: Some(ours.median <= Duration::from_millis(3)),
        beside: format!("spawning `true` and waiting: {peer}; ratio {}", ours.beside(&peer)),
        measured: ours.to_string(),
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
