//! Arguments that cannot be meant, one wrong one at a time.

use harness_proto::schema::v1::{Schema, SchemaType};
use harness_proto::tool::v1 as pb;
use pb::{ToolErrorCategory, ToolSchema};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use provider_core::wire::map_to_struct;

use crate::Requirement;
use crate::calls::fill_object;
use crate::run::Run;
use crate::scenes::listed::{self, CALL_LIMIT};
use crate::session::Session;
use crate::topics::invoke::*;
use crate::transcript::category;

pub(crate) async fn play(run: &Run<'_>, session: &Session) {
    let tools: Vec<&ToolSchema> = run.schema.tools.iter().filter(|tool| run.may_be_tried(tool)).collect();
    if tools.is_empty() {
        let all = [MISSING_ARGUMENT, WRONG_TYPE, NOT_A_NUMBER, ARGUMENT_NAMED];
        run.judge.all_unreached(&all, "only listed resources are called, and there is no data source");
    }
    for tool in tools {
        let Some(input) = &tool.input_schema else { continue };
        let right = right_arguments(run, session, &tool.name);
        for name in &input.required {
            let mut arguments = right.clone();
            arguments.fields.remove(name);
            refused(run, session, MISSING_ARGUMENT, tool, name, arguments).await;
        }
        for (name, property) in &input.properties {
            wrong_type(run, session, tool, &right, (name, property)).await;
            not_a_number(run, session, tool, &right, (name, property)).await;
        }
        if !session.is_alive() {
            return;
        }
    }
    run.judge.unreached(MISSING_ARGUMENT, "no tool that can be tried requires an argument");
    run.judge.unreached(WRONG_TYPE, "no tool that can be tried has arguments");
    run.judge.unreached(NOT_A_NUMBER, "no tool that can be tried has a number among its arguments");
}

/// The arguments of a listed call of the tool that works; none where there is none, so that everything required is
/// missing as well.
pub(crate) fn right_arguments(run: &Run<'_>, session: &Session, tool: &str) -> Struct {
    let listed = run.calls.and_then(|calls| calls.positive(tool).next());
    let names = run.names(session);
    listed.map(|call| map_to_struct(fill_object(&call.arguments, &names))).unwrap_or_default()
}

async fn wrong_type(
    run: &Run<'_>,
    session: &Session,
    tool: &ToolSchema,
    right: &Struct,
    (name, property): (&String, &Schema),
) {
    let Some(wrong) = wrong_value(property) else { return };
    let mut arguments = right.clone();
    arguments.fields.insert(name.clone(), Value { kind: Some(wrong) });
    refused(run, session, WRONG_TYPE, tool, name, arguments).await;
}

async fn not_a_number(
    run: &Run<'_>,
    session: &Session,
    tool: &ToolSchema,
    right: &Struct,
    (name, property): (&String, &Schema),
) {
    if property.r#type() != SchemaType::Number {
        return;
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut arguments = right.clone();
        arguments.fields.insert(name.clone(), Value { kind: Some(Kind::NumberValue(number)) });
        refused(run, session, NOT_A_NUMBER, tool, name, arguments).await;
    }
}

/// A value that nobody can take for one of the type, however willing; `None` where anything goes.
pub(crate) fn wrong_value(property: &Schema) -> Option<Kind> {
    let text = |text: &str| Some(Kind::StringValue(text.to_owned()));
    match property.r#type() {
        SchemaType::String if property.enum_values.is_empty() => Some(Kind::StructValue(Struct {
            fields: [("not".to_owned(), Value { kind: text("this") })].into(),
        })),
        SchemaType::String => text("none of the values allowed"),
        SchemaType::Number | SchemaType::Boolean => text("neither a number nor true or false"),
        SchemaType::Array => Some(Kind::BoolValue(true)),
        SchemaType::Object => {
            Some(Kind::ListValue(ListValue { values: vec![Value { kind: Some(Kind::NumberValue(1.0)) }] }))
        }
        SchemaType::Unspecified => None,
    }
}

/// Makes a call with one wrong argument.
async fn refused(
    run: &Run<'_>,
    session: &Session,
    requirement: &'static Requirement,
    tool: &ToolSchema,
    argument: &str,
    arguments: Struct,
) {
    if !session.is_alive() {
        return;
    }
    let given = arguments.fields.get(argument).map_or_else(|| "missing".to_owned(), in_words);
    let what = format!("{} with {argument} {given}", tool.name);
    let transcript = session.invoke(session.call(&tool.name, Some(arguments), None), CALL_LIMIT).await;
    if !session.is_alive() {
        return session.is_ended(&run.judge, &what);
    }
    listed::judge(run, tool, &transcript);
    match (transcript.error(), transcript.payload()) {
        (Some(error), _) if error.category() == ToolErrorCategory::InvalidArguments => {
            run.judge.pass(requirement);
            run.judge.demand(ARGUMENT_NAMED, error.message.contains(argument), || {
                format!("{what}: {:?}", error.message)
            });
        }
        // An error without a right category, and no terminal event, have rules of their own.
        (Some(error), _) if error.category() != ToolErrorCategory::Unspecified => {
            run.judge.fail(requirement, format!("{what} is the error {}", category(error)));
        }
        (None, Some(_)) => run.judge.fail(requirement, format!("{what} ended with a result")),
        _ => {}
    }
}

fn in_words(value: &Value) -> String {
    match &value.kind {
        Some(Kind::NumberValue(number)) => number.to_string(),
        Some(Kind::StringValue(text)) => format!("{text:?}"),
        Some(Kind::StructValue(_)) => "an object".to_owned(),
        Some(Kind::ListValue(_)) => "a list".to_owned(),
        Some(Kind::BoolValue(flag)) => flag.to_string(),
        Some(Kind::NullValue(_)) | None => "null".to_owned(),
    }
}
