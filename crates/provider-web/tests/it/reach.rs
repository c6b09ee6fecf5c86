//! Where web_fetch goes, and where it does not.

use http_guard::testing::{Authority, NameServer, ProxyServer, Reply, Server};
use serde_json::{Value, json};

use super::{fetch, named, web};

const HERE: &[&[&str]] = &[&["127.0.0.1"]];

#[tokio::test]
async fn private_and_odd_addresses_are_blocked_with_their_code() {
    let server = Server::start(|_| Reply::html("inside")).await;
    let port = server.port();
    let names = NameServer::start(&[
        ("127.0.0.1.nip.example", HERE),
        ("mixed.example", &[&["93.184.216.34", "10.0.0.1"]]),
    ])
    .await;
    let harness = named(&names, &[], json!({})).await;
    for host in [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "100.64.0.1",
        "[::1]",
        "[fd00::1]",
        "0.0.0.0",
        "localhost",
        "foo.localhost",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "127.0.0.1.nip.example",
        "①②⑦.0.0.1",
        "mixed.example",
    ] {
        for tool in ["web_fetch", "http_request"] {
            let arguments = json!({"url": format!("http://{host}:{port}/"), "method": "GET"});
            let Value::Object(mut arguments) = arguments else { panic!() };
            if tool == "web_fetch" {
                arguments.remove("method");
            }
            let error = harness.call(tool, json!(arguments)).await.error();
            assert_eq!(
                (error.category.as_str(), error.code.as_str()),
                ("permission_denied", "blocked_address"),
                "{host}: {error:?}"
            );
        }
    }
    let error = harness.call("web_fetch", json!({"url": "http://127.0.0.1:9/"})).await.error();
    assert_eq!(error.code, "blocked_address");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn no_address_is_told_by_argument() {
    let harness = web(json!({})).await;
    for url in [
        "",
        "example.org",
        "ftp://example.org",
        "http://a:hunter2@example.org/",
        "http://exa mple.org",
        "file:///etc/passwd",
    ] {
        let error = harness.call("web_fetch", json!({"url": url})).await.error();
        assert_eq!(error.category, "invalid_arguments", "{url}");
        assert!(error.message.contains("url: ") && !error.message.contains("hunter2"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_rebinding_name_is_connected_where_it_was_checked() {
    let server = Server::start(|_| Reply::html("public")).await;
    let names = NameServer::start(&[("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]])]).await;
    let proxy = ProxyServer::start(server.address()).await;
    let over = json!({"proxy": format!("http://me:hunter2@{}", proxy.address())});
    let harness = named(&names, &[], over).await;
    let page = fetch(&harness, json!({"url": "http://rebind.example/"})).await;
    assert_eq!((&page["content"], proxy.targets()), (&json!("public"), vec!["93.184.216.34:80".to_owned()]));
    let error = harness.call("web_fetch", json!({"url": "http://rebind.example/"})).await.error();
    assert_eq!(error.code, "blocked_address");
    assert_eq!(proxy.targets().len(), 1);
}

#[tokio::test]
async fn another_site_is_told_and_the_same_site_followed() {
    let names = NameServer::start(&[("a.example", HERE), ("www.a.example", HERE), ("b.example", HERE)]).await;
    let server = Server::start(|request| {
        let port =
            request.header("host").unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned();
        match request.target.as_str() {
            "/same" => Reply::redirect(301, &format!("http://www.a.example:{port}/end")),
            "/other" => Reply::redirect(302, &format!("http://b.example:{port}/end?key=hunter2")),
            "/blocked" => Reply::redirect(302, &format!("http://old.a.example:{port}/")),
            _ => Reply::html("end"),
        }
    })
    .await;
    let over = json!({"blocked_domains": ["old.a.example"]});
    let harness = named(&names, &["a.example", "www.a.example", "b.example"], over).await;
    let page = fetch(&harness, json!({"url": server.url_of("a.example", "/same")})).await;
    assert_eq!(page["final_url"], server.url_of("www.a.example", "/end"));
    assert_eq!(page["redirects"], json!([{"status": 301, "url": server.url_of("a.example", "/same")}]));
    let page = fetch(&harness, json!({"url": server.url_of("a.example", "/other")})).await;
    assert_eq!(
        (&page["status"], &page["redirect_to"]),
        (&json!(302), &json!(server.url_of("b.example", "/end?key=hunter2")))
    );
    assert!(!super::notes(&page).contains("hunter2"));
    assert_eq!(names.asked("b.example"), 0);
    let error =
        harness.call("web_fetch", json!({"url": server.url_of("a.example", "/blocked")})).await.error();
    assert_eq!(error.code, "denied");
    assert!(
        error.message.contains("redirected to") && error.message.contains("old.a.example"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn lists_of_domains_hold_on_the_parsed_host() {
    let server = Server::start(|_| Reply::html("docs")).await;
    let names = NameServer::start(&[("api.docs.example", HERE), ("docs.example.evil", HERE)]).await;
    let over = json!({"allowed_domains": ["*.docs.example"]});
    let harness = named(&names, &["api.docs.example", "docs.example.evil"], over).await;
    for host in ["api.docs.example", "API.Docs.EXAMPLE."] {
        assert_eq!(
            fetch(&harness, json!({"url": server.url_of(host, "/")})).await["content"],
            "docs",
            "{host}"
        );
    }
    for host in ["docs.example.evil", "api.dοcs.example", "example.org"] {
        let error =
            harness.call("web_fetch", json!({"url": server.url_of(host, "/?key=hunter2")})).await.error();
        assert_eq!((error.category.as_str(), error.code.as_str()), ("permission_denied", "denied"), "{host}");
        assert!(!error.message.contains("hunter2"), "{}", error.message);
    }
}

#[tokio::test]
async fn ipv6_and_a_company_s_own_authority_work() {
    let six = Server::on("::1".parse().unwrap(), |_| Reply::html("six")).await;
    assert_eq!(fetch(&web(json!({})).await, json!({"url": six.url("/")})).await["content"], "six");
    let authority = Authority::new();
    let server = Server::tls(&authority, "secure.example", |_| Reply::html("sealed")).await;
    let names = NameServer::start(&[("secure.example", HERE)]).await;
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("ca.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let harness = named(&names, &["secure.example"], json!({"ca_file": file})).await;
    assert_eq!(
        fetch(&harness, json!({"url": server.url_of("secure.example", "/")})).await["content"],
        "sealed"
    );
    let distrusting = named(&names, &["secure.example"], json!({})).await;
    let error =
        distrusting.call("web_fetch", json!({"url": server.url_of("secure.example", "/")})).await.error();
    assert_eq!(error.category, "execution_failed");
    assert!(error.message.contains("secure"), "{}", error.message);
}
