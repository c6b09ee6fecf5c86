//! Servers that never come to an end are given up, and what they sent is kept.

use std::time::Duration;

use http_guard::testing::{Reply, Server};
use http_guard::{BodyEnd, FetchError, Limits};

use super::{fetched, get, local};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn silence_before_the_head_is_given_up() {
    let server = Server::start(|_| Reply::raw("HTTP/1.1 200").and_hangs()).await;
    for limits in [Limits { idle: SHORT, ..Limits::default() }, Limits { total: SHORT, ..Limits::default() }]
    {
        let error = local().send(get(&server.url("/")).within(limits)).await.unwrap_err();
        assert!(matches!(error, FetchError::TimedOut { after: SHORT, .. }), "{error}");
    }
}

#[tokio::test]
async fn silence_within_the_body_keeps_what_came() {
    for encoding in ["identity", "br"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: 1000\r\n\r\n");
        let text = format!("{head}some text that is long enough not to be compressed");
        let server = Server::start(move |_| Reply::raw(text.clone()).and_hangs()).await;
        let limits = Limits { idle: SHORT, ..Limits::default() };
        let body = local().send(get(&server.url("/")).within(limits)).await.unwrap().body.collect().await;
        assert!(body.bytes.starts_with(b"some text"), "{encoding}: {:?}", body.bytes);
        assert_eq!(body.end, BodyEnd::TimedOut, "{encoding}");
    }
}

#[tokio::test]
async fn a_trickle_ends_at_the_total() {
    let server = Server::start(|_| {
        Reply::new(200, &[], "x".repeat(100_000)).in_pieces(200, Duration::from_millis(20))
    })
    .await;
    let limits = Limits { total: Duration::from_secs(1), ..Limits::default() };
    let body = local().send(get(&server.url("/")).within(limits)).await.unwrap().body.collect().await;
    assert!(!body.bytes.is_empty() && body.bytes.len() < 100_000, "{}", body.bytes.len());
    assert_eq!(body.end, BodyEnd::TimedOut);
}

#[tokio::test]
async fn what_is_not_http_is_told_as_such() {
    for raw in ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
        let server = Server::start(move |_| Reply::raw(raw)).await;
        let error = fetched(&local(), &server.url("/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Exchange { .. }), "{raw:?}: {error}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let server = Server::start(move |_| Reply::raw(endless.clone())).await;
    assert!(matches!(fetched(&local(), &server.url("/")).await, Err(FetchError::Exchange { .. })));
}

#[tokio::test]
async fn nobody_there_is_told_as_such() {
    let server = Server::start(|_| Reply::html("")).await;
    let url = server.url("/");
    drop(server);
    tokio::task::yield_now().await;
    let error = fetched(&local(), &url).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect { .. } | FetchError::Exchange { .. }), "{error}");
}
