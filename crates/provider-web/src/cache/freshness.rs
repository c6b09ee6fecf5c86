//! How long a response may be kept (RFC 9111), for a cache that one person uses.

use std::time::{Duration, SystemTime};

use http_guard::http::HeaderMap;
use http_guard::http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, LAST_MODIFIED, PRAGMA, VARY};

/// How long a page holds whose server says nothing: long enough to read on in it, short enough for one that changes.
const UNSAID: Duration = Duration::from_secs(300);
/// No page holds longer unasked.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// Whether and how long a response is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Not at all.
    Never,
    /// For so long without asking; zero asks every time whether it has changed.
    For(Duration),
}

impl Keeping {
    /// What a response's status and headers allow.
    pub(crate) fn of(status: u16, headers: &HeaderMap, now: SystemTime) -> Self {
        let said = Said::of(headers);
        let is_final = matches!(status, 200 | 203 | 404 | 410);
        if !is_final || said.no_store || said.varies_with_everything {
            return Self::Never;
        }
        if said.no_cache {
            return Self::For(Duration::ZERO);
        }
        let lifetime =
            said.max_age.or_else(|| lifetime_by_date(headers, now)).unwrap_or_else(|| unsaid(headers, now));
        Self::For(lifetime.saturating_sub(said.age).min(LONGEST))
    }

    /// Until when it holds; `None` when it is not kept.
    pub(crate) fn fresh_until(self, now: SystemTime) -> Option<SystemTime> {
        match self {
            Self::Never => None,
            Self::For(time) => Some(now + time),
        }
    }
}

#[derive(Debug, Default)]
struct Said {
    no_store: bool,
    no_cache: bool,
    varies_with_everything: bool,
    max_age: Option<Duration>,
    age: Duration,
}

impl Said {
    fn of(headers: &HeaderMap) -> Self {
        let mut said = Self::default();
        let directives = texts(headers, CACHE_CONTROL).flat_map(|value| value.split(','));
        for directive in directives.map(|directive| directive.trim().to_ascii_lowercase()) {
            match directive.split_once('=') {
                // With the names of headers it concerns those alone; kept is none of them.
                None if directive == "no-store" => said.no_store = true,
                None if directive == "no-cache" => said.no_cache = true,
                Some(("max-age", seconds)) => {
                    // What is no number is stale.
                    let seconds = seconds.trim_matches('"').parse().unwrap_or(0);
                    said.max_age = Some(Duration::from_secs(seconds));
                }
                _ => {}
            }
        }
        let has_control = headers.contains_key(CACHE_CONTROL);
        said.no_cache |=
            !has_control && texts(headers, PRAGMA).any(|value| value.eq_ignore_ascii_case("no-cache"));
        said.varies_with_everything =
            texts(headers, VARY).any(|value| value.split(',').any(|name| name.trim() == "*"));
        let age = texts(headers, AGE).next().and_then(|age| age.trim().parse().ok());
        said.age = Duration::from_secs(age.unwrap_or(0));
        said
    }
}

fn texts(headers: &HeaderMap, name: http_guard::http::HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

fn date(headers: &HeaderMap, name: http_guard::http::HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(texts(headers, name).next()?.trim()).ok()
}

/// What `Expires` allows; a date that is none has passed.
fn lifetime_by_date(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    headers.get(EXPIRES)?;
    let Some(expires) = date(headers, EXPIRES) else { return Some(Duration::ZERO) };
    let sent = date(headers, DATE).unwrap_or(now);
    Some(expires.duration_since(sent).unwrap_or_default())
}

/// A tenth of the time for which it has not changed.
fn unsaid(headers: &HeaderMap, now: SystemTime) -> Duration {
    let unchanged = date(headers, LAST_MODIFIED).and_then(|changed| now.duration_since(changed).ok());
    unchanged.map_or(UNSAID, |unchanged| (unchanged / 10).min(UNSAID))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    #[track_caller]
    fn check(headers: &[(&str, &str)], expected: Keeping) {
        let map =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        assert_eq!(Keeping::of(200, &map, httpdate::parse_http_date(NOW).unwrap()), expected, "{headers:?}");
    }

    const fn seconds(seconds: u64) -> Keeping {
        Keeping::For(Duration::from_secs(seconds))
    }

    #[test]
    fn what_is_said_is_done() {
        check(&[("cache-control", "no-store")], Keeping::Never);
        check(&[("cache-control", "public, No-Store , max-age=60")], Keeping::Never);
        check(&[("cache-control", "no-cache, max-age=60")], seconds(0));
        check(&[("cache-control", "max-age=60, private")], seconds(60));
        check(&[("cache-control", "max-age=60"), ("age", "50")], seconds(10));
        check(&[("cache-control", "max-age=60"), ("age", "70")], seconds(0));
        check(&[("cache-control", "max-age=soon")], seconds(0));
        check(&[("cache-control", "max-age=999999999")], Keeping::For(LONGEST));
        check(&[("vary", "accept, *")], Keeping::Never);
        check(&[("pragma", "no-cache")], seconds(0));
    }

    #[test]
    fn dates_are_understood() {
        check(&[("expires", "Sun, 06 Nov 1994 08:50:37 GMT")], seconds(60));
        check(
            &[("expires", "Sun, 06 Nov 1994 08:50:37 GMT"), ("date", "Sun, 06 Nov 1994 08:50:07 GMT")],
            seconds(30),
        );
        check(&[("expires", "0")], seconds(0));
        check(&[("expires", "0"), ("cache-control", "max-age=60")], seconds(60));
        check(&[("last-modified", "Sun, 06 Nov 1994 08:39:37 GMT")], seconds(60));
        check(&[("last-modified", "Sun, 06 Nov 1984 08:39:37 GMT")], Keeping::For(UNSAID));
        check(&[], Keeping::For(UNSAID));
    }

    #[test]
    fn only_final_answers_are_kept() {
        let now = SystemTime::now();
        for status in [204, 206, 301, 304, 403, 429, 500, 503] {
            assert_eq!(Keeping::of(status, &HeaderMap::new(), now), Keeping::Never, "{status}");
        }
        assert_eq!(Keeping::of(404, &HeaderMap::new(), now), Keeping::For(UNSAID));
    }
}
