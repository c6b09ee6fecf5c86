//! `web_search`: what a search service finds.

use std::time::Duration;

use http_guard::{CheckedUrl, Domains};
use provider_core::Style;
use provider_core::prelude::*;

use super::UNTRUSTED;
use crate::provider::Web;
use crate::search::{Answer, Found, Query};

/// How many results are answered when nothing is said.
const DEFAULT_LIMIT: usize = 10;
/// What is kept of the time for answering.
const MARGIN: Duration = Duration::from_millis(1_500);

/// Searches the web with the configured search service and answers titles, addresses and pieces of text, best first. Read a
/// page that was found with web_fetch. An empty list means that the service itself says that there is nothing.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The words to search for.
    #[schemars(length(min = 1, max = 2_000), extend("x-aliases" = ["q", "search"]))]
    query: String,
    /// The most results; by default 10. Services give about 20 at most.
    #[schemars(range(min = 1, max = 50), extend("x-aliases" = ["count", "max_results"]))]
    limit: Option<usize>,
    /// Only results of these domains and what is below them: docs.example.
    allowed_domains: Option<Vec<String>>,
    /// No results of these domains and what is below them.
    blocked_domains: Option<Vec<String>>,
}

/// What was found.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The results, best first.
    results: Vec<Told>,
    /// The search service that was asked.
    backend: String,
}

/// One result.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Told {
    /// From 1, the best.
    rank: usize,
    /// The page's title.
    title: String,
    /// The page's address.
    url: String,
    /// A piece of the page's text.
    snippet: String,
    /// When it was published, as the service says it.
    published: Option<String>,
}

pub(crate) struct WebSearch;

impl DataSource for WebSearch {
    const NAME: &'static str = "web_search";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(30);
    type Provider = Web;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(provider: Arc<Web>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let (allowed, blocked) =
            (args.allowed_domains.unwrap_or_default(), args.blocked_domains.unwrap_or_default());
        let sites = Sites::new(&allowed, &blocked)?;
        if args.query.trim().is_empty() {
            return Err(ToolError::invalid_arguments("query: is empty; say what to search for"));
        }
        let searcher = provider.searcher.as_ref().ok_or_else(|| {
            ToolError::new(
                Code::NotConfigured,
                "there is no search service; an operator sets search_backend, and search_url or search_api_key. Pages whose \
                 address is known can be read with web_fetch",
            )
        })?;
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
        let query =
            Query { text: args.query.trim(), limit, allowed_domains: &allowed, blocked_domains: &blocked };
        let remaining = cx.remaining().map(|left| left.saturating_sub(MARGIN));
        let answer = searcher.search(query, remaining).await?;
        let (results, notes) = chosen(answer, &sites, limit);
        notes.into_iter().for_each(|note| cx.note(note));
        Ok(Output { results, backend: searcher.backend().to_owned() })
    }

    fn render(output: &Output) -> Option<Node> {
        let shown = |told: &Told| {
            Node::Group(vec![
                Node::Link { text: format!("{}. {}", told.rank, told.title), url: told.url.clone() },
                Node::styled(&told.snippet, Style::Dim),
            ])
        };
        Some(match output.results.as_slice() {
            [] => Node::styled("nothing was found", Style::Dim),
            results => Node::Group(results.iter().map(shown).collect()),
        })
    }
}

/// Which domains results may be of.
struct Sites {
    allowed: Option<Domains>,
    blocked: Domains,
}

impl Sites {
    fn new(allowed: &[String], blocked: &[String]) -> Result<Self, ToolError> {
        let domains = |argument: &str, entries: &[String]| {
            Domains::new(entries)
                .map_err(|error| ToolError::invalid_arguments(format!("{argument}: {error}")))
        };
        let all = domains("allowed_domains", allowed)?;
        Ok(Self {
            allowed: (!allowed.is_empty()).then_some(all),
            blocked: domains("blocked_domains", blocked)?,
        })
    }

    /// Services take domains as a wish, so their results are looked at again.
    fn has(&self, found: &Found) -> bool {
        found.url.as_str().parse::<CheckedUrl>().is_ok_and(|url| {
            !self.blocked.contains(url.host())
                && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(url.host()))
        })
    }
}

/// The results that are told, and what to say of the others.
fn chosen(answer: Answer, sites: &Sites, limit: usize) -> (Vec<Told>, Vec<String>) {
    let total = answer.found.len();
    let wanted: Vec<Found> = answer.found.into_iter().filter(|found| sites.has(found)).collect();
    let mut notes = vec![UNTRUSTED.to_owned()];
    if wanted.len() < total {
        notes.push(format!("{} results of other domains are left out", total - wanted.len()));
    }
    if answer.leaks > 0 {
        notes
            .push(format!("{} results that repeat a secret of the configuration are left out", answer.leaks));
    }
    let told = |(at, found): (usize, Found)| Told {
        rank: at + 1,
        title: found.title,
        url: found.url.into(),
        snippet: found.snippet,
        published: found.published,
    };
    (wanted.into_iter().take(limit).enumerate().map(told).collect(), notes)
}
