//! What may be fetched: decided on the parsed address before anything is sent, and on every address of its host.

use std::net::{IpAddr, SocketAddr};

use crate::address::Range;
use crate::domains::{Domains, PatternError, PrivateHosts};
use crate::url::{CheckedUrl, Host};

/// Ports on which other protocols listen that could be made to read a request as their own; those of the Fetch standard.
const OTHER_PROTOCOLS: &[u16] = &[
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
    3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Why an address may not be fetched. Hosts are named, nothing else of the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The host is, or has, an address that is not the public internet.
    #[error("{host} is not reached: {address} is {range}")]
    Address {
        /// The host.
        host: String,
        /// The first address that stood in the way.
        address: IpAddr,
        /// What it is.
        range: Range,
    },
    /// The host is this machine by name.
    #[error("{host} is not reached: it is this machine")]
    ThisMachine {
        /// The host.
        host: String,
    },
    /// A list of allowed domains was given, and the host is on none of them.
    #[error("{host} is not reached: it is not among the allowed domains")]
    NotAllowed {
        /// The host.
        host: String,
    },
    /// The host is on the list of blocked domains.
    #[error("{host} is not reached: it is among the blocked domains")]
    Blocked {
        /// The host.
        host: String,
    },
    /// Another protocol listens there.
    #[error("port {port} of {host} is not reached: it belongs to another protocol")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
}

/// What may be fetched. Without lists every public host may.
///
/// ```
/// use http_guard::Policy;
///
/// let policy = Policy::default().blocking(["ads.example"]).unwrap();
/// assert!(policy.admit(&"https://example.org/".parse().unwrap()).is_ok());
/// assert!(policy.admit(&"https://x.ads.example/".parse().unwrap()).is_err());
/// assert!(policy.admit(&"http://0x7f.1/".parse().unwrap()).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    allowed: Option<Domains>,
    blocked: Domains,
    private: PrivateHosts,
}

impl Policy {
    /// Only these domains, and what is below them. An empty list allows nothing.
    ///
    /// # Errors
    /// The first entry that is no domain.
    pub fn allowing<S: AsRef<str>>(self, entries: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        Ok(Self { allowed: Some(Domains::new(entries)?), ..self })
    }

    /// None of these domains, whatever is allowed.
    ///
    /// # Errors
    /// The first entry that is no domain.
    pub fn blocking<S: AsRef<str>>(self, entries: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        Ok(Self { blocked: Domains::new(entries)?, ..self })
    }

    /// These hosts may have addresses that are not public. Each entry is one host (`wiki.internal`, `10.0.0.7`), perhaps
    /// with the only port that is meant (`localhost:3000`), or `*.lab.example`.
    ///
    /// # Errors
    /// The first entry that is no host.
    pub fn with_private<S: AsRef<str>>(
        self,
        entries: impl IntoIterator<Item = S>,
    ) -> Result<Self, PatternError> {
        Ok(Self { private: PrivateHosts::new(entries)?, ..self })
    }

    /// Decides on everything that needs no name server: lists, literal addresses, this machine's names, ports.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, url: &CheckedUrl) -> Result<(), Refusal> {
        let host = url.host();
        match host {
            Host::Address(address) => self.admit_address(url, *address)?,
            Host::Name(_) if host.is_localhost() && !self.may_be_private(url) => {
                return Err(Refusal::ThisMachine { host: host.to_string() });
            }
            Host::Name(_) => {}
        }
        if self.blocked.contains(host) {
            return Err(Refusal::Blocked { host: host.to_string() });
        }
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(host)) {
            return Err(Refusal::NotAllowed { host: host.to_string() });
        }
        if OTHER_PROTOCOLS.contains(&url.port()) {
            return Err(Refusal::Port { host: host.to_string(), port: url.port() });
        }
        Ok(())
    }

    /// Decides on the addresses of a host. One that is not public refuses them all: nobody can say which of them an
    /// attacker meant to be taken.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn admit_addresses(&self, url: &CheckedUrl, found: &[IpAddr]) -> Result<Admitted, Refusal> {
        found.iter().try_for_each(|address| self.admit_address(url, *address))?;
        Ok(Admitted(found.iter().map(|address| SocketAddr::new(*address, url.port())).collect()))
    }

    fn admit_address(&self, url: &CheckedUrl, address: IpAddr) -> Result<(), Refusal> {
        match Range::of(address) {
            Some(range) if !(range.is_some_network() && self.may_be_private(url)) => {
                Err(Refusal::Address { host: url.host().to_string(), address, range })
            }
            _ => Ok(()),
        }
    }

    fn may_be_private(&self, url: &CheckedUrl) -> bool {
        self.private.contains(url.host(), url.port())
    }
}

