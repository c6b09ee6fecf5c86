//! The beginning of the page: where it was measured, and with what.

use std::process::Command;

/// The title, how to read the page, and a description of the machine.
pub(super) fn heading() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = line("/proc/cpuinfo", "model name").unwrap_or_else(|| "an unnamed processor".to_owned());
    let memory = line("/proc/meminfo", "MemTotal")
        .and_then(|text| text.trim_end_matches("kB").trim().parse::<f64>().ok())
        .map_or_else(String::new, |kilobytes| format!(", {:.0} GB of memory", kilobytes / 1e6));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split('-').next().unwrap_or_default().trim().to_owned();
    let versions = [version("rustc"), version("rg"), version("fd"), version("bash")].join("; ");
    format!(
        "<!-- Written by `cargo xtask bench`. Do not edit. -->\n\n# Benchmarks\n\n\
         Measured in one run of `cargo xtask bench --tree DIR`, with the single provider programs built with \
         `--profile dist`. Times are medians with the least and the 99th percentile. Ratios are of medians, which \
         are what is judged, and in brackets of the least. Read the ratios; the absolute figures depend on the \
         machine.\n\n\
         {cores} cores ({processor}){memory}, Linux {kernel}. {versions}.\n"
    )
}

/// What a file of the kernel says after a name and a colon.
fn line(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let first = output.ok().and_then(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    });
    first.unwrap_or_else(|| format!("no {program}"))
}
