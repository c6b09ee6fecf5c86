//! Started in other ways than the usual one: for an unknown version, twice at once, without network.

use goplugin::host::LaunchError;

use crate::kernel::Conduct;
use crate::run::Run;
use crate::session::Stage;
use crate::topics::{describe, handshake, schema};

pub(crate) async fn play(run: &Run<'_>) {
    unknown_version(run).await;
    twice(run).await;
    offline(run).await;
}

async fn unknown_version(run: &Run<'_>) {
    let stage = Stage { versions: Some(&[7]), ..Stage::default() };
    let finding = match run.try_start(&stage).await {
        None => return run.judge.unreached(handshake::VERSION, "no scratch directory can be made"),
        Some(Err(LaunchError::Version { version: 1, .. })) => Ok(()),
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(_)) => Err("it claims to speak version 7".to_owned()),
    };
    run.judge.rule(handshake::VERSION, finding);
}

async fn twice(run: &Run<'_>) {
    let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
    let Some(first) = run.start(&stage).await else { return };
    let second = match run.try_start(&stage).await {
        None => return,
        Some(Ok(second)) => second,
        Some(Err(error)) => return run.judge.fail(handshake::TWICE, error.to_string()),
    };
    let (one, other) = (first.describe().await, second.describe().await);
    match (one, other) {
        (Ok(one), Ok(other)) => {
            run.judge.pass(handshake::TWICE);
            run.judge.demand(describe::STABLE, one == other, || {
                format!("two processes say {:?} and {:?}", one.producer, other.producer)
            });
        }
        (one, other) => {
            let first_words = one.err().or(other.err()).map(|refusal| refusal.to_string());
            run.judge.fail(handshake::TWICE, first_words.unwrap_or_default());
        }
    }
    if let Ok(again) = second.schema().await {
        run.judge.demand(schema::STABLE, again == run.schema, || {
            "two processes declare different things".to_owned()
        });
    }
}

async fn offline(run: &Run<'_>) {
    let stage = Stage { offline: true, ..Stage::default() };
    if let Err(why) = can_be_offline().await {
        return run.judge.unreached(schema::OFFLINE, why);
    }
    let finding = match run.try_start(&stage).await {
        None => return,
        Some(Err(error)) => Err(format!("it does not start: {error}")),
        Some(Ok(session)) => match session.schema().await {
            Err(refusal) => Err(refusal.to_string()),
            Ok(schema) if schema != run.schema => Err("another answer than with network".to_owned()),
            Ok(_) => Ok(()),
        },
    };
    run.judge.rule(schema::OFFLINE, finding);
}

/// Whether programs can be run in a network namespace of their own here.
pub(crate) async fn can_be_offline() -> Result<(), String> {
    let mut command = tokio::process::Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--", "true"]).stdin(std::process::Stdio::null());
    match command.output().await {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "no network namespace can be made here: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("no network namespace can be made here: unshare: {error}")),
    }
}
