//! Names: looked up once, all addresses decided on, and connected to what was decided on.

use http_guard::testing::{NameServer, ProxyServer, Reply, Server};
use http_guard::{FetchError, Guard, Policy, Range, Refusal, Resolver, Settings};

use super::{body_of, fetched, guard};

/// A client whose connections all go through `proxy`, which shows where they would have led.
fn through(proxy: &ProxyServer, names: &NameServer, private: &[&str]) -> Guard {
    Guard::new(Settings {
        policy: Policy::default().with_private(private).unwrap(),
        resolver: Resolver::Server(names.address()),
        proxy: Some(format!("http://me:hunter2@{}", proxy.address()).parse().unwrap()),
        ..Settings::default()
    })
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_connected_where_it_was_checked() {
    let server = Server::start(|_| Reply::html("public")).await;
    let names = NameServer::start(&[("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]])]).await;
    let proxy = ProxyServer::start(server.address()).await;
    let guard = through(&proxy, &names, &[]);
    assert_eq!(body_of(&guard, "http://rebind.example/").await.bytes, b"public");
    assert_eq!((proxy.targets(), names.asked("rebind.example")), (vec!["93.184.216.34:80".to_owned()], 1));
    assert_eq!(server.requests()[0].header("host"), Some("rebind.example"));
    // The second time it is inside, and nothing of the first connection is used again.
    let error = fetched(&guard, "http://rebind.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::Refused(Refusal::Address { range: Range::Loopback, .. })), "{error}");
    assert_eq!((proxy.targets().len(), server.connections()), (1, 1));
}

#[tokio::test]
async fn a_redirect_to_the_same_name_is_checked_again() {
    let server = Server::start(|_| Reply::redirect(302, "/again")).await;
    let names = NameServer::start(&[("rebind.example", &[&["93.184.216.34"], &["169.254.169.254"]])]).await;
    let proxy = ProxyServer::start(server.address()).await;
    let error = fetched(&through(&proxy, &names, &[]), "http://rebind.example/").await.unwrap_err();
    assert!(
        matches!(error.root(), FetchError::Refused(Refusal::Address { range: Range::LinkLocal, .. })),
        "{error}"
    );
    assert_eq!(error.to_string().matches("rebind.example").count(), 2, "{error}");
    assert_eq!((proxy.targets().len(), names.asked("rebind.example")), (1, 2));
}

#[tokio::test]
async fn one_private_address_among_public_ones_refuses_the_name() {
    let server = Server::start(|_| Reply::html("inside")).await;
    let names = NameServer::start(&[
        ("mixed.example", &[&["93.184.216.34", "127.0.0.1"]]),
        ("families.example", &[&["93.184.216.34", "::1"]]),
        ("mapped.example", &[&["::ffff:127.0.0.1"]]),
    ])
    .await;
    let guard = guard(&[], Some(&names));
    for host in ["mixed.example", "families.example", "mapped.example"] {
        let error = fetched(&guard, &server.url_of(host, "/")).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused(Refusal::Address { .. })), "{host}: {error}");
        assert_eq!(names.asked(host), 1, "{host}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_unknown_name_is_told_as_such() {
    let names = NameServer::start(&[("empty.example", &[&[]])]).await;
    let guard = guard(&[], Some(&names));
    for host in ["missing.example", "empty.example"] {
        let error = fetched(&guard, &format!("http://{host}/?key=hunter2")).await.unwrap_err();
        assert!(matches!(&error, FetchError::NoSuchHost { host: named } if named == host), "{error}");
        assert!(!error.to_string().contains("hunter2"));
    }
}

#[tokio::test]
async fn the_proxy_gets_addresses_and_its_password_nothing_else() {
    let server = Server::start(|_| Reply::html("through")).await;
    let names = NameServer::start(&[
        ("a.example", &[&["93.184.216.34", "2606:4700::1"]]),
        ("b.example", &[&["10.0.0.1"]]),
    ])
    .await;
    let proxy = ProxyServer::start(server.address()).await;
    let guard = through(&proxy, &names, &[]);
    assert_eq!(body_of(&guard, "http://a.example:8080/").await.bytes, b"through");
    assert!(matches!(fetched(&guard, "http://b.example/").await, Err(FetchError::Refused(_))));
    assert!(matches!(fetched(&guard, "http://127.0.0.1/").await, Err(FetchError::Refused(_))));
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1);
    assert!(
        heads[0].contains("\r\nProxy-Authorization: Basic bWU6aHVudGVyMg==\r\n")
            && !heads[0].contains("a.example")
    );
    assert_eq!(server.requests()[0].header("proxy-authorization"), None);
}

#[tokio::test]
async fn a_socks_proxy_gets_addresses_too() {
    let server = Server::start(|_| Reply::html("through")).await;
    let names = NameServer::start(&[
        ("four.example", &[&["93.184.216.34"]]),
        ("six.example", &[&["2606:4700::1"]]),
        ("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]]),
    ])
    .await;
    let proxy = ProxyServer::start(server.address()).await;
    let guard = |login: &str| {
        Guard::new(Settings {
            resolver: Resolver::Server(names.address()),
            proxy: Some(format!("socks5://{login}{}", proxy.address()).parse().unwrap()),
            ..Settings::default()
        })
    };
    for host in ["four.example", "six.example", "rebind.example"] {
        let url = format!("http://{host}:8080/");
        assert_eq!(body_of(&guard("me:hunter2@"), &url).await.bytes, b"through", "{host}");
    }
    assert_eq!(body_of(&guard(""), "http://four.example/").await.bytes, b"through");
    for url in ["http://rebind.example/", "http://127.0.0.1/", "http://[::1]/"] {
        assert!(matches!(fetched(&guard(""), url).await, Err(FetchError::Refused(_))), "{url}");
    }
    assert_eq!(
        proxy.heads(),
        [
            "SOCKS5 93.184.216.34:8080 me:hunter2",
            "SOCKS5 [2606:4700::1]:8080 me:hunter2",
            "SOCKS5 93.184.216.34:8080 me:hunter2",
            "SOCKS5 93.184.216.34:80 "
        ]
    );
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_as_such() {
    // What a proxy answers, and what of it is told.
    let cases = [
        ("socks5", b"\x05\xff".to_vec(), "another way to log in"),
        ("socks5", b"\x05\x00\x05\x05\x00\x01\0\0\0\0\0\0".to_vec(), "code 5"),
        ("socks5", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "another way to log in"),
        ("http", b"HTTP/1.1 407 Wanted\r\nProxy-Authenticate: Basic\r\n\r\n".to_vec(), "407"),
        ("http", b"HTTP/1.1 200 OK\r\nX: ".to_vec(), "proxy"),
        ("http", vec![b'x'; 20_000], "without an end"),
    ];
    let names = NameServer::start(&[("a.example", &[&["93.184.216.34"]])]).await;
    for (scheme, answer, told) in cases {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        let guard = Guard::new(Settings {
            resolver: Resolver::Server(names.address()),
            proxy: Some(format!("{scheme}://{address}").parse().unwrap()),
            ..Settings::default()
        });
        let error = fetched(&guard, "http://a.example/?key=hunter2").await.unwrap_err();
        assert!(matches!(error, FetchError::Proxy { .. }), "{error}");
        assert!(error.to_string().contains(told) && !error.to_string().contains("hunter2"), "{error}");
        drop(guard);
        proxy.abort();
    }
}

#[tokio::test]
async fn an_answer_too_long_for_a_datagram_is_asked_for_over_tcp() {
    let server = Server::start(|_| Reply::html("found")).await;
    let names =
        NameServer::only_over_tcp(&[("a.example", &[&["127.0.0.1"]]), ("b.example", &[&["10.0.0.1"]])]).await;
    let guard = guard(&["a.example"], Some(&names));
    assert_eq!(body_of(&guard, &server.url_of("a.example", "/")).await.bytes, b"found");
    // One question for each kind of address.
    assert_eq!(names.asked_over_tcp(), 2);
    let error = fetched(&guard, "http://b.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::Refused(Refusal::Address { range: Range::Private, .. })), "{error}");
    let error = fetched(&guard, "http://missing.example/").await.unwrap_err();
    assert!(matches!(error, FetchError::NoSuchHost { .. }), "{error}");
}
