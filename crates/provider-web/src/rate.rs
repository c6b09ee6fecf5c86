//! How often a server is asked: at a measured pace, and not at all while it asks to be left alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http_guard::http::HeaderMap;
use http_guard::http::header::RETRY_AFTER;
use tokio::time::Instant;

/// As many requests at once are nothing unusual.
const BURST: f64 = 40.0;
/// And after those, this many a second.
const PER_SECOND: f64 = 10.0;
/// A turn is waited for this long; beyond it the caller is told.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Nobody is left alone for longer, whatever it asks for.
const LONGEST_REST: Duration = Duration::from_secs(3_600);
/// What a server gets that says "too many requests" and no more.
const SHORT_REST: Duration = Duration::from_secs(1);
/// Servers that were not asked for so long are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
const MOST_KNOWN: usize = 1_024;

/// What is known of each server, by origin.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<String, Rate>>);

#[derive(Debug)]
struct Rate {
    tokens: f64,
    counted: Instant,
    rests_until: Option<Instant>,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { tokens: BURST, counted: now, rests_until: None }
    }

    /// How long until the next request may be sent, which is then taken as sent; or how long to stay away.
    fn take(&mut self, now: Instant) -> Result<Duration, Duration> {
        if let Some(rest) =
            self.rests_until.map(|until| until.saturating_duration_since(now)).filter(|rest| !rest.is_zero())
        {
            return Err(rest);
        }
        let earned = now.saturating_duration_since(self.counted).as_secs_f64() * PER_SECOND;
        self.tokens = (self.tokens + earned).min(BURST);
        self.counted = now;
        let wait = Duration::from_secs_f64((1.0 - self.tokens).max(0.0) / PER_SECOND);
        if wait > LONGEST_WAIT {
            return Err(wait);
        }
        self.tokens -= 1.0;
        Ok(wait)
    }

    fn is_idle(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.counted) > FORGOTTEN_AFTER
            && self.rests_until.is_none_or(|until| until < now)
    }
}

impl Rates {
    /// Waits for a turn.
    ///
    /// # Errors
    /// How long the server must be left alone, where that is too long to wait.
    pub(crate) async fn turn(&self, origin: &str) -> Result<(), Duration> {
        let wait = self.with(origin, Rate::take)?;
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Takes note of what a server answered. Says how long it wants to be left alone.
    pub(crate) fn heard(&self, origin: &str, status: u16, headers: &HeaderMap) -> Option<Duration> {
        let asked = retry_after(headers, SystemTime::now());
        let rest = match status {
            429 => Some(asked.unwrap_or(SHORT_REST)),
            503 => asked,
            _ => None,
        };
        if let Some(rest) = rest {
            self.with(origin, |rate, now| rate.rests_until = Some(now + rest.min(LONGEST_REST)));
        }
        asked
    }

    fn with<T>(&self, origin: &str, work: impl FnOnce(&mut Rate, Instant) -> T) -> T {
        let now = Instant::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.retain(|_, rate| !rate.is_idle(now));
        }
        work(known.entry(origin.to_owned()).or_insert_with(|| Rate::new(now)), now)
    }
}

/// What `Retry-After` asks for: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match value.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())])
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |value: &str| retry_after(&asking(value), now);
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:07 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_asks_for_rest_is_left_alone_until_then() {
        let rates = Rates::default();
        assert_eq!(rates.turn("http://a.example").await, Ok(()));
        assert_eq!(rates.heard("http://a.example", 429, &asking("30")), Some(Duration::from_secs(30)));
        assert_eq!(rates.turn("http://a.example").await, Err(Duration::from_secs(30)));
        assert_eq!(rates.turn("http://b.example").await, Ok(()));
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(rates.turn("http://a.example").await, Ok(()));
        // Other answers may carry the header too, and mean something else by it.
        rates.heard("http://a.example", 301, &asking("30"));
        assert_eq!(rates.turn("http://a.example").await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_come_at_a_measured_pace() {
        let rates = Rates::default();
        let begun = Instant::now();
        for _ in 0..60 {
            assert_eq!(rates.turn("http://a.example").await, Ok(()));
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_950) && took < Duration::from_millis(2_100), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_too_long_is_told() {
        let rates = Rates::default();
        let turns = (0..200).map(|_| rates.turn("http://a.example"));
        let turns = futures_util::future::join_all(turns).await;
        let (kept, told): (Vec<_>, Vec<_>) = turns.into_iter().partition(Result::is_ok);
        assert_eq!((kept.len(), told.len()), (140, 60));
    }
}
