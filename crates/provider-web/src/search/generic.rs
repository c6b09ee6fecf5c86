//! Any service that answers a GET in JSON: what is where in the answer is configured, or found by the usual names.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use super::{Found, Outgoing, Query, SearchError, Service, results};

/// What is where in the answer of a generic search service. Paths are member names with dots between them, and
/// numbers for places in lists: data.items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Mapping {
    /// The path of the list of results. Default: results, items, organic, hits, data or web.results, or the whole answer.
    pub results: Option<String>,
    /// The path of the title in a result. Default: title or name.
    pub title: Option<String>,
    /// The path of the address in a result. Default: url, link or href.
    pub url: Option<String>,
    /// The path of the text in a result. Default: snippet, content, description, summary or text.
    pub snippet: Option<String>,
    /// The path of the date in a result. Default: published, published_date, publishedDate, page_age or date.
    pub published: Option<String>,
    /// The header that the key is sent in. Default: Authorization, after the word Bearer. A {key} in search_url puts
    /// the key there instead.
    pub key_header: Option<String>,
}

pub(super) fn request(service: &Service, query: Query<'_>) -> Outgoing {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let key = service.key();
    let key_in_url = service.address.contains("{key}");
    let url = filled(&service.address, |name| match name {
        "query" => Some(encoded(query.text)),
        "limit" => Some(query.limit.to_string()),
        "key" => Some(key.map(encoded).unwrap_or_default()),
        _ => None,
    });
    let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
    match (&service.mapping.key_header, key) {
        _ if key_in_url => {}
        (Some(name), Some(key)) => headers.push((name.trim().to_ascii_lowercase(), key.to_owned())),
        (None, _) => headers.extend(service.bearer()),
        (Some(_), None) => {}
    }
    Outgoing { url, headers, body: None }
}

/// The text with its placeholders filled, each once: what is put in is not looked at again.
fn filled(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let named = after.split_once('}').and_then(|(name, after)| Some((value(name)?, after)));
        match named {
            Some((value, after)) => {
                out.push_str(&value);
                rest = after;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

pub(super) fn read(mapping: &Mapping, answer: &Value) -> Result<Vec<Found>, SearchError> {
    const LISTS: [&str; 6] = ["results", "items", "organic", "hits", "data", "web.results"];
    let items = match &mapping.results {
        Some(path) => at(answer, path).and_then(Value::as_array),
        None if answer.is_array() => answer.as_array(),
        None => LISTS.iter().find_map(|path| at(answer, path).and_then(Value::as_array)),
    };
    let items = items.ok_or(SearchError::Changed(
        "there is no list where its results should be (search_mapping says where that is)",
    ))?;
    results(items, |item| {
        let field = |path: &Option<String>, names: &[&str]| -> String {
            let found = match path {
                Some(path) => at(item, path).and_then(scalar),
                None => names.iter().find_map(|name| at(item, name).and_then(scalar)),
            };
            found.unwrap_or_default()
        };
        let published =
            field(&mapping.published, &["published", "published_date", "publishedDate", "page_age", "date"]);
        Found::new(
            &field(&mapping.title, &["title", "name"]),
            &field(&mapping.url, &["url", "link", "href"]),
            &field(&mapping.snippet, &["snippet", "content", "description", "summary", "text"]),
            Some(published.as_str()).filter(|published| !published.is_empty()),
        )
    })
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
