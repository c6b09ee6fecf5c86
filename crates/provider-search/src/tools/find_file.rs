//! `find_file`: files by what somebody remembers of their path.

use std::time::Duration;

use provider_core::jail::FileKind;
use provider_core::prelude::*;

use super::glob::{Unreadable, shown, shown_prefix};
use crate::Search;
use crate::engine::fuzzy::{Query, Scorer};
use crate::engine::glob::Pattern;
use crate::engine::glob::judge::Judge;
use crate::engine::glob::start::Start;
use crate::engine::glob::walk::{self, Hit, Sink, Tally};
use crate::engine::select::{First, Ranked};
use crate::engine::stop::Stop;
use crate::running::{self, Trickle};

/// Matches that are answered when no limit is given.
const DEFAULT_LIMIT: u64 = 50;

/// Finds files by parts of their path, the best match first.
///
/// Every word of the query must be in the path, in order but perhaps with gaps (`usrctl` finds `user_controller.rs`),
/// whatever the case; a few typing errors in the name are forgiven. A match in the file's name weighs more than one in
/// its directories. Hidden files are found too; files that git would ignore only if there are no others.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What is known of the path: a name, parts of one, or several words that all must fit.
    #[schemars(extend("x-aliases" = ["pattern", "name", "filename"]))]
    query: String,
    /// The directory to look in, absolute or relative to the working directory, which is the default.
    #[schemars(extend("x-aliases" = ["directory", "dir", "root"]))]
    path: Option<String>,
    /// How many matches to answer at most. Default 50.
    #[schemars(range(min = 1, max = 10_000), extend("x-aliases" = ["max_results"]))]
    limit: Option<u64>,
}

/// One file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Match {
    /// The path, relative to the working directory if beneath it, else absolute.
    path: String,
    /// How well it fits; only comparable within one result.
    score: u64,
}

/// The best matches.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The matches, the best first.
    matches: Vec<Match>,
    /// How many fit in all.
    total: u64,
    /// Whether there are more than are answered.
    truncated: bool,
    /// Directories that could not be searched.
    errors: Vec<Unreadable>,
    /// Whether time ran out, so that there may be better ones.
    timed_out: bool,
}

/// Matches found so far, in no order.
#[derive(Serialize)]
struct Part {
    matches: Vec<Match>,
}

pub(crate) struct FindFile;

impl DataSource for FindFile {
    const NAME: &'static str = "find_file";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(30);
    type Provider = Search;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(search: Arc<Search>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let stop = Arc::new(Stop::at(search.deadline(&cx)));
        let (context, its_stop) = (cx.clone(), stop.clone());
        let work = move |trickle| find(&search, &args, &context, &its_stop, &trickle);
        running::run(&cx, &stop, |matches| Part { matches }, work).await
    }

    fn render(output: &Output) -> Option<Node> {
        let rows = output.matches.iter().map(|found| vec![found.path.clone(), found.score.to_string()]);
        let headers = vec![format!("path ({} in all)", output.total), "score".to_owned()];
        Some(Node::Table { headers, rows: rows.collect() })
    }
}

fn find(
    search: &Search,
    args: &Args,
    cx: &Cx<Events>,
    stop: &Stop,
    trickle: &Trickle<Match>,
) -> Result<Output, ToolError> {
    let from = search.start(args.path.as_deref(), cx.working_directory())?;
    from.note().into_iter().for_each(|note| cx.note(note));
    let text = normal(&args.query);
    let query = Query::new(&text).ok_or_else(|| {
        ToolError::invalid_arguments("query: there is no word in it; write a part of the file's name or path")
    })?;
    let start = Start::open(&from)?;
    let limit = args.limit.unwrap_or(DEFAULT_LIMIT);
    let prefix = shown_prefix(&from);
    let look = |ignored| {
        let sink = || Best::new(&query, limit, &prefix, trickle.clone());
        rank(search, &start, stop, ignored, sink)
    };
    let (mut found, tally) = look(false);
    if found.total() == 0 && tally.ignored > 0 && !stop.reached() {
        found = look(true).0;
        if found.total() > 0 {
            cx.note("these are files that git would ignore; there are no others that fit");
        }
    }
    if stop.timed_out() {
        cx.note(
            "time ran out; the best of those found until then are answered: start further down with path",
        );
    }
    let total = found.total();
    let shown_match = |found: Ranked| Match { path: shown(&prefix, &found.path), score: score_of(&found) };
    let matches: Vec<Match> = found.into_sorted().into_iter().map(shown_match).collect();
    Ok(Output {
        truncated: (matches.len() as u64) < total,
        matches,
        total,
        errors: Unreadable::list(tally, &prefix),
        timed_out: stop.timed_out(),
    })
}

/// The query as a path is written here, without what points into the file.
fn normal(query: &str) -> String {
    let text = query.trim().replace('\\', "/");
    let mut rest = text.strip_prefix("./").unwrap_or(&text);
    while let Some((before, line)) = rest.rsplit_once(':') {
        if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        rest = before;
    }
    rest.to_owned()
}

fn rank<'q>(
    search: &Search,
    start: &Start,
    stop: &Stop,
    ignored: bool,
    sink: impl Fn() -> Best<'q> + Sync,
) -> (First, Tally) {
    let pattern = Pattern::everything();
    let judge = Judge { pattern: &pattern, hidden: true, ignored };
    let query = walk::Query { judge, times: false, threads: search.threads() };
    let (found, tally) = search.walk(start, query, stop, &sink);
    let best = found.into_iter().map(|best| best.first).reduce(|mut one, other| {
        one.merge(other);
        one
    });
    (best.unwrap_or_else(|| First::new(0)), tally)
}

/// The best that one thread found.
struct Best<'q> {
    first: First,
    scorer: Scorer<'q>,
    prefix: String,
    trickle: Trickle<Match>,
}

impl<'q> Best<'q> {
    fn new(query: &'q Query, limit: u64, prefix: &str, trickle: Trickle<Match>) -> Self {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { first: First::new(most), scorer: Scorer::new(query), prefix: prefix.to_owned(), trickle }
    }
}

impl Sink for Best<'_> {
    fn hit(&mut self, hit: &Hit<'_>) {
        if hit.kind == FileKind::Directory || hit.path.starts_with(b".git/") {
            return;
        }
        let path = String::from_utf8_lossy(hit.path);
        let Some(score) = self.scorer.score(&path) else { return };
        self.first.add(weight(score, hit.path.len()), hit.path);
        let prefix = &self.prefix;
        self.trickle.found(|| Match { path: shown(prefix, hit.path), score: score.into() });
    }
}

/// Of equal scores the shorter path goes first.
fn weight(score: u32, length: usize) -> i128 {
    (i128::from(score) << 32) - i128::try_from(length).unwrap_or(0)
}

fn score_of(found: &Ranked) -> u64 {
    u64::try_from((found.weight + i128::from(u32::MAX)) >> 32).unwrap_or(0)
}
