//! The user provider over gRPC: it never answers by itself.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use provider_core::testing::Harness;
use provider_user::User;
use serde_json::{Value, json};

#[track_caller]
fn check(error: &provider_core::testing::CallError, category: &str, code: &str, says: &str) {
    assert_eq!((error.category.as_str(), error.code.as_str()), (category, code), "{error:?}");
    assert!(error.message.contains(says), "{error:?}");
}

async fn ask(arguments: Value) -> provider_core::testing::CallError {
    Harness::start::<User>(json!({})).await.unwrap().call("ask_user", arguments).await.error()
}

#[tokio::test]
async fn with_nobody_there_every_question_is_refused_at_once() {
    for arguments in [
        json!({"question": "Which?", "options": [{"label": "a"}, {"label": "b"}], "default": "a", "timeout_ms": 60_000}),
        json!({"questions": [{"id": "a", "question": "Which?"}]}),
    ] {
        check(&ask(arguments).await, "permission_denied", "no_human", "nobody is there to answer");
    }
}

#[tokio::test]
async fn a_question_that_cannot_be_shown_is_a_wrong_argument() {
    check(&ask(json!({})).await, "invalid_arguments", "", "question: is missing");
    let twice = json!({"question": "?", "options": [{"label": "a"}, {"label": "a"}]});
    check(&ask(twice).await, "invalid_arguments", "", "options[1].label: `a` is there twice");
    check(&ask(json!({"question": "?", "kind": "shape"})).await, "invalid_arguments", "", "kind");
}
