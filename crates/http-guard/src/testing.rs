//! Servers for tests, in the same process: HTTP in any shape, TLS under an authority of its own, a name server whose
//! answers change, a proxy that writes down what it is asked for.
//!
//! Dropping one closes it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[track_caller]
fn must<T, E: std::fmt::Display>(result: Result<T, E>, what: &str) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// A task that ends with its owner.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What a server answers with.
#[derive(Clone, Debug)]
pub struct Reply {
    bytes: Vec<u8>,
    /// How much is sent at once, with a short pause after each.
    chunk: Option<(usize, Duration)>,
    hangs: bool,
}

impl Reply {
    /// A status, headers and a body, with its length.
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!("HTTP/1.1 {status} Said\r\n");
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        if !matches!(status, 204 | 304) {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        Self::raw([head.as_bytes(), b"Connection: close\r\n\r\n", body].concat())
    }

    /// A page.
    pub fn html(body: &str) -> Self {
        Self::new(200, &[("Content-Type", "text/html; charset=utf-8")], body)
    }

    /// A redirect.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, &[("Location", location)], "")
    }

    /// These bytes and nothing else.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), chunk: None, hangs: false }
    }

    /// Sent in pieces of `size` bytes with a pause after each.
    #[must_use]
    pub fn in_pieces(self, size: usize, pause: Duration) -> Self {
        Self { chunk: Some((size, pause)), ..self }
    }

    /// And then the connection stays open, with nothing more.
    #[must_use]
    pub fn and_hangs(self) -> Self {
        Self { hangs: true, ..self }
    }

    async fn send(self, stream: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
        match self.chunk {
            None => stream.write_all(&self.bytes).await?,
            Some((size, pause)) => {
                for piece in self.bytes.chunks(size) {
                    stream.write_all(piece).await?;
                    stream.flush().await?;
                    tokio::time::sleep(pause).await;
                }
            }
        }
        stream.flush().await?;
        if self.hangs {
            std::future::pending::<()>().await;
        }
        stream.shutdown().await
    }
}

type Answer = dyn Fn(&Received) -> Reply + Send + Sync;

/// What a server has seen.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Received>>,
}

/// An HTTP server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    scheme: &'static str,
    _task: Task,
}

impl Server {
    /// A server on `127.0.0.1`.
    pub async fn start(answer: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::on(Ipv4Addr::LOCALHOST.into(), answer).await
    }

    /// A server on this address.
    pub async fn on(address: IpAddr, answer: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(must(TcpListener::bind((address, 0)).await, "listen"), None, Arc::new(answer))
    }

