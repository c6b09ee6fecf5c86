//! One process from its first answer to its end, as the kernel uses it.

use goplugin::host::Running;
use harness_proto::tool::v1 as pb;
use serde_json::Value;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::kernel::Conduct;
use crate::raw;
use crate::run::Run;
use crate::scenes::{arguments, listed, previewing, rendering, trials};
use crate::session::{Session, Stage};
use crate::topics::{callback, configure, describe, handshake, invoke, preview, render, schema, stream};
use crate::transcript::shortened;

/// How often GetSchema is asked.
const TIMES: usize = 20;

pub(crate) async fn play(run: &Run<'_>) {
    let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
    let Some(session) = run.start(&stage).await else { return };
    let described = introduced(run, &session).await;
    let bytes = declared(run, &session).await;
    served(run, &session).await;
    if configured(run, &session).await {
        unchanged(run, &session, described, bytes).await;
        called(run, &session).await;
    } else {
        let why = match run.config {
            None => "only --calls tells a configuration it accepts",
            Some(_) => "it is not configured",
        };
        let first = [configure::ACCEPTED];
        run.judge.all_unreached(&first, why);
        run.judge.all_unreached(invoke::ALL, why);
        run.judge.all_unreached(stream::ALL, why);
        run.judge.all_unreached(preview::ALL, why);
        run.judge.all_unreached(render::ALL, why);
    }
    session.look_aside();
    callback::judge(&run.judge, &session.callbacks.callbacks());
    wrote(run, &session);
}

async fn introduced(run: &Run<'_>, session: &Session) -> Option<pb::DescribeResponse> {
    match session.describe().await {
        Err(refusal) => run.judge.fail(describe::ANSWERED, refusal.to_string()),
        Ok(pb::DescribeResponse { producer: None }) => run.judge.fail(describe::ANSWERED, "no producer"),
        Ok(answer) => {
            run.judge.pass(describe::ANSWERED);
            if let Some(producer) = &answer.producer {
                describe::judge(&run.judge, producer);
            }
            return Some(answer);
        }
    }
    None
}

/// The raw answer to GetSchema, once it has been held against the rules.
async fn declared(run: &Run<'_>, session: &Session) -> Option<bytes::Bytes> {
    schema::judge(&run.judge, &run.schema);
    hooks(run, session).await;
    for _ in 0..TIMES {
        match session.schema().await {
            Ok(again) => run.judge.demand(schema::STABLE, again == run.schema, || {
                "two answers in a row declare different things".to_owned()
            }),
            Err(refusal) => run.judge.fail(schema::STABLE, refusal.to_string()),
        }
    }
    raw_schema(session).await
}

async fn raw_schema(session: &Session) -> Option<bytes::Bytes> {
    raw::unary(session.running.channel(), "/pluggableharness.tool.v1.ToolService/GetSchema").await.ok()
}

async fn hooks(run: &Run<'_>, session: &Session) {
    let points = &run.schema.supported_hook_points;
    if points.is_empty() {
        return run.judge.unreached(schema::HOOKS, "it advertises no hook points");
    }
    let known = run.schema.supported_hook_points().count() == points.len() && !points.contains(&0);
    let path = "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook";
    let answer = raw::unary(session.running.channel(), path).await;
    let served = !matches!(&answer, Err(status) if status.code() == Code::Unimplemented);
    run.judge.demand(schema::HOOKS, known && served, || {
        format!("the points {points:?}, {}", if served { "served" } else { "and UNIMPLEMENTED" })
    });
}

async fn served(run: &Run<'_>, session: &Session) {
    let path = "/pluggableharness.model.v1.ModelService/Describe";
    let finding = match raw::unary(session.running.channel(), path).await {
        Err(status) if status.code() == Code::Unimplemented => Ok(()),
        Err(status) => Err(format!("{:?}: {}", status.code(), shortened(status.message()))),
        Ok(_) => Err("an answer".to_owned()),
    };
    run.judge.rule(handshake::FOREIGN_SERVICE, finding);
    run.judge.rule(handshake::HEALTH, health(&session.running).await);
}

