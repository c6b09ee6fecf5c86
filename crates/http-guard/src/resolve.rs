//! Names to addresses: once per hop, by the system or by the name server of the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::dns::{self, Answer, Kind};
use crate::random;
use crate::url::Host;

/// How often a name server is asked, and how long it is waited for each time.
const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_millis(2_000);

/// Who turns names into addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolver {
    /// The operating system.
    #[default]
    System,
    /// This name server, and nobody else.
    Server(SocketAddr),
}

/// Why a name has no addresses.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    /// There is no such name, or it has no addresses.
    #[error("there is no such host")]
    NoSuchHost,
    /// Nobody could say.
    #[error("{0}")]
    Failed(String),
}

impl Resolver {
    /// All addresses of a host. This machine's own name is never asked for.
    pub(crate) async fn addresses(self, host: &Host) -> Result<Vec<IpAddr>, ResolveError> {
        let name = match host {
            Host::Address(address) => return Ok(vec![*address]),
            _ if host.is_localhost() => {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            Host::Name(name) => name,
        };
        let found = match self {
            Self::System => system(name).await?,
            Self::Server(server) => ask_for_both(server, name).await?,
        };
        if found.is_empty() { Err(ResolveError::NoSuchHost) } else { Ok(found) }
    }
}

async fn system(name: &str) -> Result<Vec<IpAddr>, ResolveError> {
    match tokio::net::lookup_host((name, 0)).await {
        Ok(found) => {
            let mut addresses: Vec<IpAddr> = Vec::new();
            // The system answers once per kind of socket.
            for address in found.map(|found| found.ip()) {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            Ok(addresses)
        }
        Err(error) => Err(ResolveError::Failed(format!("its name cannot be looked up: {error}"))),
    }
}

/// Asks for IPv6 and IPv4 at the same time. One kind suffices, but what either says is heard.
async fn ask_for_both(server: SocketAddr, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
    let (v6, v4) = tokio::join!(ask(server, name, Kind::Aaaa), ask(server, name, Kind::A));
    match (v6, v4) {
        (Ok(mut v6), Ok(v4)) => {
            v6.extend(v4);
            Ok(v6)
        }
        (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.is_empty() => Ok(found),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

async fn ask(server: SocketAddr, name: &str, kind: Kind) -> Result<Vec<IpAddr>, ResolveError> {
    let mut failure = format!("the name server {server} does not answer");
    for _ in 0..TRIES {
        match tokio::time::timeout(PATIENCE, exchange(server, name, kind)).await {
            Ok(Ok(Answer::Addresses(found))) => return Ok(found),
            Ok(Ok(Answer::NoSuchName)) => return Err(ResolveError::NoSuchHost),
            Ok(Ok(Answer::Failed(code))) => {
                failure = format!("the name server {server} answers with error {code}")
            }
            Ok(Ok(Answer::Truncated)) => failure = format!("the name server {server} cuts its answers off"),
            Ok(Err(error)) => failure = format!("the name server {server} cannot be asked: {error}"),
            Err(_) => {}
        }
    }
    Err(ResolveError::Failed(failure))
}

async fn exchange(server: SocketAddr, name: &str, kind: Kind) -> std::io::Result<Answer> {
    let id = random::u16();
    let question = dns::question(id, name, kind);
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // A port of its own for every question, and only the server's packets are received.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&question).await?;
    let mut packet = [0; 4096];
    loop {
        let length = socket.recv(&mut packet).await?;
        match dns::answer(&packet[..length], id, name, kind) {
            Some(Answer::Truncated) => return over_tcp(server, &question, id, name, kind).await,
            Some(answer) => return Ok(answer),
            // Not for this question: a late answer, or a forged one.
            None => {}
        }
    }
}

async fn over_tcp(
    server: SocketAddr,
    question: &[u8],
    id: u16,
    name: &str,
    kind: Kind,
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(std::io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    dns::answer(&message, id, name, kind).ok_or_else(|| std::io::Error::other("its answer is not one"))
}
