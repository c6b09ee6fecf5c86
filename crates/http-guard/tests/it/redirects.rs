//! Redirects: within a site they are followed, elsewhere they are told.

use http_guard::testing::{NameServer, Reply, Server};
use http_guard::{FetchError, Limits};

use super::{fetched, get, guard, local};

const HERE: &[&[&str]] = &[&["127.0.0.1"]];

#[tokio::test]
async fn another_host_of_the_site_is_followed_and_another_site_is_told() {
    let names = NameServer::start(&[("a.example", HERE), ("www.a.example", HERE), ("b.example", HERE)]).await;
    let server = Server::start(|request| {
        let port =
            request.header("host").unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned();
        match request.target.as_str() {
            "/same" => Reply::redirect(301, &format!("http://www.a.example:{port}/end")),
            "/other" => Reply::redirect(302, &format!("http://b.example:{port}/end")),
            "/inside" => Reply::redirect(307, "http://169.254.169.254/latest/meta-data"),
            "/scheme" => Reply::redirect(302, "file:///etc/passwd"),
            _ => Reply::html("end"),
        }
    })
    .await;
    let guard = guard(&["a.example", "www.a.example", "b.example"], Some(&names));
    let response = fetched(&guard, &server.url_of("a.example", "/same")).await.unwrap();
    assert_eq!(
        (response.status, response.url.as_str()),
        (200, server.url_of("www.a.example", "/end").as_str())
    );
    assert_eq!(
        (response.redirects.len(), response.redirects[0].status, response.redirect_to),
        (1, 301, None)
    );
    let cases = [
        ("/other", 302, server.url_of("b.example", "/end")),
        ("/inside", 307, "http://169.254.169.254/latest/meta-data".to_owned()),
        ("/scheme", 302, "file:///etc/passwd".to_owned()),
    ];
    for (path, status, to) in cases {
        let response = fetched(&guard, &server.url_of("a.example", path)).await.unwrap();
        assert_eq!((response.status, response.redirect_to), (status, Some(to)), "{path}");
    }
    assert_eq!(names.asked("b.example"), 0);
}

#[tokio::test]
async fn redirects_come_to_an_end() {
    let server = Server::start(|_| Reply::redirect(302, "/?key=hunter2")).await;
    let limits = Limits { max_redirects: 3, ..Limits::default() };
    let error = local().send(get(&server.url("/")).within(limits)).await.unwrap_err();
    assert!(matches!(error, FetchError::TooManyRedirects { count: 3, .. }), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert_eq!(server.connections(), 4);
}

#[tokio::test]
async fn a_redirect_without_a_place_is_an_answer() {
    let server = Server::start(|_| Reply::new(302, &[], "where?")).await;
    let response = fetched(&local(), &server.url("/")).await.unwrap();
    assert_eq!((response.status, response.redirect_to.clone()), (302, None));
    assert_eq!(response.body.collect().await.bytes, b"where?");
}
