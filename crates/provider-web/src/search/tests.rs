//! What each service is asked, and what its answers mean.

use serde_json::json;

use super::*;

const KEY: &str = "sk-Canary+/77=x";

fn secret(key: &str) -> Secret {
    serde_json::from_value(json!(key)).unwrap()
}

fn service(backend: Backend, url: Option<&str>) -> Service {
    Service::new(backend, url, Some(secret(KEY)), Mapping::default()).unwrap()
}

fn query(text: &str) -> Query<'_> {
    Query { text, limit: 7, allowed_domains: &[], blocked_domains: &[] }
}

fn header<'a>(outgoing: &'a Outgoing, name: &str) -> Option<&'a str> {
    outgoing.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn read(service: &Service, status: u16, body: &str) -> Result<Answer, SearchError> {
    service.read(Incoming { status, retry_after: None, body: body.as_bytes(), is_whole: true })
}

/// The results as `title | url | snippet | published`.
#[track_caller]
fn check(service: &Service, body: &serde_json::Value, expected: &[&str]) {
    let answer = read(service, 200, &body.to_string()).unwrap();
    let line = |found: &Found| {
        let published = found.published.as_deref().unwrap_or("-");
        format!("{} | {} | {} | {published}", found.title, found.url, found.snippet)
    };
    assert_eq!(answer.found.iter().map(line).collect::<Vec<_>>(), expected);
    assert_eq!(answer.leaks, 0);
}

#[test]
fn searxng() {
    let searxng = service(Backend::Searxng, Some("http://10.0.0.7:8080/searx/"));
    assert_eq!(searxng.host(), "10.0.0.7:8080");
    let outgoing = searxng.request(query("rust & c++"));
    assert_eq!(outgoing.url, "http://10.0.0.7:8080/searx/search?q=rust+%26+c%2B%2B&format=json");
    assert_eq!(header(&outgoing, "authorization"), Some("Bearer sk-Canary+/77=x"));
    let said = service(Backend::Searxng, Some("https://s.example/search?language=en")).request(query("a"));
    assert_eq!(said.url, "https://s.example/search?language=en&q=a&format=json");
    check(
        &searxng,
        &json!({"query": "x", "number_of_results": 0, "unresponsive_engines": [["google", "CAPTCHA"]], "results": [
            {"url": "https://a.example/", "title": "A &amp; B", "content": "Some <b>words</b>", "engine": "x", "publishedDate": "2024-05-06T00:00:00"},
            {"url": "ftp://no.example/", "title": "No"},
            {"url": "https://b.example/x", "title": ""},
        ]}),
        &[
            "A & B | https://a.example/ | Some words | 2024-05-06T00:00:00",
            "https://b.example/x | https://b.example/x |  | -",
        ],
    );
    check(&searxng, &json!({"results": [], "unresponsive_engines": []}), &[]);
    // When no engine answered, nobody said that there is nothing.
    let silent = json!({"results": [], "unresponsive_engines": [["duckduckgo", "CAPTCHA"]]}).to_string();
    assert_eq!(read(&searxng, 200, &silent), Err(SearchError::RateLimited { retry_after: None }));
    let refused = read(&searxng, 403, "<h1>Forbidden</h1>").unwrap_err().to_string();
    assert!(refused.contains("search.formats"), "{refused}");
}

#[test]
fn brave() {
    let brave = service(Backend::Brave, None);
    let outgoing = brave.request(Query {
        allowed_domains: &["*.docs.example".to_owned()],
        blocked_domains: &["spam.example".to_owned()],
        limit: 99,
        ..query("q")
    });
    assert_eq!(
        outgoing.url,
        "https://api.search.brave.com/res/v1/web/search?q=q+site%3Adocs.example+-site%3Aspam.example&count=20"
    );
    assert_eq!(
        (header(&outgoing, "x-subscription-token"), header(&outgoing, "authorization")),
        (Some(KEY), None)
    );
    check(
        &brave,
        &json!({"type": "search", "query": {}, "web": {"type": "search", "results": [
            {"title": "T", "url": "https://t.example/", "description": "<strong>q</strong> is", "page_age": "2023-01-02T03:04:05", "age": "January 2, 2023"}
        ]}}),
        &["T | https://t.example/ | q is | 2023-01-02T03:04:05"],
    );
    check(&brave, &json!({"type": "search", "query": {"original": "q"}}), &[]);
    for changed in [
        json!({"type": "search"}),
        json!({"web": {}}),
        json!({"web": {"results": [{"link": "x"}]}}),
        json!([]),
    ] {
        let error = read(&brave, 200, &changed.to_string()).unwrap_err();
        assert!(matches!(error, SearchError::Changed(_)), "{changed}: {error}");
    }
}

