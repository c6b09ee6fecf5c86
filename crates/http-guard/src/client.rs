//! The client: each hop is decided on, looked up, connected to and asked, once and in this order.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::Full;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::Instant;

use crate::body::Body;
use crate::connect::{ConnectError, Connector};
use crate::error::{FetchError, Stopped};
use crate::exchange;
use crate::policy::{Admitted, Policy};
use crate::proxy::Proxy;
use crate::redirect::{self, Hop, Next};
use crate::resolve::{ResolveError, Resolver};
use crate::url::CheckedUrl;

const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Headers that belong to the connection and its framing.
const OWN_HEADERS: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// How a [`Guard`] works.
///
/// ```
/// use http_guard::{Guard, Policy, Settings};
///
/// let policy = Policy::default().allowing(["docs.example"]).unwrap();
/// let guard = Guard::new(Settings { policy, ..Settings::default() });
/// # let _ = guard;
/// ```
#[derive(Debug, Default)]
pub struct Settings {
    /// What may be fetched.
    pub policy: Policy,
    /// Who turns names into addresses.
    pub resolver: Resolver,
    /// What every connection goes through. Proxies of the environment are never used.
    pub proxy: Option<Proxy>,
    /// Certificates that are trusted besides those of the web; see [`root_certificates`].
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// What requests without one say in `User-Agent`.
    pub user_agent: Option<HeaderValue>,
}

/// The certificates in a PEM file.
///
/// # Errors
/// A sentence, when there is none or one is damaged.
pub fn root_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("there is no certificate in it; wanted PEM".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("it is no PEM: {error}")),
    }
}

/// How much and how long. Bytes are of the body, times of the whole request with all its redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes after decoding; what is beyond is cut off.
    pub max_body: u64,
    /// Bytes as they come over the wire.
    pub max_wire: u64,
    /// How many times larger a body may become in decoding, beyond the first MiB.
    pub max_ratio: u64,
    /// How many redirects are followed.
    pub max_redirects: usize,
    /// From the first packet to the end of the body.
    pub total: Duration,
    /// Without a byte.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 5 * 1024 * 1024,
            max_wire: 5 * 1024 * 1024,
            max_ratio: 200,
            max_redirects: 10,
            total: Duration::from_secs(30),
            idle: Duration::from_secs(15),
        }
    }
}

/// A request.
///
/// ```
/// use http_guard::Request;
///
/// let url = "https://example.org/".parse().unwrap();
/// let request = Request::get(url).with_header("accept", "text/html").unwrap();
/// assert!(request.with_header("Host", "other.example").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    url: CheckedUrl,
    headers: HeaderMap,
    body: Bytes,
    limits: Limits,
}

impl Request {
    /// A request without headers and body, under the default limits.
    pub fn new(method: Method, url: CheckedUrl) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new(), limits: Limits::default() }
    }

    /// A GET.
    pub fn get(url: CheckedUrl) -> Self {
        Self::new(Method::GET, url)
    }

    /// With one more header.
    ///
    /// # Errors
    /// [`FetchError::Header`] for one that is malformed or belongs to the connection.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, FetchError> {
        let refused = || FetchError::Header { name: name.chars().take(80).collect() };
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        if OWN_HEADERS.contains(&parsed.as_str()) {
            return Err(refused());
        }
        self.headers.append(parsed, HeaderValue::from_str(value).map_err(|_| refused())?);
        Ok(self)
    }

    /// With this body.
    #[must_use]
    pub fn with_body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Under these limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where it goes.
    pub fn url(&self) -> &CheckedUrl {
        &self.url
    }
}

/// A redirect that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The status that led on.
    pub status: u16,
    /// Where from.
    pub from: CheckedUrl,
}

/// A response whose head has come.
#[derive(Debug)]
pub struct Response {
    /// The status, whatever it is: it is data.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// Where it came from, after all redirects.
    pub url: CheckedUrl,
    /// The redirects that were followed.
    pub redirects: Vec<Redirect>,
    /// Where this response leads, when it was not followed: to another site, from https to http, to what is no web
    /// address. Data, not to be trusted.
    pub redirect_to: Option<String>,
    /// The body.
    pub body: Body,
}

