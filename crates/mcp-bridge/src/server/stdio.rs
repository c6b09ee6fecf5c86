//! The protocol on standard input and output.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::Bridge;

/// Why a client could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// What came first was no beginning of the protocol.
    #[error("the client does not speak the Model Context Protocol: {0}")]
    NoProtocol(String),
    /// The server's task failed.
    #[error("the server failed: {0}")]
    Failed(String),
}

/// Serves one client on standard input and output, until the input ends or the bridge is closed. Running calls are given up
/// then; the providers are not stopped.
///
/// # Errors
/// The client does not speak the protocol.
pub async fn serve_stdio(bridge: &Bridge) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve_stream(bridge, input, output).await
}

/// The same on any two streams.
///
/// # Errors
/// As [`serve_stdio`].
pub async fn serve_stream(
    bridge: &Bridge,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let stop = CancellationToken::new();
    let transport = (WatchedInput { input, ended: bridge.clone() }, output);
    let serving = async {
        match serve_server_with_ct(bridge.clone(), transport, stop.clone()).await {
            Ok(running) => {
                running.waiting().await.map(drop).map_err(|error| ServeError::Failed(error.to_string()))
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(ServeError::NoProtocol(error.to_string())),
        }
    };
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => ended,
        () = bridge.0.closing.cancelled() => {
            stop.cancel();
            serving.await
        }
    }
}

/// An input whose end gives up the calls. The protocol's library would wait for them.
struct WatchedInput<R> {
    input: R,
    ended: Bridge,
}

impl<R: AsyncRead + Unpin> AsyncRead for WatchedInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let room = buffer.remaining() > 0;
        let polled = Pin::new(&mut self.input).poll_read(cx, buffer);
        let over = match &polled {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(())) => room && buffer.filled().len() == before,
        };
        if over {
            self.ended.close();
        }
        polled
    }
}
