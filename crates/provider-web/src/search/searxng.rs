//! SearXNG: `GET /search?q=…&format=json`.

use serde_json::Value;
use url::Url;

use super::{Found, Outgoing, Query, SearchError, Service, results, text, with_parameters, with_sites};

pub(super) fn request(service: &Service, query: Query<'_>) -> Outgoing {
    let mut url = service.address.clone();
    // The address was checked; what could not be parsed would be refused by whoever sends it.
    if let Ok(mut parsed) = Url::parse(&service.address) {
        if !parsed.path().trim_end_matches('/').ends_with("/search") {
            parsed.set_path(&format!("{}/search", parsed.path().trim_end_matches('/')));
        }
        with_parameters(&mut parsed, &[("q", &with_sites(query)), ("format", "json")]);
        url = parsed.into();
    }
    let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
    headers.extend(service.bearer());
    Outgoing { url, headers, body: None }
}

pub(super) fn read(answer: &Value) -> Result<Vec<Found>, SearchError> {
    let items = answer.get("results").and_then(Value::as_array);
    let items = items.ok_or(SearchError::Changed("there is no list named results"))?;
    let silent = answer.get("unresponsive_engines").and_then(Value::as_array);
    // Nobody can say that there is nothing when nobody answered.
    if items.is_empty() && silent.is_some_and(|engines| !engines.is_empty()) {
        return Err(SearchError::RateLimited { retry_after: None });
    }
    results(items, |item| {
        let published = item.get("publishedDate").and_then(Value::as_str);
        Found::new(text(item, "title"), text(item, "url"), text(item, "content"), published)
    })
}
