//! http_request: what is shown, what is sent, what is answered.

use http_guard::testing::{NameServer, Reply, Server};
use serde_json::{Value, json};

use super::{named, notes, web};

#[tokio::test]
async fn a_request_is_sent_as_it_was_shown() {
    let server = Server::start(|_| {
        Reply::new(
            201,
            &[("Content-Type", "application/json"), ("X-One", "1"), ("X-One", "2")],
            "{\"made\":true}",
        )
    })
    .await;
    let harness = web(json!({})).await;
    let arguments = json!({
        "method": "POST",
        "url": server.url("/things?key=hunter2"),
        "headers": {"Authorization": "Bearer hunter2", "X-Plain": "seen"},
        "body": "{\"name\": \"thing\"}",
    });
    let preview =
        format!("{:?}", harness.preview_as("call-x", "http_request", arguments.clone()).await.unwrap());
    for part in [
        "POST http://127.0.0.1",
        "/things?key=…",
        "x-plain",
        "seen",
        "authorization",
        "content-type",
        "application/json",
        "name",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert!(!preview.contains("hunter2"), "{preview}");
    assert_eq!(server.connections(), 0);
    let answer = harness.call("http_request", arguments).await.payload().clone();
    assert_eq!(
        (&answer["status"], &answer["body"], &answer["truncated"]),
        (&json!(201), &json!("{\"made\":true}"), &json!(false))
    );
    assert_eq!(
        (&answer["headers"]["x-one"], &answer["headers"]["content-type"]),
        (&json!("1\n2"), &json!("application/json"))
    );
    assert!(notes(&answer).contains("not to be trusted"));
    let sent = &server.requests()[0];
    assert_eq!((sent.method.as_str(), sent.target.as_str()), ("POST", "/things?key=hunter2"));
    assert_eq!(
        (sent.header("authorization"), sent.header("content-type")),
        (Some("Bearer hunter2"), Some("application/json"))
    );
    assert_eq!(sent.body, b"{\"name\": \"thing\"}");
    assert!(harness.render(&answer).await.is_ok());
}

#[tokio::test]
async fn every_method_arrives_and_every_status_is_a_result() {
    let server = Server::start(|request| {
        Reply::new(if request.method == "DELETE" { 410 } else { 200 }, &[], &request.method)
    })
    .await;
    let harness = web(json!({})).await;
    for (method, status) in
        [("GET", 200), ("HEAD", 200), ("PUT", 200), ("PATCH", 200), ("DELETE", 410), ("OPTIONS", 200)]
    {
        let answer = harness
            .call("http_request", json!({"method": method, "url": server.url("/")}))
            .await
            .payload()
            .clone();
        let body = if method == "HEAD" { "" } else { method };
        assert_eq!((&answer["status"], &answer["body"]), (&json!(status), &json!(body)));
    }
    let error =
        harness.call("http_request", json!({"method": "TRACE", "url": server.url("/")})).await.error();
    assert_eq!(error.category, "invalid_arguments");
}

#[tokio::test]
async fn what_cannot_be_sent_is_told_before_approval() {
    let harness = web(json!({})).await;
    let wrong = [
        (json!({"method": "GET", "url": "http://10.0.0.1/"}), "private"),
        (json!({"method": "GET", "url": "gopher://example.org/"}), "url: "),
        (
            json!({"method": "GET", "url": "http://example.org/", "headers": {"Host": "other.example"}}),
            "headers: ",
        ),
        (json!({"method": "GET", "url": "http://example.org/", "headers": {"X": "a\r\nY: b"}}), "headers: "),
        (json!({"method": "GET", "url": "http://example.org/", "headers": {"a b": "c"}}), "headers: "),
    ];
    for (arguments, part) in wrong {
        let status = harness.preview_as("call-y", "http_request", arguments.clone()).await.unwrap_err();
        assert!(status.message().contains(part), "{status}");
        let error = harness.call("http_request", arguments).await.error();
        assert!(error.message.contains(part), "{error:?}");
    }
}

#[tokio::test]
async fn a_change_is_not_carried_to_another_host() {
    let names =
        NameServer::start(&[("a.example", &[&["127.0.0.1"]]), ("api.a.example", &[&["127.0.0.1"]])]).await;
    let server = Server::start(|request| {
        let port =
            request.header("host").unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned();
        match request.target.as_str() {
            "/307" => Reply::redirect(307, &format!("http://api.a.example:{port}/end")),
            "/303" => Reply::redirect(303, &format!("http://api.a.example:{port}/end")),
            _ => Reply::new(200, &[], &request.method),
        }
    })
    .await;
    let harness = named(&names, &["a.example", "api.a.example"], json!({})).await;
    let call = async |path: &str| {
        let url = server.url_of("a.example", path);
        let arguments = json!({"method": "POST", "url": url, "body": "x", "headers": {"X-Token": "hunter2"}});
        harness.call("http_request", arguments).await.payload().clone()
    };
    let answer = call("/307").await;
    assert_eq!(
        (&answer["status"], &answer["redirect_to"]),
        (&json!(307), &json!(server.url_of("api.a.example", "/end")))
    );
    let answer = call("/303").await;
    assert_eq!(
        (&answer["body"], &answer["final_url"]),
        (&json!("GET"), &json!(server.url_of("api.a.example", "/end")))
    );
    let last = server.requests().pop().unwrap();
    assert_eq!((last.header("x-token"), last.body.len()), (None, 0));
}

#[tokio::test]
async fn bodies_that_are_no_text_and_bodies_that_are_too_long() {
    let server = Server::start(|request| match request.target.as_str() {
        "/bytes" => Reply::new(200, &[("Content-Type", "application/octet-stream")], [0, 159, 146, 150]),
        _ => Reply::new(200, &[("Content-Type", "text/plain")], "ab".repeat(100_000)),
    })
    .await;
    let harness = web(json!({})).await;
    let call = async |path: &str| {
        harness
            .call("http_request", json!({"method": "GET", "url": server.url(path)}))
            .await
            .payload()
            .clone()
    };
    let answer = call("/bytes").await;
    assert_eq!((&answer["body_base64"], &answer["truncated"]), (&json!("AJ+Slg=="), &json!(false)));
    let answer = call("/long").await;
    assert_eq!((answer["body"].as_str().unwrap().len(), &answer["truncated"]), (100_000, &json!(true)));
    assert_eq!(answer["body_base64"], Value::Null);
    assert!(notes(&answer).contains("200000 characters"), "{}", notes(&answer));
}

#[tokio::test]
async fn a_change_that_may_have_arrived_is_said_to() {
    let server = Server::start(|_| Reply::raw("").and_hangs()).await;
    let harness = web(json!({})).await;
    for (method, expected) in [("POST", true), ("GET", false)] {
        let arguments = json!({"method": method, "url": server.url("/"), "timeout_ms": 400});
        let error = harness.call("http_request", arguments).await.error();
        assert_eq!(error.category, "timeout");
        assert_eq!(error.message.contains("is not known"), expected, "{}", error.message);
    }
}
