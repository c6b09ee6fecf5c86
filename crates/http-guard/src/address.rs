//! Which addresses belong to the public internet, and what the others are.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range that is not the public internet.
///
/// ```
/// use http_guard::Range;
///
/// assert_eq!(Range::of("192.168.1.1".parse().unwrap()), Some(Range::Private));
/// assert_eq!(Range::of("::ffff:8.8.8.8".parse().unwrap()), Some(Range::Mapped));
/// assert_eq!(Range::of("93.184.216.34".parse().unwrap()), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// `0.0.0.0/8`, `::`: this host, by another name.
    Unspecified,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `fc00::/7`, `fec0::/10`.
    Private,
    /// `100.64.0.0/10`: between a provider and its customers.
    Shared,
    /// `169.254.0.0/16`, `fe80::/10`: also where clouds answer questions about their machines.
    LinkLocal,
    /// An address in the public ranges on which a cloud's own service answers its machines.
    Platform,
    /// Set aside for protocols and benchmarks.
    Reserved,
    /// Set aside for examples.
    Documentation,
    /// Many receivers at once.
    Multicast,
    /// IPv4 in the form of IPv6: `::ffff:0:0/96`, `::/96`.
    Mapped,
    /// IPv4 carried in IPv6 by a tunnel or a translator, where it leads nowhere public or where nobody can say.
    Translated,
}

impl Range {
    /// The range that `address` is in; `None` for a public one.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Whether a host that is allowed to be private may be there. Nothing useful is at the others.
    pub(crate) fn is_some_network(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::Shared | Self::LinkLocal | Self::Documentation)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "an address shared behind a provider",
            Self::LinkLocal => "a link-local address",
            Self::Platform => "an address of the cloud's own services",
            Self::Reserved => "a reserved address",
            Self::Documentation => "an address for documentation",
            Self::Multicast => "a multicast address",
            Self::Mapped => "an IPv4 address written as IPv6",
            Self::Translated => "an address of a tunnel or translator",
        })
    }
}

fn of_v4(address: Ipv4Addr) -> Option<Range> {
    let [a, b, c, d] = address.octets();
    Some(match (a, b, c, d) {
        (0, ..) => Range::Unspecified,
        (127, ..) => Range::Loopback,
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => Range::Private,
        (100, 64..=127, ..) => Range::Shared,
        (169, 254, ..) => Range::LinkLocal,
        // Where Azure's machines reach their host.
        (168, 63, 129, 16) => Range::Platform,
        (192, 0, 2, _) | (198, 51, 100, _) | (203, 0, 113, _) => Range::Documentation,
        // IETF protocols, the old 6to4 relays, benchmarks, and what was never given out.
        (192, 0, 0, _) | (192, 88, 99, _) | (198, 18..=19, ..) | (240..=255, ..) => Range::Reserved,
        (224..=239, ..) => Range::Multicast,
        _ => return None,
    })
}

fn of_v6(address: Ipv6Addr) -> Option<Range> {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Range::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Range::Loopback,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => Range::Mapped,
        // NAT64 and DNS64: in a network without IPv4 every public IPv4 host has such an address, so it is as good as
        // the one inside.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            return of_v4(embedded(high, low)).map(|_| Range::Translated);
        }
        // ISATAP, below any prefix.
        [.., 0 | 0x200, 0x5efe, _, _] => Range::Translated,
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => Range::Translated,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Range::Documentation,
        // IETF protocols, benchmarks, ORCHID.
        [0x2001, 0..=0x01ff, ..] => Range::Reserved,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Range::Private,
        [0xfe80..=0xfebf, ..] => Range::LinkLocal,
        [0xff00..=0xffff, ..] => Range::Multicast,
        // Only 2000::/3 has been given out.
        [0x2000..=0x3fff, ..] => return None,
        _ => Range::Reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(addresses: &str, range: Option<Range>) {
        for address in addresses.split_whitespace() {
            let parsed = address.parse().unwrap_or_else(|_| panic!("{address} is no address"));
            assert_eq!(Range::of(parsed), range, "{address}");
        }
    }

    #[test]
    fn special_ipv4_ranges_are_known_to_their_edges() {
        check("0.0.0.0 0.255.255.255", Some(Range::Unspecified));
        check("127.0.0.1 127.255.255.255", Some(Range::Loopback));
        check(
            "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255",
            Some(Range::Private),
        );
        check("100.64.0.0 100.127.255.255 100.100.100.200", Some(Range::Shared));
        check("169.254.0.0 169.254.169.254 169.254.255.255", Some(Range::LinkLocal));
        check("168.63.129.16", Some(Range::Platform));
        check("192.0.2.1 198.51.100.255 203.0.113.0", Some(Range::Documentation));
        check(
            "192.0.0.0 192.0.0.192 192.88.99.1 198.18.0.0 198.19.255.255 240.0.0.0 255.255.255.255",
            Some(Range::Reserved),
        );
        check("224.0.0.0 239.255.255.255", Some(Range::Multicast));
    }

    #[test]
    fn the_neighbours_of_special_ipv4_ranges_are_public() {
        check(
            "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 \
             169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 \
             198.20.0.0 223.255.255.255 168.63.129.15",
            None,
        );
    }

    #[test]
    fn special_ipv6_ranges_are_known() {
        check("::", Some(Range::Unspecified));
        check("::1", Some(Range::Loopback));
        check("::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 ::2 ::ffff:0:10.0.0.1", Some(Range::Mapped));
        check(
            "64:ff9b::127.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8 64:ff9b:1:ffff::1",
            Some(Range::Translated),
        );
        check(
            "2002:7f00:1:: 2002:808:808::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2",
            Some(Range::Translated),
        );
        check("2001:4860::5efe:7f00:1 2001:4860::200:5efe:a00:1 fe80::5efe:a00:1", Some(Range::Translated));
        check("2001:db8::1 3fff::1 3fff:fff:ffff::", Some(Range::Documentation));
        check(
            "2001:2::1 2001:10::1 2001:20::1 2001:1ff:: 100::1 100:0:0:1::1 5f00::1 4000::1 1::1",
            Some(Range::Reserved),
        );
        check("fc00::1 fd00::1 fdff:ffff:: fd00:ec2::254 fec0::1", Some(Range::Private));
        check("fe80::1 febf::1", Some(Range::LinkLocal));
        check("ff00:: ff02::1", Some(Range::Multicast));
    }

    #[test]
    fn public_ipv6_is_public_and_so_is_public_ipv4_behind_nat64() {
        check("2001:200::1 2001:4860:4860::8888 2606:4700::1111 2a00:1450::1 3ffe::1 64:ff9b::8.8.8.8", None);
    }
}
