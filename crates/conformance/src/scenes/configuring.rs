//! Configured wrongly, in a process of its own each time: a process is configured once.

use futures_util::StreamExt as _;
use futures_util::stream;
use harness_proto::config::v1::{AttrType, ConfigAttribute};
use prost::Message as _;
use provider_core::wire::map_to_struct;
use serde_json::{Value, json};
use tonic::Code;
use tool_host::Object;

use crate::Requirement;
use crate::calls::fill_object;
use crate::kernel::Conduct;
use crate::run::Run;
use crate::session::{Refusal, Session, Stage};
use crate::topics::configure::*;

/// What is looked at here.
const EXCEPT_ACCEPTED: [&Requirement; 10] =
    [NULL, MISSING, WRONG_TYPE, UNKNOWN, CODE, NAMED, ALL_NAMED, DETAIL, REFUSED, REFUSED_CODE];

/// Why nothing here can be looked at without a configuration to start from.
const NO_CONFIG: &str = "only --calls tells a configuration it accepts";

pub(crate) async fn play(run: &Run<'_>) {
    if run.config.is_none() {
        return run.judge.all_unreached(&EXCEPT_ACCEPTED, NO_CONFIG);
    }
    if run.attributes().is_empty() {
        let none = [NULL, MISSING, WRONG_TYPE, CODE, NAMED, ALL_NAMED, DETAIL];
        run.judge.all_unreached(&none, "it has no configuration");
    }
    if !matches!(attempt(run, |_, _| {}).await, Some(Attempt { answer: Ok(()) })) {
        return run.judge.all_unreached(&EXCEPT_ACCEPTED, "the right configuration is refused too");
    }
    null(run).await;
    missing(run).await;
    wrong_types(run).await;
    several(run).await;
    unknown(run).await;
    listed(run).await;
}

/// What came of one configuration.
struct Attempt {
    answer: Result<(), Refusal>,
}

/// Configures a new process with the right configuration as `change` leaves it.
async fn attempt(run: &Run<'_>, change: impl FnOnce(&Session, &mut Object)) -> Option<Attempt> {
    let stage = Stage { callbacks: Some(Conduct::Serve), ..Stage::default() };
    let session = run.start(&stage).await?;
    let mut config = run.config_in(&session)?;
    change(&session, &mut config);
    let answer = session.configure(map_to_struct(config)).await;
    session.look_aside();
    Some(Attempt { answer })
}

/// Nulls for everything that is left out, as the kernel sends them.
async fn null(run: &Run<'_>) {
    let tried = attempt(run, |_, config| {
        for attribute in run.attributes() {
            config.entry(attribute.name.clone()).or_insert(Value::Null);
        }
    });
    let Some(tried) = tried.await else { return };
    let left_out = |attribute: &ConfigAttribute| {
        run.config.as_ref().is_some_and(|config| !config.contains_key(&attribute.name))
    };
    match tried.answer {
        Ok(()) if run.attributes().iter().any(left_out) => run.judge.pass(NULL),
        Ok(()) => run.judge.unreached(NULL, "the configuration leaves no attribute out"),
        Err(refusal) => run.judge.fail(NULL, refusal.to_string()),
    }
}

async fn missing(run: &Run<'_>) {
    let required: Vec<_> = run.attributes().iter().filter(|attribute| attribute.required).collect();
    if required.is_empty() {
        run.judge.unreached(MISSING, "no attribute is required");
    }
    for attribute in required {
        let name = &attribute.name;
        let Some(tried) = attempt(run, |_, config| _ = config.remove(name)).await else { continue };
        judged(run, MISSING, &format!("without {name}"), &[name], tried);
    }
}

