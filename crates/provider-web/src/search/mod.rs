//! Searches: what a search service is asked, and what its answer means. Pure: nothing here opens a connection.
//!
//! A [`Service`] is one configured search service. [`Service::request`] says what to send, [`Service::read`] what came
//! back. Two rules hold for every kind of service: that there are no results is believed only of a service that says
//! so in its own format, and nothing a service sends becomes part of an error, since it may repeat the key.

mod brave;
mod failure;
mod generic;
mod leak;
mod searxng;
mod tavily;
#[cfg(test)]
mod tests;

use provider_core::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

pub use self::failure::SearchError;
pub use self::generic::Mapping;
use self::leak::Leak;
use crate::text::html::words;

/// What kind of service answers searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// An instance of SearXNG, with the format json enabled.
    Searxng,
    /// The Brave Search API.
    Brave,
    /// The Tavily API.
    Tavily,
    /// Any service that answers in JSON.
    Generic,
}

impl Backend {
    /// The name in configuration and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Searxng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Generic => "generic",
        }
    }

    /// Where the service is, if it is always in the same place.
    fn home(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Self::Tavily => Some("https://api.tavily.com/search"),
            Self::Searxng | Self::Generic => None,
        }
    }

    fn needs_key(self) -> bool {
        matches!(self, Self::Brave | Self::Tavily)
    }
}

/// Why a configuration makes no service: the attribute, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{attribute}: {problem}")]
pub struct ServiceError {
    /// The attribute's name.
    pub attribute: &'static str,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// One configured search service.
#[derive(Clone, Debug)]
pub struct Service {
    backend: Backend,
    /// Checked to be a web address; for the generic backend with its placeholders.
    address: String,
    key: Option<Secret>,
    mapping: Mapping,
}

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The words.
    pub text: &'a str,
    /// How many results are wanted.
    pub limit: usize,
    /// Only results of these domains; all where it is empty.
    pub allowed_domains: &'a [String],
    /// No results of these domains.
    pub blocked_domains: &'a [String],
}

/// A request that asks a service. It holds the key, so it cannot be printed.
#[derive(Clone)]
pub struct Outgoing {
    /// Where to.
    pub url: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The JSON to post; without one it is a GET.
    pub body: Option<String>,
}

/// The answer of a service.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The status, after redirects that were followed.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: &'a [u8],
    /// Whether the body came to its end.
    pub is_whole: bool,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The page's title, as plain text.
    pub title: String,
    /// The page's address.
    pub url: Url,
    /// A piece of the page, as plain text.
    pub snippet: String,
    /// When it was published, as the service says it.
    pub published: Option<String>,
}

/// What a service answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What was found, best first.
    pub found: Vec<Found>,
    /// Results that were left out because they repeat the key.
    pub leaks: usize,
}

