//! The preview of a listed call, watched.

use std::collections::BTreeMap;
use std::time::Duration;

use harness_proto::tool::v1 as pb;
use pb::{ToolKind, ToolSchema};
use prost_types::Struct;
use serde_json::Value;
use tokio::time::timeout;
use tonic::Code;

use crate::calls::{Call, Expect, fill};
use crate::processes::Processes;
use crate::run::Run;
use crate::scenes::arguments::wrong_value;
use crate::session::{Refusal, Session};
use crate::snapshot::{Look, Snapshot, in_words};
use crate::topics::preview::*;
use crate::topics::render;
use crate::transcript::shortened;
use crate::watch::{Touched, Watch};

/// How long the kernel waits for the answer to the probe.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// The id of the kernel's probe.
const PROBE_ID: &str = "providercatalog/plugin: supports-preview probe";

/// Which tools said that they have no preview.
pub(crate) type Unsupported = BTreeMap<String, bool>;

/// Asks every tool whether it has a preview, as the kernel does.
pub(crate) async fn probe(run: &Run<'_>, session: &Session) -> Unsupported {
    let mut unsupported = Unsupported::new();
    for tool in &run.schema.tools {
        let call = pb::ToolCall {
            id: PROBE_ID.to_owned(),
            tool_name: tool.name.clone(),
            arguments: Some(Struct::default()),
            call_context: None,
        };
        let Ok(answer) = timeout(PROBE_LIMIT, session.preview(call)).await else {
            run.judge.fail(PROBE, format!("{}: no answer within {PROBE_LIMIT:?}", tool.name));
            continue;
        };
        let code = answer.as_ref().err().and_then(Refusal::code);
        run.judge.demand(PROBE, code != Some(Code::Unavailable), || format!("{}: UNAVAILABLE", tool.name));
        unsupported.insert(tool.name.clone(), code == Some(Code::Unimplemented));
    }
    unsupported
}

/// What was there before a preview.
struct Before {
    snapshot: Snapshot,
    watch: Watch,
    processes: Option<Processes>,
}

/// Previews a call before it is made, under its id but without a context.
pub(crate) async fn one(
    run: &Run<'_>,
    session: &Session,
    call: &Call,
    wire: &pb::ToolCall,
    names: &BTreeMap<String, Value>,
    unsupported: &Unsupported,
) {
    if run.tool(&call.tool).map(ToolSchema::kind) != Some(ToolKind::Resource) {
        return;
    }
    let before = begin(session);
    let mut request = pb::ToolCall { call_context: None, ..wire.clone() };
    if call.cwd.is_some() {
        // Nobody can know the directory yet, so that what is shown may rightly differ from what is done.
        request.id = ulid::Ulid::new().to_string();
    }
    let answer = session.preview(request.clone()).await;
    match before {
        Ok(before) => {
            compare(run, session, call, &before);
            processes(run, session, call, before.processes, request).await;
        }
        Err(error) => {
            let why = format!("the scratch directories cannot be watched: {error}");
            run.judge.all_unreached(&[UNCHANGED, UNTOUCHED, NO_PROCESS], &why);
        }
    }
    judged(run, call, &answer, names, unsupported.get(&call.tool).copied());
}

fn begin(session: &Session) -> std::io::Result<Before> {
    let processes = session.processes().ok();
    let snapshot = Snapshot::of(session.world.path())?;
    // Last, so that reading the tree is over.
    Ok(Before { snapshot, watch: Watch::on(session.world.path())?, processes })
}

fn compare(run: &Run<'_>, session: &Session, call: &Call, before: &Before) {
    let touched = before.watch.touched().unwrap_or_default();
    let Ok(now) = Snapshot::of(session.world.path()) else { return };
    let changed = before.snapshot.differences(&now, Look::All);
    run.judge.demand(UNCHANGED, changed.is_empty(), || format!("{}: {}", call.tool, in_words(&changed)));
    // What is changed for good has the other rule.
    let touched: Touched = touched
        .into_iter()
        .map(|(path, word)| {
            let short = path.strip_prefix(session.world.path()).unwrap_or(&path).to_owned();
            (short, word)
        })
        .filter(|(path, _)| !changed.contains_key(path))
        .collect();
    if changed.is_empty() {
        run.judge.demand(UNTOUCHED, touched.is_empty(), || format!("{}: {}", call.tool, in_words(&touched)));
    }
}

/// What a preview leaves, every time. A process that a provider happens to start meanwhile, to have it ready, is not there
/// a second time.
async fn processes(
    run: &Run<'_>,
    session: &Session,
    call: &Call,
    before: Option<Processes>,
    request: pb::ToolCall,
) {
    let (Some(before), Ok(now)) = (before, session.processes()) else { return };
    let mut new = now.beyond(&before);
    if !new.is_empty() {
        let _ = session.preview(request).await;
        let Ok(again) = session.processes() else { return };
        new = again.beyond(&now);
        if !new.is_empty() {
            again.end_beyond(&before);
        }
    }
    run.judge.demand(NO_PROCESS, new.is_empty(), || format!("{}: {}", call.tool, new.join(", ")));
}