#[test]
fn tavily() {
    let tavily = service(Backend::Tavily, None);
    let outgoing = tavily.request(Query { allowed_domains: &["a.example".to_owned()], ..query("q \"x\"") });
    assert_eq!(outgoing.url, "https://api.tavily.com/search");
    assert_eq!(header(&outgoing, "authorization"), Some("Bearer sk-Canary+/77=x"));
    let body: Value = serde_json::from_str(outgoing.body.as_deref().unwrap()).unwrap();
    assert_eq!(
        body,
        json!({"query": "q \"x\"", "max_results": 7, "search_depth": "basic", "include_domains": ["a.example"]})
    );
    check(
        &tavily,
        &json!({"query": "q", "answer": null, "results": [{"title": "T", "url": "https://t.example/", "content": "c", "score": 0.9, "published_date": "Mon, 01 Jan 2024"}]}),
        &["T | https://t.example/ | c | Mon, 01 Jan 2024"],
    );
    check(&tavily, &json!({"results": []}), &[]);
    assert!(matches!(read(&tavily, 432, "{}"), Err(SearchError::RateLimited { .. })));
}

#[test]
fn generic_by_the_usual_names() {
    let generic = service(Backend::Generic, Some("https://g.example/api?q={query}&n={limit}"));
    let outgoing = generic.request(query("{key} a&b"));
    assert_eq!(outgoing.url, "https://g.example/api?q=%7Bkey%7D+a%26b&n=7");
    assert_eq!(header(&outgoing, "authorization"), Some("Bearer sk-Canary+/77=x"));
    let found = &["N | https://n.example/ | d | 1700000000"];
    let item = json!({"name": "N", "link": "https://n.example/", "description": "d", "date": 1_700_000_000});
    for answer in [json!([item]), json!({"items": [item]}), json!({"web": {"results": [item]}})] {
        check(&generic, &answer, found);
    }
    check(&generic, &json!({"data": []}), &[]);
    assert!(matches!(read(&generic, 200, "{\"answer\": 1}"), Err(SearchError::Changed(_))));
}

#[test]
fn generic_as_it_is_mapped() {
    let mapping: Mapping = serde_json::from_value(json!({
        "results": "response.0.docs", "title": "meta.headline", "url": "meta.where", "snippet": "body",
        "published": "when", "key_header": "X-Api-Key"
    }))
    .unwrap();
    let url = Some("https://g.example/{query}");
    let generic = Service::new(Backend::Generic, url, Some(secret(KEY)), mapping).unwrap();
    assert_eq!(header(&generic.request(query("a")), "x-api-key"), Some(KEY));
    check(
        &generic,
        &json!({"response": [{"docs": [{"meta": {"headline": "H", "where": "https://h.example/"}, "body": "b", "title": "no"}]}]}),
        &["H | https://h.example/ | b | -"],
    );
    assert!(matches!(read(&generic, 200, "{\"results\": []}"), Err(SearchError::Changed(_))));
    let in_url = service(Backend::Generic, Some("https://g.example/?k={key}&q={query}"));
    let outgoing = in_url.request(query("a"));
    assert_eq!(outgoing.url, "https://g.example/?k=sk-Canary%2B%2F77%3Dx&q=a");
    assert_eq!(outgoing.headers.len(), 1);
}

