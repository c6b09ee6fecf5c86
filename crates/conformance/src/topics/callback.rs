//! What the provider asks of its host.

use harness_proto::kernel::v1 as pb;
use harness_proto::log::v1::LogLevel;
use pb::EventKind;
use prost::Message as _;

use crate::judge::Judge;
use crate::kernel::Callback;
use crate::requirement::requirements;
use crate::session::SESSION;

requirements! {
    ABSENT = "CALLBACK-01" Must
        "It works under a host that never says where the callbacks are",
        "Describe, GetSchema, Configure and a call that end as usual";
    HANGING = "CALLBACK-02" Must
        "It works under a host that answers no callback",
        "Describe, GetSchema, Configure and a call that end as usual";
    REFUSING = "CALLBACK-03" Must
        "It works under a host that refuses every callback",
        "Describe, GetSchema, Configure and a call that end as usual";
    SIZE = "CALLBACK-04" Must
        "No request is beyond the host's limit",
        "requests of at most 4 MiB, also when an argument is larger";
    LOG = "CALLBACK-05" Must
        "Every log entry is complete",
        "level, message and time: the kernel skips others";
    SESSION_KNOWN = "CALLBACK-06" Must
        "Only sessions that a call has named are named",
        "the session of a call, or none";
    EMIT = "CALLBACK-07" Must
        "It does not emit what the kernel writes itself",
        "no MESSAGE, PLAN, TOOL_CALL or TOOL_RESULT";
}

/// What the kernel's server takes.
const LIMIT: usize = 4 << 20;

/// Holds what a provider asked for against the rules.
pub(crate) fn judge(judge: &Judge, callbacks: &[Callback]) {
    for Callback { rpc, message } in callbacks {
        judge.demand(SIZE, message.len() <= LIMIT, || format!("{rpc} with {} bytes", message.len()));
        match rpc.as_str() {
            "Log" => log(judge, message),
            "Emit" => emit(judge, message),
            _ => {}
        }
    }
    for requirement in [SIZE, LOG, SESSION_KNOWN, EMIT] {
        judge.unreached(requirement, "it made no such request");
    }
}

fn log(judge: &Judge, message: &[u8]) {
    let Ok(request) = pb::LogRequest::decode(message) else {
        return judge.fail(LOG, "a request that is no LogRequest");
    };
    judge.demand(LOG, !request.entries.is_empty(), || "no entries".to_owned());
    for entry in &request.entries {
        let complete =
            entry.level() != LogLevel::Unspecified && !entry.message.is_empty() && entry.time.is_some();
        judge.demand(LOG, complete, || format!("{entry:?}"));
    }
    session(judge, "Log", request.session_id.as_deref().unwrap_or_default());
}

fn emit(judge: &Judge, message: &[u8]) {
    let Ok(request) = pb::EmitRequest::decode(message) else {
        return judge.fail(EMIT, "a request that is no EmitRequest");
    };
    let kind = request.kind();
    use EventKind::{Message, Plan, ToolCall, ToolResult, Unspecified};
    let own = !matches!(kind, Message | Plan | ToolCall | ToolResult | Unspecified);
    judge.demand(EMIT, own, || kind.as_str_name().to_owned());
    session(judge, "Emit", &request.session_id);
}

fn session(judge: &Judge, rpc: &str, named: &str) {
    judge.demand(SESSION_KNOWN, named.is_empty() || named == SESSION, || format!("{rpc} for {named:?}"));
}
