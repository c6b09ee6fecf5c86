//! The pages of a calls file, served on the loopback interface.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::calls::{OtherPage, Page};

/// A request is read up to here; what a provider may send beyond it is of no interest.
const LONGEST_REQUEST: usize = 1 << 20;

/// A server for one run. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: std::net::SocketAddr,
    _serving: JoinSet<()>,
}

impl HttpServer {
    /// Serves `pages`; any other path is answered with 404.
    pub(crate) async fn start(pages: &BTreeMap<String, Page>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let pages = Arc::new(pages.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, pages.clone()));
            }
        });
        Ok(Self { address, _serving: serving })
    }

    /// What `{http}` stands for.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// One request and its answer; then the connection closes.
async fn serve(mut stream: TcpStream, pages: Arc<BTreeMap<String, Page>>) {
    let Some(path) = request_path(&mut stream).await else { return };
    let missing = || OtherPage {
        status: Some(404),
        headers: BTreeMap::new(),
        body: "there is no such page\n".to_owned(),
        delay_ms: 0,
    };
    let found = pages.get(&path).or_else(|| pages.get(path.split('?').next().unwrap_or_default()));
    let page = found.map_or_else(missing, Page::full);
    tokio::time::sleep(Duration::from_millis(page.delay_ms)).await;
    let _ = stream.write_all(&answer(&page)).await;
    let _ = stream.shutdown().await;
}

/// The path of the request, once all of it has come.
async fn request_path(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let head = loop {
        match stream.read(&mut buffer).await.ok()? {
            0 => return None,
            count => request.extend_from_slice(&buffer[..count]),
        }
        if let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if request.len() > LONGEST_REQUEST {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&request[..head]).into_owned();
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let wanted: usize = head + length.unwrap_or(0_usize).min(LONGEST_REQUEST);
    while request.len() < wanted {
        match stream.read(&mut buffer).await.ok()? {
            0 => break,
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    text.split_whitespace().nth(1).map(str::to_owned)
}

fn answer(page: &OtherPage) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Status\r\n", page.status.unwrap_or(200));
    if !page.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
        head.push_str("Content-Type: text/plain; charset=utf-8\r\n");
    }
    for (name, value) in &page.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", page.body.len()));
    let mut out = head.into_bytes();
    out.extend_from_slice(page.body.as_bytes());
    out
}
