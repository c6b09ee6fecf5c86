//! Lists of domains, as configurations write them.

use crate::url::{Host, configured_host};

/// A list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{entry:?} is neither a domain such as docs.example or *.docs.example, nor an address; leave out scheme, port and path"
)]
pub struct PatternError {
    /// The entry as it was written.
    pub entry: String,
}

/// Domains and addresses. A domain stands for itself and everything below it, written `docs.example` or
/// `*.docs.example`; `*` stands for every host. An address stands for itself.
///
/// Compared is the parsed host: lower case, punycode, without a dot at the end.
///
/// ```
/// use http_guard::{CheckedUrl, Domains};
///
/// let list = Domains::new(["*.docs.example"]).unwrap();
/// let holds = |url: &str| list.contains(url.parse::<CheckedUrl>().unwrap().host());
/// assert!(holds("https://API.Docs.Example.:8443/x") && !holds("https://docs.example.evil/"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Every,
    At(Host),
    AtOrBelow(String),
    Below(String),
}

impl Entry {
    fn contains(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Every, _) => true,
            (Self::At(address), host) => address == host,
            (Self::AtOrBelow(domain), Host::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Self::Below(domain), Host::Name(name)) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Self::AtOrBelow(_) | Self::Below(_), Host::Address(_)) => false,
        }
    }
}

impl Domains {
    /// Reads a list.
    ///
    /// # Errors
    /// The first entry that is no domain.
    pub fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        let read = |entry: S| {
            let entry = entry.as_ref().trim();
            if entry == "*" {
                return Ok(Entry::Every);
            }
            let domain = entry.strip_prefix("*.").unwrap_or(entry);
            match configured_host(domain) {
                Some(Host::Name(name)) => Ok(Entry::AtOrBelow(name)),
                Some(address) if domain == entry => Ok(Entry::At(address)),
                _ => Err(PatternError { entry: entry.to_owned() }),
            }
        };
        entries.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether an entry stands for `host`.
    pub fn contains(&self, host: &Host) -> bool {
        self.0.iter().any(|entry| entry.contains(host))
    }
}

/// Hosts that may be private: names and addresses, each alone (`wiki.internal`, `10.0.0.7`), with a port
/// (`localhost:3000`), or `*.internal.example` for everything below a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrivateHosts(Vec<PrivateHost>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct PrivateHost {
    entry: Entry,
    port: Option<u16>,
}

impl PrivateHosts {
    pub(crate) fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        let read = |entry: S| {
            let entry = entry.as_ref().trim();
            read_private(entry).ok_or_else(|| PatternError { entry: entry.to_owned() })
        };
        entries.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn contains(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|known| known.entry.contains(host) && known.port.is_none_or(|known| known == port))
    }
}

fn read_private(entry: &str) -> Option<PrivateHost> {
    if let Some(host) = configured_host(entry) {
        return Some(PrivateHost { entry: Entry::At(host), port: None });
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (entry, None),
    };
    let entry = match host.strip_prefix("*.") {
        // A host that may be private is named; the domain that it is below is not.
        Some(domain) => match configured_host(domain)? {
            Host::Name(name) => Entry::Below(name),
            Host::Address(_) => return None,
        },
        None => Entry::At(configured_host(host)?),
    };
    Some(PrivateHost { entry, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::CheckedUrl;

    #[track_caller]
    fn check(list: &[&str], url: &str, expected: bool) {
        let url: CheckedUrl = url.parse().unwrap();
        assert_eq!(Domains::new(list).unwrap().contains(url.host()), expected, "{list:?} {url:?}");
    }

    #[test]
    fn a_domain_stands_for_itself_and_what_is_below() {
        for list in [["docs.example"], ["*.docs.example"], ["DOCS.Example."]] {
            check(&list, "http://docs.example/", true);
            check(&list, "http://api.DOCS.example.:8080/", true);
            check(&list, "http://docs.example.evil/", false);
            check(&list, "http://evildocs.example/", false);
            check(&list, "http://example/", false);
        }
    }

    #[test]
    fn homographs_are_other_hosts() {
        // The o is Greek.
        check(&["docs.example"], "http://dοcs.example/", false);
        check(&["bücher.example"], "http://xn--bcher-kva.example/", true);
        // Full-width letters are the same letters.
        check(&["docs.example"], "http://ｄｏｃｓ.example/", true);
    }

    #[test]
    fn addresses_stand_for_themselves_however_they_are_written() {
        check(&["93.184.216.34"], "http://0x5db8d822/", true);
        check(&["93.184.216.34"], "http://93.184.216.35/", false);
        check(&["2606:4700::1111"], "http://[2606:4700:0::1111]/", true);
        check(&["*"], "http://93.184.216.34/", true);
    }

    #[test]
    fn entries_that_are_no_domain_are_refused() {
        for entry in [
            "",
            "http://docs.example",
            "docs.example/x",
            "docs.example:80",
            "a*.example",
            "*.10.0.0.1",
            "0x7f.1",
        ] {
            assert!(Domains::new([entry]).is_err(), "{entry}");
        }
    }

    #[test]
    fn a_private_host_is_one_host_unless_a_star_says_otherwise() {
        let list =
            PrivateHosts::new(["wiki.internal", "localhost:3000", "*.lab.example", "[::1]:80", "10.0.0.7"])
                .unwrap();
        let holds = |url: &str| {
            let url: CheckedUrl = url.parse().unwrap();
            list.contains(url.host(), url.port())
        };
        assert!(holds("http://wiki.internal/") && !holds("http://a.wiki.internal/"));
        assert!(holds("http://localhost:3000/") && !holds("http://localhost:3001/"));
        assert!(holds("http://a.lab.example/") && holds("http://[::1]/") && !holds("http://[::1]:81/"));
        assert!(!holds("http://lab.example/") && !holds("http://evillab.example/"));
        assert!(holds("https://10.0.0.7:8443/") && !holds("http://10.0.0.8/"));
        assert!(PrivateHosts::new(["10.0.0.0/8"]).is_err() && PrivateHosts::new(["a:b"]).is_err());
    }
}
