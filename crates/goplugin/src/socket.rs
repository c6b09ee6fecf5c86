//! Sockets of either kind, as tonic's servers and clients want them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::Stream;
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Server};

use crate::Address;

/// A byte stream of either kind.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// One connection. `C` is kept for as long as it is open.
pub(crate) struct Socket<C = ()> {
    stream: Box<dyn Duplex>,
    _companion: C,
}

impl Socket {
    /// Connects to a server.
    pub(crate) async fn connect(address: &Address) -> io::Result<Self> {
        let stream: Box<dyn Duplex> = match address {
            Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Address::Tcp(address) => Box::new(without_delay(TcpStream::connect(address).await?)?),
        };
        Ok(Self { stream, _companion: () })
    }
}

/// Small messages must not wait for each other.
fn without_delay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The client side of a connection whose target `resolve` names each time one has to be made.
///
/// The first connection is made at once, so that its error is told; later ones, after a loss, by the first
/// call that needs them.
pub(crate) async fn channel<R>(resolve: R) -> Result<Channel, tonic::transport::Error>
where
    R: Fn() -> io::Result<Address> + Send + Sync + 'static,
{
    let connector = tower::service_fn(move |_| {
        let address = resolve();
        async move { Socket::connect(&address?).await.map(TokioIo::new) }
    });
    // The name is never looked up; it only fills the `:authority` header.
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await
}

/// The peer may cancel any number of calls at once; the server's own limit takes that for an attack.
const MOST_PENDING_RESETS: usize = 4096;

/// What both sides' servers are built from.
pub(crate) fn server() -> Server {
    Server::builder().http2_max_pending_accept_reset_streams(Some(MOST_PENDING_RESETS))
}

/// A listening socket of either kind.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// The connections of a listener, each with a companion made for it.
pub(crate) struct Incoming<F> {
    listener: Listener,
    companion: F,
}

impl<F> Incoming<F> {
    pub(crate) fn new(listener: Listener, companion: F) -> Self {
        Self { listener, companion }
    }
}

impl<C, F: Fn() -> C + Unpin> Stream for Incoming<F> {
    type Item = io::Result<Socket<C>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream: io::Result<Box<dyn Duplex>> = match &self.listener {
            Listener::Unix(listener) => {
                ready!(listener.poll_accept(context)).map(|(stream, _)| Box::new(stream) as _)
            }
            Listener::Tcp(listener) => ready!(listener.poll_accept(context))
                .and_then(|(stream, _)| without_delay(stream))
                .map(|stream| Box::new(stream) as _),
        };
        Poll::Ready(Some(stream.map(|stream| Socket { stream, _companion: (self.companion)() })))
    }
}

impl<C> Connected for Socket<C> {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

impl<C: Unpin> AsyncRead for Socket<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<C: Unpin> AsyncWrite for Socket<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
