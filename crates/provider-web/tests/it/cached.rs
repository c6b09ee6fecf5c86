//! What is kept of what was fetched, and robots.txt.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_guard::testing::{Received, Reply, Server};
use provider_core::testing::Harness;
use serde_json::{Value, json};

use super::{fetch, notes, web};

/// A server whose pages tell how often they were made, under a rule for keeping them.
async fn counting(control: &'static str) -> Server {
    let count = Arc::new(AtomicUsize::new(0));
    Server::start(move |request: &Received| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let headers = [("Content-Type", "text/plain"), ("Cache-Control", control), ("ETag", "\"one\"")];
        let headers = if control.is_empty() { &headers[..1] } else { &headers[..] };
        match request.header("if-none-match") {
            Some("\"one\"") => Reply::new(304, &[("Cache-Control", "max-age=60")], ""),
            _ => Reply::new(
                200,
                headers,
                format!("page {number} for {}", request.header("accept").unwrap_or_default()),
            ),
        }
    })
    .await
}

async fn keeping(state: &std::path::Path) -> Harness {
    web(json!({"cache_bytes": 1_000_000, "state_dir": state})).await
}

#[tokio::test]
async fn a_second_look_is_a_hit_and_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    let server = counting("").await;
    let first = fetch(&keeping(scratch.path()).await, json!({"url": server.url("/?key=hunter2")})).await;
    // Another process, as it were.
    let harness = keeping(scratch.path()).await;
    let second = fetch(&harness, json!({"url": server.url("/?key=hunter2#part")})).await;
    assert_eq!((&first["cached"], &second["cached"]), (&json!(false), &json!(true)));
    assert_eq!(first["content"], second["content"]);
    assert!(notes(&second).contains("from the cache"), "{second}");
    let third = fetch(&harness, json!({"url": server.url("/?key=hunter2"), "fresh": true})).await;
    assert_eq!((&third["cached"], server.requests().len()), (&json!(false), 2));
    assert_ne!(first["content"], third["content"]);
    // Private, and no name of a file tells what is in it.
    let folder = scratch.path().join("web");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!file.file_name().to_string_lossy().contains("hunter2"));
    }
}

#[tokio::test]
async fn another_form_of_the_same_page_is_another_page() {
    let scratch = tempfile::tempdir().unwrap();
    let server = counting("").await;
    let harness = keeping(scratch.path()).await;
    let markdown = fetch(&harness, json!({"url": server.url("/")})).await;
    let html = fetch(&harness, json!({"url": server.url("/"), "format": "html"})).await;
    assert_eq!((&html["cached"], server.requests().len()), (&json!(false), 2));
    assert_ne!(markdown["content"], html["content"]);
}

