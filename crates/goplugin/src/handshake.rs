//! The one line a plugin prints, and the addresses in it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The version of go-plugin's own protocol; there has only ever been this one with gRPC.
const CORE_VERSION: u32 = 1;

/// The only transport protocol; the library's older one is not gRPC.
const PROTOCOL: &str = "grpc";

/// Anything shorter in the certificate's place is not taken for one, as in the Go library.
const LONGEST_NON_CERTIFICATE: usize = 50;

/// Where a gRPC server listens, as the contract's messages name it.
///
/// ```
/// use goplugin::Address;
///
/// let address = Address::Unix("/tmp/plugin-1".into());
/// assert_eq!((address.network(), address.to_string().as_str()), ("unix", "/tmp/plugin-1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket's path.
    Unix(PathBuf),
    /// An IP address and port.
    Tcp(SocketAddr),
}

/// An address that names no place to connect to.
///
/// ```
/// use goplugin::{Address, AddressError};
///
/// let error = Address::parse("pipe", "greeter").unwrap_err();
/// assert_eq!(error, AddressError::Network("pipe".to_owned()));
/// assert_eq!(error.to_string(), "network \"pipe\" is neither \"unix\" nor \"tcp\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither `unix` nor `tcp`.
    #[error("network {0:?} is neither \"unix\" nor \"tcp\"")]
    Network(String),
    /// An empty socket path, or not an IP address with a port.
    #[error("{1:?} is no address of network {0:?}")]
    Location(String, String),
}

impl Address {
    /// Reads a network name and an address within it.
    ///
    /// ```
    /// use goplugin::Address;
    ///
    /// assert_eq!(Address::parse("unix", "/tmp/a")?, Address::Unix("/tmp/a".into()));
    /// assert!(Address::parse("udp", "127.0.0.1:53").is_err());
    /// # Ok::<(), goplugin::AddressError>(())
    /// ```
    pub fn parse(network: &str, location: &str) -> Result<Self, AddressError> {
        let bad_location = || AddressError::Location(network.to_owned(), location.to_owned());
        match network {
            "unix" if location.is_empty() => Err(bad_location()),
            "unix" => Ok(Self::Unix(location.into())),
            "tcp" => location.parse().map(Self::Tcp).map_err(|_| bad_location()),
            _ => Err(AddressError::Network(network.to_owned())),
        }
    }

    /// `unix` or `tcp`.
    pub fn network(&self) -> &'static str {
        match self {
            Self::Unix(_) => "unix",
            Self::Tcp(_) => "tcp",
        }
    }
}

/// The address within its network.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// The one line a plugin prints, without its line end.
///
/// ```
/// use goplugin::{Address, Handshake};
///
/// let line = Handshake::parse("1|1|unix|/tmp/plugin-1|grpc|")?;
/// assert_eq!(line.address, Address::Unix("/tmp/plugin-1".into()));
/// assert_eq!(line.to_string(), "1|1|unix|/tmp/plugin-1|grpc|");
/// # Ok::<(), goplugin::HandshakeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The application's protocol version that the plugin chose.
    pub app_version: u32,
    /// Where the plugin listens.
    pub address: Address,
    /// Whether the plugin multiplexes the broker; only told when the host asked.
    pub multiplexing: Option<bool>,
}

/// Why a line is no handshake this crate can go on with.
///
/// ```
/// use goplugin::{Handshake, HandshakeError};
///
/// // Something was printed before the line.
/// assert_eq!(Handshake::parse("starting up"), Err(HandshakeError::Fields(1)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Fewer than four fields: the plugin printed something else.
    #[error("it has {0} of at least 4 fields separated by '|'")]
    Fields(usize),
    /// Another version of go-plugin's own protocol.
    #[error("core protocol version is {0:?}, not 1")]
    CoreVersion(String),
    /// The application version is not a number.
    #[error("application protocol version {0:?} is not a number")]
    AppVersion(String),
    /// The address names no place.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A transport protocol other than gRPC; absent means the library's older one.
    #[error("protocol is {0:?}, not \"grpc\"")]
    Protocol(String),
    /// The plugin insists on TLS, which was not asked for.
    #[error("it carries a certificate, but TLS was not asked for")]
    Certificate,
}

