//! Searching: beside ripgrep and fd, cancelled, and among a million files.

use std::time::Duration;

use serde_json::Value;

use super::Bench;
use super::figures::{Row, Section, Spread, code, megabytes, number, time};
use super::start::idle_row;

/// What is searched for, what it must not exceed of its peer's time, and how it is written down.
const SEARCHES: &[(&str, f64, &str)] = &[
    ("grep_literal", 1.0, "grep for a literal with few hits"),
    ("grep_regex", 1.0, "grep for a regular expression"),
    ("grep_no_hit", 1.0, "grep for what is not there"),
    ("grep_million", 0.7, "grep with a million hits, limit 1,000, exact totals"),
    ("grep_small", 0.3, "grep in a folder of 40 files"),
    ("glob_cold", 1.0, "glob by name, nothing remembered"),
    ("glob_path_cold", 1.0, "glob by path, nothing remembered"),
    ("glob_again", 0.5, "glob asked again in one session"),
    ("find_file_again", 0.5, "find_file asked again in one session"),
    ("grep_again", 1.0, "grep asked again in one session"),
];

pub(super) fn searches(bench: &Bench) -> anyhow::Result<Section> {
    let figures = bench.client("search", "provider-search")?;
    let mut rows = vec![idle_row("provider-search", &figures, "")?];
    for (name, budget, what) in SEARCHES {
        rows.push(search(&figures[*name], *budget, what)?);
    }
    Ok(Section {
        title: "Searches",
        about: format!(
            "`bench-client search provider-search DIR`, on a tree of {} with a warm file cache: calls over gRPC, in \
             turns with commands whose output is read to the end.",
            files_in(bench)?
        ),
        rows,
    })
}

/// How many files ripgrep counts.
fn files_in(bench: &Bench) -> anyhow::Result<String> {
    let mut command = std::process::Command::new("rg");
    let output = command.args(["--files", "--hidden", "--no-ignore"]).args(&bench.tree).output()?;
    let files = output.stdout.split(|byte| *byte == b'\n').count() - 1;
    Ok(format!("{files} files"))
}

fn search(figure: &Value, budget: f64, what: &str) -> anyhow::Result<Row> {
    let (ours, peer) = (Spread::read(&figure["ours"])?, Spread::read(&figure["peer"])?);
    let ratio = ours.beside(&peer);
    let found = match (figure["found"].as_u64(), figure["peer_found"].as_u64()) {
        (Some(found), Some(peer)) if found == peer => format!("; both find {found}"),
        (Some(found), Some(peer)) => format!("; **found: {found}, the peer {peer}**"),
        _ => String::new(),
    };
    let text = |name: &str| figure[name].as_str().unwrap_or_default();
    let command = match text("command") {
        words if words.contains("call of the session") => words.to_owned(),
        command => code(command),
    };
    Ok(Row {
        what: format!("{what}: {}", code(text("call"))),
        budget: format!("≤ {budget} × the peer"),
        met: Some(ratio.median <= budget),
        measured: format!("ratio {ratio}; {ours}"),
        beside: format!("{command}: {peer}{found}"),
    })
}

pub(super) fn cancels(bench: &Bench) -> anyhow::Result<Section> {
    let figures = bench.client("cancel", "provider-search")?;
    let row = |figure: &Value| {
        let goes_on = Spread::read(&figure["goes_on"])?;
        anyhow::Ok(Row {
            what: called(figure),
            budget: "≤ 100 ms".to_owned(),
            met: Some(goes_on.most <= Duration::from_millis(100)),
            measured: format!("median {}, most {}", time(goes_on.median), time(goes_on.most)),
            beside: format!(
                "{} calls cancelled; a whole one takes {:.2} s",
                number(figure, "cancelled")?,
                number(figure, "whole_seconds")?
            ),
        })
    };
    let rows = figures.as_array().into_iter().flatten().map(row).collect::<anyhow::Result<_>>()?;
    let about = "`bench-client cancel provider-search DIR`: from the cancellation of a call, at points spread over its \
                 course, until no thread works for it any more, by the kernel's account of the time each thread ran.";
    Ok(Section { title: "Cancelling searches", about: about.to_owned(), rows })
}

pub(super) fn many(bench: &Bench) -> anyhow::Result<Section> {
    let figures = bench.client("many", "provider-search")?;
    let row = |figure: &Value| {
        let peak = number(figure, "peak_bytes")?;
        anyhow::Ok(Row {
            what: called(figure),
            budget: "RSS ≤ 200 MB".to_owned(),
            met: Some(peak <= 200e6),
            measured: format!("peak {}", megabytes(peak)),
            beside: format!(
                "{} found; peak of the first call {}, kept after it {}; {:.2} s, then {:.2} s",
                figure["total"],
                megabytes(number(figure, "first_peak_bytes")?),
                megabytes(number(figure, "kept_bytes")?),
                number(figure, "first_seconds")?,
                number(figure, "again_seconds")?
            ),
        })
    };
    let rows = figures["calls"].as_array().into_iter().flatten().map(row).collect::<anyhow::Result<_>>()?;
    let about = "`bench-client many provider-search`: each call twice, by a process of its own, the second time from \
                 memory where that is kept.";
    Ok(Section { title: "A million files", about: about.to_owned(), rows })
}

fn called(figure: &Value) -> String {
    code(&format!("{} {}", figure["tool"].as_str().unwrap_or_default(), figure["arguments"]))
}
