//! Code mode: programs, each in a process of its own.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Bench;
use super::figures::{Row, Section, Spread};

pub(super) fn programs(bench: &Bench) -> anyhow::Result<Section> {
    let output = Command::new(bench.program("examples/measure")).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the example `measure` of codemode fails");
    let figures: Value = serde_json::from_slice(&output.stdout).context("measure")?;
    let spread = |name: &str| Spread::read(&figures[name]).context(name.to_owned());
    let (trivial, spawn) = (spread("trivial")?, spread("spawn")?);
    let (sequential, parallel) = (spread("sequential")?, spread("parallel")?);
    let rows = vec![
        Row {
            what: "a program that returns a number".to_owned(),
            budget: "p50 ≤ 10 ms".to_owned(),
            met: Some(trivial.median <= Duration::from_millis(10)),
            beside: format!("spawning `true` and waiting: {spawn}; ratio {}", trivial.beside(&spawn)),
            measured: trivial.to_string(),
        },
        Row {
            what: "a program that makes 1,000 calls at once".to_owned(),
            budget: "≤ 100 ms".to_owned(),
            met: Some(parallel.median <= Duration::from_millis(100)),
            measured: parallel.to_string(),
            ..Row::default()
        },
        Row {
            what: "a program that makes 100 calls one after another".to_owned(),
            measured: sequential.to_string(),
            ..Row::default()
        },
    ];
    Ok(Section {
        title: "Code mode",
        about: "Whole programs: start of the sandbox, engine, calls of a tool that answers at once, end; 200, 50 and 50 \
                runs by `cargo run --profile dist -p codemode --example measure`."
            .to_owned(),
        rows,
    })
}
