//! `toolctl doctor`: whether the catalog works on this machine.

mod commands;

use std::path::{Path, PathBuf};

use provider_core::default_state_folder;
use serde::Serialize;
use serde_json::json;
use tool_host::catalogue::FORMAT_VERSION;
use tool_host::config::Settings;
use tool_host::{LaunchOptions, Provider};

use crate::cli::Doctor;
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::paint::{Ink, Look, cell};
use crate::shell::Shell;

/// What was looked at, and what was found.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    check: String,
    status: Status,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// As it should be.
    Ok,
    /// Something is missing that the catalog can do without.
    Warn,
    /// Something does not work.
    Fail,
}

impl Finding {
    fn new(check: impl Into<String>, status: Status, detail: impl Into<String>) -> Self {
        Self { check: check.into(), status, detail: detail.into() }
    }
}

pub(super) async fn run(_: Doctor, shell: &Shell) -> Result<Exit, Failure> {
    let mut findings = Vec::new();
    for name in embedded::names() {
        findings.push(provider(name, shell).await);
    }
    findings.push(openat2());
    findings.extend(commands::findings().await);
    findings.push(code_sandbox().await);
    findings.extend([state_directory(), terminal(shell)]);
    if shell.json() {
        shell.json_document(&json!({"format_version": FORMAT_VERSION, "findings": findings}));
    } else {
        findings.iter().for_each(|finding| shell.data(&line(finding, shell.out())));
    }
    let failed = findings.iter().any(|finding| finding.status == Status::Fail);
    Ok(if failed { Exit::Provider } else { Exit::Done })
}

fn line(finding: &Finding, look: Look) -> String {
    let (word, ink) = match finding.status {
        Status::Ok => ("ok  ", Ink::Green),
        Status::Warn => ("warn", Ink::Yellow),
        Status::Fail => ("FAIL", Ink::Red),
    };
    format!("{} {}: {}\n", look.ink(ink, word), cell(&finding.check), cell(&finding.detail))
}

/// Starts a provider for real and configures it with an empty directory.
async fn provider(name: &str, shell: &Shell) -> Finding {
    let check = format!("provider {name}");
    match try_provider(name, shell).await {
        Ok(detail) => Finding::new(check, Status::Ok, detail),
        Err(failure) => Finding::new(check, Status::Fail, failure.error.message),
    }
}

async fn try_provider(name: &str, shell: &Shell) -> Result<String, Failure> {
    let started = std::time::Instant::now();
    let options = LaunchOptions { notices: shell.notices(), ..LaunchOptions::default() };
    let provider = Provider::launch(&embedded::source(name)?, options).await?;
    let ready = started.elapsed();
    let root = Scratch::new()?;
    // Nothing of the check may stay behind in the real state directory.
    let state = ("state_dir".to_owned(), root.0.to_string_lossy().into());
    let settings =
        Settings { roots: vec![root.0.clone()], json: [state].into_iter().collect(), ..Settings::default() };
    let attributes = &provider.catalogue().config;
    let config = settings.restricted_to(attributes).resolve(attributes)?;
    let configured = provider.configure(config).await;
    let (tools, version) = (provider.catalogue().tools.len(), provider.identity().version.clone());
    provider.stop().await;
    configured?;
    Ok(format!("version {version}, {tools} tools, ready in {:.1} ms", ready.as_secs_f64() * 1000.0))
}

/// An empty directory that goes away again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("toolctl-doctor-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::provider(format!("cannot make {}: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is an empty directory in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(target_os = "linux")]
fn openat2() -> Finding {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    let opened =
        rustix::fs::openat2(CWD, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH);
    match opened {
        Ok(_) => Finding::new("openat2", Status::Ok, "paths are resolved inside their root by the kernel"),
        Err(error) => Finding::new(
            "openat2",
            Status::Warn,
            format!("{error}; paths are walked component by component instead"),
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn openat2() -> Finding {
    Finding::new("openat2", Status::Warn, "only on Linux; paths are walked component by component instead")
}

/// What confines programs of code mode here: one is started for real.
async fn code_sandbox() -> Finding {
    let probed = codemode::probe(&codemode::Sandboxing::default()).await;
    sandbox_finding(probed.map_err(|error| error.to_string()))
}

fn sandbox_finding(probed: Result<codemode::Confinement, String>) -> Finding {
    let check = "code sandbox";
    let found = match probed {
        Ok(found) => found,
        Err(error) => {
            let detail = format!("sandbox-unavailable: {error}; execute refuses to run");
            return Finding::new(check, Status::Warn, detail);
        }
    };
    let complete =
        found.seccomp && !found.landlock.starts_with("not") && !found.namespaces.starts_with("none");
    let detail = format!(
        "seccomp {}; landlock {}; namespaces {}; limits {}",
        if found.seccomp { "on" } else { "off" },
        found.landlock,
        found.namespaces,
        found.limits.join(", ")
    );
    Finding::new(check, if complete { Status::Ok } else { Status::Warn }, detail)
}

fn state_directory() -> Finding {
    let Some(path) = default_state_folder() else {
        return Finding::new(
            "state",
            Status::Warn,
            "neither XDG_STATE_HOME nor HOME is set; changes cannot be undone",
        );
    };
    match writable(&path) {
        Ok(()) => Finding::new("state", Status::Ok, path.display().to_string()),
        Err(error) => {
            let detail = format!("{} cannot be written: {error}; changes cannot be undone", path.display());
            Finding::new("state", Status::Warn, detail)
        }
    }
}

fn writable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let probe = path.join(format!(".ph-doctor-{}.tmp", std::process::id()));
    std::fs::write(&probe, b"")?;
    std::fs::remove_file(&probe)
}

fn terminal(shell: &Shell) -> Finding {
    let can_ask =
        if shell.can_ask() { "calls can be approved here" } else { "nobody can be asked: --yes is needed" };
    let colour = if shell.out().colour { "in colour" } else { "without colour" };
    let width =
        shell.out().width.map_or_else(|| "as wide as needed".to_owned(), |width| format!("{width} columns"));
    Finding::new("terminal", Status::Ok, format!("{can_ask}; output {colour}, {width}"))
}

#[cfg(test)]
mod tests {
    use codemode::Confinement;

    use super::*;

    #[track_caller]
    fn check(probed: Result<Confinement, &str>, status: Status, detail: &str) {
        let finding = sandbox_finding(probed.map_err(str::to_owned));
        assert_eq!((finding.status, finding.detail.as_str()), (status, detail));
    }

    #[test]
    fn a_sandbox_with_a_part_missing_is_a_warning_that_says_so() {
        let whole = Confinement {
            landlock: "fully enforced (version 6)".to_owned(),
            seccomp: true,
            namespaces: "user, net".to_owned(),
            limits: vec!["core=0".to_owned(), "nofile=3".to_owned()],
            surroundings: String::new(),
        };
        let all =
            "seccomp on; landlock fully enforced (version 6); namespaces user, net; limits core=0, nofile=3";
        check(Ok(whole.clone()), Status::Ok, all);
        let none = "none: Operation not permitted (os error 1)";
        let part = Confinement { namespaces: none.to_owned(), ..whole.clone() };
        check(Ok(part), Status::Warn, &all.replace("user, net", none));
        let none = "not enforced: unknown to this kernel";
        let part = Confinement { landlock: none.to_owned(), ..whole };
        check(Ok(part), Status::Warn, &all.replace("fully enforced (version 6)", none));
        check(Err("no filters"), Status::Warn, "sandbox-unavailable: no filters; execute refuses to run");
    }
}
