//! One outcome, whatever the provider does.

use std::time::Duration;

use serde_json::json;
use tool_host::event::{Chunk, Pipe};
use tool_host::{Category, Event, LaunchError, LaunchOptions, Provider, ProviderSource};

use crate::support::{Launched, call, check_error, finish, object, source, text};

#[track_caller]
fn chunk(event: &Event) -> &Chunk {
    match event {
        Event::OutputChunk { data, .. } => data,
        other => panic!("{other:?} is no chunk"),
    }
}

#[tokio::test]
async fn a_stream_without_a_terminal_is_an_unknown_error() {
    let launched = Launched::plain().await;
    let (events, outcome) = finish(launched.invoke("no_terminal")).await;
    assert_eq!(chunk(&events[0]), &Chunk::Text("something".into()));
    check_error(&outcome, Category::Unknown, "no_terminal ended its stream without a result");
}

#[tokio::test]
async fn the_first_terminal_counts_and_the_rest_is_a_warning() {
    let launched = Launched::plain().await;
    let (events, outcome) = finish(launched.invoke("two_terminals")).await;
    assert_eq!((events.len(), text(&outcome)), (0, "first"));
    let (events, outcome) = finish(launched.invoke("chunk_after_terminal")).await;
    assert_eq!((events.len(), text(&outcome)), (0, "done"));
    let warnings = launched.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("two_terminals sent 1 more events after its terminal one"), "{warnings:?}");
}

#[tokio::test]
async fn a_result_that_breaks_its_schema_is_dropped() {
    let launched = Launched::plain().await;
    for (tool, says) in [
        ("null_field", "text: wanted string, got null"),
        ("missing_field", "text: is required and missing"),
        ("no_payload", "text: is required and missing"),
    ] {
        let (_, outcome) = finish(launched.invoke(tool)).await;
        check_error(&outcome, Category::Unknown, says);
    }
}

#[tokio::test]
async fn a_process_that_dies_in_a_call_is_a_crash() {
    let launched = Launched::plain().await;
    let (events, outcome) = finish(launched.invoke("crash")).await;
    assert_eq!(chunk(&events[0]), &Chunk::Text("last words".into()));
    check_error(&outcome, Category::ProcessCrashed, "the process of awkward exited with code 3");
    let (_, outcome) = finish(launched.invoke("fine")).await;
    check_error(&outcome, Category::ProcessCrashed, "exited with code 3");
}

#[tokio::test]
async fn a_failure_as_a_status_loses_its_category() {
    let launched = Launched::plain().await;
    let (_, outcome) = finish(launched.invoke("status")).await;
    check_error(&outcome, Category::Unknown, "failed as a status");
    assert_eq!(outcome.unwrap_err().details["error"], "InvalidArgument: failed as a status");
}

#[tokio::test]
async fn only_the_host_may_report_a_crash() {
    let launched = Launched::plain().await;
    let (_, outcome) = finish(launched.invoke("claims_crash")).await;
    check_error(&outcome, Category::Unknown, "I crashed");
    let (_, outcome) = finish(launched.invoke("fail")).await;
    check_error(&outcome, Category::NotFound, "there is no such thing");
}

#[tokio::test]
async fn a_call_that_hangs_ends_at_its_deadline() {
    let launched = Launched::plain().await;
    let mut hang = call("hang", json!({}));
    hang.timeout = Some(Duration::from_millis(200));
    let (_, outcome) = finish(launched.provider.invoke(hang)).await;
    check_error(&outcome, Category::Timeout, "hang did not finish within 200ms");
    assert!(outcome.unwrap_err().retryable);
}

#[tokio::test]
async fn events_arrive_in_order_with_whole_characters() {
    let launched = Launched::plain().await;
    let (events, outcome) = finish(launched.invoke("events")).await;
    let chunk = |stream, data| Event::OutputChunk { stream, data };
    let expected = [
        Event::Progress { message: "half".into(), fraction_complete: Some(0.5) },
        chunk(Pipe::Stdout, Chunk::Text("pri".into())),
        chunk(Pipe::Stdout, Chunk::Text("€\n".into())),
        chunk(Pipe::Stderr, Chunk::Bytes(vec![0xff])),
        Event::ExitStatus { exit_code: 143, signal: Some("SIGTERM".into()) },
    ];
    assert_eq!(events, expected);
    assert_eq!(text(&outcome), "done");
}

#[tokio::test]
async fn an_unknown_tool_names_the_nearest() {
    let launched = Launched::plain().await;
    let (_, outcome) = finish(launched.invoke("fien")).await;
    check_error(&outcome, Category::NotFound, "awkward has no tool fien; did you mean fine?");
}

#[tokio::test]
async fn a_refused_configuration_keeps_its_category() {
    let launched = Launched::plain().await;
    let error = launched.provider.configure(object(json!({"refuse": true}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.message.as_str()),
        (Category::InvalidArguments, "this configuration is refused")
    );
}

#[tokio::test]
async fn previews_and_pictures_may_be_missing() {
    let launched = Launched::plain().await;
    let preview = |tool| {
        let call = call(tool, json!({}));
        let provider = launched.provider.clone();
        async move { provider.preview(&call).await }
    };
    assert!(preview("change").await.unwrap().is_some());
    assert!(preview("change_unseen").await.unwrap().is_none());
    assert_eq!(preview("fail_preview").await.unwrap_err().category, Category::InvalidArguments);
    assert!(launched.provider.render(&object(json!({"text": "picture"}))).await.unwrap().is_some());
    assert!(launched.provider.render(&object(json!({"text": "x"}))).await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_no_tool_provider_is_not_launched() {
    let options =
        LaunchOptions { env: vec![("AWKWARD_CATEGORY".into(), "model".into())], ..LaunchOptions::default() };
    let error = Provider::launch(&source(), options).await.unwrap_err();
    assert!(matches!(&error, LaunchError::Category { category, .. } if category == "model"), "{error}");
    let missing = ProviderSource::Path("/nonexistent/provider".into());
    let error = Provider::launch(&missing, LaunchOptions::default()).await.unwrap_err();
    assert!(matches!(error, LaunchError::Start { .. }), "{error}");
    let no_plugin = ProviderSource::Path("/bin/true".into());
    let error = Provider::launch(&no_plugin, LaunchOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("/bin/true cannot be started"), "{error}");
}

#[tokio::test]
async fn what_is_declared_twice_or_without_a_kind_is_said() {
    let launched = Launched::plain().await;
    let catalogue = launched.provider.catalogue();
    assert_eq!(
        catalogue.warnings,
        [
            "no_kind has no kind, so every call of it is refused",
            "fine is declared twice; the first declaration counts",
        ]
    );
    assert_eq!(catalogue.tools.iter().filter(|tool| tool.name == "fine").count(), 1);
}

#[tokio::test]
async fn the_environment_is_what_is_intended_and_nothing_else() {
    let launched = Launched::with(&[("EXTRA", "1")]).await;
    let (_, outcome) = finish(launched.invoke("environment")).await;
    let names: Vec<&str> = text(&outcome).split(' ').collect();
    assert!(names.contains(&"EXTRA") && names.contains(&"PLUGGABLEHARNESS_AGENT_PLUGIN"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}
