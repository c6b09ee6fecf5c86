//! Calls that no agent means to make: of unknown tools, many at once, far too large.

use futures_util::future::join_all;
use harness_proto::common::v1::CallContext;
use harness_proto::schema::v1::{Schema, SchemaType};
use harness_proto::tool::v1 as pb;
use pb::{ToolErrorCategory, ToolKind, ToolSchema};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::Code;

use crate::Requirement;
use crate::run::Run;
use crate::scenes::arguments::right_arguments;
use crate::scenes::listed::{self, CALL_LIMIT, Proven};
use crate::session::{SESSION, Session};
use crate::topics::{invoke, stream};
use crate::transcript::{End, status_in_words};

/// How many calls are made at once.
const AT_ONCE: usize = 8;

pub(crate) async fn play(run: &Run<'_>, session: &Session, proven: Option<&Proven>) {
    unknown_tool(run, session).await;
    no_call(run, session).await;
    interactive(run, session).await;
    match proven {
        Some(proven) => {
            concurrent(run, session, proven).await;
            nowhere(run, session, proven).await;
        }
        None => {
            let why = "no listed call of a data source ends with a result";
            run.judge.all_unreached(&[invoke::CONCURRENT, invoke::NO_CONTEXT], why);
        }
    }
    match with_a_text(run, session, proven) {
        Some(trial) if !ends(session, &trial).await => {
            let why = format!("{} ends without a terminal event, whatever it is given", trial.tool);
            run.judge.all_unreached(&[invoke::LARGE, invoke::HUGE], &why);
        }
        Some(trial) => {
            large(run, session, &trial, invoke::LARGE, 1 << 20).await;
            large(run, session, &trial, invoke::HUGE, 8 << 20).await;
        }
        None => {
            let why = "no tool with a call in the calls file has a text among its arguments";
            run.judge.all_unreached(&[invoke::LARGE, invoke::HUGE], why);
        }
    }
}

async fn unknown_tool(run: &Run<'_>, session: &Session) {
    const NAME: &str = "conformance_unknown_tool";
    let transcript = session.invoke(session.call(NAME, Some(Struct::default()), None), CALL_LIMIT).await;
    let facts = stream::Tool { name: NAME, streaming: true, process: Some(false) };
    stream::judge(&run.judge, facts, &transcript);
    invoke::judge(&run.judge, NAME, None, &transcript);
    use ToolErrorCategory::{InvalidArguments, NotFound, Unspecified};
    match transcript.error().map(pb::ToolError::category) {
        Some(NotFound | InvalidArguments) => run.judge.pass(invoke::UNKNOWN_TOOL),
        Some(Unspecified) => {}
        Some(_) => run.judge.fail(invoke::UNKNOWN_TOOL, transcript.ending()),
        None if transcript.payload().is_some() => run.judge.fail(invoke::UNKNOWN_TOOL, "a result"),
        None => {}
    }
    survived(run, session, "a call of an unknown tool");
}

async fn no_call(run: &Run<'_>, session: &Session) {
    let request = tonic::Request::new(pb::InvokeRequest { call: None });
    let transcript =
        crate::transcript::Transcript::watch(session.client(), request, CALL_LIMIT, |_| {}).await;
    let finding = match &transcript.end {
        End::Status(status) if status.code() == Code::InvalidArgument => Ok(()),
        End::Status(status) => Err(status_in_words(status)),
        _ => Err(transcript.ending()),
    };
    run.judge.rule(invoke::NO_CALL, finding);
    survived(run, session, "an Invoke without a call");
}

fn survived(run: &Run<'_>, session: &Session, what: &str) {
    if !session.is_alive() {
        session.is_ended(&run.judge, what);
    }
}

/// No host invokes these, except those that cannot ask anybody.
async fn interactive(run: &Run<'_>, session: &Session) {
    let tools = run.schema.tools.iter().filter(|tool| tool.kind() == ToolKind::Interactive);
    for tool in tools {
        let (arguments, made_up) = plausible(run, tool);
        let transcript = session.invoke(session.call(&tool.name, Some(arguments), None), CALL_LIMIT).await;
        listed::judge(run, tool, &transcript);
        match (transcript.error(), transcript.payload()) {
            (Some(error), _) if error.category() == ToolErrorCategory::PermissionDenied => {
                run.judge.pass(invoke::NO_HUMAN);
            }
            (Some(error), _) if error.category() == ToolErrorCategory::Unspecified => {}
            (Some(error), _) if made_up && error.category() == ToolErrorCategory::InvalidArguments => {
                run.judge.unreached(invoke::NO_HUMAN, format!("no call of {} is listed", tool.name));
            }
            (None, None) => {}
            _ => {
                run.judge.fail(invoke::NO_HUMAN, format!("{} ended with {}", tool.name, transcript.ending()))
            }
        }
    }
    run.judge.unreached(invoke::NO_HUMAN, "it has no interactive tool");
}

