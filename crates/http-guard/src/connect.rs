//! Connections: to checked addresses only, and encrypted for the host that was asked for.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::policy::Admitted;
use crate::proxy::Proxy;
use crate::url::{CheckedUrl, Host};

/// How long an address is waited for before the next one is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// Both directions of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Tcp(std::io::Error),
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Proxy(std::io::Error),
}

/// How connections are made.
#[derive(Debug)]
pub(crate) struct Connector {
    proxy: Option<Proxy>,
    roots: Vec<CertificateDer<'static>>,
    /// Built when it is first needed: most processes never fetch, and all of them start.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Connector {
    pub(crate) fn new(proxy: Option<Proxy>, roots: Vec<CertificateDer<'static>>) -> Self {
        Self { proxy, roots, tls: OnceLock::new() }
    }

    /// Connects to one of the addresses that `url`'s host was found to have.
    pub(crate) async fn connect(
        &self,
        url: &CheckedUrl,
        to: &Admitted,
    ) -> Result<Box<dyn Stream>, ConnectError> {
        let tcp = match &self.proxy {
            None => first_of(to.addresses()).await.map_err(ConnectError::Tcp)?,
            Some(proxy) => through(proxy, to.addresses()).await?,
        };
        if url.is_https() { self.encrypt(url.host(), tcp).await } else { Ok(Box::new(tcp)) }
    }

    async fn encrypt(&self, host: &Host, tcp: TcpStream) -> Result<Box<dyn Stream>, ConnectError> {
        let config = self.tls.get_or_init(|| self.tls_config()).clone().map_err(ConnectError::Tls)?;
        let name = match host {
            Host::Address(address) => ServerName::IpAddress((*address).into()),
            Host::Name(name) => ServerName::try_from(name.clone())
                .map_err(|_| ConnectError::Tls("its name cannot stand in a certificate".to_owned()))?,
        };
        let stream = TlsConnector::from(config).connect(name, tcp).await;
        stream
            .map(|stream| Box::new(stream) as Box<dyn Stream>)
            .map_err(|error| ConnectError::Tls(error.to_string()))
    }

    fn tls_config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for root in &self.roots {
            roots
                .add(root.clone())
                .map_err(|error| format!("a configured root certificate is not one: {error}"))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // No tickets: nothing links one fetch to another.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }
}

fn no_address() -> std::io::Error {
    std::io::Error::other("there is no address to connect to")
}

/// Through the proxy, to the first of the addresses that it can reach.
async fn through(proxy: &Proxy, addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
    let mut last_error = ConnectError::Tcp(no_address());
    for address in in_turns(addresses) {
        match proxy.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last_error = ConnectError::Proxy(error),
        }
    }
    Err(last_error)
}

/// The first of the addresses that answers. Each is given a short time alone, so that one that swallows packets does
/// not hold up the others.
async fn first_of(addresses: &[SocketAddr]) -> std::io::Result<TcpStream> {
    let mut waiting = in_turns(addresses).into_iter();
    let mut trying = FuturesUnordered::new();
    let mut last_error = no_address();
    loop {
        if let Some(address) = waiting.next() {
            trying.push(TcpStream::connect(address));
        } else if trying.is_empty() {
            return Err(last_error);
        }
        let more = waiting.len() > 0;
        tokio::select! {
            connected = trying.next() => match connected {
                Some(Ok(stream)) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Some(Err(error)) => last_error = error,
                None => {}
            },
            () = tokio::time::sleep(HEAD_START), if more => {}
        }
    }
}

/// The addresses with the two families in turns, IPv6 first.
fn in_turns(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let (v6, v4): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.is_ipv6());
    let longer = v6.len().max(v4.len());
    (0..longer).flat_map(|at| [v6.get(at), v4.get(at)]).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let parsed = |list: [&str; 4]| list.map(|address| address.parse::<SocketAddr>().unwrap());
        let given = parsed(["1.1.1.1:80", "2.2.2.2:80", "3.3.3.3:80", "[2606::1]:80"]);
        assert_eq!(in_turns(&given), parsed(["[2606::1]:80", "1.1.1.1:80", "2.2.2.2:80", "3.3.3.3:80"]));
    }

    #[tokio::test]
    async fn an_address_that_refuses_does_not_stop_the_next() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let open = listener.local_addr().unwrap();
        let stream = first_of(&[closed, open]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
    }
}
