//! What web_fetch answers.

use std::io::Write as _;

use http_guard::testing::{Reply, Server};
use serde_json::{Value, json};

use super::{fetch, notes, web};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_page_is_text_with_what_is_known_of_it() {
    let server =
        Server::start(|_| Reply::new(200, &[("Content-Type", "text/plain; charset=utf-8")], "Grüße")).await;
    let page = fetch(&web(json!({})).await, json!({"url": server.url("/a?b=c#d")})).await;
    let url = server.url("/a?b=c");
    for (member, expected) in [
        ("url", json!(url)),
        ("final_url", json!(url)),
        ("status", json!(200)),
        ("content_type", json!("text/plain; charset=utf-8")),
        ("charset", json!("utf-8")),
        ("content", json!("Grüße")),
        ("start", json!(0)),
        ("total_chars", json!(5)),
        ("truncated", json!(false)),
        ("redirects", json!([])),
        ("cached", json!(false)),
        ("next_start", Value::Null),
        ("redirect_to", Value::Null),
        ("media", Value::Null),
    ] {
        assert_eq!(page[member], expected, "{member}");
    }
    assert!(notes(&page).contains("not to be trusted"), "{page}");
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.header("user-agent")), ("GET", Some("tests/1.0")));
    assert_eq!((request.header("cookie"), request.header("referer")), (None, None));
}

