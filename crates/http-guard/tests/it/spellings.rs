//! Ways to write an address that leads inside, all of them refused by type, none of them reaching anything.

use std::net::{Ipv4Addr, Ipv6Addr};

use http_guard::testing::{NameServer, Reply, Server};
use http_guard::{CheckedUrl, FetchError, Guard, Policy, Request, Resolver, Settings};

/// Addresses that lead inside.
const INSIDE: [[u8; 4]; 8] = [
    [127, 0, 0, 1],
    [127, 1, 2, 3],
    [169, 254, 169, 254],
    [10, 0, 0, 1],
    [192, 168, 0, 1],
    [172, 16, 0, 1],
    [100, 64, 0, 1],
    [0, 0, 0, 0],
];

/// The digits of `text` written with those of `zero`'s block.
fn digits_from(text: &str, zero: char) -> String {
    let digit = |character: char| match character.to_digit(10) {
        Some(value) => char::from_u32(u32::from(zero) + value).unwrap(),
        None => character,
    };
    text.chars().map(digit).collect()
}

fn circled(text: &str) -> String {
    let digit = |character: char| match character.to_digit(10) {
        Some(0) => '⓪',
        Some(value) => char::from_u32(u32::from('①') + value - 1).unwrap(),
        None => character,
    };
    text.chars().map(digit).collect()
}

/// One IPv4 address as parsers of the past and the present read it.
fn ipv4_hosts(octets: [u8; 4]) -> Vec<String> {
    let [a, b, c, d] = octets;
    let number = u32::from_be_bytes(octets);
    let dotted = Ipv4Addr::from(octets).to_string();
    vec![
        dotted.clone(),
        format!("{dotted}."),
        format!("{number}"),
        format!("{number}."),
        format!("0x{number:x}"),
        format!("0X{number:X}"),
        format!("0x{number:08x}"),
        format!("0{number:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0000{a:o}.0{b:o}.0{c:o}.0000{d:o}"),
        format!("0x{a:x}.{b}.0{c:o}.{d}"),
        format!("{a}.{b}.{}", u16::from_be_bytes([c, d])),
        format!("{a}.{}", number & 0x00ff_ffff),
        format!("0x{a:x}.{}", number & 0x00ff_ffff),
        digits_from(&dotted, '０'),
        digits_from(&dotted, '𝟎'),
        digits_from(&dotted, '𝟢'),
        circled(&dotted),
        dotted.replace('.', "。"),
        dotted.replace('.', "．"),
        dotted.replace('.', "｡"),
        digits_from(&dotted, '０').replace('.', "。"),
        dotted.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        format!("%{:02x}{}", dotted.as_bytes()[0], &dotted[1..]),
        format!("{dotted}\u{ad}"),
    ]
}

/// The same address carried by IPv6.
fn ipv6_hosts(octets: [u8; 4]) -> Vec<String> {
    let address = Ipv4Addr::from(octets);
    let [a, b, c, d] = octets;
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    vec![
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{address}]"),
        format!("[::ffff:0:{address}]"),
        format!("[::{address}]"),
        format!("[64:ff9b::{address}]"),
        format!("[64:ff9b:0:0:0:0:{high:x}:{low:x}]"),
        format!("[64:ff9b:1::{address}]"),
        format!("[2002:{high:x}:{low:x}::]"),
        format!("[2001:0:{high:x}:{low:x}:0:0:{:x}:{:x}]", !high, !low),
        format!("[2606:4700::5efe:{address}]"),
        format!("[fe80::200:5efe:{address}]"),
    ]
}

/// What stands for itself.
fn other_hosts() -> Vec<String> {
    let hosts = [
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000::0001]",
        "[::0:1]",
        "[::]",
        "[0::0]",
        "[fd00::1]",
        "[fc00::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::1%25lo]",
        "[fec0::1]",
        "[ff02::1]",
        "[100::1]",
        "[2001:db8::1]",
        "[::1].",
        "[::1",
        "::1",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "LocalHost.",
        "foo.localhost",
        "a.b.localhost.",
        "ｌｏｃａｌｈｏｓｔ",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "𝐥𝐨𝐜𝐚𝐥𝐡𝐨𝐬𝐭",
        "loc\u{ad}alhost",
        "lo\u{200b}calhost",
        "loc%61lhost",
        "localhost%00",
        "localhost%2e",
        "localhost%23.example.org",
        "127.0.0.1.nip.example",
        "127-0-0-1.nip.example",
        "inside.example",
        "mixed.example",
        "six.example",
        "metadata.example",
        "1.2.3.4.5",
        "127.0.0.1.1",
        "127..0.1",
        "127.0.0.256",
        "0x100000000",
        "4294967296",
        "255.255.255.255",
        "224.0.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "168.63.129.16",
        "192.0.0.192",
        "127.0x",
        "127.0.0.08",
        ".127.0.0.1",
        "xn--",
        "xn--127-",
        "127。0。0。1。",
    ];
    hosts.map(str::to_owned).to_vec()
}

