//! The template provider over real gRPC, in this process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use provider_core::testing::{Harness, Outcome};
use provider_template::Template;
use serde_json::{Value, json};

async fn greet(arguments: Value) -> Outcome {
    let harness = Harness::start::<Template>(json!({})).await.unwrap();
    harness.call("greet", arguments).await
}

#[tokio::test]
async fn greets_by_name() {
    let outcome = greet(json!({"name": "Ada"})).await;
    assert_eq!(outcome.payload(), &json!({"text": "Hello, Ada!"}));
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    let error = greet(json!({"nmae": "Ada"})).await.error();
    assert_eq!(error.category, "invalid_arguments");
    assert!(error.message.contains("name"), "{}", error.message);
}
