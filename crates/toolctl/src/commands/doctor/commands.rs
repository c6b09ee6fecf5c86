//! What keeps commands in check on this machine: each is tried for real.

use provider_core::supervisor::sandbox::{
    Mode, Request, Sandbox, Wanted, landlock_version, namespaces, survey,
};
use provider_core::supervisor::{control_group, find_program};
use rustix::process::{Resource, getrlimit};

use super::{Finding, Status};

pub(super) async fn findings() -> Vec<Finding> {
    let mut findings = tokio::task::spawn_blocking(try_all).await.unwrap_or_else(|error| {
        vec![Finding::new("sandbox", Status::Fail, format!("could not be tried: {error}"))]
    });
    findings.push(path().await);
    findings
}

fn try_all() -> Vec<Finding> {
    let request = |wanted, network| Request { wanted, required: true, network, protect: false };
    let mut findings = vec![
        sandbox("sandbox", &request(Wanted::Auto, true)),
        sandbox("sandbox, network off", &request(Wanted::Auto, false)),
        sandbox("sandbox, read only", &request(Wanted::Confined(Mode::ReadOnly), false)),
    ];
    findings.extend([levels(), landlock()]);
    findings.extend(namespaces().into_iter().map(|(name, entered)| namespace(name, entered)));
    findings.extend([bubblewrap(), group(), limits()]);
    findings
}

fn sandbox(check: &str, request: &Request) -> Finding {
    match Sandbox::choose(request) {
        Ok(sandbox) => {
            let broken = sandbox.tried().iter().filter(|tried| tried.broken.is_some());
            let broken: Vec<String> = broken.map(|tried| format!("; {tried}")).collect();
            Finding::new(check, Status::Ok, format!("{}{}", sandbox.name(), broken.concat()))
        }
        Err(error) => Finding::new(check, Status::Warn, error.to_string()),
    }
}

/// Every level that results can report.
fn levels() -> Finding {
    let all = survey();
    let (holding, broken): (Vec<_>, Vec<_>) = all.iter().partition(|level| level.broken.is_none());
    let mut detail = format!("{} of {} hold", holding.len(), all.len());
    for level in &broken {
        detail.push_str(&format!("; {level}"));
    }
    let status = if holding.is_empty() { Status::Warn } else { Status::Ok };
    Finding::new("sandbox levels", status, detail)
}

fn landlock() -> Finding {
    /// Before this version files elsewhere could be emptied.
    const NEEDED: u32 = 3;
    let (status, detail) = match landlock_version() {
        None => (Status::Warn, "the kernel has none, or it is turned off".to_owned()),
        Some(version) if version < NEEDED => (Status::Warn, format!("ABI {version}; {NEEDED} is needed")),
        Some(version) => (Status::Ok, format!("ABI {version}")),
    };
    Finding::new("landlock", status, detail)
}

fn namespace(name: &str, entered: Result<(), String>) -> Finding {
    let check = format!("{name} namespace");
    match entered {
        Ok(()) => Finding::new(check, Status::Ok, "can be made"),
        Err(reason) => Finding::new(check, Status::Warn, format!("cannot be made: {reason}")),
    }
}

fn bubblewrap() -> Finding {
    let found = find_program("bwrap", std::env::var_os("PATH").as_deref());
    let is_there = found.map_or("not installed".to_owned(), |path| path.display().to_string());
    Finding::new("bubblewrap", Status::Ok, format!("{is_there}; not needed: mounts are made without it"))
}

fn group() -> Finding {
    match control_group() {
        Ok(()) => {
            Finding::new("control group", Status::Ok, "the kernel kills all processes of a command at once")
        }
        Err(error) => {
            let detail =
                format!("none can be made ({error}): processes are found by looking for descendants");
            Finding::new("control group", Status::Ok, detail)
        }
    }
}

/// What bounds a command when nothing is configured.
fn limits() -> Finding {
    let limit = |resource| match getrlimit(resource).current {
        Some(limit) => limit.to_string(),
        None => "no limit".to_owned(),
    };
    let detail = format!(
        "processes of this user: {}, open files: {}; memory_limit_bytes and process_limit are kept by watching",
        limit(Resource::Nproc),
        limit(Resource::Nofile)
    );
    Finding::new("limits", Status::Ok, detail)
}

/// The PATH that commands get.
async fn path() -> Finding {
    let found = provider_exec::command_path().await;
    let path = found.path.map_or_else(|| "none".to_owned(), |path| path.to_string_lossy().into_owned());
    let (status, from) = match found.from_login_shell {
        true => (Status::Ok, "from the login shell"),
        false => {
            (Status::Warn, "this process's own: the login shell named in SHELL did not tell one in time")
        }
    };
    Finding::new("PATH of commands", status, format!("{path} ({from})"))
}
