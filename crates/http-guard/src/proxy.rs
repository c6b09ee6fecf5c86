//! A proxy of the configuration. It is given addresses that have been checked, never names: what it connects to is what
//! was decided here.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

/// The longest answer to CONNECT that is read.
const LONGEST_HEAD: usize = 8 * 1024;

/// A proxy that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is no proxy; wanted http://host:port or socks5://host:port, perhaps with user:password@ before the host"
)]
pub struct ProxyError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Http,
    Socks5,
}

/// A proxy through which every connection goes, with CONNECT or SOCKS5. The operator names it, so it may be anywhere.
///
/// ```
/// use http_guard::Proxy;
///
/// let proxy: Proxy = "socks5://me:hunter2@proxy.internal:1080".parse().unwrap();
/// assert_eq!(format!("{proxy:?}"), "Proxy(socks5://proxy.internal:1080)");
/// assert!("ftp://proxy.internal".parse::<Proxy>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    kind: Kind,
    host: String,
    port: u16,
    credentials: Option<(String, String)>,
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let url = Url::parse(text.trim()).map_err(|_| ProxyError)?;
        let (kind, default_port) = match url.scheme() {
            "http" => (Kind::Http, 80),
            "socks5" | "socks5h" => (Kind::Socks5, 1080),
            _ => return Err(ProxyError),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(ProxyError)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let credentials = (!url.username().is_empty())
            .then(|| (decoded(url.username()), decoded(url.password().unwrap_or_default())));
        if !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(ProxyError);
        }
        Ok(Self { kind, host, port: url.port().unwrap_or(default_port), credentials })
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped =
            escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.kind == Kind::Http { "http" } else { "socks5" };
        write!(f, "Proxy({scheme}://{}:{})", self.host, self.port)
    }
}

impl Proxy {
    /// A connection through the proxy to a checked address.
    pub(crate) async fn connect(&self, target: SocketAddr) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match self.kind {
            Kind::Http => self.tunnel(&mut stream, target).await?,
            Kind::Socks5 => self.socks(&mut stream, target).await?,
        }
        Ok(stream)
    }

    async fn tunnel(&self, stream: &mut TcpStream, target: SocketAddr) -> std::io::Result<()> {
        let credentials = self.credentials.as_ref().map(|(user, password)| {
            format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
        });
        let request =
            format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{}\r\n", credentials.unwrap_or_default());
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == LONGEST_HEAD {
                return Err(std::io::Error::other("it answers CONNECT without an end"));
            }
            // Byte by byte, so that nothing of what comes through the tunnel is taken.
            head.push(stream.read_u8().await?);
        }
        let status = String::from_utf8_lossy(&head);
        let status = status.split_whitespace().nth(1).unwrap_or_default();
        if status.starts_with('2') && status.len() == 3 {
            return Ok(());
        }
        let shown: String = status.chars().take(8).collect();
        Err(std::io::Error::other(format!("it answers {shown} to CONNECT {target}")))
    }

    async fn socks(&self, stream: &mut TcpStream, target: SocketAddr) -> std::io::Result<()> {
        let method = if self.credentials.is_some() { 2 } else { 0 };
        stream.write_all(&[5, 1, method]).await?;
        let mut chosen = [0; 2];
        stream.read_exact(&mut chosen).await?;
        if chosen != [5, method] {
            return Err(std::io::Error::other("it wants another way to log in"));
        }
        if let Some((user, password)) = &self.credentials {
            log_in(stream, user, password).await?;
        }
        let mut request = vec![5, 1, 0];
        match target.ip() {
            IpAddr::V4(address) => {
                request.push(1);
                request.extend(address.octets());
            }
            IpAddr::V6(address) => {
                request.push(4);
                request.extend(address.octets());
            }
        }
        request.extend(target.port().to_be_bytes());
        stream.write_all(&request).await?;
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).await?;
        if reply[..2] != [5, 0] {
            return Err(std::io::Error::other(format!("it refuses {target} with code {}", reply[1])));
        }
        // Where it is bound says nothing that is needed.
        let length = match reply[3] {
            1 => 4,
            4 => 16,
            3 => usize::from(stream.read_u8().await?),
            _ => return Err(std::io::Error::other("its answer is none")),
        };
        stream.read_exact(&mut vec![0; length + 2]).await.map(drop)
    }
}

async fn log_in(stream: &mut TcpStream, user: &str, password: &str) -> std::io::Result<()> {
    let long = || std::io::Error::other("its user or password is longer than 255 bytes");
    let mut request = vec![1];
    for part in [user, password] {
        request.push(u8::try_from(part.len()).map_err(|_| long())?);
        request.extend(part.as_bytes());
    }
    stream.write_all(&request).await?;
    let mut reply = [0; 2];
    stream.read_exact(&mut reply).await?;
    if reply[1] == 0 {
        Ok(())
    } else {
        Err(std::io::Error::other("it does not accept the user and password"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_and_their_passwords_not_shown() {
        let proxy: Proxy = "http://me:a%40b@[::1]:3128/".parse().unwrap();
        assert_eq!(proxy.credentials, Some(("me".to_owned(), "a@b".to_owned())));
        assert_eq!((proxy.host.as_str(), proxy.port), ("::1", 3128));
        assert!(!format!("{proxy:?}").contains("a@b"));
        for text in ["", "https://proxy:3128", "proxy:3128", "http://proxy/path", "socks4://proxy"] {
            assert_eq!(text.parse::<Proxy>(), Err(ProxyError), "{text}");
        }
    }
}
