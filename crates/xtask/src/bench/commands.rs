//! Commands through the exec provider.

use super::Bench;
use super::figures::{Row, Section, Spread, code, megabytes, number};
use super::start::idle_row;

pub(super) fn commands(bench: &Bench) -> anyhow::Result<Section> {
    let figures = bench.client("exec", "provider-exec")?;
    let (ours, direct) = (Spread::read(&figures["bash_true"])?, Spread::read(&figures["direct"])?);
    let (streamed, piped) = (Spread::read(&figures["streamed"])?, Spread::read(&figures["piped"])?);
    let (peak, guard) = (number(&figures, "peak_bytes")?, number(&figures, "guard_peak_bytes")?);
    let bytes = number(&figures, "streamed_bytes")?;
    let rate = |spread: &Spread| bytes / spread.median.as_secs_f64();
    let sandbox = figures["sandbox"].as_str().unwrap_or_default();
    let ratio = ours.beside(&direct);
    let rows = vec![
        idle_row("provider-exec", &figures, "before Configure, which starts the warm guard")?,
        Row {
            what: "bash `true`, from the request to the end of the call".to_owned(),
            budget: "≤ 1.5 × a direct spawn".to_owned(),
            met: Some(ratio.median <= 1.5),
            beside: format!(
                "spawning `bash -c true` and waiting, in turns: {direct}; ratio {ratio}; sandbox {sandbox}"
            ),
            measured: ours.to_string(),
        },
        Row {
            what: "bash streaming 1 GiB of output".to_owned(),
            budget: "≥ 800 MB/s, RSS ≤ 64 MB".to_owned(),
            met: Some(rate(&streamed) >= 8e8 && peak <= 64e6 && guard <= 64e6),
            measured: format!(
                "{} a second, peak {} and {} of the guard",
                megabytes(rate(&streamed)),
                megabytes(peak),
                megabytes(guard)
            ),
            beside: format!("reading the same from a pipe, in turns: {} a second", megabytes(rate(&piped))),
        },
    ];
    let about =
        "`bench-client exec provider-exec`: 500 commands, and three times `head -c 1073741824 /dev/zero`.";
    Ok(Section { title: "Commands", about: about.to_owned(), rows })
}

pub(super) fn floods(bench: &Bench) -> anyhow::Result<Section> {
    let figures = bench.client("flood", "provider-exec")?;
    let row = |figure: &serde_json::Value| {
        let (peak, guard) = (number(figure, "peak_bytes")?, number(figure, "guard_peak_bytes")?);
        anyhow::Ok(Row {
            what: format!("bash {}", code(figure["command"].as_str().unwrap_or_default())),
            budget: "RSS ≤ 64 MB".to_owned(),
            measured: format!("peak {} and {} of the guard", megabytes(peak), megabytes(guard)),
            met: Some(peak <= 64e6 && guard <= 64e6),
            beside: format!(
                "{:.2} GB came in {:.1} s",
                number(figure, "bytes")? / 1e9,
                number(figure, "seconds")?
            ),
        })
    };
    let rows = figures.as_array().into_iter().flatten().map(row).collect::<anyhow::Result<_>>()?;
    let about = "`bench-client flood provider-exec`: each with a provider of its own; those without an end run into \
                 their `timeout_ms` of ten seconds.";
    Ok(Section { title: "Commands that print without end", about: about.to_owned(), rows })
}
