//! Pictures of results that the provider has just sent.

use harness_proto::tool::v1::RenderResponse;
use serde_json::Value;
use tonic::Code;

use crate::run::Run;
use crate::session::{Refusal, Session};
use crate::topics::render::*;

/// The version of payloads that every provider has used.
const VERSION_KNOWN: &str = "1";

/// Asks for the picture of a result.
pub(crate) async fn one(run: &Run<'_>, session: &Session, tool: &str, payload: &Value) {
    let answer = session.render(payload.to_string().into_bytes(), VERSION_KNOWN).await;
    match &answer {
        Ok(RenderResponse { tree }) => {
            run.judge.pass(RENDERS);
            run.judge.rule(TREE, flaw(tree.as_ref()).map_err(|flaw| format!("{tool}: {flaw}")));
        }
        Err(refusal) if refusal.code() == Some(Code::Unimplemented) => {
            run.judge.unreached(RENDERS, "Render is not implemented");
        }
        Err(refusal) => run.judge.fail(TREE, format!("a result of {tool}: {refusal}")),
    }
}

/// Asks for pictures that there cannot be.
pub(crate) async fn refused(run: &Run<'_>, session: &Session, payload: Option<&Value>) {
    let why = "Render is not implemented, or no listed call ends with a result";
    run.judge.all_unreached(ALL, why);
    let Some(payload) = payload else { return };
    if let Err(refusal) = session.render(payload.to_string().into_bytes(), VERSION_KNOWN).await
        && refusal.code() == Some(Code::Unimplemented)
    {
        return;
    }
    let old = session.render(payload.to_string().into_bytes(), "999").await;
    run.judge.rule(VERSION, refusal(old));
    let garbage = session.render(b"\xff\x00 no result at all".to_vec(), VERSION_KNOWN).await;
    run.judge.rule(GARBAGE, refusal(garbage));
    if !session.is_alive() {
        run.judge.fail(GARBAGE, "it ended the process");
    }
}

fn refusal(answer: Result<RenderResponse, Refusal>) -> Result<(), String> {
    match answer {
        Ok(_) => Err("a tree".to_owned()),
        Err(refusal) => match refusal.code() {
            None | Some(Code::Unimplemented | Code::Unknown | Code::Unavailable) => Err(refusal.to_string()),
            Some(_) => Ok(()),
        },
    }
}
