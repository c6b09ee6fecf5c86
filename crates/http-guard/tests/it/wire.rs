//! Answers in every shape that HTTP/1 has, and in some that it has not.

use std::sync::atomic::{AtomicUsize, Ordering};

use http_guard::testing::{Reply, Server};
use http_guard::{BodyEnd, FetchError, Limits};

use super::{body_of, fetched, get, local};

#[tokio::test]
async fn bodies_end_in_many_ways() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    let cases: [(&str, String, &str); 7] = [
        ("HTTP/1.0 until it closes", "HTTP/1.0 200 OK\r\n\r\nto the end".to_owned(), "to the end"),
        ("HTTP/1.1 until it closes", "HTTP/1.1 200 OK\r\n\r\nto the end".to_owned(), "to the end"),
        ("no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok".to_owned(), "ok"),
        ("bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok".to_owned(), "ok"),
        ("more than was said", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more".to_owned(), "ok"),
        ("chunks and trailers", format!("{chunked}3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\n\r\n"), "abcde"),
        (
            "an answer before the answer",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                .to_owned(),
            "ok",
        ),
    ];
    for (name, raw, text) in cases {
        let server = Server::start(move |_| Reply::raw(raw.clone())).await;
        let body = body_of(&local(), &server.url("/")).await;
        let found = String::from_utf8_lossy(&body.bytes).into_owned();
        assert_eq!((found.as_str(), &body.end), (text, &BodyEnd::Complete), "{name}");
    }
}

#[tokio::test]
async fn what_came_of_broken_chunks_is_kept() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    for rest in ["zz\r\nde", "5\r\nde", "ffffffffffffffffff\r\nde", ""] {
        let raw = format!("{head}{rest}");
        let server = Server::start(move |_| Reply::raw(raw.clone())).await;
        let body = body_of(&local(), &server.url("/")).await;
        assert!(body.bytes.starts_with(b"abc"), "{rest:?}: {:?}", body.bytes);
        assert!(matches!(body.end, BodyEnd::BrokenOff(_)), "{rest:?}: {:?}", body.end);
    }
}

#[tokio::test]
async fn two_lengths_are_no_answer() {
    for head in [
        "Content-Length: 2\r\nContent-Length: 5\r\n",
        "Content-Length: 2, 5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n",
    ] {
        let raw = format!("HTTP/1.1 200 OK\r\n{head}\r\nabcde");
        let server = Server::start(move |_| Reply::raw(raw.clone())).await;
        let error = fetched(&local(), &server.url("/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Exchange { .. }), "{head:?}: {error}");
    }
}

#[tokio::test]
async fn large_heads_are_read_and_endless_ones_are_not() {
    let fine = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\nContent-Length: 2\r\n\r\nok", "x".repeat(60_000));
    let many: String = (0..200).map(|number| format!("X-{number}: {number}\r\n")).collect();
    for raw in [fine, format!("HTTP/1.1 200 OK\r\n{many}Content-Length: 2\r\n\r\nok")] {
        let server = Server::start(move |_| Reply::raw(raw.clone())).await;
        assert_eq!(body_of(&local(), &server.url("/")).await.bytes, b"ok");
    }
    let many: String = (0..10_000).map(|number| format!("X-{number}: {number}\r\n")).collect();
    for raw in [
        format!("HTTP/1.1 200 OK\r\n{many}\r\nok"),
        format!("HTTP/1.1 {}\r\n\r\n", "9".repeat(1 << 20)),
        "x".repeat(1 << 20),
    ] {
        let server = Server::start(move |_| Reply::raw(raw.clone())).await;
        let error = fetched(&local(), &server.url("/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Exchange { .. }), "{error}");
        assert!(error.to_string().len() < 1_000, "{error}");
    }
}

#[tokio::test]
async fn a_thousand_redirects_end_at_the_limit() {
    let count = AtomicUsize::new(0);
    let server =
        Server::start(move |_| Reply::redirect(302, &format!("/{}", count.fetch_add(1, Ordering::SeqCst))))
            .await;
    let error = fetched(&local(), &server.url("/")).await.unwrap_err();
    assert!(matches!(error, FetchError::TooManyRedirects { count: 10, .. }), "{error}");
    assert_eq!(server.connections(), 11);
    let limits = Limits { max_redirects: 1_000, ..Limits::default() };
    let error = local().send(get(&server.url("/")).within(limits)).await.unwrap_err();
    assert!(matches!(error, FetchError::TooManyRedirects { count: 1_000, .. }), "{error}");
}

#[tokio::test]
async fn a_redirect_is_asked_about_before_it_is_followed() {
    let server = Server::start(|request| match request.target.as_str() {
        "/" => Reply::redirect(302, "/middle"),
        "/middle" => Reply::redirect(302, "/end?key=hunter2"),
        _ => Reply::html("end"),
    })
    .await;
    let (guard, mut asked) = (local(), Vec::new());
    let sent = guard.send_asking(get(&server.url("/")), |to| {
        asked.push(to.path().to_owned());
        std::future::ready(if to.path() == "/end" { Err("no") } else { Ok(()) })
    });
    let stopped = sent.await.unwrap_err();
    assert!(
        matches!(&stopped, http_guard::Stopped::Declined { to, why: "no" } if to.path() == "/end"),
        "{stopped}"
    );
    assert!(!stopped.to_string().contains("hunter2"), "{stopped}");
    assert_eq!((asked, server.requests().len()), (vec!["/middle".to_owned(), "/end".to_owned()], 2));
    // An answer that does not come is waited for no longer than the rest.
    let limits = Limits { total: std::time::Duration::from_millis(300), ..Limits::default() };
    let request = get(&server.url("/")).within(limits);
    let stopped =
        local().send_asking(request, |_| std::future::pending::<Result<(), ()>>()).await.unwrap_err();
    assert!(
        matches!(&stopped, http_guard::Stopped::Failed(error) if matches!(error.root(), FetchError::TimedOut { .. })),
        "{stopped:?}"
    );
}
