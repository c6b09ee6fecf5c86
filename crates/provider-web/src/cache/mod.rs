//! Pages that were fetched, kept for a while: private, bounded, and only as long as their servers let them be.

mod freshness;
mod store;

use std::time::{Duration, SystemTime};

use http_guard::http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use self::freshness::Keeping;
pub(crate) use self::store::Store;

/// What a page is kept under: its address and all that was asked for with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The key of a GET of `url` with these headers.
    pub(crate) fn new(url: &str, headers: &[(&str, &str)]) -> Self {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        };
        add(url);
        headers.iter().for_each(|(name, value)| {
            add(&name.to_ascii_lowercase());
            add(value);
        });
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> &str {
        &self.0
    }
}

/// A page that is kept: what was said of it, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    pub(crate) body: Vec<u8>,
}

/// What was said of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// What was asked for; compared when it is read back.
    pub(crate) url: String,
    pub(crate) final_url: String,
    pub(crate) status: u16,
    /// The redirects that were followed: status, and where from.
    pub(crate) redirects: Vec<(u16, String)>,
    pub(crate) headers: Vec<(String, String)>,
    /// What was odd about the body, in sentences.
    pub(crate) notes: Vec<String>,
    /// Whether there was more of it than is kept.
    pub(crate) is_cut: bool,
    /// When its server last vouched for it, in milliseconds since 1970.
    pub(crate) checked_ms: u64,
    /// Until when it needs no asking.
    pub(crate) fresh_until_ms: u64,
}

/// The headers that are kept.
const KEPT_HEADERS: [&str; 7] =
    ["content-type", "etag", "last-modified", "cache-control", "expires", "date", "age"];

/// The headers of a response that are worth keeping.
pub(crate) fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let kept = headers.iter().filter(|(name, _)| KEPT_HEADERS.contains(&name.as_str()));
    kept.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned()))).collect()
}

impl Facts {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        millis(now) < self.fresh_until_ms
    }

    /// How long ago its server vouched for it.
    pub(crate) fn age(&self, now: SystemTime) -> Duration {
        Duration::from_millis(millis(now).saturating_sub(self.checked_ms))
    }

    /// The headers that ask whether it has changed; none when nothing tells versions apart.
    pub(crate) fn conditions(&self) -> Vec<(&'static str, &str)> {
        let if_none_match = self.header("etag").map(|tag| ("if-none-match", tag));
        let if_modified_since = self.header("last-modified").map(|date| ("if-modified-since", date));
        if_none_match.into_iter().chain(if_modified_since).collect()
    }

    /// Its server has said that it is still the same, with these headers.
    pub(crate) fn confirmed(&mut self, headers: &HeaderMap, now: SystemTime) {
        let said = kept_headers(headers);
        // How old the first answer was says nothing of this one.
        self.headers.retain(|(known, _)| known != "age" && said.iter().all(|(name, _)| name != known));
        self.headers.extend(said);
        let keeping = Keeping::of(self.status, &self.header_map(), now);
        self.checked_ms = millis(now);
        self.fresh_until_ms = keeping.fresh_until(now).map_or(0, millis);
    }

    fn header_map(&self) -> HeaderMap {
        let parsed = |(name, value): &(String, String)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
        };
        self.headers.iter().filter_map(parsed).collect()
    }
}

/// A time in milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_confirms_it_says_anew() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let mut facts = Facts {
            url: String::new(),
            final_url: String::new(),
            status: 200,
            redirects: Vec::new(),
            headers: vec![("age".into(), "500".into()), ("etag".into(), "\"1\"".into())],
            notes: Vec::new(),
            is_cut: false,
            checked_ms: 0,
            fresh_until_ms: 0,
        };
        let mut headers = HeaderMap::new();
        headers.append("cache-control", HeaderValue::from_static("max-age=600"));
        facts.confirmed(&headers, now);
        // Its first age is over, and what it does not repeat still holds.
        assert_eq!(facts.fresh_until_ms, millis(now + Duration::from_secs(600)));
        assert_eq!(facts.header("etag"), Some("\"1\""));
        headers.append("cache-control", HeaderValue::from_static("no-cache"));
        facts.confirmed(&headers, now);
        assert!(!facts.is_fresh(now), "{facts:?}");
    }

    #[test]
    fn keys_differ_with_everything_that_was_asked() {
        let key = |url, accept| Key::new(url, &[("Accept", accept)]);
        assert_eq!(key("http://a/", "x"), Key::new("http://a/", &[("accept", "x")]));
        assert_ne!(key("http://a/", "x"), key("http://a/", "y"));
        assert_ne!(key("http://a/", "x"), key("http://a/?", "x"));
        assert_ne!(Key::new("ab", &[("c", "")]), Key::new("a", &[("bc", "")]));
        assert_eq!(key("http://a/", "x").file_name().len(), 64);
    }
}