/// Whole addresses, with the port of the server that must not be reached.
fn tricks(port: u16) -> Vec<String> {
    let inside = format!("127.0.0.1:{port}");
    vec![
        format!("http://example.org@{inside}/"),
        format!("http://example.org:80@{inside}/"),
        format!("http://@{inside}/"),
        format!("http://:@{inside}/"),
        format!("http://a@b@{inside}/"),
        format!("http://example.org%40{inside}/"),
        format!("http://{inside}\\@example.org/"),
        format!("http://example.org\\@{inside}/"),
        format!("http://example.org\\.{inside}/"),
        format!("http:\\\\{inside}/"),
        format!("http:/\\{inside}/"),
        format!("http:{inside}/"),
        format!("http:/{inside}/"),
        format!("http:///{inside}/"),
        format!("http:////{inside}/"),
        format!("//{inside}/"),
        format!("\\\\{inside}\\"),
        inside.clone(),
        format!("ht\ttp://{inside}/"),
        format!("http://127.0.0.1\t:{port}/"),
        format!("http://127.0.\n0.1:{port}/"),
        format!("http://127.0.0.1\r\n:{port}/"),
        format!("http://127.0.0.1 :{port}/"),
        format!("http:// 127.0.0.1:{port}/"),
        format!("http://127.0.0.1\u{a0}:{port}/"),
        format!("http://127.0.0.1\u{0}:{port}/"),
        format!("\u{1}http://{inside}/"),
        format!("http://127.0.0.1%09:{port}/"),
        format!("http://127.0.0.1%2f:{port}/"),
        format!("http://127.0.0.1:{port}\\x"),
        format!("http://127.0.0.1:0{port}/"),
        format!("http://127.0.0.1:{}/", u32::from(port) + 65_536),
        format!("http://127.0.0.1:+{port}/"),
        "http://127.0.0.1:/".to_owned(),
        "http://127.0.0.1:0/".to_owned(),
        "http://127.0.0.1:-1/".to_owned(),
        format!("http://[127.0.0.1]:{port}/"),
        format!("ftp://{inside}/"),
        format!("gopher://{inside}/_GET"),
        format!("dict://{inside}/"),
        format!("ws://{inside}/"),
        format!("file://{inside}/etc/passwd"),
        "file:///etc/passwd".to_owned(),
        format!("jar:http://{inside}!/"),
        format!("view-source:http://{inside}/"),
        "data:text/html,hello".to_owned(),
        "javascript:fetch(1)".to_owned(),
        "unix:///run/docker.sock".to_owned(),
        "http://".to_owned(),
        String::new(),
        format!("https://{inside}/"),
        format!("HTTPS://LOCALHOST:{port}/"),
        format!("hTTp://{inside}/"),
        format!("  http://{inside}/  "),
        format!("http://{inside}?@example.org"),
        format!("http://{inside}#@example.org"),
    ]
}

fn all(port: u16) -> Vec<String> {
    let carried = INSIDE.into_iter().flat_map(|octets| [ipv4_hosts(octets), ipv6_hosts(octets)].concat());
    let hosts = carried.chain(other_hosts());
    hosts.map(|host| format!("http://{host}:{port}/")).chain(tricks(port)).collect()
}

/// The same port on both, so that no spelling misses for that reason.
async fn canaries() -> (Server, Server) {
    for _ in 0..100 {
        let four = Server::start(|_| Reply::html("caught")).await;
        let six = (Ipv6Addr::LOCALHOST, four.port()).into();
        if let Some(six) = Server::at(six, |_| Reply::html("caught")).await {
            return (four, six);
        }
    }
    panic!("no port is free on both 127.0.0.1 and ::1; is IPv6 off?")
}

#[tokio::test]
async fn three_hundred_spellings_reach_nothing() {
    let names = NameServer::start(&[
        ("127.0.0.1.nip.example", &[&["127.0.0.1"]]),
        ("127-0-0-1.nip.example", &[&["127.0.0.1"]]),
        ("inside.example", &[&["10.0.0.1"]]),
        ("mixed.example", &[&["93.184.216.34", "127.0.0.1"]]),
        ("six.example", &[&["::1"]]),
        ("metadata.example", &[&["169.254.169.254"]]),
    ])
    .await;
    let (four, six) = canaries().await;
    let resolver = Resolver::Server(names.address());
    let guard = Guard::new(Settings { policy: Policy::default(), resolver, ..Settings::default() });
    let spellings = all(four.port());
    assert!(spellings.len() >= 300, "{}", spellings.len());
    let mut checked = 0;
    for text in &spellings {
        match text.parse::<CheckedUrl>() {
            Err(_) => checked += 1,
            Ok(url) => match guard.send(Request::get(url)).await {
                Err(FetchError::Refused(_)) => checked += 1,
                Err(FetchError::NoSuchHost { host }) => panic!("{text:?} was looked up as {host}"),
                other => panic!("{text:?} came to {other:?}"),
            },
        }
    }
    assert_eq!(checked, spellings.len());
    assert_eq!((four.connections(), six.connections()), (0, 0));
}

#[tokio::test]
async fn the_servers_of_this_test_can_be_reached_where_it_is_allowed() {
    let (four, six) = canaries().await;
    let guard = super::guard(&["127.0.0.1", "::1", "localhost"], None);
    for url in [four.url("/"), six.url("/"), four.url_of("localhost", "/"), four.url_of("2130706433", "/")] {
        assert_eq!(super::body_of(&guard, &url).await.bytes, b"caught", "{url}");
    }
    assert_eq!(four.connections() + six.connections(), 4);
}
