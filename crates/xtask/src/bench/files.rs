//! Files that are not small.

use std::time::Duration;

use super::Bench;
use super::figures::{Row, Section, Spread, megabytes, number};

pub(super) fn files(bench: &Bench) -> anyhow::Result<Section> {
    let figures = bench.client("files", "provider-filesystem")?;
    let (window_peak, edit_peak) =
        (number(&figures, "window_peak_bytes")?, number(&figures, "edit_peak_bytes")?);
    let (window, edit) = (Spread::read(&figures["window"])?, Spread::read(&figures["edit"])?);
    let (copy, explain) = (Spread::read(&figures["copy"])?, Spread::read(&figures["explain"])?);
    let ratio = edit.beside(&copy);
    let rows = vec![
        Row {
            what: "read_file: ten lines at line 10 million of a file of 2 GiB".to_owned(),
            budget: "RSS ≤ 64 MB".to_owned(),
            met: Some(window_peak <= 64e6),
            measured: format!("peak {}", megabytes(window_peak)),
            beside: format!("each took {window}"),
        },
        Row {
            what: "edit_file: one unique line of a file of 200 MB".to_owned(),
            budget: "RSS ≤ 64 MB; ≤ 2 × `cp` and `sync`".to_owned(),
            met: Some(edit_peak <= 64e6 && ratio.median <= 2.0),
            measured: format!("peak {}; {edit}", megabytes(edit_peak)),
            beside: format!("`cp large copy; sync copy`: {copy}; ratio {ratio}"),
        },
        Row {
            what: "edit_file: why eight lines are not in a file of 20,000 lines".to_owned(),
            budget: "≤ 200 ms".to_owned(),
            met: Some(explain.most <= Duration::from_millis(200)),
            measured: explain.to_string(),
            beside: "the whole call over gRPC".to_owned(),
        },
    ];
    let about = "`bench-client files provider-filesystem`: five windows, five edits in turns with five copies, \
                 twenty explanations; each kind in a process of its own, whose peak is the kernel's `VmHWM`.";
    Ok(Section { title: "Large files", about: about.to_owned(), rows })
}