impl Service {
    /// A service from its configuration.
    ///
    /// # Errors
    /// The first attribute that cannot be meant.
    pub fn new(
        backend: Backend,
        url: Option<&str>,
        key: Option<Secret>,
        mapping: Mapping,
    ) -> Result<Self, ServiceError> {
        let wrong = |attribute, problem: String| ServiceError { attribute, problem };
        let given = url.map(str::trim).filter(|url| !url.is_empty()).or(backend.home());
        let Some(address) = given else {
            let example = match backend {
                Backend::Searxng => "the address of the instance, such as https://search.example",
                _ => "an address with {query} in it, such as https://search.example/api?q={query}&n={limit}",
            };
            return Err(wrong(
                "search_url",
                format!("is needed for search_backend {}: {example}", backend.name()),
            ));
        };
        if key.as_ref().is_some_and(|key| key.reveal().bytes().any(|byte| !(0x20..0x7f).contains(&byte))) {
            return Err(wrong("search_api_key", "has characters that cannot stand in a header".to_owned()));
        }
        if backend.needs_key() && key.as_ref().is_none_or(|key| key.reveal().trim().is_empty()) {
            return Err(wrong("search_api_key", format!("is needed for search_backend {}", backend.name())));
        }
        if backend == Backend::Generic && !address.contains("{query}") {
            return Err(wrong("search_url", "has no {query} for the words to go".to_owned()));
        }
        let service = Self { backend, address: address.to_owned(), key, mapping };
        let url = Url::parse(&service.probe()).ok();
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.host().is_some();
        let Some(url) = url.filter(is_web) else {
            return Err(wrong("search_url", "is no web address; wanted http:// or https://".to_owned()));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("search_url", "has a password in it; use search_api_key".to_owned()));
        }
        Ok(service)
    }

    /// The address with something harmless in its placeholders.
    fn probe(&self) -> String {
        ["{query}", "{limit}", "{key}"].iter().fold(self.address.clone(), |url, name| url.replace(name, "1"))
    }

    /// What kind of service it is.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The host that is asked, with its port: the only one there is reason to reach.
    pub fn host(&self) -> String {
        let url = Url::parse(&self.probe()).ok();
        let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
        host.map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
    }

    /// What to send.
    pub fn request(&self, query: Query<'_>) -> Outgoing {
        match self.backend {
            Backend::Searxng => searxng::request(self, query),
            Backend::Brave => brave::request(self, query),
            Backend::Tavily => tavily::request(self, query),
            Backend::Generic => generic::request(self, query),
        }
    }

    /// What came back.
    ///
    /// # Errors
    /// Why there are no results, in words that are all ours.
    pub fn read(&self, incoming: Incoming<'_>) -> Result<Answer, SearchError> {
        failure::of_status(self.backend, incoming)?;
        let value: Value = match serde_json::from_slice(incoming.body) {
            Ok(value) => value,
            Err(_) => return Err(failure::of_text(incoming)),
        };
        let found = match self.backend {
            Backend::Searxng => searxng::read(&value),
            Backend::Brave => brave::read(&value),
            Backend::Tavily => tavily::read(&value),
            Backend::Generic => generic::read(&self.mapping, &value),
        }?;
        let Some(leak) = self.key.as_ref().and_then(Leak::of) else { return Ok(Answer { found, leaks: 0 }) };
        let total = found.len();
        let found: Vec<Found> = found.into_iter().filter(|found| !found.repeats(&leak)).collect();
        Ok(Answer { leaks: total - found.len(), found })
    }

    fn key(&self) -> Option<&str> {
        self.key.as_ref().map(Secret::reveal).filter(|key| !key.is_empty())
    }

    /// The header with the key that most services want.
    fn bearer(&self) -> Option<(String, String)> {
        self.key().map(|key| ("authorization".to_owned(), format!("Bearer {key}")))
    }
}

impl Found {
    /// A result from what a service sent; `None` for one that leads nowhere.
    fn new(title: &str, url: &str, snippet: &str, published: Option<&str>) -> Option<Self> {
        let url = Url::parse(url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let title = words(title, LONGEST_TITLE);
        let title = if title.is_empty() { url.as_str().to_owned() } else { title };
        let published =
            published.map(|published| words(published, LONGEST_DATE)).filter(|date| !date.is_empty());
        Some(Self { title, snippet: words(snippet, LONGEST_SNIPPET), published, url })
    }

    fn repeats(&self, leak: &Leak) -> bool {
        [self.title.as_str(), self.url.as_str(), &self.snippet]
            .into_iter()
            .chain(self.published.as_deref())
            .any(|text| leak.is_in(text))
    }
}

/// Longer titles are cut, in characters.
const LONGEST_TITLE: usize = 300;
/// Longer snippets are cut, in characters.
const LONGEST_SNIPPET: usize = 1_000;
/// Longer dates are none.
const LONGEST_DATE: usize = 60;

/// The results among `items`; items that lead nowhere are left out, unless that leaves nothing of many.
fn results<'a>(
    items: &'a [Value],
    read: impl Fn(&'a Value) -> Option<Found>,
) -> Result<Vec<Found>, SearchError> {
    let found: Vec<Found> = items.iter().filter_map(read).collect();
    match found.is_empty() && !items.is_empty() {
        true => Err(SearchError::Changed("none of its results has an address where addresses used to be")),
        false => Ok(found),
    }
}

/// A member that is text.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The words with the domains as operators, which most search engines know.
fn with_sites(query: Query<'_>) -> String {
    let site = |domain: &String| format!("site:{}", domain.trim().trim_start_matches("*."));
    let mut text = query.text.to_owned();
    match query.allowed_domains {
        [] => {}
        [one] => text.push_str(&format!(" {}", site(one))),
        many => text.push_str(&format!(" ({})", many.iter().map(site).collect::<Vec<_>>().join(" OR "))),
    }
    query.blocked_domains.iter().for_each(|domain| text.push_str(&format!(" -{}", site(domain))));
    text
}

/// Adds parameters to a URL.
fn with_parameters(url: &mut Url, parameters: &[(&str, &str)]) {
    let mut pairs = url.query_pairs_mut();
    parameters.iter().for_each(|(name, value)| {
        pairs.append_pair(name, value);
    });
}