async fn health(running: &Running) -> Result<(), String> {
    let request = HealthCheckRequest { service: "plugin".to_owned() };
    match HealthClient::new(running.channel()).check(request).await {
        Ok(answer) if answer.get_ref().status() == ServingStatus::Serving => Ok(()),
        Ok(answer) => Err(answer.get_ref().status().as_str_name().to_owned()),
        Err(status) => Err(format!("{:?}: {}", status.code(), shortened(status.message()))),
    }
}

/// Whether it can be called from now on.
async fn configured(run: &Run<'_>, session: &Session) -> bool {
    let Some(config) = run.wire_config_in(session) else { return false };
    match session.configure(config).await {
        Ok(()) => {
            run.judge.pass(configure::ACCEPTED);
            true
        }
        Err(refusal) if run.calls.is_some() => {
            run.judge.fail(configure::ACCEPTED, refusal.to_string());
            false
        }
        // Nobody has said that this configuration is a right one.
        Err(refusal) => {
            let why = format!("only --calls tells a configuration it accepts ({refusal})");
            run.judge.unreached(configure::ACCEPTED, why);
            false
        }
    }
}

async fn unchanged(
    run: &Run<'_>,
    session: &Session,
    described: Option<pb::DescribeResponse>,
    bytes: Option<bytes::Bytes>,
) {
    if let (Some(before), Ok(after)) = (described, session.describe().await) {
        run.judge.demand(describe::STABLE, before == after, || {
            format!("{:?}, and after Configure {:?}", before.producer, after.producer)
        });
    }
    let equal = match session.schema().await {
        Ok(after) => {
            let equal = after == run.schema;
            run.judge.demand(schema::STABLE, equal, || "another declaration after Configure".to_owned());
            equal
        }
        Err(refusal) => {
            run.judge.fail(schema::STABLE, format!("after Configure: {refusal}"));
            false
        }
    };
    match (bytes, raw_schema(session).await) {
        // Other content has a rule of its own.
        (Some(before), Some(after)) if equal => {
            run.judge
                .demand(schema::SAME_BYTES, before == after, || "other bytes after Configure".to_owned());
        }
        _ => {}
    }
}

/// Every call there is reason to make, until one of them ends the process.
async fn called(run: &Run<'_>, session: &Session) {
    let unsupported = previewing::probe(run, session).await;
    let played = match run.calls {
        Some(calls) => listed::play(run, session, calls, &unsupported).await,
        None => {
            without_calls(run);
            listed::Played::default()
        }
    };
    if session.is_alive() {
        previewing::refused(run, session, &unsupported).await;
        rendering::refused(run, session, played.payload.as_ref()).await;
    }
    if session.is_alive() {
        arguments::play(run, session).await;
    }
    if session.is_alive() {
        trials::play(run, session, played.proven.as_ref()).await;
    }
    if session.is_alive() {
        run.judge.pass(invoke::SURVIVES);
    }
}

/// What nothing but listed calls can show.
fn without_calls(run: &Run<'_>) {
    let listed = [
        invoke::AS_EXPECTED,
        invoke::CONFORMS,
        invoke::FINITE,
        invoke::READ_ONLY,
        invoke::IDEMPOTENT,
        invoke::WORKING_DIRECTORY,
        invoke::CONCURRENT,
        invoke::NO_CONTEXT,
        invoke::LARGE,
        invoke::HUGE,
        stream::EXIT_SENT,
        stream::CHUNK_ORDER,
        preview::SHOWN,
        preview::CONSISTENT,
        preview::TREE,
        preview::TEXTS,
        preview::UNCHANGED,
        preview::UNTOUCHED,
        preview::OFFLINE,
        preview::NO_PROCESS,
    ];
    run.judge.all_unreached(&listed, "needs calls: --calls FILE");
}

/// Holds what it wrote beside its answers against the rules.
fn wrote(run: &Run<'_>, session: &Session) {
    let seen = session.seen();
    let stdout = String::from_utf8_lossy(&seen.stdout);
    run.judge.demand(handshake::SILENT_STDOUT, stdout.is_empty(), || shortened(&stdout));
    let keys = ["@level", "@message", "@timestamp"];
    for line in &seen.stderr {
        let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(line) else { continue };
        let texts = keys.iter().all(|key| fields.get(*key).is_none_or(Value::is_string));
        run.judge.demand(handshake::LOG_LINES, texts, || shortened(line));
    }
    run.judge.unreached(handshake::LOG_LINES, "it wrote no JSON to stderr");
}
