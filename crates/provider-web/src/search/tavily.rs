//! The Tavily API: a POST of JSON.

use serde_json::{Value, json};

use super::{Found, Outgoing, Query, SearchError, Service, results, text};

/// The service gives no more at once.
const MOST: usize = 20;

pub(super) fn request(service: &Service, query: Query<'_>) -> Outgoing {
    let plain = |domains: &[String]| -> Vec<String> {
        domains.iter().map(|domain| domain.trim().trim_start_matches("*.").to_owned()).collect()
    };
    let mut body =
        json!({"query": query.text, "max_results": query.limit.clamp(1, MOST), "search_depth": "basic"});
    for (name, domains) in
        [("include_domains", query.allowed_domains), ("exclude_domains", query.blocked_domains)]
    {
        if !domains.is_empty() {
            body[name] = json!(plain(domains));
        }
    }
    let mut headers = vec![
        ("accept".to_owned(), "application/json".to_owned()),
        ("content-type".to_owned(), "application/json".to_owned()),
    ];
    headers.extend(service.bearer());
    Outgoing { url: service.address.clone(), headers, body: Some(body.to_string()) }
}

pub(super) fn read(answer: &Value) -> Result<Vec<Found>, SearchError> {
    let items = answer.get("results").and_then(Value::as_array);
    let items = items.ok_or(SearchError::Changed("there is no list named results"))?;
    results(items, |item| {
        let published = item.get("published_date").and_then(Value::as_str);
        Found::new(text(item, "title"), text(item, "url"), text(item, "content"), published)
    })
}