/// Addresses that the policy has let through. Nothing else is ever connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admitted(Vec<SocketAddr>);

impl Admitted {
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CheckedUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn literal_addresses_are_decided_without_a_name_server() {
        let policy = Policy::default();
        for text in [
            "http://127.0.0.1:9/",
            "http://[::1]/",
            "http://169.254.169.254/",
            "http://0.0.0.0/",
            "http://[fd00::1]/",
        ] {
            assert!(matches!(policy.admit(&url(text)), Err(Refusal::Address { .. })), "{text}");
        }
        for text in ["http://localhost/", "http://foo.LOCALHOST./"] {
            assert!(matches!(policy.admit(&url(text)), Err(Refusal::ThisMachine { .. })), "{text}");
        }
        assert_eq!(policy.admit(&url("http://93.184.216.34/")), Ok(()));
    }

    #[test]
    fn one_private_address_refuses_them_all() {
        let policy = Policy::default();
        let found = ["93.184.216.34".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        let refused = policy.admit_addresses(&url("http://mixed.example/"), &found);
        assert!(matches!(refused, Err(Refusal::Address { range: Range::Private, .. })), "{refused:?}");
        assert!(policy.admit_addresses(&url("http://mixed.example/"), &found[..1]).is_ok());
    }

    #[test]
    fn a_private_host_is_allowed_alone_and_only_into_networks() {
        let policy =
            Policy::default().with_private(["127.0.0.1", "wiki.internal", "0.0.0.0", "224.0.0.1"]).unwrap();
        assert_eq!(policy.admit(&url("http://127.0.0.1:8080/")), Ok(()));
        assert!(policy.admit(&url("http://127.0.0.2/")).is_err());
        assert!(
            policy.admit(&url("http://0.0.0.0/")).is_err()
                && policy.admit(&url("http://224.0.0.1/")).is_err()
        );
        let found = ["10.1.2.3".parse().unwrap()];
        assert!(policy.admit_addresses(&url("http://wiki.internal/"), &found).is_ok());
        assert!(policy.admit_addresses(&url("http://other.internal/"), &found).is_err());
    }

    #[test]
    fn lists_decide_and_blocking_wins() {
        let policy =
            Policy::default().allowing(["docs.example"]).unwrap().blocking(["old.docs.example"]).unwrap();
        assert_eq!(policy.admit(&url("http://api.docs.example/")), Ok(()));
        assert!(matches!(policy.admit(&url("http://old.docs.example/")), Err(Refusal::Blocked { .. })));
        assert!(matches!(policy.admit(&url("http://docs.example.evil/")), Err(Refusal::NotAllowed { .. })));
        let nothing = Policy::default().allowing([""; 0]).unwrap();
        assert!(nothing.admit(&url("http://docs.example/")).is_err());
    }

    #[test]
    fn ports_of_other_protocols_are_refused() {
        assert!(matches!(
            Policy::default().admit(&url("http://example.org:25/")),
            Err(Refusal::Port { port: 25, .. })
        ));
        assert_eq!(Policy::default().admit(&url("http://example.org:8080/")), Ok(()));
    }
}