#[tokio::test]
async fn statuses_are_data() {
    let server = Server::start(|request| match request.target.as_str() {
        "/403" => Reply::new(403, &[("Content-Type", "text/plain")], "go away"),
        "/404" => Reply::new(404, &[("Content-Type", "text/html")], "<title>Lost</title><p>no such page"),
        "/204" => Reply::new(204, &[], ""),
        "/304" => Reply::new(304, &[], ""),
        "/500" => Reply::new(500, &[], ""),
        _ => Reply::new(429, &[("Retry-After", "7"), ("Content-Type", "text/plain")], "slow down"),
    })
    .await;
    let harness = web(json!({})).await;
    for (path, status, part) in [
        ("/403", 403, "go away"),
        ("/404", 404, "no such page"),
        ("/204", 204, ""),
        ("/304", 304, ""),
        ("/500", 500, ""),
    ] {
        let page = fetch(&harness, json!({"url": server.url(path)})).await;
        assert_eq!(page["status"], status);
        assert!(page["content"].as_str().unwrap().contains(part), "{page}");
    }
    let page = fetch(&harness, json!({"url": server.url("/429")})).await;
    assert_eq!(
        (&page["status"], &page["retry_after_ms"], &page["content"]),
        (&json!(429), &json!(7000), &json!("slow down"))
    );
    // It is then left alone, and who asks is told for how long.
    let outcome = harness.call("web_fetch", json!({"url": server.url("/403")})).await;
    assert_eq!(outcome.error().code, "rate_limited");
    assert_eq!(outcome.terminal()["retryable"], true);
    assert!(outcome.error().message.contains("127.0.0.1"), "{:?}", outcome.error());
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn parts_join_to_the_whole_whatever_the_characters() {
    let text: String = "€ü𝟎e\u{301}\n".repeat(4_000);
    let body = text.clone();
    let server = Server::start(move |_| {
        Reply::new(
            200,
            &[("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")],
            &body,
        )
    })
    .await;
    let harness = web(json!({})).await;
    let (mut read, mut start) = (String::new(), 0);
    loop {
        let page = fetch(&harness, json!({"url": server.url("/"), "start": start, "max_chars": 3_333})).await;
        assert_eq!((&page["start"], &page["total_chars"]), (&json!(start), &json!(text.chars().count())));
        read.push_str(page["content"].as_str().unwrap());
        assert_eq!(
            page["truncated"],
            json!(page["next_start"].is_u64() || page["next_start"].is_f64()),
            "{page}"
        );
        match page["next_start"].as_f64() {
            Some(next) => start = next as u64,
            None => break,
        }
    }
    assert!(read == text);
    // All parts are of one page.
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_part_is_cut_between_characters() {
    let server = Server::start(|_| {
        Reply::new(200, &[("Content-Type", "text/plain; charset=utf-8")], "€".repeat(40_000))
    })
    .await;
    let harness = web(json!({"max_bytes": 10_001})).await;
    let page = fetch(&harness, json!({"url": server.url("/"), "max_chars": 777})).await;
    assert_eq!(
        (page["content"].as_str().unwrap(), &page["next_start"]),
        ("€".repeat(777).as_str(), &json!(777))
    );
    assert_eq!(page["truncated"], true);
    let rest = fetch(&harness, json!({"url": server.url("/"), "start": 3_000})).await;
    assert!(rest["content"].as_str().unwrap().starts_with("€€€"), "{rest}");
    assert_eq!(rest["truncated"], true);
    assert!(notes(&rest).contains("10001 bytes (max_bytes)"), "{rest}");
    let beyond = fetch(&harness, json!({"url": server.url("/"), "start": 999_999})).await;
    assert_eq!(beyond["content"], "");
    assert!(notes(&beyond).contains("beyond the end"), "{beyond}");
}

#[tokio::test]
async fn bombs_and_lies_are_results_with_notes() {
    let bomb = gzip(&vec![b'a'; 1 << 20]).repeat(200);
    let server = Server::start(move |request| match request.target.as_str() {
        "/bomb" => Reply::new(200, &[("Content-Type", "text/plain"), ("Content-Encoding", "gzip")], &bomb),
        _ => Reply::new(
            200,
            &[("Content-Type", "text/plain"), ("Content-Encoding", "gzip")],
            "plain as can be, whatever it says",
        ),
    })
    .await;
    let harness = web(json!({"max_bytes": 2_000_000})).await;
    let page = fetch(&harness, json!({"url": server.url("/bomb")})).await;
    assert_eq!(page["truncated"], true);
    let total = page["total_chars"].as_f64().unwrap();
    assert!(total > 0.0 && total <= 2_000_000.0, "{total}");
    let page = fetch(&harness, json!({"url": server.url("/lie")})).await;
    assert_eq!(
        (&page["content"], &page["truncated"]),
        (&json!("plain as can be, whatever it says"), &json!(false))
    );
    assert!(notes(&page).contains("gzip"), "{page}");
}

#[tokio::test]
async fn what_had_arrived_is_shown_when_the_rest_does_not_come() {
    let server = Server::start(|request| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nthe beginning";
        if request.target == "/cut" { Reply::raw(head) } else { Reply::raw(head).and_hangs() }
    })
    .await;
    let harness = web(json!({"timeout_ms": 700})).await;
    for (path, note) in [("/cut", "broke off"), ("/hangs", "in time")] {
        let page = fetch(&harness, json!({"url": server.url(path)})).await;
        assert_eq!((&page["content"], &page["truncated"]), (&json!("the beginning"), &json!(true)), "{path}");
        assert!(notes(&page).contains(note), "{page}");
    }
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let server = Server::start(|_| Reply::raw("").and_hangs()).await;
    let outcome =
        web(json!({"timeout_ms": 300})).await.call("web_fetch", json!({"url": server.url("/")})).await;
    assert_eq!(outcome.error().category, "timeout");
    assert!(outcome.error().message.contains("300 ms"), "{:?}", outcome.error());
}

#[tokio::test]
async fn an_image_has_its_bytes_where_that_is_configured() {
    let gif = b"GIF89a\x07\0\x05\0\0\0\0";
    let server = Server::start(move |_| Reply::new(200, &[("Content-Type", "image/gif")], gif)).await;
    let page = fetch(&web(json!({})).await, json!({"url": server.url("/")})).await;
    assert_eq!((&page["media"], &page["charset"]), (&Value::Null, &json!("binary")));
    let page = fetch(&web(json!({"media": "inline"})).await, json!({"url": server.url("/")})).await;
    assert_eq!(page["media"]["mime_type"], "image/gif");
    assert_eq!(page["media"]["data_base64"], "R0lGODlhBwAFAAAAAA==");
}

#[tokio::test]
async fn a_result_can_be_shown_again() {
    let server = Server::start(|_| Reply::html("<title>T</title><p>Hello")).await;
    let harness = web(json!({})).await;
    let page = fetch(&harness, json!({"url": server.url("/")})).await;
    let tree = harness.render(&page).await.unwrap();
    assert!(format!("{tree:?}").contains("Hello"));
}
