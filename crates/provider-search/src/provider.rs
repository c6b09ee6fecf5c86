//! The configured provider: its roots, its rules, its deadline.

use std::path::Path;
use std::time::{Duration, Instant};

use provider_core::Stream;
use provider_core::jail::{JailPath, Roots, Rules};
use provider_core::prelude::*;

use crate::config::SearchConfig;
use crate::engine::glob::start::Start;
use crate::engine::glob::walk::{self, Query, Sink, Tally};
use crate::engine::stop::Stop;
use crate::engine::warm::{Busy, Warm};
use crate::tools::find_file::FindFile;
use crate::tools::glob::Glob;
use crate::tools::grep::Grep;

/// A call ends by itself this long before its caller's deadline, so that its answer arrives.
const MARGIN: Duration = Duration::from_millis(700);

/// More threads than this only wait for each other.
const MOST_THREADS: usize = 12;

/// Searches below the allowed roots.
pub struct Search {
    roots: Roots,
    deadline: Duration,
    warm: Warm,
}

impl Provider for Search {
    const NAME: &'static str = "search";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Config = SearchConfig;

    async fn configure(config: SearchConfig, setup: Setup) -> Result<Self, ToolError> {
        let roots = roots(&config, setup.directory())?;
        Ok(Self { roots, deadline: config.deadline(), warm: Warm::default() })
    }

    fn tools(tools: &mut Tools<Self>) {
        tools.data_source::<Grep>();
        tools.data_source::<FindFile>();
        tools.data_source::<Glob>();
    }

    async fn close(&self) {
        self.warm.close();
    }
}

/// The roots with their rules, or all that is wrong with either.
fn roots(config: &SearchConfig, directory: &Path) -> Result<Roots, ToolError> {
    let rules = Rules { deny: config.deny.clone(), ..Rules::default() };
    let roots = Roots::open(&config.allowed_roots, directory);
    // Patterns can be looked at without the configured roots: any directory will do.
    let patterns = match &roots {
        Ok(roots) => roots.with_rules(&rules),
        Err(_) => Roots::open(&["/".to_owned()], directory).and_then(|any| any.with_rules(&rules)),
    };
    match (roots, patterns) {
        (Ok(_), Ok(roots)) => Ok(roots),
        (Err(root), Err(pattern)) => Err(ToolError::invalid_arguments(format!("{root}\n{pattern}"))),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(ToolError::invalid_arguments(error.to_string())),
    }
}

impl Search {
    /// The place where a search starts: what `path` names, else the working directory.
    pub(crate) fn start(&self, path: Option<&str>, working_directory: &Path) -> Result<JailPath, ToolError> {
        match path {
            Some(path) => Ok(self.roots.resolve(path, working_directory)?),
            None if working_directory.as_os_str().is_empty() => Ok(self.roots.directory(0)?),
            None => Ok(self.roots.working_directory(working_directory)?),
        }
    }

    /// Says that a call is at work, as long as the value is kept: nothing is prepared for later calls meanwhile.
    pub(crate) fn busy(&self) -> Busy {
        self.warm.busy()
    }

    /// Walks as `query` says, or answers from memory what that would find.
    pub(crate) fn walk<S: Sink>(
        &self,
        start: &Start,
        query: Query<'_>,
        stop: &Stop,
        sink: impl Fn() -> S + Sync,
    ) -> (Vec<S>, Tally) {
        let _busy = self.busy();
        if let Some((sink, tally)) = self.warm.answer(start, query, stop, &sink) {
            return (vec![sink], tally);
        }
        let found = walk::walk(start, query, stop, sink);
        if !stop.reached() {
            self.warm.keep(start, query.judge.hidden);
        }
        found
    }

    /// How many threads a walk may use.
    pub(crate) fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS)
    }

    /// When a search that begins now must stop: the configured deadline, or shortly before the caller's.
    pub(crate) fn deadline<S: Stream>(&self, cx: &Cx<S>) -> Instant {
        let allowed = cx.remaining().map(|remaining| remaining.saturating_sub(MARGIN).max(remaining / 4));
        Instant::now() + allowed.map_or(self.deadline, |allowed| allowed.min(self.deadline))
    }
}
