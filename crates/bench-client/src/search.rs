//! Searches beside ripgrep and fd, on the tree that is given: each pair takes turns, so that both meet the same
//! machine.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::process::without_thread;
use crate::provider::Provider;
use crate::spread;

/// Turns of each pair, after one to warm up.
const TURNS: usize = 15;
/// How often the same is asked again in one session.
const NEXT: usize = 3;
/// The thread of the provider that keeps what was found.
const KEEPER: &str = "keep-tree";

/// One thing to measure: a call, and the command that does the same.
struct Pair {
    name: &'static str,
    tool: &'static str,
    arguments: &'static str,
    command: &'static [&'static str],
    /// Whether a folder of a few files is searched instead of the tree.
    small: bool,
    /// Whether the provider is started anew for every turn, so that it remembers nothing.
    fresh: bool,
}

const PAIRS: &[Pair] = &[
    grep(
        "grep_literal",
        r#"{"pattern": "EXPORT_SYMBOL_NS_GPL", "case": "sensitive", "context": 0}"#,
        &["rg", "-n", "EXPORT_SYMBOL_NS_GPL", "."],
    ),
    grep(
        "grep_regex",
        r#"{"pattern": "\\w+_SUSPEND\\b.*=", "case": "sensitive", "context": 0}"#,
        &["rg", "-n", r"\w+_SUSPEND\b.*=", "."],
    ),
    grep(
        "grep_no_hit",
        r#"{"pattern": "no such text anywhere", "case": "sensitive"}"#,
        &["rg", "-n", "no such text anywhere", "."],
    ),
    grep(
        "grep_million",
        r#"{"pattern": "(return|static)", "case": "sensitive", "limit": 1000, "context": 0}"#,
        &["rg", "-n", "(return|static)", "."],
    ),
    Pair {
        small: true,
        ..grep(
            "grep_small",
            r#"{"pattern": "needle", "case": "sensitive", "context": 0}"#,
            &["rg", "-n", "needle", "."],
        )
    },
    glob("glob_cold", r#"{"pattern": "**/*.c"}"#, &["fd", "--glob", "*.c"]),
    glob(
        "glob_path_cold",
        r#"{"pattern": "**/usb*/**/*.h"}"#,
        &["fd", "--full-path", "--glob", "**/usb*/**/*.h"],
    ),
];

const fn grep(name: &'static str, arguments: &'static str, command: &'static [&'static str]) -> Pair {
    Pair { name, tool: "grep", arguments, command, small: false, fresh: false }
}

const fn glob(name: &'static str, arguments: &'static str, command: &'static [&'static str]) -> Pair {
    Pair { name, tool: "glob", arguments, command, small: false, fresh: true }
}

/// What is asked twice in one session: the second answer beside the first.
const AGAIN: &[(&str, &str, &str)] = &[
    ("glob_again", "glob", r#"{"pattern": "**/*.c"}"#),
    ("find_file_again", "find_file", r#"{"query": "usbcore"}"#),
    ("grep_again", "grep", r#"{"pattern": "EXPORT_SYMBOL_NS_GPL", "case": "sensitive", "context": 0}"#),
];

/// Measures everything on `tree`, or `only` one figure, with a provider of its own.
pub(crate) async fn measure(binary: &Path, tree: &Path, only: Option<&str>) -> anyhow::Result<Value> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let small = tempfile::tempdir()?;
    for number in 0..40 {
        let text = format!("line of file {number}\n").repeat(200) + "a needle\n";
        std::fs::write(small.path().join(format!("{number}.txt")), text)?;
    }
    let mut figures = serde_json::Map::new();
    let providers = [start(binary, tree).await?, start(binary, small.path()).await?];
    for pair in PAIRS.iter().filter(|pair| wanted(pair.name)) {
        let figure = match pair.small {
            true => beside(binary, pair, &providers[1], small.path()).await?,
            false => beside(binary, pair, &providers[0], tree).await?,
        };
        figures.insert(pair.name.to_owned(), figure);
    }
    let [large, _small] = providers;
    figures.insert("idle".to_owned(), large.idle.clone());
    large.stop().await?;
    for (name, tool, arguments) in AGAIN.iter().filter(|(name, ..)| wanted(name)) {
        let figure = again(binary, tree, tool, &serde_json::from_str(arguments)?).await?;
        figures.insert((*name).to_owned(), figure);
    }
    Ok(Value::Object(figures))
}

async fn start(binary: &Path, tree: &Path) -> anyhow::Result<Provider> {
    Provider::start(binary, tree, json!({"allowed_roots": [tree], "deadline_ms": 600_000})).await
}

/// A call and a command in turns.
async fn beside(binary: &Path, pair: &Pair, provider: &Provider, tree: &Path) -> anyhow::Result<Value> {
    let arguments = serde_json::from_str(pair.arguments)?;
    let (mut ours, mut theirs, mut answer, mut lines) = (Vec::new(), Vec::new(), Value::Null, 0);
    for turn in 0..=TURNS {
        let own = if pair.fresh { Some(start(binary, tree).await?) } else { None };
        let (payload, took) = own.as_ref().unwrap_or(provider).call(pair.tool, &arguments).await?.result()?;
        if let Some(own) = own {
            own.stop().await?;
        }
        if turn == 0 {
            (answer, lines) = (payload, count(pair.command, tree)?);
            continue;
        }
        ours.push(took);
        theirs.push(drain(pair.command, tree)?);
    }
    let found = ["total_lines", "total_matches", "total"].into_iter().find_map(|name| answer[name].as_u64());
    Ok(json!({
        "call": format!("{} {}", pair.tool, pair.arguments),
        "ours": spread(ours),
        "peer": spread(theirs),
        "command": pair.command.join(" "),
        "found": found,
        "peer_found": lines,
    }))
}

/// The first call of a session, and the next one, once what may be kept is kept.
async fn again(binary: &Path, tree: &Path, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
    let (mut first, mut next) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let provider = start(binary, tree).await?;
        first.push(provider.call(tool, arguments).await?.result()?.1);
        let pid = provider.pid();
        tokio::task::spawn_blocking(move || without_thread(pid, KEEPER)).await??;
        for _ in 0..NEXT {
            next.push(provider.call(tool, arguments).await?.result()?.1);
        }
        provider.stop().await?;
    }
    Ok(json!({
        "call": format!("{tool} {arguments}"),
        "ours": spread(next),
        "peer": spread(first),
        "command": "the first call of the session",
    }))
}

/// How many lines a command prints.
fn count(command: &[&str], folder: &Path) -> anyhow::Result<usize> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} is needed to compare with", command[0]))?;
    Ok(output.stdout.split(|byte| *byte == b'\n').count() - 1)
}

/// How long a command takes whose output is read and thrown away.
fn drain(command: &[&str], folder: &Path) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut buffer, mut stdout) = (vec![0; 1 << 16], child.stdout.take().context("no stdout")?);
    while stdout.read(&mut buffer)? > 0 {}
    let status = child.wait()?;
    ensure!(status.code().is_some_and(|code| code < 2), "{} fails", command.join(" "));
    Ok(begun.elapsed())
}
