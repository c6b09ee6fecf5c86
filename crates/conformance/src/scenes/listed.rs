//! The calls of the calls file, in order, in one session.

use std::collections::BTreeMap;
use std::time::Duration;

use harness_proto::tool::v1 as pb;
use pb::tool_event::Event;
use pb::{OutputStream, ToolKind, ToolSchema};
use prost_types::Struct;
use provider_core::wire::map_to_struct;
use serde_json::Value;

use crate::calls::{Call, Calls, Expect, fill, fill_object};
use crate::run::Run;
use crate::scenes::previewing::{self, Unsupported};
use crate::scenes::rendering;
use crate::session::Session;
use crate::snapshot::{Look, Snapshot, in_words};
use crate::topics::{invoke, stream};
use crate::transcript::{Transcript, category, shortened};

/// How long a call that ends by itself may take.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(30);

/// A call that worked, to be made again in other circumstances.
#[derive(Clone, Debug)]
pub(crate) struct Proven {
    pub(crate) tool: String,
    pub(crate) arguments: Struct,
    pub(crate) cwd: Option<String>,
}

/// What came of the calls that others can use.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// The first call that a data source answered with a result.
    pub(crate) proven: Option<Proven>,
    /// The last result of any tool.
    pub(crate) payload: Option<Value>,
}

/// Makes the calls, each after its preview, and has the results drawn.
pub(crate) async fn play(
    run: &Run<'_>,
    session: &Session,
    calls: &Calls,
    unsupported: &Unsupported,
) -> Played {
    let mut names = run.names(session);
    let mut played = Played::default();
    for call in calls.calls.iter().filter(|call| !call.long) {
        let Some(tool) = run.tool(&call.tool) else {
            run.judge.fail(invoke::AS_EXPECTED, format!("there is no tool {}", call.tool));
            continue;
        };
        let arguments = map_to_struct(fill_object(&call.arguments, &names));
        let wire = session.call(&call.tool, Some(arguments.clone()), call.cwd.as_deref());
        previewing::one(run, session, call, &wire, &names, unsupported).await;
        let made = one(run, session, call, tool, wire, &names).await;
        keep(run, call, &made, &mut names);
        if let Some(payload) = made.payload() {
            rendering::one(run, session, &call.tool, &payload).await;
            played.payload = Some(payload);
            if tool.kind() == ToolKind::DataSource && played.proven.is_none() {
                let (tool, cwd) = (call.tool.clone(), call.cwd.clone());
                played.proven = Some(Proven { tool, arguments, cwd });
            }
        }
        if session.has_secrets() {
            let _ = session.processes();
        }
        if !session.is_alive() {
            session.is_ended(&run.judge, &call.tool);
            break;
        }
    }
    reasons(run, calls);
    previewing::reasons(run);
    played
}

/// Why some rules may have nothing to look at.
fn reasons(run: &Run<'_>, calls: &Calls) {
    let judge = &run.judge;
    if calls.calls.iter().all(|call| call.long) {
        judge.all_unreached(invoke::ALL, "the calls file lists no calls");
        judge.all_unreached(stream::ALL, "the calls file lists no calls");
    }
    judge.unreached(invoke::AS_EXPECTED, "the calls file lists no calls");
    judge.unreached(invoke::CONFORMS, "no listed call ends with a result");
    judge.unreached(invoke::FINITE, "no listed call ends with a result");
    judge.unreached(invoke::READ_ONLY, "no call of a data source is listed");
    judge.unreached(invoke::IDEMPOTENT, "no call of an idempotent resource is listed");
    let without = calls.calls.iter().all(|call| call.long || call.cwd.is_none());
    let why = if without { "no listed call has a cwd" } else { "the calls with a cwd broke another rule" };
    judge.unreached(invoke::WORKING_DIRECTORY, why);
    judge.unreached(stream::EXIT_SENT, "no listed call has an exit_code");
    judge.unreached(stream::CHUNK_ORDER, "no listed call has a stdout or stderr");
}

async fn one(
    run: &Run<'_>,
    session: &Session,
    call: &Call,
    tool: &ToolSchema,
    wire: pb::ToolCall,
    names: &BTreeMap<String, Value>,
) -> Transcript {
    let before = Snapshot::of(&session.world.root());
    let arguments = wire.arguments.clone().unwrap_or_default();
    let transcript = session.invoke(wire, CALL_LIMIT).await;
    if !session.is_alive() {
        return transcript;
    }
    judge(run, tool, &transcript);
    let requirement = if call.cwd.is_some() { invoke::WORKING_DIRECTORY } else { invoke::AS_EXPECTED };
    if let Some(finding) = as_expected(run, call, &transcript, names) {
        run.judge.rule(requirement, finding);
    }
    output(run, call, &transcript);
    let after = Snapshot::of(&session.world.root());
    match (tool.kind(), before, after) {
        (ToolKind::DataSource, Ok(before), Ok(after)) => {
            let differences = before.differences(&after, Look::All);
            run.judge.demand(invoke::READ_ONLY, differences.is_empty(), || {
                format!("{}: {}", call.tool, in_words(&differences))
            });
        }
        (ToolKind::Resource, _, Ok(after)) if tool.idempotent && transcript.payload().is_some() => {
            again(run, session, call, &arguments, &after).await;
        }
        _ => {}
    }
    transcript
}

