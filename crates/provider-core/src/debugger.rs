//! Waiting for a debugger before anything happens, where the environment asks for it.

use std::io::Write as _;
use std::time::{Duration, Instant};

/// Set and not empty, it makes a provider wait at its start until a debugger is attached.
const VARIABLE: &str = "PROVIDER_WAIT_FOR_DEBUGGER";
/// Hosts give up on a process that says nothing for a minute.
const LONGEST: Duration = Duration::from_secs(50);

/// Waits until a debugger is attached, if the environment asks for that.
pub(crate) fn wait_if_asked() {
    if std::env::var_os(VARIABLE).is_none_or(|value| value.is_empty()) {
        return;
    }
    let id = std::process::id();
    // Nobody may be reading; then nobody attaches, and the wait ends by itself.
    let _ = writeln!(std::io::stderr(), "waiting {} s for a debugger: gdb -p {id}", LONGEST.as_secs());
    let start = Instant::now();
    while !is_attached() && start.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether something traces this process. Only Linux says so; elsewhere the whole time is waited.
fn is_attached() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| has_tracer(&status))
}

fn has_tracer(status: &str) -> bool {
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|id| id.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracer_is_seen_in_the_status() {
        assert!(has_tracer("Name:\tp\nTracerPid:\t4711\nUid:\t0\n"));
        assert!(!has_tracer("Name:\tp\nTracerPid:\t0\nUid:\t0\n"));
        assert!(!has_tracer(""));
    }
}
