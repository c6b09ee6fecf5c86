//! Where a response leads, and whether it is gone there.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method, StatusCode};

use crate::redact::is_credential;
use crate::url::CheckedUrl;

/// One request of the chain.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) method: Method,
    pub(crate) url: CheckedUrl,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What follows from a response.
#[derive(Debug)]
pub(crate) enum Next {
    /// It is the answer.
    Here,
    /// It is the answer, and leads to where nobody goes unasked.
    Elsewhere(String),
    /// The next request.
    Follow(Box<Hop>),
}

/// Decides on a response to `hop`. Followed is only what stays within the site, does not give up encryption, and, for
/// anything but GET and HEAD, stays on the very host that was named.
pub(crate) fn next(hop: &Hop, status: StatusCode, headers: &HeaderMap) -> Next {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Next::Here;
    }
    let Some(location) = headers.get(LOCATION) else { return Next::Here };
    // Servers send UTF-8 unencoded.
    let location = String::from_utf8_lossy(location.as_bytes());
    let Ok(url) = hop.url.join(&location) else { return Next::Elsewhere(location.into_owned()) };
    let gives_up_encryption = hop.url.is_https() && !url.is_https();
    if gives_up_encryption || !url.host().is_same_site(hop.url.host()) {
        return Next::Elsewhere(url.as_str().to_owned());
    }
    let keeps_body = matches!(status.as_u16(), 307 | 308) || (status != 303 && hop.method != Method::POST);
    let is_safe = hop.method == Method::GET || hop.method == Method::HEAD;
    let same_host = url.host() == hop.url.host();
    if !is_safe && !same_host && keeps_body {
        return Next::Elsewhere(url.as_str().to_owned());
    }
    let mut next = Hop { url, ..hop.clone() };
    if !keeps_body && next.method != Method::HEAD {
        next.method = Method::GET;
        next.body = Bytes::new();
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION] {
            next.headers.remove(name);
        }
    }
    if next.url.origin() != hop.url.origin() {
        next.headers = next
            .headers
            .iter()
            .filter(|(name, _)| !is_credential(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
    }
    Next::Follow(Box::new(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: Method, url: &str) -> Hop {
        let headers = [("authorization", "Bearer x"), ("content-type", "text/plain"), ("x-own", "1")];
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        Hop { method, url: url.parse().unwrap(), headers, body: Bytes::from_static(b"body") }
    }

    #[track_caller]
    fn followed(method: Method, from: &str, status: u16, location: &str) -> Hop {
        match led(method, from, status, location) {
            Next::Follow(next) => *next,
            other => panic!("{other:?}"),
        }
    }

    fn led(method: Method, from: &str, status: u16, location: &str) -> Next {
        let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
        next(&hop(method, from), StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn one_site_is_followed_and_no_other() {
        for location in ["/b", "https://example.org/", "https://www.example.org/", "//docs.example.org/x"] {
            followed(Method::GET, "https://example.org/a", 302, location);
        }
        for location in [
            "https://example.com/",
            "http://example.org/",
            "//evil.example/",
            "ftp://example.org/",
            "https://a@example.org/",
        ] {
            assert!(
                matches!(led(Method::GET, "https://example.org/a", 302, location), Next::Elsewhere(_)),
                "{location}"
            );
        }
        followed(Method::GET, "http://example.org/a", 301, "https://example.org/a");
        assert!(matches!(
            led(Method::GET, "https://one.github.io/", 301, "https://two.github.io/"),
            Next::Elsewhere(_)
        ));
        assert!(matches!(led(Method::GET, "https://example.org/", 304, "/b"), Next::Here));
    }

    #[test]
    fn methods_and_bodies_follow_the_standard() {
        let cases = [
            (Method::POST, 301, Method::GET, ""),
            (Method::POST, 302, Method::GET, ""),
            (Method::POST, 303, Method::GET, ""),
            (Method::POST, 307, Method::POST, "body"),
            (Method::POST, 308, Method::POST, "body"),
            (Method::PUT, 301, Method::PUT, "body"),
            (Method::PUT, 303, Method::GET, ""),
            (Method::DELETE, 302, Method::DELETE, "body"),
            (Method::HEAD, 303, Method::HEAD, "body"),
        ];
        for (method, status, expected, body) in cases {
            let next = followed(method.clone(), "https://example.org/a", status, "/b");
            assert_eq!((next.method, &*next.body), (expected, body.as_bytes()), "{method} {status}");
            assert_eq!(next.headers.contains_key("content-type"), !body.is_empty(), "{method} {status}");
        }
    }

    #[test]
    fn what_changes_something_is_not_carried_to_another_host() {
        for (method, status) in
            [(Method::POST, 307), (Method::POST, 308), (Method::PUT, 302), (Method::DELETE, 301)]
        {
            let led = led(method.clone(), "https://example.org/a", status, "https://api.example.org/a");
            assert!(matches!(led, Next::Elsewhere(_)), "{method} {status}");
        }
        let next = followed(Method::POST, "https://example.org/a", 303, "https://api.example.org/a");
        assert_eq!((next.method, next.body.len()), (Method::GET, 0));
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let kept = |location: &str| {
            let next = followed(Method::GET, "https://example.org/a", 302, location);
            (next.headers.contains_key("authorization"), next.headers.contains_key("x-own"))
        };
        assert_eq!(kept("/b"), (true, true));
        assert_eq!(kept("https://www.example.org/"), (false, true));
        assert_eq!(kept("https://example.org:8443/"), (false, true));
    }
}
