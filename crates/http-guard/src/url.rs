//! An address of the web that was looked at once, with care.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::Url;

use crate::redact::Redacted;

/// The longest address that is looked at.
const LONGEST: usize = 16 * 1024;

/// The host of an address, in the one form in which it is compared, looked up and connected to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: lower case, punycode, no dot at the end.
    Name(String),
    /// An address, however it was written.
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Host {
    /// The machine itself, by a name that no name server should be asked for.
    pub(crate) fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }

    /// Whether both belong to one registrable domain, such as `docs.example.org` and `example.org`. A name without one,
    /// and an address, belongs only to itself.
    pub fn is_same_site(&self, other: &Self) -> bool {
        self == other
            || match (self, other) {
                (Self::Name(one), Self::Name(other)) => {
                    registrable(one).is_some_and(|domain| Some(domain) == registrable(other))
                }
                _ => false,
            }
    }
}

/// The registrable domain of a name.
fn registrable(name: &str) -> Option<&str> {
    psl::domain_str(name)
}

/// Why a text is no address that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// Nothing is there.
    #[error("is empty; wanted an absolute address such as https://example.org/page")]
    Empty,
    /// Longer than 16 KiB.
    #[error("is longer than {LONGEST} bytes")]
    TooLong,
    /// Not `http://` or `https://`.
    #[error("must begin with http:// or https://")]
    Scheme,
    /// A control character, a backslash, or blanks where none can be.
    #[error(
        "has a control character, a backslash, or a blank inside the host; percent-encode it or leave it out"
    )]
    Character,
    /// A user or password.
    #[error("has a user name or password before the host; leave out everything up to the @")]
    UserInfo,
    /// A percent sign in the host: an encoded name, or an IPv6 zone.
    #[error("has a % in the host; write the host's name as it is, and no IPv6 zone")]
    EncodedHost,
    /// The host is no name and no address.
    #[error("has no valid host")]
    Host,
    /// The port is none from 1 to 65535.
    #[error("has no valid port")]
    Port,
}

/// An `http` or `https` address whose host, port and form have been checked. What is checked is what is used: nothing
/// parses the text again.
///
/// ```
/// use http_guard::{CheckedUrl, UrlError};
///
/// let url: CheckedUrl = "HTTPS://Docs.Example.:8443/a?b=c#d".parse().unwrap();
/// assert_eq!(url.as_str(), "https://docs.example:8443/a?b=c");
/// assert_eq!("http://user@example.org/".parse::<CheckedUrl>(), Err(UrlError::UserInfo));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CheckedUrl {
    url: Url,
    host: Host,
    port: u16,
}

impl FromStr for CheckedUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim_matches(' ');
        look_at_text(text)?;
        Self::of(Url::parse(text).map_err(|error| match error {
            url::ParseError::InvalidPort => UrlError::Port,
            _ => UrlError::Host,
        })?)
    }
}

/// Refuses what the URL parser would repair: a repaired address is not the one that somebody read and approved.
fn look_at_text(text: &str) -> Result<(), UrlError> {
    if text.is_empty() {
        return Err(UrlError::Empty);
    }
    if text.len() > LONGEST {
        return Err(UrlError::TooLong);
    }
    if text.chars().any(|character| character.is_control() || character == '\\') {
        return Err(UrlError::Character);
    }
    let scheme = ["http://", "https://"]
        .iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let rest = &text[scheme.ok_or(UrlError::Scheme)?.len()..];
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(UrlError::UserInfo);
    }
    if authority.contains('%') {
        return Err(UrlError::EncodedHost);
    }
    if authority.contains(char::is_whitespace) {
        return Err(UrlError::Character);
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(UrlError::Host);
    }
    if authority.ends_with(':') { Err(UrlError::Port) } else { Ok(()) }
}

