//! Pages of the web as text.

use super::Bench;
use super::figures::{Row, Section, Spread, megabytes, number};

/// What has been fetched must be read at this rate, in bytes a second.
const BUDGET: f64 = 20e6;
/// A hostile page at the default cap is read within this time, in seconds.
const LONGEST: f64 = 2.0;
/// Time may grow so much faster than the page before it is called more than linear.
const LINEAR: f64 = 1.5;

pub(super) fn pages(bench: &Bench) -> anyhow::Result<Section> {
    let folder = crate::workspace_root().join("crates/provider-web/tests/pages");
    let figures = bench.client_on("html", &folder)?;
    let bytes = number(&figures, "bytes")?;
    let (ours, tokens) = (Spread::read(&figures["ours"])?, Spread::read(&figures["tokens"])?);
    let rate = |spread: &Spread| bytes / spread.median.as_secs_f64();
    let (default, most) = (&figures["hostile"][0], &figures["hostile"][1]);
    let seconds = (number(default, "seconds")?, number(most, "seconds")?);
    let size = (number(default, "bytes")?, number(most, "bytes")?);
    let growth = (seconds.1 / seconds.0, size.1 / size.0);
    let name = |figure: &serde_json::Value| figure["page"].as_str().unwrap_or_default().to_owned();
    let rows = vec![
        Row {
            what: format!("HTML to Markdown: {} real pages, {}", figures["pages"], megabytes(bytes)),
            budget: "≥ 20 MB/s".to_owned(),
            measured: format!("{} a second; {ours}", megabytes(rate(&ours))),
            met: Some(rate(&ours) >= BUDGET),
            beside: format!(
                "the tokens alone, in turns, by html5gum: {} a second; ratio {}",
                megabytes(rate(&tokens)),
                ours.beside(&tokens)
            ),
        },
        Row {
            what: "the slowest hostile page at the default cap of 5 MiB".to_owned(),
            budget: "< 2 s".to_owned(),
            measured: format!("{:.2} s ({})", seconds.0, name(default)),
            met: Some(seconds.0 < LONGEST),
            beside: String::new(),
        },
        Row {
            what: "the slowest hostile page at the largest cap, 32 MiB".to_owned(),
            budget: "linear".to_owned(),
            measured: format!("{:.2} s ({})", seconds.1, name(most)),
            met: Some(growth.0 <= growth.1 * LINEAR),
            beside: format!("{:.1} times the time for {:.1} times the bytes", growth.0, growth.1),
        },
    ];
    let about = "`bench-client html crates/provider-web/tests/pages`: all pages forty times, in turns with their \
                 tokens alone; hostile pages three times each, of which the least counts.";
    Ok(Section { title: "Pages as text", about: about.to_owned(), rows })
}