/// The arguments of a listed call, or else something for everything that is required, and whether that was made up.
fn plausible(run: &Run<'_>, tool: &ToolSchema) -> (Struct, bool) {
    if let Some(call) = run.calls.and_then(|calls| calls.calls.iter().find(|call| call.tool == tool.name)) {
        return (provider_core::wire::map_to_struct(call.arguments.clone()), false);
    }
    let Some(input) = &tool.input_schema else { return (Struct::default(), true) };
    let value = |name: &String| {
        let property = input.properties.get(name)?;
        let kind = match property.r#type() {
            SchemaType::Number => Kind::NumberValue(1.0),
            SchemaType::Boolean => Kind::BoolValue(true),
            SchemaType::Array => Kind::ListValue(prost_types::ListValue::default()),
            SchemaType::Object => Kind::StructValue(Struct::default()),
            SchemaType::String | SchemaType::Unspecified => Kind::StringValue(
                property.enum_values.first().cloned().unwrap_or_else(|| "anything".to_owned()),
            ),
        };
        Some((name.clone(), Value { kind: Some(kind) }))
    };
    (Struct { fields: input.required.iter().filter_map(value).collect() }, true)
}

async fn concurrent(run: &Run<'_>, session: &Session, proven: &Proven) {
    let Some(tool) = run.tool(&proven.tool) else { return };
    if !tool.concurrency.as_ref().is_some_and(|spec| spec.safe) {
        return run.judge.unreached(invoke::CONCURRENT, format!("{} is not safe", tool.name));
    }
    let one = |_| {
        let call = session.call(&proven.tool, Some(proven.arguments.clone()), proven.cwd.as_deref());
        session.invoke(call, CALL_LIMIT)
    };
    for transcript in join_all((0..AT_ONCE).map(one)).await {
        listed::judge(run, tool, &transcript);
        run.judge.demand(invoke::CONCURRENT, transcript.payload().is_some(), || {
            format!("one of {AT_ONCE} calls of {} ended with {}", proven.tool, transcript.ending())
        });
    }
}

/// Calls without a context, and with no more of one than a frontend's own action has.
async fn nowhere(run: &Run<'_>, session: &Session, proven: &Proven) {
    let only_session = CallContext { session_id: SESSION.to_owned(), ..CallContext::default() };
    for context in [None, Some(only_session)] {
        let what = if context.is_none() { "without a context" } else { "with a session only" };
        let call = session.call(&proven.tool, Some(proven.arguments.clone()), None);
        let call = pb::ToolCall { call_context: context, ..call };
        let transcript = session.invoke(call, CALL_LIMIT).await;
        run.judge.demand(invoke::NO_CONTEXT, transcript.first_terminal().is_some(), || {
            format!("{} {what} ended with {}", proven.tool, transcript.ending())
        });
    }
    survived(run, session, "a call without a context");
}

/// A call that is made with one text among its arguments replaced.
struct Trial<'a> {
    tool: &'a str,
    argument: &'a str,
    arguments: Struct,
    cwd: Option<&'a str>,
}

/// The proven call if it has a text, else any tool with a call in the calls file that has one, data sources first.
fn with_a_text<'a>(run: &'a Run<'_>, session: &Session, proven: Option<&'a Proven>) -> Option<Trial<'a>> {
    let is_text = |(_, property): &(&String, &Schema)| {
        property.r#type() == SchemaType::String && property.enum_values.is_empty()
    };
    let text = |tool: &'a ToolSchema| {
        let input = tool.input_schema.as_ref()?;
        let texts = input.properties.iter().filter(is_text).map(|(name, _)| name.as_str());
        // What must be given is what the tool works on. The rest is in no order.
        texts.min_by_key(|name| (!input.required.iter().any(|required| required == name), *name))
    };
    if let Some(proven) = proven
        && let Some(argument) = run.tool(&proven.tool).and_then(text)
    {
        let (arguments, cwd) = (proven.arguments.clone(), proven.cwd.as_deref());
        return Some(Trial { tool: &proven.tool, argument, arguments, cwd });
    }
    let calls = run.calls?;
    let listed = |tool: &&ToolSchema| calls.calls.iter().any(|call| call.tool == tool.name);
    let mut tools: Vec<&ToolSchema> = run.schema.tools.iter().filter(listed).collect();
    tools.retain(|tool| run.may_be_tried(tool));
    tools.sort_by_key(|tool| tool.kind() != ToolKind::DataSource);
    let trial = |tool: &'a ToolSchema| {
        let arguments = right_arguments(run, session, &tool.name);
        Some(Trial { tool: &tool.name, argument: text(tool)?, arguments, cwd: None })
    };
    tools.into_iter().find_map(trial)
}

/// Whether the call ends with a terminal event as it stands. Where it does not, its size has nothing to do with it.
async fn ends(session: &Session, trial: &Trial<'_>) -> bool {
    let call = session.call(trial.tool, Some(trial.arguments.clone()), trial.cwd);
    session.invoke(call, CALL_LIMIT).await.first_terminal().is_some()
}

/// Makes the call with a text of that many bytes, which may well be refused.
async fn large(
    run: &Run<'_>,
    session: &Session,
    trial: &Trial<'_>,
    requirement: &'static Requirement,
    bytes: usize,
) {
    let mut arguments = trial.arguments.clone();
    let value = Value { kind: Some(Kind::StringValue("x".repeat(bytes))) };
    arguments.fields.insert(trial.argument.to_owned(), value);
    let transcript = session.invoke(session.call(trial.tool, Some(arguments), trial.cwd), CALL_LIMIT).await;
    run.judge.demand(requirement, transcript.first_terminal().is_some(), || {
        format!("{} ended with {}", trial.tool, transcript.ending())
    });
    survived(run, session, "a large argument");
}