impl Handshake {
    /// Reads a line, surrounding white space ignored.
    pub fn parse(line: &str) -> Result<Self, HandshakeError> {
        let fields: Vec<&str> = line.trim().split('|').collect();
        let [core, app, network, location, rest @ ..] = fields.as_slice() else {
            return Err(HandshakeError::Fields(fields.len()));
        };
        if core.parse() != Ok(CORE_VERSION) {
            return Err(HandshakeError::CoreVersion((*core).to_owned()));
        }
        let app_version = app.parse().map_err(|_| HandshakeError::AppVersion((*app).to_owned()))?;
        let address = Address::parse(network, location)?;
        let mut rest = rest.iter().copied();
        let protocol = rest.next().unwrap_or_default();
        if protocol != PROTOCOL {
            return Err(HandshakeError::Protocol(protocol.to_owned()));
        }
        if rest.next().unwrap_or_default().len() > LONGEST_NON_CERTIFICATE {
            return Err(HandshakeError::Certificate);
        }
        let multiplexing = rest.next().map(|told| told == "true");
        Ok(Self { app_version, address, multiplexing })
    }
}

impl fmt::Display for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (app, network) = (self.app_version, self.address.network());
        // The sixth field is the certificate's, empty without TLS.
        write!(f, "{CORE_VERSION}|{app}|{network}|{}|{PROTOCOL}|", self.address)?;
        match self.multiplexing {
            Some(told) => write!(f, "|{told}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Handshake, HandshakeError>) {
        assert_eq!(Handshake::parse(line), expected);
    }

    fn unix(multiplexing: Option<bool>) -> Handshake {
        Handshake { app_version: 2, address: Address::Unix("/t/s".into()), multiplexing }
    }

    #[test]
    fn five_six_and_seven_fields_are_read() {
        check("1|2|unix|/t/s|grpc", Ok(unix(None)));
        check("1|2|unix|/t/s|grpc|", Ok(unix(None)));
        check(" 1|2|unix|/t/s|grpc|\r\n", Ok(unix(None)));
        check("1|2|unix|/t/s|grpc||false", Ok(unix(Some(false))));
        check("1|2|unix|/t/s|grpc||true", Ok(unix(Some(true))));
        let tcp = Address::Tcp(([127, 0, 0, 1], 10_000).into());
        check(
            "1|1|tcp|127.0.0.1:10000|grpc|",
            Ok(Handshake { app_version: 1, address: tcp, multiplexing: None }),
        );
    }

    #[test]
    fn other_lines_are_refused_by_name() {
        check("hello", Err(HandshakeError::Fields(1)));
        check("", Err(HandshakeError::Fields(1)));
        check("1|1|unix", Err(HandshakeError::Fields(3)));
        check("2|1|unix|/t/s|grpc|", Err(HandshakeError::CoreVersion("2".into())));
        check("1|x|unix|/t/s|grpc|", Err(HandshakeError::AppVersion("x".into())));
        check("1|-1|unix|/t/s|grpc|", Err(HandshakeError::AppVersion("-1".into())));
        check("1|1|pipe|/t/s|grpc|", Err(AddressError::Network("pipe".into()).into()));
        check("1|1|unix||grpc|", Err(AddressError::Location("unix".into(), String::new()).into()));
        check(
            "1|1|tcp|localhost|grpc|",
            Err(AddressError::Location("tcp".into(), "localhost".into()).into()),
        );
        check("1|1|unix|/t/s", Err(HandshakeError::Protocol(String::new())));
        check("1|1|unix|/t/s|netrpc", Err(HandshakeError::Protocol("netrpc".into())));
        let certificate = "A".repeat(51);
        check(&format!("1|1|unix|/t/s|grpc|{certificate}"), Err(HandshakeError::Certificate));
    }

    #[test]
    fn the_seventh_field_is_written_only_when_told() {
        assert_eq!(unix(None).to_string(), "1|2|unix|/t/s|grpc|");
        assert_eq!(unix(Some(false)).to_string(), "1|2|unix|/t/s|grpc||false");
    }
}
