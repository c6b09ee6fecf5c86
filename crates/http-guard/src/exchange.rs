//! One request and the head of its response, on one connection that serves nothing else.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use crate::connect::Stream;

/// The most that is buffered of a response, which also bounds its head.
const LARGEST_BUFFER: usize = 128 * 1024;
const MOST_HEADERS: usize = 256;

/// The task that moves a connection's bytes. The connection is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request and waits for the head of the response.
pub(crate) async fn exchange(
    stream: Box<dyn Stream>,
    request: http::Request<Full<Bytes>>,
) -> hyper::Result<(http::Response<Incoming>, Connection)> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(LARGEST_BUFFER)
        .max_headers(MOST_HEADERS)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .handshake(TokioIo::new(stream))
        .await?;
    let connection = Connection(tokio::spawn(async move {
        // What goes wrong is also told to the one who waits for the response.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await?;
    Ok((response, connection))
}

/// An error of the connection with what caused it.
pub(crate) fn reason(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