/// A client that only goes where its policy lets it.
///
/// Every hop of a request is decided on by its parsed address, its name is looked up once, all addresses that were found
/// are decided on, and the connection is made to these addresses and serves this one request. No cookies, no referrer,
/// no proxy of the environment.
///
/// ```no_run
/// # async fn demo() -> Result<(), http_guard::FetchError> {
/// use http_guard::{Guard, Request, Settings};
///
/// let guard = Guard::new(Settings::default());
/// let response = guard.send(Request::get("https://example.org/".parse()?)).await?;
/// println!("{}: {} bytes", response.status, response.body.collect().await.bytes.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Guard(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    policy: Policy,
    resolver: Resolver,
    connector: Connector,
    user_agent: Option<HeaderValue>,
}

impl Guard {
    /// A client. Nothing is loaded or connected yet.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Parts {
            policy: settings.policy,
            resolver: settings.resolver,
            connector: Connector::new(settings.proxy, settings.extra_roots),
            user_agent: settings.user_agent,
        }))
    }

    /// What may be fetched.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Sends a request and waits for the head of its response, following redirects within the site.
    ///
    /// # Errors
    /// Why there is none. A status is never an error.
    pub async fn send(&self, request: Request) -> Result<Response, FetchError> {
        let sent = self.send_asking(request, |_| std::future::ready(Ok::<(), Infallible>(()))).await;
        sent.map_err(|stopped| match stopped {
            Stopped::Failed(error) => error,
            Stopped::Declined { why, .. } => match why {},
        })
    }

    /// As [`Self::send`], and before a redirect is followed `before` is asked about where it leads. What that takes
    /// counts against the total.
    ///
    /// # Errors
    /// Why there is no response, or why a redirect is not followed.
    pub async fn send_asking<E, F: Future<Output = Result<(), E>>>(
        &self,
        request: Request,
        mut before: impl FnMut(CheckedUrl) -> F,
    ) -> Result<Response, Stopped<E>> {
        let Request { method, url, headers, body, limits } = request;
        let clock = Clock { deadline: Instant::now() + limits.total, limits };
        let mut hop = Hop { method, url, headers, body };
        let mut redirects = Vec::new();
        loop {
            let sent = self.hop(&hop, &clock).await;
            let (head, incoming, connection) = sent.map_err(|error| after(&redirects, &hop.url, error))?;
            let redirect_to = match redirect::next(&hop, head.status, &head.headers) {
                Next::Here => None,
                Next::Elsewhere(to) => Some(to),
                Next::Follow(next) if redirects.len() == limits.max_redirects => {
                    let next = next.url.redacted().to_string();
                    return Err(FetchError::TooManyRedirects { count: redirects.len(), next }.into());
                }
                Next::Follow(next) => {
                    redirects.push(Redirect { status: head.status.as_u16(), from: hop.url });
                    // The connection is not needed any more, however long the question takes.
                    drop((incoming, connection));
                    let asked = self.ask_before(&next, &clock, before(next.url.clone())).await;
                    asked
                        .map_err(|error| after(&redirects, &next.url, error))?
                        .map_err(|why| Stopped::Declined { to: next.url.clone(), why })?;
                    hop = *next;
                    continue;
                }
            };
            let has_body = hop.method != Method::HEAD && !matches!(head.status.as_u16(), 204 | 304);
            let body = if has_body {
                Body::new(incoming, connection, &head.headers, &limits, clock.deadline)
            } else {
                Body::empty()
            };
            let (status, headers) = (head.status.as_u16(), head.headers);
            return Ok(Response { status, headers, url: hop.url, redirects, redirect_to, body });
        }
    }

    /// Asks about a hop that the policy admits: nobody is bothered with what would be refused anyway.
    async fn ask_before<T>(
        &self,
        hop: &Hop,
        clock: &Clock,
        question: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        self.0.policy.admit(&hop.url)?;
        clock.within_total(hop, "while its redirect was decided on", question).await
    }

    async fn hop(
        &self,
        hop: &Hop,
        clock: &Clock,
    ) -> Result<(http::response::Parts, hyper::body::Incoming, exchange::Connection), FetchError> {
        let host = || hop.url.host().to_string();
        self.0.policy.admit(&hop.url)?;
        let admitted = clock.wait(hop, "while its name was looked up", self.look_up(&hop.url)).await??;
        // Without the path: some services take their key there, and redirects may repeat it in any writing.
        tracing::debug!(origin = hop.url.origin(), addresses = ?admitted.addresses(), "fetching");
        let connecting = self.0.connector.connect(&hop.url, &admitted);
        let stream = clock.wait(hop, "while connecting", connecting).await?.map_err(|error| match error {
            ConnectError::Tcp(error) => FetchError::Connect { host: host(), reason: error.to_string() },
            ConnectError::Tls(reason) => FetchError::Tls { host: host(), reason },
            ConnectError::Proxy(error) => FetchError::Proxy { host: host(), reason: error.to_string() },
        })?;
        let request = self
            .request(hop)
            .map_err(|error| FetchError::Exchange { host: host(), reason: error.to_string() })?;
        let exchanged =
            clock.wait(hop, "while waiting for its answer", exchange::exchange(stream, request)).await?;
        let (response, connection) = exchanged
            .map_err(|error| FetchError::Exchange { host: host(), reason: exchange::reason(&error) })?;
        let (head, incoming) = response.into_parts();
        Ok((head, incoming, connection))
    }

    /// The addresses of the host, all of which the policy admits.
    async fn look_up(&self, url: &CheckedUrl) -> Result<Admitted, FetchError> {
        let found = self.0.resolver.addresses(url.host()).await.map_err(|error| match error {
            ResolveError::NoSuchHost => FetchError::NoSuchHost { host: url.host().to_string() },
            ResolveError::Failed(reason) => FetchError::Resolve { host: url.host().to_string(), reason },
        })?;
        Ok(self.0.policy.admit_addresses(url, &found)?)
    }

    fn request(&self, hop: &Hop) -> http::Result<http::Request<Full<Bytes>>> {
        let mut request = http::Request::builder().method(&hop.method).uri(hop.url.target());
        if let Some(headers) = request.headers_mut() {
            headers.insert(HOST, HeaderValue::try_from(hop.url.authority())?);
            headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
            headers.insert(ACCEPT_ENCODING, ENCODINGS);
            if let Some(agent) = &self.0.user_agent {
                headers.insert(USER_AGENT, agent.clone());
            }
            // Those of the request replace those above, and may stand more than once.
            for name in hop.headers.keys() {
                headers.remove(name);
            }
            headers.extend(hop.headers.clone());
        }
        request.body(Full::new(hop.body.clone()))
    }
}