fn judged(
    run: &Run<'_>,
    call: &Call,
    answer: &Result<pb::PreviewResponse, Refusal>,
    names: &BTreeMap<String, Value>,
    unsupported: Option<bool>,
) {
    let (judge, tool) = (&run.judge, &call.tool);
    let code = answer.as_ref().err().and_then(Refusal::code);
    let absent = code == Some(Code::Unimplemented);
    if let Some(unsupported) = unsupported {
        judge.demand(CONSISTENT, unsupported == absent, || {
            let word = |absent| if absent { "UNIMPLEMENTED" } else { "another answer" };
            format!("{tool}: {} to the probe, {} to a call", word(unsupported), word(absent))
        });
    }
    match answer {
        Ok(response) => {
            judge.pass(SHOWN);
            let flaw = render::flaw(response.preview.as_ref());
            let whole = flaw.is_ok();
            judge.rule(TREE, flaw.map_err(|flaw| format!("{tool}: {flaw}")));
            if whole {
                shows(run, call, response, names);
            }
        }
        Err(_) if absent => {
            judge.unreached(SHOWN, "no tool that was called has a preview");
            if !call.preview.is_empty() && unsupported == Some(true) {
                judge.fail(TEXTS, format!("{tool} has no preview, and one is listed"));
            }
        }
        Err(refusal) if call.expect == Expect::Result => {
            judge.fail(TREE, format!("{tool}: {refusal}"));
        }
        Err(refusal) => {
            let known = !matches!(code, None | Some(Code::Unknown | Code::Unavailable));
            judge.demand(CODE, known, || format!("{tool}: {refusal}"));
        }
    }
}

fn shows(run: &Run<'_>, call: &Call, response: &pb::PreviewResponse, names: &BTreeMap<String, Value>) {
    let Some(tree) = &response.preview else { return };
    let shown = render::texts(tree);
    for wanted in &call.preview {
        let wanted = fill(&Value::String(wanted.clone()), names);
        let wanted = wanted.as_str().map_or_else(|| wanted.to_string(), str::to_owned);
        run.judge.demand(TEXTS, shown.contains(&wanted), || {
            format!("{}: {wanted:?} is not in {:?}", call.tool, shortened(&shown))
        });
    }
}

/// Previews with arguments that cannot be meant.
pub(crate) async fn refused(run: &Run<'_>, session: &Session, unsupported: &Unsupported) {
    for tool in run.schema.tools.iter().filter(|tool| unsupported.get(&tool.name) == Some(&false)) {
        let Some((arguments, what)) = wrong_arguments(tool) else { continue };
        if tool.kind() != ToolKind::Resource {
            continue;
        }
        let call = pb::ToolCall {
            id: ulid::Ulid::new().to_string(),
            tool_name: tool.name.clone(),
            arguments: Some(arguments),
            call_context: None,
        };
        match session.preview(call).await {
            // A tree is no lie: it may say that the arguments are wrong.
            Ok(_) => {}
            Err(refusal) => run.judge.demand(CODE, refusal.code() == Some(Code::InvalidArgument), || {
                format!("{} {what}: {refusal}", tool.name)
            }),
        }
    }
    run.judge.unreached(CODE, "no preview was refused");
}

/// Arguments that nobody can mean, and what they are: none where one is required, else one of another type.
fn wrong_arguments(tool: &ToolSchema) -> Option<(Struct, String)> {
    let input = tool.input_schema.as_ref()?;
    if !input.required.is_empty() {
        return Some((Struct::default(), "without arguments".to_owned()));
    }
    // In the order of their names: there is no other.
    let properties = std::collections::BTreeMap::from_iter(&input.properties);
    let (name, wrong) =
        properties.iter().find_map(|(name, property)| Some((name, wrong_value(property)?)))?;
    let fields = [((*name).clone(), prost_types::Value { kind: Some(wrong) })].into();
    Some((Struct { fields }, format!("with a wrong {name}")))
}

/// Why some rules may have nothing to look at.
pub(crate) fn reasons(run: &Run<'_>) {
    let all = [SHOWN, CONSISTENT, TREE, TEXTS, UNCHANGED, UNTOUCHED, NO_PROCESS];
    run.judge.all_unreached(&all, none_seen(run));
}

/// Why no preview of a listed call has been seen, where none has.
pub(crate) fn none_seen(run: &Run<'_>) -> &'static str {
    let none = run.schema.tools.iter().all(|tool| tool.kind() != ToolKind::Resource);
    if none { "it has no resource" } else { "no listed call of a resource has a preview" }
}
