//! The configured search service, and the one way to it.

use std::time::{Duration, SystemTime};

use http_guard::http::Method;
use http_guard::{BodyEnd, CheckedUrl, FetchError, Guard, Limits, Request, Stopped};
use provider_core::prelude::*;

use crate::rate::retry_after;
use crate::search::{Answer, Incoming, Outgoing, Query, SearchError, Service};

/// Larger answers are no lists of results.
const LARGEST_ANSWER: u64 = 4 * 1024 * 1024;
/// How long a service may take.
const LONGEST: Duration = Duration::from_secs(25);

/// A search service and the client that reaches it, and nothing else.
pub(crate) struct Searcher {
    service: Service,
    guard: Guard,
}

impl Searcher {
    /// `guard` is one whose policy lets exactly the service's host be private.
    pub(crate) fn new(service: Service, guard: Guard) -> Self {
        Self { service, guard }
    }

    /// The service's kind, as it is configured.
    pub(crate) fn backend(&self) -> &'static str {
        self.service.backend().name()
    }

    /// Asks the service.
    ///
    /// # Errors
    /// Why there are no results. Nothing that the service sent is in it.
    pub(crate) async fn search(
        &self,
        query: Query<'_>,
        remaining: Option<Duration>,
    ) -> Result<Answer, ToolError> {
        let total = remaining.map_or(LONGEST, |remaining| remaining.min(LONGEST));
        let limits =
            Limits { max_body: LARGEST_ANSWER, max_wire: LARGEST_ANSWER, total, ..Limits::default() };
        let request = request(self.service.request(query)).map_err(|_| unsendable())?.within(limits);
        let host = request.url().host().clone();
        // A name below the service's would be looked up, and may hold what it was sent.
        let stay =
            |to: CheckedUrl| std::future::ready(if *to.host() == host { Ok(()) } else { Err(Elsewhere) });
        let response = self.guard.send_asking(request, stay).await.map_err(|stopped| match stopped {
            Stopped::Failed(error) => self.unreached(&error),
            Stopped::Declined { why: Elsewhere, .. } => told(SearchError::REDIRECTED),
        })?;
        let status = if response.redirect_to.is_some() { 302 } else { response.status };
        let retry_after = retry_after(&response.headers, SystemTime::now()).map(|wait| wait.as_secs());
        let body = response.body.collect().await;
        let is_whole = body.end == BodyEnd::Complete;
        let incoming = Incoming { status, retry_after, body: &body.bytes, is_whole };
        self.service.read(incoming).map_err(told)
    }

    /// The client's errors may quote what a server sent, which is not repeated here.
    fn unreached(&self, error: &FetchError) -> ToolError {
        let host = self.service.host();
        match error.root() {
            FetchError::TimedOut { .. } => ToolError::timeout(format!(
                "the search service at {host} did not answer in time; try again later"
            )),
            FetchError::NoSuchHost { .. } => ToolError::execution_failed(format!(
                "there is no host for the search service at {host}; an operator sets search_url"
            )),
            FetchError::Refused(_) => ToolError::permission_denied(format!(
                "the search service at {host} may not be reached, or leads to where nothing may be; an operator sets search_url"
            )),
            _ => ToolError::execution_failed(format!(
                "the search service at {host} cannot be reached or gave no valid answer; try again later"
            )),
        }
    }
}

/// A redirect leads to another host.
struct Elsewhere;

fn request(outgoing: Outgoing) -> Result<Request, FetchError> {
    let url = outgoing.url.parse()?;
    let method = if outgoing.body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::new(method, url);
    for (name, value) in &outgoing.headers {
        request = request.with_header(name, value)?;
    }
    Ok(request.with_body(outgoing.body.unwrap_or_default()))
}

fn unsendable() -> ToolError {
    ToolError::new(
        Code::NotConfigured,
        "the query cannot be sent to the search service; an operator checks search_url and search_mapping",
    )
}

fn told(error: SearchError) -> ToolError {
    let message = error.to_string();
    match error {
        SearchError::RateLimited { retry_after } => {
            let told = ToolError::new(Code::RateLimited, message);
            match retry_after {
                Some(seconds) => told.with_detail("retry_after_ms", seconds.saturating_mul(1_000)),
                None => told,
            }
        }
        SearchError::Changed(_) => ToolError::new(Code::BackendChanged, message),
        SearchError::NotAccepted(_) => ToolError::new(Code::NotConfigured, message),
        SearchError::Query(_) | SearchError::Unavailable(_) | SearchError::Incomplete => {
            ToolError::execution_failed(message)
        }
    }
}