async fn wrong_types(run: &Run<'_>) {
    let wrong = |attribute: &'_ ConfigAttribute| {
        let (name, value) = (attribute.name.clone(), wrong_value(attribute.r#type()));
        async move {
            let tried = attempt(run, |_, config| _ = config.insert(name.clone(), value.clone())).await?;
            Some((name, value, tried))
        }
    };
    let typed = run.attributes().iter().filter(|it| it.r#type() != AttrType::Unspecified);
    let attempts: Vec<_> = stream::iter(typed).map(wrong).buffered(1).collect().await;
    for (name, value, tried) in attempts.into_iter().flatten() {
        judged(run, WRONG_TYPE, &format!("with {name} = {value}"), &[&name], tried);
    }
}

/// A value that nobody can take for one of the type, however willing.
fn wrong_value(kind: AttrType) -> Value {
    match kind {
        AttrType::String | AttrType::ListString | AttrType::ListNumber => json!({"not": ["this"]}),
        AttrType::Number | AttrType::Bool => json!("neither a number nor true or false"),
        AttrType::MapString | AttrType::Object | AttrType::Unspecified => json!([1, 2]),
    }
}

/// Holds the refusal of one wrong attribute against the rules.
fn judged(run: &Run<'_>, requirement: &'static Requirement, what: &str, names: &[&str], tried: Attempt) {
    let judge = &run.judge;
    let refusal = match tried.answer {
        Ok(()) => return judge.fail(requirement, format!("{what} it is accepted")),
        Err(refusal) => refusal,
    };
    judge.pass(requirement);
    judge.demand(CODE, refusal.code() == Some(Code::InvalidArgument), || format!("{what}: {refusal}"));
    let named = names.iter().all(|name| refusal.message().contains(name));
    judge.demand(NAMED, named, || format!("{what}: {refusal}"));
    if let Refusal::Status(status) = &refusal {
        judge.demand(DETAIL, has_reason(status.details()), || format!("{what}: no ErrorInfo"));
    }
}

async fn several(run: &Run<'_>) {
    let wrong: Vec<_> = run.attributes().iter().take(3).collect();
    if wrong.len() < 2 {
        return run.judge.unreached(ALL_NAMED, "it has fewer than two attributes");
    }
    let tried = attempt(run, |_, config| {
        for attribute in &wrong {
            config.insert(attribute.name.clone(), wrong_value(attribute.r#type()));
        }
    });
    if let Some(Attempt { answer: Err(refusal) }) = tried.await {
        let unnamed: Vec<_> = wrong
            .iter()
            .map(|it| it.name.as_str())
            .filter(|name| !refusal.message().contains(name))
            .collect();
        // A refusal that names none has a rule of its own.
        if unnamed.len() < wrong.len() {
            run.judge.demand(ALL_NAMED, unnamed.is_empty(), || {
                format!("{} not named: {refusal}", unnamed.join(", "))
            });
        }
    }
}

async fn unknown(run: &Run<'_>) {
    const NAME: &str = "conformance_unknown_attribute";
    let Some(tried) = attempt(run, |_, config| _ = config.insert(NAME.to_owned(), json!(1))).await else {
        return;
    };
    run.judge.rule(
        UNKNOWN,
        match tried.answer {
            Ok(()) => Err("it is accepted".to_owned()),
            Err(_) => Ok(()),
        },
    );
}

/// What the calls file says is wrong.
async fn listed(run: &Run<'_>) {
    let refused = run.calls.map(|calls| calls.refused_configs.as_slice()).unwrap_or_default();
    if refused.is_empty() {
        run.judge.all_unreached(&[REFUSED, REFUSED_CODE], "the calls file lists no refused_configs");
    }
    for wrong in refused {
        let what = Value::Object(wrong.config.clone());
        let tried = attempt(run, |session, config| {
            for (name, value) in fill_object(&wrong.config, &run.names(session)) {
                match value {
                    Value::Null => _ = config.remove(&name),
                    value => _ = config.insert(name, value),
                }
            }
        });
        let Some(tried) = tried.await else { continue };
        if let Err(refusal) = &tried.answer {
            let tells = !matches!(refusal.code(), Some(Code::Unknown | Code::Unavailable));
            run.judge.demand(REFUSED_CODE, tells, || format!("{what}: {refusal}"));
        }
        run.judge.rule(
            REFUSED,
            match tried.answer {
                Ok(()) => Err(format!("{what} is accepted")),
                Err(refusal) => match wrong.names.iter().find(|name| !refusal.message().contains(*name)) {
                    None => Ok(()),
                    Some(name) => Err(format!("{what} is refused without {name:?}: {refusal}")),
                },
            },
        );
    }
}

/// `google.rpc.Status`, as it travels in the trailer of a refusal.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// `google.rpc.ErrorInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
}

fn has_reason(details: &[u8]) -> bool {
    RpcStatus::decode(details).is_ok_and(|status| {
        status.details.iter().any(|detail| {
            detail.type_url.ends_with("/google.rpc.ErrorInfo")
                && ErrorInfo::decode(detail.value.as_slice())
                    .is_ok_and(|info| info.reason == "invalid_arguments")
        })
    })
}
