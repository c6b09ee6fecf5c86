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

    async fn send(
        self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        seen: &Seen,
    ) -> std::io::Result<()> {
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
            // Until the client goes away.
            let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
            seen.left.fetch_add(1, Ordering::SeqCst);
        }
        stream.shutdown().await
    }
}

type Answer = dyn Fn(&Received) -> Reply + Send + Sync;

/// What a server has seen.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    left: AtomicUsize,
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

    /// How many clients went away while a reply of theirs hung.
    pub fn left(&self) -> usize {
        self.seen.left.load(Ordering::SeqCst)
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
    reply.send(&mut stream, seen).await
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
    seen: Arc<Questions>,
    _tasks: Vec<Task>,
}

/// What a name server knows and was asked.
#[derive(Debug)]
struct Questions {
    zone: Zone,
    asked: Mutex<Vec<(String, u16)>>,
    over_tcp: AtomicUsize,
}

impl NameServer {
    /// A name server for these names, each with its answers in turn: lists of addresses of both kinds.
    pub async fn start(names: &[(&str, &[&[&str]])]) -> Self {
        let socket = must(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await, "listen");
        Self::serve(socket, None, names)
    }

    /// The same, whose answers are too long for a datagram: they come over TCP only.
    pub async fn only_over_tcp(names: &[(&str, &[&[&str]])]) -> Self {
        for _ in 0..100 {
            let socket = must(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await, "listen");
            let address = must(socket.local_addr(), "address");
            if let Ok(listener) = TcpListener::bind(address).await {
                return Self::serve(socket, Some(listener), names);
            }
        }
        panic!("no port is free for both UDP and TCP")
    }

    fn serve(socket: UdpSocket, tcp: Option<TcpListener>, names: &[(&str, &[&[&str]])]) -> Self {
        let parsed = |address: &&str| must(address.parse::<IpAddr>(), address);
        let lists =
            |answers: &[&[&str]]| answers.iter().map(|list| list.iter().map(parsed).collect()).collect();
        let zone: Zone = names.iter().map(|(name, answers)| ((*name).to_owned(), lists(answers))).collect();
        let address = must(socket.local_addr(), "address");
        let seen = Arc::new(Questions { zone, asked: Mutex::default(), over_tcp: AtomicUsize::new(0) });
        let (known, is_cut) = (seen.clone(), tcp.is_some());
        let mut tasks = vec![Task(tokio::spawn(async move {
            let mut packet = [0; 1024];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                let question = &packet[..length];
                let reply = if is_cut { Some(cut_off(question)) } else { known.reply(question) };
                if let Some(reply) = reply {
                    let _ = socket.send_to(&reply, from).await;
                }
            }
        }))];
        let known = seen.clone();
        tasks.extend(tcp.map(|listener| {
            Task(tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = known.reply_over_tcp(stream).await;
                }
            }))
        }));
        Self { address, seen, _tasks: tasks }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often it was asked for the IPv4 addresses of a name.
    pub fn asked(&self, name: &str) -> usize {
        locked(&self.seen.asked).iter().filter(|(known, kind)| known == name && *kind == 1).count()
    }

    /// How often it was asked over TCP.
    pub fn asked_over_tcp(&self) -> usize {
        self.seen.over_tcp.load(Ordering::SeqCst)
    }
}

/// The question as an answer that says it is longer than a datagram.
fn cut_off(question: &[u8]) -> Vec<u8> {
    let mut reply = question.to_vec();
    reply[2..4].copy_from_slice(&[0x83, 0x80]);
    reply
}

impl Questions {
    async fn reply_over_tcp(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut question = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut question).await?;
        self.over_tcp.fetch_add(1, Ordering::SeqCst);
        let reply = self.reply(&question).unwrap_or_default();
        stream.write_u16(u16::try_from(reply.len()).unwrap_or_default()).await?;
        stream.write_all(&reply).await
    }

    fn reply(&self, question: &[u8]) -> Option<Vec<u8>> {
        name_reply(question, &self.zone, &self.asked)
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

/// A proxy for CONNECT and SOCKS5. It writes down what it is asked to connect to and connects to one server, whatever that is.
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
    match stream.read_u8().await? {
        5 => {
            let head = greeted(&mut stream).await?;
            locked(heads).push(head);
            // Connected, bound to 0.0.0.0:0.
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        }
        first => {
            let mut head = vec![first];
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            locked(heads).push(String::from_utf8_lossy(&head).into_owned());
            stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
        }
    }
    let mut server = TcpStream::connect(server).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut server).await.map(drop)
}

/// The greeting of SOCKS5 after its first byte, as `SOCKS5 target user:password`.
async fn greeted(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut methods = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut methods).await?;
    let method = methods.first().copied().unwrap_or(0xff);
    stream.write_all(&[5, method]).await?;
    let mut login = String::new();
    if method == 2 {
        stream.read_u8().await?;
        for separator in ["", ":"] {
            let mut part = vec![0; usize::from(stream.read_u8().await?)];
            stream.read_exact(&mut part).await?;
            login.push_str(separator);
            login.push_str(&String::from_utf8_lossy(&part));
        }
        stream.write_all(&[1, 0]).await?;
    }
    let mut wish = [0; 4];
    stream.read_exact(&mut wish).await?;
    let target = match wish[3] {
        1 => IpAddr::from(stream.read_u32().await?.to_be_bytes()).to_string(),
        4 => format!("[{}]", std::net::Ipv6Addr::from(stream.read_u128().await?)),
        kind => format!("kind-{kind}"),
    };
    Ok(format!("SOCKS5 {target}:{} {login}", stream.read_u16().await?))
}