#[test]
fn what_makes_no_service_is_refused_by_attribute() {
    let refused = |backend, url, key: Option<&str>| {
        Service::new(backend, url, key.map(secret), Mapping::default()).unwrap_err().to_string()
    };
    let messages = [
        refused(Backend::Searxng, None, None),
        refused(Backend::Brave, None, None),
        refused(Backend::Tavily, None, Some(" ")),
        refused(Backend::Generic, Some("https://g.example/"), None),
        refused(Backend::Searxng, Some("search.example"), None),
        refused(Backend::Searxng, Some("file:///etc"), None),
        refused(Backend::Searxng, Some("https://u:p@s.example"), None),
        refused(Backend::Brave, None, Some("a\nb")),
    ];
    assert_eq!(
        messages,
        [
            "search_url: is needed for search_backend searxng: the address of the instance, such as https://search.example",
            "search_api_key: is needed for search_backend brave",
            "search_api_key: is needed for search_backend tavily",
            "search_url: has no {query} for the words to go",
            "search_url: is no web address; wanted http:// or https://",
            "search_url: is no web address; wanted http:// or https://",
            "search_url: has a password in it; use search_api_key",
            "search_api_key: has characters that cannot stand in a header",
        ]
    );
}

#[test]
fn no_results_are_not_mistaken_for_failures_nor_the_other_way_round() {
    let service = service(Backend::Searxng, Some("https://s.example"));
    let challenge = "<!DOCTYPE html><title>x</title><form id=\"challenge-form\">Are you a robot?</form>";
    let slow = Err(SearchError::RateLimited { retry_after: None });
    for (status, body) in [
        (429, ""),
        (429, "{}"),
        (202, challenge),
        (200, challenge),
        (403, challenge),
        (202, "<html>"),
        (503, challenge),
    ] {
        assert_eq!(read(&service, status, body), slow, "{status} {body}");
    }
    let later = Incoming { status: 503, retry_after: Some(30), body: b"", is_whole: true };
    assert_eq!(
        service.read(later).unwrap_err().to_string(),
        "the search service asks to slow down; try again in 30 seconds"
    );
    for (status, body) in [
        (200, "<html>results</html>"),
        (200, ""),
        (200, "null"),
        (200, "{\"results\": {}}"),
        (302, ""),
        (404, "x"),
    ] {
        assert!(matches!(read(&service, status, body), Err(SearchError::Changed(_))), "{status} {body}");
    }
    assert_eq!(read(&service, 500, "{\"results\": []}"), Err(SearchError::Unavailable(500)));
    assert_eq!(read(&service, 422, ""), Err(SearchError::Query(422)));
    let cut = Incoming { status: 200, retry_after: None, body: b"{\"results\": [", is_whole: false };
    assert_eq!(service.read(cut), Err(SearchError::Incomplete));
}

#[test]
fn a_result_that_repeats_the_key_is_left_out_and_errors_are_our_own_words() {
    let service = service(Backend::Brave, None);
    let base64 = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(format!("Bearer {KEY}"))
    };
    let item = |title: &str, url: &str, text: &str| json!({"title": title, "url": url, "description": text});
    let answer = json!({"web": {"results": [
        item(KEY, "https://a.example/", ""),
        item("t", "https://b.example/?k=sk-Canary%2B%2F77%3Dx", ""),
        item("t", "https://c.example/", &format!("auth {base64}")),
        item("t", "https://d.example/", "\\u0073k-Canary+\\/77=x"),
        item("fine", "https://e.example/", "nothing"),
    ]}});
    let answer = read(&service, 200, &answer.to_string()).unwrap();
    assert_eq!((answer.leaks, answer.found.len(), answer.found[0].title.as_str()), (4, 1, "fine"));
    for status in [200, 202, 302, 400, 401, 403, 404, 422, 429, 500, 503] {
        let error = read(&service, status, &format!("<p>{KEY} {base64}")).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("Canary") && !shown.contains(&base64[..8]), "{status}: {shown}");
    }
    assert!(!format!("{service:?}").contains("Canary"));
}
