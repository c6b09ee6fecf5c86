//! What calls do.

use harness_proto::tool::v1 as pb;
use pb::ToolErrorCategory as Category;
use prost_types::value::Kind;
use prost_types::{Struct, Value as WireValue};
use tool_host::schema::Schema;

use crate::judge::Judge;
use crate::requirement::requirements;
use crate::transcript::{End, Terminal, Transcript, category, payload_value, status_in_words};

requirements! {
    AS_EXPECTED = "INVOKE-01" Must
        "Calls end as they should",
        "for every call of the calls file the end, and what is in it, that the file states";
    CONFORMS = "INVOKE-02" Must
        "Results satisfy the output schema",
        "every required property, every property of its type, and no null in a typed one";
    FINITE = "INVOKE-03" Must
        "Results hold no number that JSON has not",
        "neither NaN nor an infinity";
    EVENTS_NOT_STATUSES = "INVOKE-04" Must
        "A call that fails sends an error event",
        "a stream that closes with status OK whatever came of the call";
    SURVIVES = "INVOKE-05" Must
        "No call ends the process",
        "a process that answers the next call";
    CATEGORY = "INVOKE-06" Must
        "Every error has a category",
        "not TOOL_ERROR_CATEGORY_UNSPECIFIED";
    NOT_CRASHED = "INVOKE-07" Must
        "A provider never says that it crashed",
        "not TOOL_ERROR_CATEGORY_PROCESS_CRASHED, which is the kernel's";
    MESSAGE = "INVOKE-08" Must
        "Every error has a message",
        "a text: it is all that the model reads";
    CAUSE = "INVOKE-09" Must
        "An unknown error carries its cause",
        "details with the category UNKNOWN";
    UNKNOWN_TOOL = "INVOKE-10" Must
        "A call of an unknown tool is an error",
        "one error event, NOT_FOUND or INVALID_ARGUMENTS";
    MISSING_ARGUMENT = "INVOKE-11" Must
        "A missing argument is refused",
        "one error event INVALID_ARGUMENTS for every required argument that is left out";
    WRONG_TYPE = "INVOKE-12" Must
        "An argument of another type is refused",
        "one error event INVALID_ARGUMENTS for every argument that is given a value that cannot be meant";
    NOT_A_NUMBER = "INVOKE-13" Must
        "NaN and the infinities are refused",
        "one error event INVALID_ARGUMENTS for every argument that is a number";
    ARGUMENT_NAMED = "INVOKE-14" Should
        "A refusal names the argument",
        "its name in the message";
    LARGE = "INVOKE-15" Must
        "A large argument is taken or refused",
        "one terminal event for a text of 1 MiB";
    HUGE = "INVOKE-16" Should
        "An argument beyond 4 MiB is taken or refused",
        "one terminal event for a text of 8 MiB: the kernel sets no limit";
    NO_CALL = "INVOKE-17" Should
        "An Invoke without a call is refused",
        "the status INVALID_ARGUMENT";
    READ_ONLY = "INVOKE-18" Must
        "A data source changes nothing",
        "a scratch root that is the same after its calls";
    IDEMPOTENT = "INVOKE-19" Must
        "An idempotent resource leaves the same state the second time",
        "a scratch root with the same names and bytes after the call is repeated";
    WORKING_DIRECTORY = "INVOKE-20" Must
        "Relative paths start at the call's working directory",
        "the end that the calls file states for calls with a cwd";
    CONCURRENT = "INVOKE-21" Must
        "Calls that may overlap do not disturb each other",
        "eight calls at once that all end as the call does alone";
    NO_HUMAN = "INVOKE-22" Must
        "An interactive tool that is invoked anyway says that nobody is there",
        "one error event PERMISSION_DENIED";
    NO_CONTEXT = "INVOKE-23" Must
        "A call from nowhere is answered",
        "one terminal event for a call without a context, and for one with a session only, as TriggerAction makes it";
}

/// Holds how a call ended against the rules for every call.
pub(crate) fn judge(judge: &Judge, tool: &str, output: Option<&Schema>, transcript: &Transcript) {
    if let (End::Status(status), None) = (&transcript.end, transcript.first_terminal()) {
        judge.fail(EVENTS_NOT_STATUSES, format!("{tool} ended with {}", status_in_words(status)));
    } else if let End::Closed = transcript.end {
        judge.pass(EVENTS_NOT_STATUSES);
    }
    match transcript.first_terminal() {
        Some((_, Terminal::Result(result))) => result_of(judge, tool, output, result),
        Some((_, Terminal::Error(error))) => error_of(judge, tool, error),
        None => {}
    }
}

fn result_of(judge: &Judge, tool: &str, output: Option<&Schema>, result: &pb::ToolResult) {
    let finite = result.payload.as_ref().is_none_or(is_finite);
    judge.demand(FINITE, finite, || format!("{tool} sent one"));
    if let Some(output) = output.filter(|_| finite) {
        let checked = output.check(&payload_value(result));
        judge.rule(CONFORMS, checked.map_err(|violation| format!("{tool}: {violation}")));
    }
}

fn is_finite(payload: &Struct) -> bool {
    fn is_finite_value(value: &WireValue) -> bool {
        match &value.kind {
            Some(Kind::NumberValue(number)) => number.is_finite(),
            Some(Kind::ListValue(list)) => list.values.iter().all(is_finite_value),
            Some(Kind::StructValue(object)) => is_finite(object),
            _ => true,
        }
    }
    payload.fields.values().all(is_finite_value)
}

fn error_of(judge: &Judge, tool: &str, error: &pb::ToolError) {
    let kind = error.category();
    judge.demand(CATEGORY, kind != Category::Unspecified, || format!("{tool} sent none"));
    judge.demand(NOT_CRASHED, kind != Category::ProcessCrashed, || format!("{tool} did"));
    judge.demand(MESSAGE, !error.message.trim().is_empty(), || {
        format!("{tool} sent the error {} without one", category(error))
    });
    if kind == Category::Unknown {
        let details = error.details.as_ref().is_some_and(|details| !details.fields.is_empty());
        judge.demand(CAUSE, details, || format!("{tool} sent none with {:?}", error.message));
    }
    judge.unreached(CAUSE, "no call ended with an unknown error");
}
