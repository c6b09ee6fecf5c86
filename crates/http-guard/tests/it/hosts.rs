//! Which hosts are reached, and what is sent to them.

use http_guard::testing::{NameServer, Reply, Server};
use http_guard::{FetchError, Guard, Policy, Refusal, Request, Resolver, Settings};

use super::{body_of, fetched, get, local};

#[tokio::test]
async fn private_addresses_are_refused_before_any_packet() {
    let server = Server::start(|_| Reply::html("inside")).await;
    let guard = Guard::new(Settings::default());
    for host in ["127.0.0.1", "localhost", "foo.localhost", "0.0.0.0", "[::1]"] {
        let error = fetched(&guard, &server.url_of(host, "/")).await.unwrap_err();
        assert!(
            matches!(error, FetchError::Refused(Refusal::Address { .. } | Refusal::ThisMachine { .. })),
            "{error}"
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_list_of_private_hosts_is_per_host() {
    let server = Server::start(|_| Reply::html("inside")).await;
    let port = server.port();
    let names =
        NameServer::start(&[("a.example", &[&["127.0.0.1"]]), ("b.example", &[&["127.0.0.1"]])]).await;
    let guard = super::guard(&["a.example", &format!("localhost:{port}")], Some(&names));
    assert_eq!(body_of(&guard, &server.url_of("a.example", "/")).await.bytes, b"inside");
    assert_eq!(body_of(&guard, &server.url_of("localhost", "/")).await.bytes, b"inside");
    for url in [server.url_of("b.example", "/"), server.url("/"), format!("http://localhost:{}/", port - 1)] {
        assert!(matches!(fetched(&guard, &url).await, Err(FetchError::Refused(_))), "{url}");
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn domains_are_compared_by_their_parsed_host() {
    let server = Server::start(|_| Reply::html("docs")).await;
    let zone: [&[&str]; 1] = [&["127.0.0.1"]];
    let hosts = ["api.docs.example", "docs.example.evil", "evildocs.example"];
    let names = NameServer::start(&hosts.map(|host| (host, &zone[..]))).await;
    let policy = Policy::default().allowing(["*.docs.example"]).unwrap().with_private(hosts).unwrap();
    let resolver = Resolver::Server(names.address());
    let guard = Guard::new(Settings { policy, resolver, ..Settings::default() });
    for host in ["api.docs.example", "API.DOCS.EXAMPLE", "api.docs.example.", "ａｐｉ.docs.example"] {
        assert_eq!(body_of(&guard, &server.url_of(host, "/")).await.bytes, b"docs", "{host}");
    }
    for host in ["docs.example.evil", "api.dοcs.example", "evildocs.example", "api.docs.example.evil"] {
        let error = fetched(&guard, &server.url_of(host, "/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused(Refusal::NotAllowed { .. })), "{host}: {error}");
    }
    assert_eq!(server.connections(), 4);
    // The name that is sent is the one that was compared.
    assert!(
        server.requests().iter().all(|request| {
            request.header("host") == Some(&format!("api.docs.example:{}", server.port()))
        })
    );
}

#[tokio::test]
async fn nothing_is_sent_that_was_not_asked_for() {
    let server = Server::start(|_| Reply::new(200, &[("Set-Cookie", "id=1")], "")).await;
    let guard = local();
    for _ in 0..2 {
        fetched(&guard, &server.url("/a?b=c#d")).await.unwrap();
    }
    for request in server.requests() {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/a?b=c"));
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["host", "accept", "accept-encoding"]);
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn methods_headers_and_bodies_arrive() {
    let server = Server::start(|_| Reply::new(201, &[("X-Made", "1")], "made")).await;
    let request = Request::new(http_guard::http::Method::PUT, server.url("/x").parse().unwrap());
    let request = request.with_header("X-One", "1").unwrap().with_header("x-one", "2").unwrap();
    let request = request.with_header("Accept", "text/plain").unwrap().with_body("hello");
    let response = local().send(request).await.unwrap();
    assert_eq!((response.status, response.headers["x-made"].to_str().unwrap()), (201, "1"));
    assert_eq!(response.body.collect().await.bytes, b"made");
    let sent = &server.requests()[0];
    assert_eq!(
        (sent.method.as_str(), sent.body.as_slice(), sent.header("accept")),
        ("PUT", &b"hello"[..], Some("text/plain"))
    );
    assert_eq!(sent.headers.iter().filter(|(name, _)| name == "x-one").count(), 2);
    for name in ["Host", "content-length", "Transfer-Encoding", "Connection", "bad name", "x\r\ny"] {
        assert!(get("http://example.org/").with_header(name, "1").is_err(), "{name}");
    }
    assert!(get("http://example.org/").with_header("x", "a\r\nHost: b").is_err());
}
