//! Calls that no agent means to make: of unknown tools, many at once, far too large.

use futures_util::future::join_all;
use harness_proto::schema::v1::SchemaType;
use harness_proto::tool::v1 as pb;
use pb::{ToolErrorCategory, ToolKind, ToolSchema};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::Code;

use crate::Requirement;
use crate::run::Run;
use crate::scenes::listed::{self, CALL_LIMIT, Proven};
use crate::session::Session;
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
            large(run, session, proven, invoke::LARGE, 1 << 20).await;
            large(run, session, proven, invoke::HUGE, 8 << 20).await;
        }
        None => {
            let all = [invoke::CONCURRENT, invoke::LARGE, invoke::HUGE];
            run.judge.all_unreached(&all, "no listed call of a data source ends with a result");
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
        run.judge.fail(invoke::SURVIVES, format!("{what} ended it"));
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

/// Gives one argument a text of that many bytes, which may well be refused.
async fn large(
    run: &Run<'_>,
    session: &Session,
    proven: &Proven,
    requirement: &'static Requirement,
    bytes: usize,
) {
    let Some(tool) = run.tool(&proven.tool) else { return };
    let properties = tool.input_schema.iter().flat_map(|input| &input.properties);
    let text = properties
        .filter(|(_, property)| property.r#type() == SchemaType::String && property.enum_values.is_empty())
        .map(|(name, _)| name)
        .next();
    let Some(name) = text else {
        return run.judge.unreached(requirement, format!("{} has no text among its arguments", tool.name));
    };
    let mut arguments = proven.arguments.clone();
    arguments.fields.insert(name.clone(), Value { kind: Some(Kind::StringValue("x".repeat(bytes))) });
    let call = session.call(&proven.tool, Some(arguments), proven.cwd.as_deref());
    let transcript = session.invoke(call, CALL_LIMIT).await;
    run.judge.demand(requirement, transcript.first_terminal().is_some(), || {
        format!("{} ended with {}", proven.tool, transcript.ending())
    });
    survived(run, session, "a large argument");
}
