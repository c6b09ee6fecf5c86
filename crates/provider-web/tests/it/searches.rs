//! Searches against servers that speak as each service does.

use http_guard::testing::{Reply, Server};
use serde_json::{Value, json};

use super::web;

const KEY: &str = "sk-Canary+/77=x";

fn json_reply(body: &Value) -> Reply {
    Reply::new(200, &[("content-type", "application/json")], body.to_string())
}

async fn search(config: Value, arguments: Value) -> provider_core::testing::Outcome {
    web(config).await.call("web_search", arguments).await
}

#[tokio::test]
async fn without_a_service_the_operator_is_named() {
    let error = search(json!({}), json!({"query": "x"})).await.error();
    assert_eq!((error.category.as_str(), error.code.as_str()), ("execution_failed", "not_configured"));
    assert!(error.message.contains("search_backend"), "{}", error.message);
}

#[tokio::test]
async fn each_service_is_asked_in_its_own_way() {
    let item = json!({"title": "T", "url": "https://t.example/", "content": "c", "description": "c"});
    for (backend, path, answer) in [
        ("searxng", "/", json!({"results": [item]})),
        ("brave", "/res", json!({"web": {"results": [item]}})),
        ("tavily", "/search", json!({"results": [item]})),
        ("generic", "/?q={query}", json!({"items": [item]})),
    ] {
        let server = Server::start(move |_| json_reply(&answer)).await;
        // Nothing but the service's own host may be private here.
        let config = json!({
            "search_backend": backend, "search_url": server.url(path), "search_api_key": KEY, "allow_private_hosts": []
        });
        let outcome = search(config, json!({"query": "some words"})).await;
        let payload = outcome.payload();
        let expected = json!([{"rank": 1, "title": "T", "url": "https://t.example/", "snippet": "c"}]);
        assert_eq!((&payload["results"], &payload["backend"]), (&expected, &json!(backend)));
        let sent = server.requests();
        let [sent] = sent.as_slice() else { panic!("{} requests", sent.len()) };
        let header = if backend == "brave" { "x-subscription-token" } else { "authorization" };
        assert!(sent.header(header).is_some_and(|value| value.ends_with(KEY)), "{backend}");
    }
}

#[tokio::test]
async fn results_are_of_the_domains_that_were_asked_for() {
    let urls = [
        "https://docs.example/1",
        "https://docs.example.evil/2",
        "https://api.docs.example/3",
        "https://old.docs.example/4",
    ];
    let items: Vec<Value> = urls.iter().map(|url| json!({"title": "t", "url": url})).collect();
    let server = Server::start(move |_| json_reply(&json!({"results": items}))).await;
    let config = json!({"search_backend": "searxng", "search_url": server.url("/")});
    let arguments = json!({"query": "x", "allowed_domains": ["docs.example"], "blocked_domains": ["old.docs.example"], "limit": 5});
    let outcome = search(config, arguments).await;
    let found: Vec<&Value> =
        outcome.payload()["results"].as_array().unwrap().iter().map(|told| &told["url"]).collect();
    assert_eq!(found, ["https://docs.example/1", "https://api.docs.example/3"]);
}

#[tokio::test]
async fn failures_have_names() {
    let page = "<html><form id=challenge-form>captcha</form></html>";
    for (reply, code) in [
        (Reply::new(429, &[("retry-after", "7")], ""), "rate_limited"),
        (Reply::new(202, &[("content-type", "text/html")], page), "rate_limited"),
        (Reply::new(200, &[("content-type", "text/html")], page), "rate_limited"),
        (Reply::new(200, &[], "<html>new layout</html>"), "backend_changed"),
        (Reply::new(200, &[], "{\"hits\": 1}"), "backend_changed"),
        (Reply::new(401, &[], "{}"), "not_configured"),
    ] {
        let server = Server::start(move |_| reply.clone()).await;
        let config = json!({"search_backend": "searxng", "search_url": server.url("/")});
        assert_eq!(search(config, json!({"query": "x"})).await.error().code, code);
    }
}

/// A service that repeats the key in every place and writing gets it into nothing that leaves the provider.
#[tokio::test]
async fn the_key_appears_nowhere() {
    use base64::Engine as _;
    let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD.encode(KEY);
    let escaped: String = KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let writings = [KEY.to_owned(), percent, base64, escaped];
    for writing in &writings {
        for status in [200, 302, 401, 429, 500] {
            let (echo, item) =
                (writing.clone(), json!({"title": writing, "url": "https://t.example/", "content": writing}));
            let body = if status == 200 {
                json!({"results": [item]}).to_string()
            } else {
                format!("<p>{writing}</p>")
            };
            let server = Server::start(move |_| {
                let location = format!("https://elsewhere.example/{}", echo.replace('\\', "%5C"));
                Reply::new(
                    status,
                    &[("x-echo", &echo), ("location", &location), ("retry-after", &echo)],
                    &body,
                )
            })
            .await;
            let state = tempfile::TempDir::new().unwrap();
            let config = json!({
                "search_backend": "tavily", "search_url": server.url("/search"), "search_api_key": KEY,
                "state_dir": state.path(), "cache_bytes": 1_000_000
            });
            let outcome = search(config, json!({"query": "x"})).await;
            let told = format!("{:?}", outcome.events);
            let files = kept_files(state.path());
            for writing in &writings {
                let seen = [
                    told.contains(writing.as_str()),
                    told.contains(&writing.replace('\\', "\\\\")),
                    files.contains(writing.as_str()),
                ];
                assert_eq!(seen, [false; 3], "{status} {writing}: {told}");
            }
        }
    }
}

/// All that is in the files below a folder.
pub(crate) fn kept_files(folder: &std::path::Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            all.push_str(&kept_files(&path));
        } else {
            all.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
    all
}
