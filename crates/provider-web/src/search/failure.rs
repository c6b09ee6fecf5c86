//! Why a service gave no results.

use super::{Backend, Incoming};

/// Why there are no results. Nothing in it is the service's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The service wants fewer questions, or to see a person.
    #[error("the search service asks to slow down{}", advice(*.retry_after))]
    RateLimited {
        /// Seconds to wait, if the service said so.
        retry_after: Option<u64>,
    },
    /// The service answers in a form that is not known: not as before, or not as configured.
    #[error("the search service answered in an unexpected form: {0}; check search_backend and search_url")]
    Changed(&'static str),
    /// The service does not accept the key.
    #[error("{0}")]
    NotAccepted(&'static str),
    /// The service does not accept the question.
    #[error("the search service does not accept the query (status {0}); make it shorter or plainer")]
    Query(u16),
    /// The service has troubles of its own.
    #[error("the search service cannot answer now (status {0}); try again later")]
    Unavailable(u16),
    /// The answer did not come to its end.
    #[error("the answer of the search service broke off or is too large; try again, with a smaller limit")]
    Incomplete,
}

impl SearchError {
    /// The service leads to another host.
    pub(crate) const REDIRECTED: Self = Self::Changed("it redirects to somewhere else");
}

fn advice(retry_after: Option<u64>) -> String {
    match retry_after {
        Some(seconds) => format!("; try again in {seconds} seconds"),
        None => "; wait a minute before trying again, and ask less often".to_owned(),
    }
}

/// Whatever a status alone says.
pub(super) fn of_status(backend: Backend, incoming: Incoming<'_>) -> Result<(), SearchError> {
    let retry_after = incoming.retry_after;
    let is_challenge = is_challenge(incoming.body);
    Err(match incoming.status {
        200..=299 => return Ok(()),
        // Plans that are used up, as one service tells it.
        429 | 432 | 433 => SearchError::RateLimited { retry_after },
        _ if is_challenge => SearchError::RateLimited { retry_after },
        503 if retry_after.is_some() => SearchError::RateLimited { retry_after },
        403 if backend == Backend::Searxng => SearchError::NotAccepted(
            "the search service refuses answers in JSON (status 403): enable json under search.formats in the settings of the \
             SearXNG instance, or let it in at its limiter",
        ),
        401..=403 => SearchError::NotAccepted(
            "the search service does not accept the key, or the key's plan does not cover this; check search_api_key",
        ),
        300..=399 => SearchError::REDIRECTED,
        404 | 405 | 410 => SearchError::Changed("there is nothing at this address"),
        400..=499 => SearchError::Query(incoming.status),
        status => SearchError::Unavailable(status),
    })
}

/// Why an answer that says it is one is no JSON.
pub(super) fn of_text(incoming: Incoming<'_>) -> SearchError {
    let is_page = incoming.body.trim_ascii_start().starts_with(b"<");
    // A page with the status for "later" is how some services ask for a person.
    if is_challenge(incoming.body) || (is_page && incoming.status == 202) {
        return SearchError::RateLimited { retry_after: incoming.retry_after };
    }
    if !incoming.is_whole {
        return SearchError::Incomplete;
    }
    SearchError::Changed(if is_page { "it is a page, not JSON" } else { "it is no JSON" })
}

/// The beginning of a page, in which a challenge shows.
const HEAD: usize = 64 * 1024;

/// Whether a body is a page that wants to know whether a person asks.
fn is_challenge(body: &[u8]) -> bool {
    let head = body.get(..HEAD).unwrap_or(body);
    if !head.trim_ascii_start().starts_with(b"<") {
        return false;
    }
    let page = String::from_utf8_lossy(head).to_ascii_lowercase();
    const SIGNS: [&str; 9] = [
        "captcha",
        "unusual traffic",
        "not a robot",
        "are you a robot",
        "are you human",
        "cf-chl",
        "challenge-form",
        "too many requests",
        "automated queries",
    ];
    SIGNS.iter().any(|sign| page.contains(sign))
}