/// Holds any stream of a known tool against the rules for all of them.
pub(crate) fn judge(run: &Run<'_>, tool: &ToolSchema, transcript: &Transcript) {
    let facts =
        stream::Tool { name: &tool.name, streaming: tool.streaming, process: run.is_process(&tool.name) };
    stream::judge(&run.judge, facts, transcript);
    let output = run.catalogue.tool(&tool.name).map(|tool| &tool.output);
    invoke::judge(&run.judge, &tool.name, output, transcript);
}

/// Whether the call ended as the file says; `None` where another rule is broken instead.
fn as_expected(
    run: &Run<'_>,
    call: &Call,
    transcript: &Transcript,
    names: &BTreeMap<String, Value>,
) -> Option<Result<(), String>> {
    let tool = &call.tool;
    transcript.first_terminal()?;
    match (call.expect, transcript.payload(), transcript.error()) {
        (Expect::Result, Some(payload), _) => {
            let output = run.catalogue.tool(tool).map(|tool| &tool.output);
            if output.is_some_and(|output| output.check(&payload).is_err()) {
                return None;
            }
            let wanted = call.payload.clone().map(|wanted| fill(&Value::Object(wanted), names));
            let found = wanted.and_then(|wanted| difference("payload", &wanted, &payload));
            Some(found.map_or(Ok(()), |difference| Err(format!("{tool}: {difference}"))))
        }
        // A missing message has a rule of its own.
        (Expect::Error(_), _, Some(error)) if error.message.trim().is_empty() => None,
        (Expect::Error(wanted), _, Some(error)) if category(error) == wanted.to_string() => {
            let missing = call.message.iter().find(|text| !error.message.contains(*text));
            Some(missing.map_or(Ok(()), |text| {
                Err(format!("{tool}: {text:?} is not in {:?}", shortened(&error.message)))
            }))
        }
        (Expect::Error(_), _, Some(error)) if error.category() == pb::ToolErrorCategory::Unspecified => None,
        (Expect::Error(_), _, Some(error)) if error.category() == pb::ToolErrorCategory::ProcessCrashed => {
            None
        }
        (Expect::Result, ..) => Some(Err(format!("{tool} ended with {}", transcript.ending()))),
        (Expect::Error(wanted), ..) => {
            Some(Err(format!("{tool} ended with {} instead of {wanted}", transcript.ending())))
        }
    }
}

/// The first place where `wanted` is not contained in `found`.
fn difference(path: &str, wanted: &Value, found: &Value) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().find_map(|(name, wanted)| match found.get(name) {
                None => Some(format!("{path}.{name} is missing")),
                Some(found) => difference(&format!("{path}.{name}"), wanted, found),
            })
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (wanted, found))| difference(&format!("{path}[{index}]"), wanted, found))
        }
        (Value::Number(wanted), Value::Number(found)) if wanted.as_f64() == found.as_f64() => None,
        (wanted, found) if wanted == found => None,
        (wanted, found) => Some(format!(
            "{path} is {}, not {}",
            shortened(&found.to_string()),
            shortened(&wanted.to_string())
        )),
    }
}

/// What the file says about output and exit of a process.
fn output(run: &Run<'_>, call: &Call, transcript: &Transcript) {
    let tool = &call.tool;
    let nowhere = |event: &Event| matches!(event, Event::OutputChunk(chunk) if chunk.stream() == OutputStream::Unspecified);
    // A chunk of no stream has a rule of its own.
    let placed = !transcript.events.iter().flatten().any(nowhere);
    for (wanted, stream) in [(&call.stdout, OutputStream::Stdout), (&call.stderr, OutputStream::Stderr)] {
        let Some(wanted) = wanted.as_ref().filter(|_| placed) else { continue };
        let bytes: Vec<u8> = transcript
            .events
            .iter()
            .flatten()
            .filter_map(|event| match event {
                Event::OutputChunk(chunk) if chunk.stream() == stream => Some(chunk.data.to_vec()),
                _ => None,
            })
            .flatten()
            .collect();
        run.judge.demand(stream::CHUNK_ORDER, bytes == wanted.as_bytes(), || {
            format!("{tool} sent {:?}", shortened(&String::from_utf8_lossy(&bytes)))
        });
    }
    let Some(wanted) = call.exit_code else { return };
    let codes: Vec<i32> = transcript
        .events
        .iter()
        .flatten()
        .filter_map(|event| match event {
            Event::ExitStatus(exit) => Some(exit.exit_code),
            _ => None,
        })
        .collect();
    // More than one has a rule of its own.
    if codes.len() <= 1 {
        run.judge.demand(stream::EXIT_SENT, codes == [wanted], || format!("{tool} sent {codes:?}"));
    }
}

/// Makes an idempotent call once more.
async fn again(run: &Run<'_>, session: &Session, call: &Call, arguments: &Struct, before: &Snapshot) {
    let wire = session.call(&call.tool, Some(arguments.clone()), call.cwd.as_deref());
    session.invoke(wire, CALL_LIMIT).await;
    if let Ok(after) = Snapshot::of(&session.world.root()) {
        let differences = before.differences(&after, Look::State);
        run.judge.demand(invoke::IDEMPOTENT, differences.is_empty(), || {
            format!("{}: {}", call.tool, in_words(&differences))
        });
    }
}

fn keep(run: &Run<'_>, call: &Call, transcript: &Transcript, names: &mut BTreeMap<String, Value>) {
    let Some(payload) = transcript.payload() else { return };
    for (name, pointer) in &call.keep {
        match payload.pointer(pointer) {
            Some(value) => _ = names.insert(name.clone(), value.clone()),
            None => run.judge.fail(invoke::AS_EXPECTED, format!("{}: there is no {pointer}", call.tool)),
        }
    }
}
