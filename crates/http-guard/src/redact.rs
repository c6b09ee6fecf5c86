//! Addresses and headers as they may be written down.

use std::fmt;

use http::HeaderName;
use url::Url;

/// The longest name of a query's parameter that is shown.
const LONGEST_NAME: usize = 40;

/// An address without what may be secret: user, password, the values of the query, and whatever of the query is no plain
/// name.
///
/// ```
/// use http_guard::CheckedUrl;
///
/// let url: CheckedUrl = "https://example.org/a?key=hunter2&hunter2".parse().unwrap();
/// assert_eq!(url.redacted().to_string(), "https://example.org/a?key=…&…");
/// ```
pub struct Redacted<'a>(&'a Url);

impl<'a> Redacted<'a> {
    pub(crate) fn new(url: &'a Url) -> Self {
        Self(url)
    }
}

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())?;
        if let Some(port) = self.0.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(self.0.path())?;
        let Some(query) = self.0.query() else { return Ok(()) };
        for (index, part) in query.split('&').enumerate() {
            f.write_str(if index == 0 { "?" } else { "&" })?;
            match part.split_once('=') {
                Some((name, _)) if is_plain(name) => write!(f, "{name}=…")?,
                _ if part.is_empty() => {}
                _ => f.write_str("…")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']');
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(plain)
}

/// Redacts an address that could not be, or has not been, checked: whatever follows a `?`, and what stands before an `@`.
///
/// ```
/// assert_eq!(http_guard::redact_text("ftp://me:hunter2@example.org/a?key=hunter2"), "ftp://…@example.org/a?…");
/// ```
pub fn redact_text(text: &str) -> String {
    let (start, query) = match text.find(['?', '#']) {
        Some(at) => (&text[..at], "?…"),
        None => (text, ""),
    };
    let start = match (start.find("://"), start.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}://…{}", &start[..scheme], &start[at..]),
        (_, Some(at)) => format!("…{}", &start[at..]),
        (_, None) => start.to_owned(),
    };
    let shown: String = start.chars().filter(|character| !character.is_control()).take(500).collect();
    format!("{shown}{query}")
}

/// Whether a header's value is a credential: it is neither shown nor sent to another host than it was given for.
///
/// ```
/// use http::header::{ACCEPT, AUTHORIZATION};
///
/// assert!(http_guard::is_credential(&AUTHORIZATION) && !http_guard::is_credential(&ACCEPT));
/// assert!(http_guard::is_credential(&"x-goog-api-key".parse().unwrap()));
/// ```
pub fn is_credential(name: &HeaderName) -> bool {
    const PARTS: [&str; 10] =
        ["auth", "cookie", "credential", "csrf", "key", "passw", "secret", "session", "signature", "token"];
    PARTS.iter().any(|part| name.as_str().contains(part))
}
