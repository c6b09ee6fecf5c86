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
