//! The protocol over HTTP, and who is kept out.

use std::net::SocketAddr;

use mcp_bridge::{Access, HttpError, Serving, serve_http};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixture::{Fx, SEPARATE, bridge};
use crate::wire::initialize;

const TOKEN: &str = "0123456789abcdef";

async fn serving() -> (Serving, SocketAddr) {
    let access = Access::Token(TOKEN.to_owned());
    let serving =
        serve_http(&bridge(&Fx::new(), SEPARATE), "127.0.0.1:0".parse().unwrap(), access).await.unwrap();
    let address = serving.url().trim_start_matches("http://").trim_end_matches("/mcp").parse().unwrap();
    (serving, address)
}

/// Posts an `initialize` with these headers besides the usual ones; status and body.
async fn post(address: SocketAddr, headers: &[(&str, &str)]) -> (u16, String) {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize("2025-11-25", json!({})),
    });
    let body = message.to_string();
    let mut request = format!("POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
    let host = address.to_string();
    let usual = [
        ("Host", host.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Connection", "close"),
    ];
    let given = |name: &str| headers.iter().any(|(other, _)| *other == name);
    for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
    let mut response = Vec::new();
    // A stream of events stays open: what is wanted of it has come once the result is there.
    let mut chunk = [0; 4_096];
    while !String::from_utf8_lossy(&response).contains("\"result\"") {
        match stream.read(&mut chunk).await.unwrap() {
            0 => break,
            count => response.extend_from_slice(&chunk[..count]),
        }
    }
    let response = String::from_utf8_lossy(&response).into_owned();
    let status = response.split(' ').nth(1).unwrap().parse().unwrap();
    (status, response)
}

const BEARER: (&str, &str) = ("Authorization", "Bearer 0123456789abcdef");

#[tokio::test]
async fn who_has_the_token_is_served() {
    let (serving, address) = serving().await;
    let (status, response) = post(address, &[BEARER]).await;
    assert_eq!(status, 200, "{response}");
    assert!(response.contains("\"protocolVersion\":\"2025-11-25\""), "{response}");
    serving.stop().await;
    assert!(TcpStream::connect(address).await.is_err(), "it still listens");
}

#[tokio::test]
async fn who_has_not_is_not() {
    let (_serving, address) = serving().await;
    for headers in [&[][..], &[("Authorization", "Bearer wrong")], &[("Authorization", TOKEN)]] {
        let (status, response) = post(address, headers).await;
        assert_eq!(status, 401, "{response}");
        assert!(!response.contains("protocolVersion"));
    }
}

#[tokio::test]
async fn web_pages_are_kept_out_even_with_the_token() {
    let (_serving, address) = serving().await;
    for foreign in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Host", "evil.example"),
        ("Origin", "http://localhost:1"),
    ] {
        let (status, response) = post(address, &[BEARER, foreign]).await;
        assert_eq!(status, 403, "{foreign:?}: {response}");
    }
    let own = format!("http://localhost:{}", address.port());
    let (status, response) = post(address, &[BEARER, ("Origin", &own)]).await;
    assert_eq!(status, 200, "{response}");
}

#[tokio::test]
async fn only_this_machine_is_served() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = serve_http(&bridge(&Fx::new(), SEPARATE), address.parse().unwrap(), Access::Open).await;
        assert!(matches!(refused, Err(HttpError::NotLoopback(_))), "{address}");
    }
}