impl CheckedUrl {
    fn of(mut url: Url) -> Result<Self, UrlError> {
        let host = match url.host().ok_or(UrlError::Host)? {
            url::Host::Ipv4(address) => Host::Address(IpAddr::V4(address)),
            url::Host::Ipv6(address) => Host::Address(IpAddr::V6(address)),
            url::Host::Domain(name) => Host::Name(checked_name(name)?),
        };
        // Without the dot at the end, which servers and certificates do not know.
        if let Host::Name(name) = &host {
            url.set_host(Some(name)).map_err(|_| UrlError::Host)?;
        }
        url.set_fragment(None);
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(UrlError::Port)?;
        Ok(Self { url, host, port })
    }

    /// The address that a reference in this resource leads to, such as the `Location` of a redirect.
    ///
    /// # Errors
    /// As for parsing: a reference is held to the same rules.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.trim_matches([' ', '\t', '\r', '\n']);
        // Absolute ones are looked at as they were written; in relative ones the parser may find a host too.
        let absolute = match reference {
            text if text.starts_with("//") => format!("{}:{text}", self.url.scheme()),
            text if has_scheme(text) => text.to_owned(),
            text if text.len() > LONGEST => return Err(UrlError::TooLong),
            text if text.chars().any(|character| character.is_control() || character == '\\') => {
                return Err(UrlError::Character);
            }
            text => return Self::of(self.url.join(text).map_err(|_| UrlError::Host)?),
        };
        absolute.parse()
    }

    /// The address as it is requested: without a fragment.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The address as a URL, for what resolves references in a document. It is never fetched by.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// The host, as it is compared and connected to.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, given or the scheme's own.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Scheme, host and port, which own cookies, rules for robots, and trust.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The path, always beginning with a slash.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// What is asked for on the connection: path and query.
    pub fn target(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The same origin with another path, which must begin with a slash.
    pub fn with_path(&self, path: &str) -> Self {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(None);
        Self { url, host: self.host.clone(), port: self.port }
    }

    /// What the `Host` header says: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }

    /// The address for logs, errors and previews: without the values of its query.
    pub fn redacted(&self) -> Redacted<'_> {
        Redacted::new(&self.url)
    }
}

impl fmt::Debug for CheckedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckedUrl({})", self.redacted())
    }
}

/// Whether a reference begins with a scheme of its own.
fn has_scheme(text: &str) -> bool {
    let end = text.find([':', '/', '?', '#']);
    end.is_some_and(|end| {
        text[end..].starts_with(':') && text.starts_with(|first: char| first.is_ascii_alphabetic())
    })
}

/// A name that can be looked up: what the parser lets through is wider than what names are.
fn checked_name(name: &str) -> Result<String, UrlError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    // Digits at the end are the parser's sign of an address, but it sees fewer spellings than resolvers do.
    let last_is_number = name.rsplit('.').next().is_some_and(is_number);
    let good = name.len() <= 253 && name.split('.').all(is_label) && !last_is_number;
    if good { Ok(name.to_owned()) } else { Err(UrlError::Host) }
}

fn is_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    digits.is_some() || label.bytes().all(|byte| byte.is_ascii_digit())
}

