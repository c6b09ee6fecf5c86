//! A web server for the run's fetches.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A server, until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            let mut conversations = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                conversations.spawn(async move {
                    // A client that goes away is a part of the run.
                    let _ = converse(stream).await;
                });
                while conversations.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, task })
    }

    /// The address of a path on it.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The longest head of a request.
const LONGEST_HEAD: usize = 64 * 1024;

async fn converse(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    let target = head.split(' ').nth(1).unwrap_or_default();
    let kind = target.split(['?', '/']).nth(1).unwrap_or_default();
    stream.write_all(&answer(kind, target, &body)).await?;
    if kind == "hang" {
        // Until the client goes away.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    }
    stream.shutdown().await
}

fn answer(kind: &str, target: &str, body: &[u8]) -> Vec<u8> {
    let whole = |status: &str, headers: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let text = "Content-Type: text/plain\r\n";
    match kind {
        "page" => {
            let page = format!("<title>T</title><h1>Page</h1><p>{target} is here");
            whole("200 OK", "Content-Type: text/html\r\n", page.as_bytes())
        }
        "fresh" => whole("200 OK", &format!("{text}Cache-Control: no-store\r\n"), target.as_bytes()),
        "away" => whole("302 Found", "Location: /page/away\r\n", b""),
        "hang" | "cut" => {
            format!("HTTP/1.1 200 OK\r\n{text}Content-Length: 99\r\n\r\nthe beginning").into_bytes()
        }
        "echo" => whole("200 OK", text, body),
        "search" => {
            let query = target.split("q=").nth(1).unwrap_or_default().split('&').next().unwrap_or_default();
            let item = json!({"title": query, "url": "https://t.example/", "content": query});
            let found = json!({"results": [item]}).to_string();
            whole("200 OK", "Content-Type: application/json\r\n", found.as_bytes())
        }
        _ => whole("404 Not Found", text, b"nothing here"),
    }
}
