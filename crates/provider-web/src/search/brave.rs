//! The Brave Search API: `GET ?q=…&count=…` with the key in a header of its own.

use serde_json::Value;
use url::Url;

use super::{Found, Outgoing, Query, SearchError, Service, results, text, with_parameters, with_sites};

/// The service gives no more at once.
const MOST: usize = 20;

pub(super) fn request(service: &Service, query: Query<'_>) -> Outgoing {
    let mut url = service.address.clone();
    if let Ok(mut parsed) = Url::parse(&service.address) {
        let count = query.limit.clamp(1, MOST).to_string();
        with_parameters(&mut parsed, &[("q", &with_sites(query)), ("count", &count)]);
        url = parsed.into();
    }
    let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
    headers.extend(service.key().map(|key| ("x-subscription-token".to_owned(), key.to_owned())));
    Outgoing { url, headers, body: None }
}

pub(super) fn read(answer: &Value) -> Result<Vec<Found>, SearchError> {
    let Some(web) = answer.get("web") else {
        // Where nothing is found the service leaves the list out, and still repeats what it was asked.
        let is_answer = text(answer, "type") == "search" && answer.get("query").is_some_and(Value::is_object);
        return if is_answer {
            Ok(Vec::new())
        } else {
            Err(SearchError::Changed("there is no member named web"))
        };
    };
    let items = web.get("results").and_then(Value::as_array);
    let items = items.ok_or(SearchError::Changed("there is no list named web.results"))?;
    results(items, |item| {
        let published = ["page_age", "age"].iter().find_map(|name| item.get(*name).and_then(Value::as_str));
        Found::new(text(item, "title"), text(item, "url"), text(item, "description"), published)
    })
}
