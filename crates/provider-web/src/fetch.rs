//! A page: from the cache where it may come from there, else from its server.

use std::time::{Duration, SystemTime};

use http_guard::{BodyEnd, CheckedUrl, Limits, Request, Response};
use provider_core::{Code, ToolError};

use crate::cache::{Entry, Facts, Keeping, Key, kept_headers, millis};
use crate::error::{failed, rate_limited, refused, stopped_by};
use crate::provider::Web;

/// How a page is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// The kinds of content that are understood.
    pub(crate) accept: &'a str,
    /// From the server, whatever is kept.
    pub(crate) is_fresh: bool,
    /// The next part of what was read before: it must be the same page, even if it may have changed.
    pub(crate) is_continued: bool,
    /// How long it may take.
    pub(crate) limits: Limits,
}

/// How long a page stays the same to one who reads on in it.
pub(crate) const READ_ON_FOR: Duration = Duration::from_secs(900);

/// A page and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) final_url: CheckedUrl,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    /// The redirects that were followed: status, and where from.
    pub(crate) redirects: Vec<(u16, String)>,
    pub(crate) redirect_to: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
    /// Whether there was more of it.
    pub(crate) is_cut: bool,
    pub(crate) notes: Vec<String>,
    /// How long ago its server vouched for it, where it is from the cache.
    pub(crate) cached: Option<Duration>,
}

impl Web {
    /// The page at `url`.
    pub(crate) async fn page(&self, url: &CheckedUrl, wish: Wish<'_>) -> Result<Page, ToolError> {
        self.guard.policy().admit(url).map_err(|refusal| refused(&refusal))?;
        let key = Key::new(url.as_str(), &[("accept", wish.accept), ("user-agent", &self.user_agent)]);
        let kept = if wish.is_fresh { None } else { self.kept(&key, url).await };
        if let Some(page) =
            kept.as_ref().filter(|entry| may_serve(&entry.facts, wish)).and_then(|entry| self.served(entry))
        {
            return Ok(page);
        }
        self.may_ask(url).await?;
        let conditions = kept.as_ref().map(|entry| entry.facts.conditions()).unwrap_or_default();
        let request = request(url, wish, &conditions).map_err(|error| failed(&error))?;
        let sent = self.guard.send_asking(request, |to| async move { self.may_ask(&to).await }).await;
        let response = sent.map_err(|stopped| stopped_by(&stopped))?;
        let retry_after = self.rates.heard(&response.url.origin(), response.status, &response.headers);
        match kept {
            Some(entry) if response.status == 304 && !conditions.is_empty() => {
                let entry = self.confirmed(&key, entry, &response).await;
                self.served(&entry).ok_or_else(|| {
                    ToolError::execution_failed(
                        "the kept page leads where nothing may be fetched from any more",
                    )
                })
            }
            _ => Ok(self.received(&key, url, response, retry_after, wish.limits).await),
        }
    }

    /// What holds for every hop: the site's robots.txt, and the pace at which its server is asked.
    async fn may_ask(&self, url: &CheckedUrl) -> Result<(), ToolError> {
        self.ask_robots(url).await?;
        self.turn(url).await
    }

    /// Waits for a turn at the server of `url`.
    pub(crate) async fn turn(&self, url: &CheckedUrl) -> Result<(), ToolError> {
        let turn = self.rates.turn(&url.origin()).await;
        turn.map_err(|wait| rate_limited(&url.host().to_string(), wait))
    }

    async fn ask_robots(&self, url: &CheckedUrl) -> Result<(), ToolError> {
        let Some(robots) = &self.robots else { return Ok(()) };
        if robots.allow(&self.guard, url).await {
            return Ok(());
        }
        let message = format!(
            "the robots.txt of {} asks programs not to fetch {}; use another source. An operator can set robots = \
             \"ignore\"",
            url.host(),
            url.redacted()
        );
        Err(ToolError::new(Code::Denied, message))
    }

    async fn kept(&self, key: &Key, url: &CheckedUrl) -> Option<Entry> {
        let (store, key, url) = (self.cache.clone()?, key.clone(), url.as_str().to_owned());
        tokio::task::spawn_blocking(move || store.get(&key, &url)).await.ok().flatten()
    }

