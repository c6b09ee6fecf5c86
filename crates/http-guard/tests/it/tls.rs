//! Encryption: for the host that was asked for, under the web's authorities and those of the configuration.

use http_guard::testing::{Authority, NameServer, ProxyServer, Reply, Server};
use http_guard::{FetchError, Guard, Policy, Resolver, Settings, root_certificates};

use super::{body_of, fetched, get};

fn trusting(authority: Option<&Authority>, names: &NameServer, private: &[&str]) -> Guard {
    Guard::new(Settings {
        policy: Policy::default().with_private(private).unwrap(),
        resolver: Resolver::Server(names.address()),
        extra_roots: authority.map(Authority::certificate).into_iter().collect(),
        ..Settings::default()
    })
}

#[tokio::test]
async fn a_certificate_must_be_trusted_and_name_the_host() {
    let authority = Authority::new();
    let server = Server::tls(&authority, "secure.example", |_| Reply::html("secret")).await;
    let names =
        NameServer::start(&[("secure.example", &[&["127.0.0.1"]]), ("other.example", &[&["127.0.0.1"]])])
            .await;
    let private = ["secure.example", "other.example", "127.0.0.1"];
    let trusts = trusting(Some(&authority), &names, &private);
    assert_eq!(body_of(&trusts, &server.url_of("secure.example", "/")).await.bytes, b"secret");
    for (guard, host) in [
        (&trusts, "other.example"),
        (&trusts, "127.0.0.1"),
        (&trusting(None, &names, &private), "secure.example"),
        (&trusting(Some(&Authority::new()), &names, &private), "secure.example"),
    ] {
        let error = fetched(guard, &server.url_of(host, "/?key=hunter2")).await.unwrap_err();
        assert!(matches!(error, FetchError::Tls { .. }), "{host}: {error}");
        assert!(!error.to_string().contains("hunter2"));
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_proxy_cannot_read_along() {
    let authority = Authority::new();
    let server = Server::tls(&authority, "secure.example", |_| Reply::html("secret")).await;
    let names = NameServer::start(&[("secure.example", &[&["93.184.216.34"]])]).await;
    let proxy = ProxyServer::start(server.address()).await;
    let guard = Guard::new(Settings {
        resolver: Resolver::Server(names.address()),
        proxy: Some(format!("http://{}", proxy.address()).parse().unwrap()),
        extra_roots: vec![authority.certificate()],
        ..Settings::default()
    });
    assert_eq!(body_of(&guard, "https://secure.example/").await.bytes, b"secret");
    assert_eq!(proxy.targets(), ["93.184.216.34:443"]);
}

#[tokio::test]
async fn encryption_is_not_given_up() {
    let authority = Authority::new();
    let server =
        Server::tls(&authority, "secure.example", |_| Reply::redirect(301, "http://secure.example/")).await;
    let names = NameServer::start(&[("secure.example", &[&["127.0.0.1"]])]).await;
    let guard = trusting(Some(&authority), &names, &["secure.example"]);
    let response = guard.send(get(&server.url_of("secure.example", "/"))).await.unwrap();
    assert_eq!((response.status, response.redirect_to.as_deref()), (301, Some("http://secure.example/")));
}

#[test]
fn certificates_are_read_from_pem() {
    let authority = Authority::new();
    assert_eq!(root_certificates(authority.pem().as_bytes()), Ok(vec![authority.certificate()]));
    assert!(root_certificates(b"").is_err() && root_certificates(b"nonsense").is_err());
}
