//! Started in other ways than the usual one: for an unknown version, twice at once, without network.

use std::collections::BTreeMap;

use goplugin::host::LaunchError;
use harness_proto::tool::v1 as pb;
use provider_core::wire::map_to_struct;

use crate::calls::fill_object;
use crate::kernel::Conduct;
use crate::run::Run;
use crate::scenes::previewing;
use crate::session::{Session, Stage};
use crate::topics::{describe, handshake, preview, schema};

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
    // For the same user: with the same home and the same temporary directory.
    let second = match Session::start(&run.subject, first.world.clone(), &stage, &run.canaries).await {
        Ok(second) => second,
        Err(error) => return run.judge.fail(handshake::TWICE, error.to_string()),
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
        return run.judge.all_unreached(&[schema::OFFLINE, preview::OFFLINE], &why);
    }
    let finding = match run.try_start(&stage).await {
        None => return,
        Some(Err(error)) => Err(format!("it does not start: {error}")),
        Some(Ok(session)) => {
            let answer = match session.schema().await {
                Err(refusal) => Err(refusal.to_string()),
                Ok(schema) if schema != run.schema => Err("another answer than with network".to_owned()),
                Ok(_) => Ok(()),
            };
            previews(run, &session).await;
            answer
        }
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

/// Previews of the first working call of each resource, with an eye on the counters of the network.
async fn previews(run: &Run<'_>, session: &Session) {
    let Some(config) = run.wire_config_in(session) else {
        return run.judge.unreached(preview::OFFLINE, "only --calls tells a configuration it accepts");
    };
    if let Err(refusal) = session.configure(config).await {
        let why = format!("it is not configured without network ({refusal})");
        return run.judge.unreached(preview::OFFLINE, why);
    }
    let resources = run.schema.tools.iter().filter(|tool| tool.kind() == pb::ToolKind::Resource);
    let first = resources.filter_map(|tool| run.calls?.positive(&tool.name).next());
    for call in first {
        let arguments = map_to_struct(fill_object(&call.arguments, &run.names(session)));
        let mut wire = session.call(&call.tool, Some(arguments), call.cwd.as_deref());
        wire.call_context = None;
        let before = packets(session.running.pid());
        if let Err(refusal) = session.preview(wire).await
            && refusal.code() == Some(tonic::Code::Unimplemented)
        {
            continue;
        }
        match (before, packets(session.running.pid())) {
            (Some(before), Some(after)) => run.judge.demand(preview::OFFLINE, before == after, || {
                let sent = after.iter().filter(|(name, count)| before.get(*name) != Some(count));
                format!(
                    "{}: {}",
                    call.tool,
                    sent.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
                )
            }),
            _ => run.judge.unreached(preview::OFFLINE, "the counters of the network cannot be read"),
        }
    }
    run.judge.unreached(preview::OFFLINE, previewing::none_seen(run));
}

/// How often the process' network was asked to send something, by kind. A try that fails counts too: there is no
/// route to anywhere.
fn packets(pid: u32) -> Option<BTreeMap<String, u64>> {
    const KINDS: [&str; 5] = ["OutNoRoutes", "OutRequests", "ActiveOpens", "AttemptFails", "OutDatagrams"];
    let mut out = BTreeMap::new();
    let snmp = std::fs::read_to_string(format!("/proc/{pid}/net/snmp")).ok()?;
    // Two lines of each protocol: names, then numbers.
    let lines: Vec<&str> = snmp.lines().collect();
    for pair in lines.chunks_exact(2) {
        for (name, number) in pair[0].split_whitespace().zip(pair[1].split_whitespace()) {
            if KINDS.contains(&name) {
                let protocol = pair[0].split(':').next().unwrap_or_default();
                out.insert(format!("{protocol} {name}"), number.parse().ok()?);
            }
        }
    }
    let snmp6 = std::fs::read_to_string(format!("/proc/{pid}/net/snmp6")).unwrap_or_default();
    for line in snmp6.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(number)) = (words.next(), words.next()) else { continue };
        if ["Ip6OutNoRoutes", "Ip6OutRequests", "Udp6OutDatagrams"].contains(&name) {
            out.insert(name.to_owned(), number.parse().ok()?);
        }
    }
    Some(out)
}
