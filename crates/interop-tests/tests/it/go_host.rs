//! Runs of the Go host.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::programs;

/// What one run of the Go host came to.
pub(crate) struct Verdict {
    pub(crate) exit_code: Option<i32>,
    pub(crate) report: Value,
    pub(crate) stderr: String,
}

impl Verdict {
    /// Asserts that the host found nothing wrong and gives out its report.
    #[track_caller]
    pub(crate) fn passed(self) -> Value {
        assert_eq!(self.exit_code, Some(0), "{}", self.stderr);
        assert_eq!(self.report["failures"], serde_json::json!([]));
        assert_eq!(self.report["exit"]["code"], 0);
        assert_eq!(self.report["left_over_sockets"], serde_json::json!([]));
        self.report
    }

    /// Asserts that the host found exactly these things wrong, each given by its beginning.
    #[track_caller]
    pub(crate) fn failed(self, expected: &[&str]) {
        assert_eq!(self.exit_code, Some(1), "{}", self.stderr);
        let failures = self.report["failures"].as_array().unwrap();
        let matches = |(failure, start): (&Value, &&str)| failure.as_str().unwrap().starts_with(start);
        let all = failures.len() == expected.len() && failures.iter().zip(expected).all(matches);
        assert!(all, "expected {expected:#?}\nfound {failures:#?}");
        for failure in failures {
            let first_line = failure.as_str().unwrap().lines().next().unwrap();
            assert!(self.stderr.contains(&format!("FAIL: {first_line}")), "{}", self.stderr);
        }
    }
}

/// Runs the host with no more of an environment than a provider may rely on.
pub(crate) fn run(provider: &Path, script: &Value, flags: &[&str]) -> Verdict {
    let scratch = tempfile::tempdir().unwrap();
    let script_path = scratch.path().join("script.json");
    fs::write(&script_path, script.to_string()).unwrap();
    let output = Command::new(programs::go_host())
        .args(flags)
        .arg("-script")
        .arg(&script_path)
        .arg(provider)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scratch.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    Verdict { exit_code: output.status.code(), report, stderr }
}

/// The events of one call, by name.
pub(crate) fn events(report: &Value, call: usize) -> Vec<&str> {
    let events = report["calls"][call]["events"].as_array().unwrap();
    events.iter().map(|event| event.as_str().unwrap()).collect()
}

/// The sessions that log entries came for, each once, in the order of their first entry.
pub(crate) fn logged_sessions(report: &Value) -> Vec<&str> {
    let mut sessions = Vec::new();
    for entry in report["log"].as_array().unwrap() {
        let session = entry["session"].as_str().unwrap();
        if !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    sessions
}