    async fn keep(&self, key: &Key, entry: Entry) {
        let Some(store) = self.cache.clone() else { return };
        let key = key.clone();
        let kept = tokio::task::spawn_blocking(move || store.put(&key, &entry)).await;
        // A cache that does not work costs time, nothing else.
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "a page cannot be kept");
        }
    }

    async fn forget(&self, key: &Key) {
        let Some(store) = self.cache.clone() else { return };
        let key = key.clone();
        let _ = tokio::task::spawn_blocking(move || store.remove(&key)).await;
    }

    async fn confirmed(&self, key: &Key, mut entry: Entry, response: &Response) -> Entry {
        entry.facts.confirmed(&response.headers, SystemTime::now());
        self.keep(key, entry.clone()).await;
        entry
    }

    /// A kept page, as far as the policy of today lets it be had.
    fn served(&self, entry: &Entry) -> Option<Page> {
        let facts = &entry.facts;
        let final_url: CheckedUrl = facts.final_url.parse().ok()?;
        self.guard.policy().admit(&final_url).ok()?;
        Some(Page {
            final_url,
            status: facts.status,
            content_type: facts.header("content-type").map(str::to_owned),
            redirects: facts.redirects.clone(),
            redirect_to: None,
            retry_after: None,
            body: entry.body.clone(),
            is_cut: facts.is_cut,
            notes: facts.notes.clone(),
            cached: Some(facts.age(SystemTime::now())),
        })
    }

    /// Reads a response to its end, and keeps it where it may be kept.
    async fn received(
        &self,
        key: &Key,
        url: &CheckedUrl,
        response: Response,
        retry_after: Option<Duration>,
        limits: Limits,
    ) -> Page {
        let Response { status, headers, url: final_url, redirects, redirect_to, body } = response;
        let body = body.collect().await;
        let is_whole = matches!(body.end, BodyEnd::Complete);
        let mut notes = body.notes;
        notes.extend(told(&body.end, limits.max_body));
        let page = Page {
            status,
            content_type: headers
                .get("content-type")
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
            redirects: redirects.into_iter().map(|hop| (hop.status, hop.from.as_str().to_owned())).collect(),
            redirect_to,
            retry_after,
            body: body.bytes,
            is_cut: !is_whole,
            notes,
            cached: None,
            final_url,
        };
        let now = SystemTime::now();
        let keeping = match body.end {
            BodyEnd::Complete | BodyEnd::Capped => Keeping::of(status, &headers, now),
            _ => Keeping::Never,
        };
        match keeping.fresh_until(now).filter(|_| self.cache.is_some()) {
            None => self.forget(key).await,
            Some(until) => {
                let facts = Facts {
                    url: url.as_str().to_owned(),
                    final_url: page.final_url.as_str().to_owned(),
                    status,
                    redirects: page.redirects.clone(),
                    headers: kept_headers(&headers),
                    notes: page.notes.clone(),
                    is_cut: page.is_cut,
                    checked_ms: millis(now),
                    fresh_until_ms: millis(until),
                };
                self.keep(key, Entry { facts, body: page.body.clone() }).await;
            }
        }
        page
    }
}

/// Whether a kept page is the answer as it is.
fn may_serve(facts: &Facts, wish: Wish<'_>) -> bool {
    let now = SystemTime::now();
    facts.is_fresh(now) || (wish.is_continued && facts.age(now) < READ_ON_FOR)
}

fn request(
    url: &CheckedUrl,
    wish: Wish<'_>,
    conditions: &[(&'static str, &str)],
) -> Result<Request, http_guard::FetchError> {
    let request = Request::get(url.clone()).within(wish.limits).with_header("accept", wish.accept)?;
    conditions.iter().try_fold(request, |request, (name, value)| request.with_header(name, value))
}

/// What a reader should know about how a body ended.
pub(crate) fn told(end: &BodyEnd, max_bytes: u64) -> Option<String> {
    Some(match end {
        BodyEnd::Complete => return None,
        BodyEnd::Capped => format!("the body is longer than {max_bytes} bytes (max_bytes); the rest was not read"),
        BodyEnd::Swollen => {
            "the body was compressed to become far larger than anybody needs; decoding was stopped, and what was read is \
             shown"
                .to_owned()
        }
        BodyEnd::BrokenOff(reason) => format!("the connection broke off ({reason}); what had arrived is shown"),
        BodyEnd::Damaged(reason) => format!("the body cannot be decoded beyond what is shown ({reason})"),
        BodyEnd::TimedOut => "the server did not send the rest in time; what had arrived is shown".to_owned(),
        _ => "the body is not whole; what had arrived is shown".to_owned(),
    })
}
