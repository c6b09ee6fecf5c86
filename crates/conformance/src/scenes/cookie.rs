//! Started by hand: without the cookie, and with another one.

use std::time::Duration;

use provider_core::CONTRACT;

use crate::Requirement;
use crate::run::Run;
use crate::scenes::launching::command;
use crate::topics::handshake::{NO_COOKIE, WRONG_COOKIE};
use crate::transcript::shortened;
use crate::world::World;

/// How long a program may take to say that it is a plugin.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn play(run: &Run<'_>) {
    started(run, NO_COOKIE, None).await;
    started(run, WRONG_COOKIE, Some("another cookie")).await;
}

async fn started(run: &Run<'_>, requirement: &'static Requirement, cookie: Option<&str>) {
    let Ok(world) = World::new(None) else {
        return run.judge.unreached(requirement, "no scratch directory can be made");
    };
    let mut command = command(run, &world);
    if let Some(cookie) = cookie {
        command.env(CONTRACT.cookie_key, cookie);
    }
    let finding = match tokio::time::timeout(LIMIT, command.output()).await {
        Err(_) => Err(format!("it still ran after {LIMIT:?}")),
        Ok(Err(error)) => Err(format!("it cannot be started: {error}")),
        Ok(Ok(output)) => refused(&output),
    };
    run.judge.rule(requirement, finding);
}

fn refused(output: &std::process::Output) -> Result<(), String> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    match () {
        () if output.status.code() != Some(1) => Err(format!("{}", output.status)),
        () if !stdout.is_empty() => Err(format!("stdout: {}", shortened(&stdout))),
        () if output.stderr.trim_ascii().is_empty() => Err("nothing on stderr".to_owned()),
        () => Ok(()),
    }
}