    /// A server on this address and port; `None` where it is taken.
    pub async fn at(
        address: SocketAddr,
        answer: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Option<Self> {
        let listener = TcpListener::bind(address).await.ok()?;
        Some(Self::serve(listener, None, Arc::new(answer)))
    }

    /// A server on `127.0.0.1` that speaks TLS and is `authority`'s `host`.
    pub async fn tls(
        authority: &Authority,
        host: &str,
        answer: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = must(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await, "listen");
        Self::serve(listener, Some(authority.acceptor(host)), Arc::new(answer))
    }

    fn serve(listener: TcpListener, tls: Option<tokio_rustls::TlsAcceptor>, answer: Arc<Answer>) -> Self {
        let address = must(listener.local_addr(), "address");
        let seen = Arc::new(Seen::default());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let (known, mut connections) = (seen.clone(), tokio::task::JoinSet::new());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                known.connections.fetch_add(1, Ordering::SeqCst);
                let (known, answer, tls) = (known.clone(), answer.clone(), tls.clone());
                connections.spawn(async move {
                    // A client that goes away, or that does not trust us, is part of the tests.
                    let _ = match tls {
                        None => converse(stream, &known, &*answer).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => converse(stream, &known, &*answer).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self { address, seen, scheme, _task: Task(task) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address of a path on it, by its literal address.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The address of a path on it, by a name.
    pub fn url_of(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme, self.address.port())
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The requests it was sent.
    pub fn requests(&self) -> Vec<Received> {
        locked(&self.seen.requests).clone()
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Seen,
    answer: &Answer,
) -> std::io::Result<()> {
    let Some(request) = receive(&mut stream).await? else { return Ok(()) };
    let reply = answer(&request);
    locked(&seen.requests).push(request);
    reply.send(&mut stream).await
}

/// One request, whose body has a length.
async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Received>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) if head.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let mut request = Received { method, target, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

/// An authority that certifies servers, which nobody trusts who is not told to.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one.
    #[allow(clippy::new_without_default)] // It makes keys.
    pub fn new() -> Self {
        let mut params = must(CertificateParams::new(Vec::new()), "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(must(CertifiedIssuer::self_signed(params, must(KeyPair::generate(), "key")), "authority"))
    }

    /// Its certificate, for [`crate::Settings::extra_roots`].
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// Its certificate as a PEM file.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    fn acceptor(&self, host: &str) -> tokio_rustls::TlsAcceptor {
        let key = must(KeyPair::generate(), "key");
        let params = must(CertificateParams::new(vec![host.to_owned()]), "certificate");
        let certificate = must(params.signed_by(&key, &*self.0), "certificate");
        let key = must(rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()), "key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = must(config, "TLS").with_no_client_auth();
        let config = must(config.with_single_cert(vec![certificate.der().clone()], key), "TLS");
        tokio_rustls::TlsAcceptor::from(Arc::new(config))
    }
}

/// Answers of a name server, taken one after another; the last one stays.
type Zone = HashMap<String, Vec<Vec<IpAddr>>>;

/// A name server. Each question for a name and kind gets the next of its answers.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
    _task: Task,
}

impl NameServer {
    /// A name server for these names, each with its answers in turn: lists of addresses of both kinds.
    pub async fn start(names: &[(&str, &[&[&str]])]) -> Self {
        let parsed = |address: &&str| must(address.parse::<IpAddr>(), address);
        let lists =
            |answers: &[&[&str]]| answers.iter().map(|list| list.iter().map(parsed).collect()).collect();
        let zone: Zone = names.iter().map(|(name, answers)| ((*name).to_owned(), lists(answers))).collect();
        let socket = must(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await, "listen");
        let address = must(socket.local_addr(), "address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let known = asked.clone();
        let task = tokio::spawn(async move {
            let mut packet = [0; 1024];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                if let Some(reply) = name_reply(&packet[..length], &zone, &known) {
                    let _ = socket.send_to(&reply, from).await;
                }
            }
        });
        Self { address, asked, _task: Task(task) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often it was asked for the IPv4 addresses of a name.
    pub fn asked(&self, name: &str) -> usize {
        locked(&self.asked).iter().filter(|(known, kind)| known == name && *kind == 1).count()
    }
}

fn name_reply(question: &[u8], zone: &Zone, asked: &Mutex<Vec<(String, u16)>>) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(question.get(at + 1..at + 1 + length)?).into_owned());
        at += 1 + length;
    }
    let (name, end) = (labels.join("."), at + 5);
    let kind = u16::from_be_bytes([*question.get(at + 1)?, *question.get(at + 2)?]);
    let turn = {
        let mut asked = locked(asked);
        asked.push((name.clone(), kind));
        asked.iter().filter(|known| **known == (name.clone(), kind)).count() - 1
    };
    let mut reply = question.get(..end)?.to_vec();
    reply[2..4].copy_from_slice(&[0x81, 0x80]);
    let Some(answers) = zone.get(&name) else {
        // No such name.
        reply[3] = 0x83;
        return Some(reply);
    };
    let now = answers.get(turn).or_else(|| answers.last())?;
    let wanted = now.iter().filter(|address| address.is_ipv4() == (kind == 1));
    for address in wanted {
        reply[7] += 1;
        // The name above; the kind; Internet; not to be kept.
        reply.extend([0xc0, 12, 0, u8::try_from(kind).ok()?, 0, 1, 0, 0, 0, 0, 0]);
        match address {
            IpAddr::V4(address) => reply.extend([&[4][..], &address.octets()].concat()),
            IpAddr::V6(address) => reply.extend([&[16][..], &address.octets()].concat()),
        }
    }
    Some(reply)
}

/// A proxy for CONNECT. It writes down what it is asked to connect to and connects to one server, whatever that is.
#[derive(Debug)]
pub struct ProxyServer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _task: Task,
}

impl ProxyServer {
    /// A proxy that leads to `server`.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = must(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await, "listen");
        let address = must(listener.local_addr(), "address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (known, mut tunnels) = (heads.clone(), tokio::task::JoinSet::new());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let known = known.clone();
                tunnels.spawn(async move {
                    let _ = tunnel(stream, server, &known).await;
                });
            }
        });
        Self { address, heads, _task: Task(task) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked to connect to.
    pub fn targets(&self) -> Vec<String> {
        let target = |head: &String| head.split(' ').nth(1).unwrap_or_default().to_owned();
        locked(&self.heads).iter().map(target).collect()
    }

    /// The heads of what it was asked.
    pub fn heads(&self) -> Vec<String> {
        locked(&self.heads).clone()
    }
}

async fn tunnel(
    mut stream: TcpStream,
    server: SocketAddr,
    heads: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    locked(heads).push(String::from_utf8_lossy(&head).into_owned());
    stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
    let mut server = TcpStream::connect(server).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut server).await.map(drop)
}