#[tokio::test]
async fn what_may_not_be_kept_is_not() {
    for control in ["no-store", "private, no-store, max-age=60"] {
        let scratch = tempfile::tempdir().unwrap();
        let server = counting(control).await;
        let harness = keeping(scratch.path()).await;
        for _ in 0..2 {
            assert_eq!(fetch(&harness, json!({"url": server.url("/")})).await["cached"], false, "{control}");
        }
        assert_eq!(server.requests().len(), 2);
        assert_eq!(std::fs::read_dir(scratch.path().join("web")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_stale_page_is_asked_about_and_the_answer_counts() {
    let scratch = tempfile::tempdir().unwrap();
    let server = counting("no-cache").await;
    let harness = keeping(scratch.path()).await;
    let first = fetch(&harness, json!({"url": server.url("/")})).await;
    let second = fetch(&harness, json!({"url": server.url("/")})).await;
    assert_eq!((&second["cached"], &second["status"]), (&json!(true), &json!(200)));
    assert_eq!(first["content"], second["content"]);
    assert_eq!(server.requests()[1].header("if-none-match"), Some("\"one\""));
    // The server has allowed a minute.
    fetch(&harness, json!({"url": server.url("/")})).await;
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_kept_page_is_not_served_against_today_s_policy() {
    let scratch = tempfile::tempdir().unwrap();
    let server = counting("").await;
    fetch(&keeping(scratch.path()).await, json!({"url": server.url("/")})).await;
    let strict =
        web(json!({"cache_bytes": 1_000_000, "state_dir": scratch.path(), "allow_private_hosts": []})).await;
    assert_eq!(
        strict.call("web_fetch", json!({"url": server.url("/")})).await.error().code,
        "blocked_address"
    );
}

#[tokio::test]
async fn the_next_part_is_of_the_same_page_in_another_process_too() {
    let scratch = tempfile::tempdir().unwrap();
    let server = counting("max-age=0").await;
    let first = fetch(&keeping(scratch.path()).await, json!({"url": server.url("/"), "max_chars": 4})).await;
    let second =
        fetch(&keeping(scratch.path()).await, json!({"url": server.url("/"), "start": 4, "max_chars": 4}))
            .await;
    assert_eq!(
        (&first["content"], &second["content"], &second["cached"]),
        (&json!("page"), &json!(" 0 f"), &json!(true))
    );
    assert_eq!(server.requests().len(), 1);
}

async fn site() -> Server {
    Server::start(|request| match request.target.as_str() {
        "/robots.txt" => Reply::new(
            200,
            &[],
            "User-agent: *\nDisallow: /private\n\nUser-agent: polite\nDisallow: /\nAllow: /open\n",
        ),
        _ => Reply::html("page"),
    })
    .await
}

#[tokio::test]
async fn robots_txt_is_kept_to_unless_a_person_wants_the_page() {
    let server = site().await;
    let fetched = async |over: Value, path: &str| {
        let outcome = web(over).await.call("web_fetch", json!({"url": server.url(path)})).await;
        let terminal = outcome.terminal();
        if terminal["event"] == "result" { "fetched".to_owned() } else { outcome.error().code }
    };
    assert_eq!(fetched(json!({"robots": "respect"}), "/private/x").await, "denied");
    assert_eq!(fetched(json!({"robots": "respect"}), "/public").await, "fetched");
    assert_eq!(fetched(json!({"robots": "respect", "user_agent": "Polite/2.0"}), "/public").await, "denied");
    assert_eq!(fetched(json!({"robots": "respect", "user_agent": "Polite/2.0"}), "/open/x").await, "fetched");
    let before = server.requests().iter().filter(|request| request.target == "/robots.txt").count();
    assert_eq!(fetched(json!({"robots": "ignore"}), "/private/x").await, "fetched");
    let after = server.requests().iter().filter(|request| request.target == "/robots.txt").count();
    assert_eq!((before, after), (4, 4));
}

#[tokio::test]
async fn robots_txt_is_asked_for_once_and_one_that_is_broken_forbids_nothing() {
    let server = site().await;
    let harness = web(json!({"robots": "respect"})).await;
    for path in ["/a", "/b"] {
        fetch(&harness, json!({"url": server.url(path)})).await;
    }
    let targets: Vec<String> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/robots.txt", "/a", "/b"]);
    for status in [404, 429, 500] {
        let server = Server::start(move |request| match request.target.as_str() {
            "/robots.txt" => Reply::new(status, &[], "User-agent: *\nDisallow: /\n"),
            _ => Reply::html("page"),
        })
        .await;
        assert_eq!(
            fetch(&web(json!({"robots": "respect"})).await, json!({"url": server.url("/")})).await["status"],
            200
        );
    }
}

#[tokio::test]
async fn robots_txt_is_kept_to_where_a_redirect_leads() {
    let names = http_guard::testing::NameServer::start(&[
        ("a.example", &[&["127.0.0.1"]]),
        ("www.a.example", &[&["127.0.0.1"]]),
    ])
    .await;
    let server = Server::start(|request| {
        let host = request.header("host").unwrap_or_default().to_owned();
        let port = host.rsplit(':').next().unwrap_or_default();
        match (host.starts_with("www."), request.target.as_str()) {
            (false, "/robots.txt") => Reply::new(200, &[], "User-agent: *\nDisallow: /private\n"),
            (true, "/robots.txt") => Reply::new(200, &[], "User-agent: *\nDisallow: /closed\n"),
            (false, "/inside") => Reply::redirect(302, "/private?key=hunter2"),
            (false, "/across") => Reply::redirect(302, &format!("http://www.a.example:{port}/closed")),
            (false, "/open") => Reply::redirect(302, &format!("http://www.a.example:{port}/private")),
            _ => Reply::html("page"),
        }
    })
    .await;
    let respectful =
        super::named(&names, &["a.example", "www.a.example"], json!({"robots": "respect"})).await;
    for (path, place) in [("/inside", "/private?key=…"), ("/across", "www.a.example")] {
        let arguments = json!({"url": server.url_of("a.example", path)});
        let error = respectful.call("web_fetch", arguments).await.error();
        assert_eq!((error.category.as_str(), error.code.as_str()), ("permission_denied", "denied"), "{path}");
        assert!(
            error.message.contains("redirected to") && error.message.contains(place),
            "{}",
            error.message
        );
        assert!(!error.message.contains("hunter2"), "{}", error.message);
    }
    let page = fetch(&respectful, json!({"url": server.url_of("a.example", "/open")})).await;
    assert_eq!(page["content"], "page");
    let forbidden = |request: &Received| {
        let host = request.header("host").unwrap_or_default();
        request.target.starts_with(if host.starts_with("www.") { "/closed" } else { "/private" })
    };
    assert!(!server.requests().iter().any(forbidden), "{:?}", server.requests());
    let ignoring = super::named(&names, &["a.example", "www.a.example"], json!({})).await;
    assert_eq!(
        fetch(&ignoring, json!({"url": server.url_of("a.example", "/inside")})).await["content"],
        "page"
    );
}

#[tokio::test]
async fn a_server_that_asks_for_rest_is_left_alone_by_redirects_too() {
    let names = http_guard::testing::NameServer::start(&[
        ("a.example", &[&["127.0.0.1"]]),
        ("www.a.example", &[&["127.0.0.1"]]),
    ])
    .await;
    let server = Server::start(|request| {
        let host = request.header("host").unwrap_or_default().to_owned();
        let port = host.rsplit(':').next().unwrap_or_default();
        match host.starts_with("www.") {
            true => Reply::new(429, &[("Retry-After", "60")], "later"),
            false => Reply::redirect(302, &format!("http://www.a.example:{port}/")),
        }
    })
    .await;
    let harness = super::named(&names, &["a.example", "www.a.example"], json!({})).await;
    let arguments = json!({"url": server.url_of("a.example", "/")});
    assert_eq!(fetch(&harness, arguments.clone()).await["status"], 429);
    let at_rest = server.requests().len();
    let outcome = harness.call("web_fetch", arguments.clone()).await;
    assert_eq!(
        (outcome.error().code.as_str(), &outcome.terminal()["retryable"]),
        ("rate_limited", &json!(true))
    );
    assert!(outcome.error().message.contains("www.a.example is asked too often"), "{:?}", outcome.error());
    let request = json!({"method": "GET", "url": arguments["url"]});
    assert_eq!(harness.call("http_request", request).await.error().code, "rate_limited");
    // Each was redirected, and then nothing was sent.
    assert_eq!(server.requests().len(), at_rest + 2);
}
