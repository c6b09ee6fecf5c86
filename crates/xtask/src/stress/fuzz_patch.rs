//! The patch parser and applier on patches that nobody would write.

use anyhow::ensure;
use provider_filesystem::engine::diff::Diff;
use provider_filesystem::engine::patch::{Status, apply, parse};
use provider_filesystem::engine::text::Text;

use super::{Random, Run, Stress};

/// The run.
pub const STRESS: Stress = Stress {
    name: "fuzz-patch",
    about: "mutated patches on mutated files: no panic, and a diff that applies gives the file it was made for",
    short_rounds: 3_000,
    run,
};

/// Lines that patches are made of.
const LINES: &[&str] = &[
    "*** Begin Patch",
    "*** End Patch",
    "*** Add File: a",
    "*** Update File: a",
    "*** Delete File: a",
    "*** Move to: b",
    "*** End of File",
    "@@",
    "@@ a",
    "@@ -1,2 +1,2 @@",
    "@@ -0,0 +1 @@",
    "@@ -99999999999999999999 +1 @@",
    "--- a/a",
    "+++ b/a",
    "--- /dev/null",
    "+++ /dev/null",
    "+++ \"b/\\303\\244\"",
    "diff --git a/a b/a",
    "diff --git a/ä b",
    "new file mode 100755",
    "deleted file mode 100644",
    "new mode 100755",
    "rename from a",
    "rename to b",
    "\\ No newline at end of file",
    " a",
    "-a",
    "+a",
    " b",
    "-b",
    "+\u{fffd}ö",
    "+",
    " ",
    "",
    "```",
    "-- ",
];

/// Lines that files are made of.
const TEXT: &[&str] = &["a", "b", "", "  a", "}", "ö", "a()"];

fn run(run: &Run) -> anyhow::Result<String> {
    let (mut parsed, mut refused, mut applied, mut reproduced) = (0_u64, 0_u64, 0_u64, 0_u64);
    while let Some(mut random) = run.next_round() {
        let (old, new) = (file(&mut random), file(&mut random));
        let patch = mutated(&mut random, &old, &new);
        match parse(&patch) {
            Err(error) => {
                refused += 1;
                ensure!(!error.to_string().is_empty(), "an error says nothing: {error:?}");
            }
            Ok(patch) => {
                parsed += 1;
                ensure!(!patch.files.is_empty(), "a patch without files: {patch:?}");
                for file in &patch.files {
                    let found = apply(&Text::of_str(&old), &file.hunks)?;
                    ensure!(found.reports.len() == file.hunks.len(), "{} reports", found.reports.len());
                    let silent = found.reports.iter().all(|report| report.status != Status::Applied);
                    ensure!(!silent || found.bytes == old.as_bytes(), "changed, and no hunk applied");
                    applied += u64::from(!silent);
                }
            }
        }
        reproduced += u64::from(reproduces(&old, &new)?);
    }
    Ok(format!(
        "{parsed} patches read, {refused} refused, {applied} applied, {reproduced} diffs gave their file"
    ))
}

/// Whether the diff of the two makes one of the other. It may be refused as ambiguous, and never give another file.
fn reproduces(old: &str, new: &str) -> anyhow::Result<bool> {
    let diff = Diff::between(old.as_bytes(), new.as_bytes()).unified(Some("a"), Some("a"), usize::MAX);
    if diff.is_empty() || old.is_empty() {
        return Ok(false);
    }
    let patch = parse(&diff)?;
    let found = apply(&Text::of_str(old), &patch.files[0].hunks)?;
    if found.reports.iter().any(|report| report.status != Status::Applied) {
        return Ok(false);
    }
    ensure!(
        found.bytes == new.as_bytes(),
        "{old:?} with\n{diff}\ngives {:?}",
        String::from_utf8_lossy(&found.bytes)
    );
    Ok(true)
}

fn file(random: &mut Random) -> String {
    let ending = if random.once_in(4) { "\r\n" } else { "\n" };
    let mut text = String::new();
    for _ in 0..random.below(14) {
        text.push_str(random.pick(TEXT).copied().unwrap_or_default());
        text.push_str(ending);
    }
    if random.once_in(3) {
        text.push_str("last");
    }
    text
}

/// A patch of random lines, or a real one with some lines exchanged.
fn mutated(random: &mut Random, old: &str, new: &str) -> String {
    let mut lines: Vec<String> = match random.below(3) {
        0 => {
            (0..random.below(25)).filter_map(|_| random.pick(LINES)).map(|line| (*line).to_owned()).collect()
        }
        1 => {
            let diff =
                Diff::between(old.as_bytes(), new.as_bytes()).unified(Some("a"), Some("a"), usize::MAX);
            diff.lines().map(str::to_owned).collect()
        }
        _ => {
            let body = old.lines().map(|line| {
                let sign = random.pick(&[" ", " ", "-", "+"]).copied().unwrap_or_default();
                format!("{sign}{line}")
            });
            let body: Vec<String> = body.collect();
            let ends = |line: &str| vec![line.to_owned()];
            [ends("*** Begin Patch"), ends("*** Update File: a"), ends("@@"), body, ends("*** End Patch")]
                .concat()
        }
    };
    for _ in 0..random.below(4) {
        let at = random.below(lines.len() + 1);
        let line = random.pick(LINES).copied().unwrap_or_default();
        match random.below(3) {
            0 => lines.insert(at, line.to_owned()),
            1 if at < lines.len() => drop(lines.remove(at)),
            _ if at < lines.len() => lines[at] = line.to_owned(),
            _ => {}
        }
    }
    let ending = if random.once_in(5) { "\r\n" } else { "\n" };
    let mut text = lines.join(ending);
    if !random.once_in(4) {
        text.push_str(ending);
    }
    text
}