/// The host that a configuration names: a name or an address, perhaps in brackets.
pub(crate) fn configured_host(text: &str) -> Option<Host> {
    let unbracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Ok(address) = unbracketed.unwrap_or(text).parse::<Ipv6Addr>() {
        return Some(Host::Address(address.into()));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(Host::Address(address.into()));
    }
    if text.contains(['/', ':', '@', '?', '#', '%', '\\', '*']) {
        return None;
    }
    match url::Host::parse(text).ok()? {
        url::Host::Domain(name) => checked_name(&name).ok().map(Host::Name),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, UrlError>) {
        let parsed = text.parse::<CheckedUrl>();
        assert_eq!(parsed.as_ref().map(CheckedUrl::as_str), expected.as_ref().copied(), "{text:?}");
    }

    #[test]
    fn addresses_come_to_one_form() {
        check("http://EXAMPLE.org", Ok("http://example.org/"));
        check(" https://example.org:443/a b ", Ok("https://example.org/a%20b"));
        check("https://bücher.example/ä", Ok("https://xn--bcher-kva.example/%C3%A4"));
        check("http://example.org./x", Ok("http://example.org/x"));
        check("http://0x7f.1/", Ok("http://127.0.0.1/"));
        check("http://2130706433", Ok("http://127.0.0.1/"));
        check("http://[0:0::1]:80/", Ok("http://[::1]/"));
        check("http://①②⑦.0.0.1/", Ok("http://127.0.0.1/"));
        check("http://example.org?q", Ok("http://example.org/?q"));
        check("http://_dmarc.example.org/", Ok("http://_dmarc.example.org/"));
    }

    #[test]
    fn what_is_no_plain_address_is_refused_by_name() {
        check("", Err(UrlError::Empty));
        check("example.org", Err(UrlError::Scheme));
        check("ftp://example.org", Err(UrlError::Scheme));
        check("file:///etc/passwd", Err(UrlError::Scheme));
        check("http:example.org", Err(UrlError::Scheme));
        check("http:/example.org", Err(UrlError::Scheme));
        check("http://", Err(UrlError::Host));
        check("http:///example.org", Err(UrlError::Host));
        check("http://:80/", Err(UrlError::Host));
        check("http://a@example.org/", Err(UrlError::UserInfo));
        check("http://@example.org/", Err(UrlError::UserInfo));
        check("http://example.org\\@127.0.0.1/", Err(UrlError::Character));
        check("http://exa\tmple.org/", Err(UrlError::Character));
        check("http://exam ple.org/", Err(UrlError::Character));
        check("http://%31%32%37.0.0.1/", Err(UrlError::EncodedHost));
        check("http://[fe80::1%25eth0]/", Err(UrlError::EncodedHost));
        check("http://example.org:/", Err(UrlError::Port));
        check("http://example.org:0/", Err(UrlError::Port));
        check("http://example.org:99999/", Err(UrlError::Port));
        check("http://a..b/", Err(UrlError::Host));
        check("http://1.2.3.4.5/", Err(UrlError::Host));
        check("http://256.0.0.1/", Err(UrlError::Host));
        check(&format!("http://example.org/{}", "a".repeat(LONGEST)), Err(UrlError::TooLong));
    }

    #[test]
    fn references_are_held_to_the_same_rules() {
        let base: CheckedUrl = "https://example.org/a/b?c".parse().unwrap();
        let joined = |reference: &str| base.join(reference).map(|url| url.as_str().to_owned());
        assert_eq!(joined("../d#e").as_deref(), Ok("https://example.org/d"));
        assert_eq!(joined("//other.example/x").as_deref(), Ok("https://other.example/x"));
        assert_eq!(joined("http://other.example").as_deref(), Ok("http://other.example/"));
        assert_eq!(joined("//a@b.example/"), Err(UrlError::UserInfo));
        assert_eq!(joined("javascript:alert(1)"), Err(UrlError::Scheme));
        assert_eq!(joined("\\\\127.0.0.1\\x"), Err(UrlError::Character));
        assert_eq!(joined("x:y").as_deref(), Err(&UrlError::Scheme));
        assert_eq!(joined("/x:y").as_deref(), Ok("https://example.org/x:y"));
    }

    #[test]
    fn one_site_is_one_registrable_domain() {
        let same = |one: &str, other: &str| {
            configured_host(one).unwrap().is_same_site(&configured_host(other).unwrap())
        };
        assert!(same("example.org", "www.example.org") && same("a.example.co.uk", "b.example.co.uk"));
        assert!(!same("one.github.io", "two.github.io") && !same("a.co.uk", "b.co.uk"));
        assert!(!same("example.org", "example.com") && !same("10.0.0.1", "10.0.0.2"));
        assert!(same("10.0.0.1", "10.0.0.1"));
    }

    #[test]
    fn authority_and_target_are_what_is_sent() {
        let url: CheckedUrl = "http://[2606:4700::1111]:8080/a?b#c".parse().unwrap();
        assert_eq!((url.authority().as_str(), url.target()), ("[2606:4700::1111]:8080", "/a?b"));
        assert_eq!(url.with_path("/robots.txt").as_str(), "http://[2606:4700::1111]:8080/robots.txt");
    }
}
