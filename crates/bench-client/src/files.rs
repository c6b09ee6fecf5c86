//! Files that are not small: a window of a huge one, an edit of a large one, an edit that has to be explained.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use crate::provider::Provider;
use crate::spread;

/// Bytes of the huge file, of which a window at line [`WINDOW_LINE`] is read.
const HUGE: u64 = 2 << 30;
const WINDOW_LINE: u64 = 10_000_000;
/// Bytes of the large file, of which one line is edited.
const LARGE: u64 = 200_000_000;
/// Lines of the file in which a text is looked for that is not there.
const EXPLAINED_LINES: u64 = 20_000;
/// How often a thing is measured.
const TIMES: usize = 5;

/// Measures each in a process of its own, so that its peak of memory is its own too.
pub(crate) async fn measure(binary: &Path) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let (window, window_peak) = window(binary, folder.path()).await?;
    let (edit, edit_peak, copy) = edit(binary, folder.path()).await?;
    let explain = explain(binary, folder.path()).await?;
    Ok(json!({
        "window": window, "window_peak_bytes": window_peak,
        "edit": spread(edit), "edit_peak_bytes": edit_peak, "copy": spread(copy),
        "explain": spread(explain),
    }))
}

async fn window(binary: &Path, folder: &Path) -> anyhow::Result<(Value, u64)> {
    let path = lines(&folder.join("huge"), HUGE)?;
    let provider = start(binary, folder).await?;
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let arguments = json!({"path": "huge", "offset": WINDOW_LINE, "limit": 10});
        let (result, time) = provider.call("read_file", &arguments).await?.result()?;
        let content = result["content"].as_str().unwrap_or_default();
        ensure!(content.starts_with(&line(WINDOW_LINE)), "another window: {content:?}");
        took.push(time);
    }
    let peak = provider.stop().await?;
    std::fs::remove_file(path)?;
    Ok((spread(took), peak))
}

async fn edit(binary: &Path, folder: &Path) -> anyhow::Result<(Vec<Duration>, u64, Vec<Duration>)> {
    let path = lines(&folder.join("large"), LARGE)?;
    let copy_path = folder.join("copy");
    let provider = start(binary, folder).await?;
    let (mut edits, mut copies) = (Vec::new(), Vec::new());
    for time in 0..TIMES {
        run(Command::new("sync").arg(folder))?;
        let begun = Instant::now();
        run(Command::new("cp").args([&path, &copy_path]))?;
        run(Command::new("sync").arg(&copy_path))?;
        copies.push(begun.elapsed());
        std::fs::remove_file(&copy_path)?;
        run(Command::new("sync").arg(folder))?;
        let number = 700_000 + time as u64;
        let old = line(number);
        let arguments =
            json!({"path": "large", "old_str": old.trim_end(), "new_str": format!("edited {number}")});
        let (result, time) = provider.call("edit_file", &arguments).await?.result()?;
        ensure!(result["changed"] == true, "nothing was changed: {result}");
        edits.push(time);
    }
    let peak = provider.stop().await?;
    std::fs::remove_file(path)?;
    Ok((edits, peak, copies))
}

async fn explain(binary: &Path, folder: &Path) -> anyhow::Result<Vec<Duration>> {
    let word = |number: u64| ["alpha", "beta", "gamma", "delta", "epsilon"][(number % 5) as usize];
    let line = |number: u64| {
        format!("    let {}_{number} = compute({}, {});", word(number), number * 7, word(number / 5))
    };
    let text: String = (0..EXPLAINED_LINES).map(|number| line(number) + "\n").collect();
    std::fs::write(folder.join("source"), text)?;
    let wanted: Vec<String> = (12_000..12_008).map(line).collect();
    let wanted = wanted.join("\n").replace("compute(84028", "computed(84028");
    let provider = start(binary, folder).await?;
    let mut took = Vec::new();
    for _ in 0..4 * TIMES {
        let arguments = json!({"path": "source", "old_str": wanted, "new_str": "x"});
        let answer = provider.call("edit_file", &arguments).await?;
        ensure!(answer.outcome.is_err_and(|message| message.contains("12005")), "it is not explained");
        took.push(answer.took);
    }
    provider.stop().await?;
    Ok(took)
}

async fn start(binary: &Path, folder: &Path) -> anyhow::Result<Provider> {
    let state = folder.join("state");
    let config = json!({"allowed_roots": [folder.to_string_lossy()], "state_dir": state.to_string_lossy()});
    Provider::start(binary, folder, config).await
}

/// A line of about 190 bytes that no other equals.
fn line(number: u64) -> String {
    format!("line {number:>12} {}\n", "the quick brown fox jumps over the lazy dog ".repeat(4))
}

/// Writes numbered lines, from 1, until the file has `size` bytes.
fn lines(path: &Path, size: u64) -> anyhow::Result<PathBuf> {
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut written = 0;
    for number in 1.. {
        let line = line(number);
        file.write_all(line.as_bytes())?;
        written += line.len() as u64;
        if written >= size {
            break;
        }
    }
    file.into_inner()?.sync_all()?;
    Ok(path.to_owned())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    ensure!(command.status()?.success(), "{command:?} fails");
    Ok(())
}