/// An error of a later hop says where it happened.
fn after(redirects: &[Redirect], url: &CheckedUrl, error: FetchError) -> FetchError {
    if redirects.is_empty() {
        return error;
    }
    FetchError::Redirected { to: url.redacted().to_string(), error: Box::new(error) }
}

struct Clock {
    deadline: Instant,
    limits: Limits,
}

impl Clock {
    /// Waits for one step: within the total, and within the idle limit unless a body is being sent.
    async fn wait<T>(
        &self,
        hop: &Hop,
        during: &'static str,
        step: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        let idle = Instant::now() + if hop.body.is_empty() { self.limits.idle } else { self.limits.total };
        let (until, after) =
            if idle < self.deadline { (idle, self.limits.idle) } else { (self.deadline, self.limits.total) };
        let host = || hop.url.host().to_string();
        tokio::time::timeout_at(until, step).await.map_err(|_| FetchError::TimedOut {
            host: host(),
            during,
            after,
        })
    }

    /// Waits for a step that has limits of its own, within the total.
    async fn within_total<T>(
        &self,
        hop: &Hop,
        during: &'static str,
        step: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        tokio::time::timeout_at(self.deadline, step).await.map_err(|_| FetchError::TimedOut {
            host: hop.url.host().to_string(),
            during,
            after: self.limits.total,
        })
    }
}
