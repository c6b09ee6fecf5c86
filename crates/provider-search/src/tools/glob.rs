//! `glob`: which paths match a pattern.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use provider_core::jail::{FileKind, JailPath, PathError, escape_bytes, is_temp_name};
use provider_core::prelude::*;

use crate::Search;
use crate::engine::glob::judge::Judge;
use crate::engine::glob::start::Start;
use crate::engine::glob::walk::{Hit, Query, Sink, Tally};
use crate::engine::glob::{Pattern, PatternError};
use crate::engine::select::First;
use crate::engine::stop::Stop;
use crate::running::{self, Trickle};

/// Paths of one page when no limit is given.
const DEFAULT_LIMIT: u64 = 1_000;

/// Finds files by a pattern for their path, as fast as a walk of the tree can be.
///
/// Patterns: `?` and `*` match within one name; `**` as a whole segment goes through any number of directories; `{a,b}`
/// is either; `[a-z]` is a character of a set and `[!a-z]` is not; `\` takes the next character as it is; a `/` at the
/// end asks for directories. Patterns start at `path`: `*.rs` is in it, `**/*.rs` anywhere beneath. A name spelled
/// exactly like a segment always matches, so `app/[id]/page.tsx` can be given as it is. What git would ignore, and names
/// that begin with a dot, are left out unless a segment spells them out (`target/**/*.d`) or begins with that dot
/// (`.github/**`, `**/.env*`).
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The pattern, for example `src/**/*.{ts,tsx}`.
    #[schemars(extend("x-aliases" = ["glob", "glob_pattern"]))]
    pattern: String,
    /// The directory to start from, absolute or relative to the working directory, which is the default.
    #[schemars(extend("x-aliases" = ["directory", "dir", "root"]))]
    path: Option<String>,
    /// How many paths to answer at most. Default 1000.
    #[schemars(range(min = 1, max = 100_000), extend("x-aliases" = ["max_results", "head_limit"]))]
    limit: Option<u64>,
    /// How many paths to skip. Default 0.
    #[schemars(range(min = 0, max = 5_000_000))]
    offset: Option<u64>,
    /// The order: by path, which is the default, or the most recently modified first.
    sort: Option<Sort>,
    /// Whether names that begin with a dot are matched by wildcards too. Default false.
    #[schemars(extend("x-aliases" = ["include_hidden"]))]
    hidden: Option<bool>,
    /// Whether what ignore files exclude is matched by wildcards too. Default false.
    #[schemars(extend("x-aliases" = ["no_ignore", "include_ignored"]))]
    ignored: Option<bool>,
}

/// The order of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// By path, name by name.
    #[default]
    Path,
    /// The most recently modified first.
    Modified,
}

/// A directory that could not be searched.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Unreadable {
    /// The directory.
    path: String,
    /// Why.
    message: String,
}

/// A page of paths.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The paths, relative to the working directory if beneath it, else absolute. Files, links and special files; where
    /// none match, and for patterns that end in a slash, directories, which then end in a slash too.
    paths: Vec<String>,
    /// How many match in all.
    total: u64,
    /// Whether there are paths after this page.
    truncated: bool,
    /// The offset of the next page.
    next_offset: Option<u64>,
    /// Entries that ignore files exclude and that match, or are directories in which something could.
    hidden_by_ignore: u64,
    /// Directories that could not be searched.
    errors: Vec<Unreadable>,
    /// Whether time ran out, so that there may be more.
    timed_out: bool,
}

/// Paths found so far, in no order.
#[derive(Serialize)]
struct Part {
    paths: Vec<String>,
}

pub(crate) struct Glob;

impl DataSource for Glob {
    const NAME: &'static str = "glob";
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
        running::run(&cx, &stop, |paths| Part { paths }, work).await
    }

    fn render(output: &Output) -> Option<Node> {
        let rows = output.paths.iter().map(|path| vec![path.clone()]).collect();
        Some(Node::Table { headers: vec![format!("path ({} in all)", output.total)], rows })
    }
}

/// What the arguments ask for, understood.
struct Wanted {
    pattern: Pattern,
    /// The directory of the pattern's prefix, as the caller named it.
    start: JailPath,
    /// What is spelled exactly like the pattern, which then comes first.
    literal: Option<JailPath>,
}

fn find(
    search: &Search,
    args: &Args,
    cx: &Cx<Events>,
    stop: &Stop,
    trickle: &Trickle<String>,
) -> Result<Output, ToolError> {
    let from = search.start(args.path.as_deref(), cx.working_directory())?;
    from.note().into_iter().for_each(|note| cx.note(note));
    let literal = spelled_exactly(&args.pattern, &from);
    let pattern = match (Pattern::new(&args.pattern), &literal) {
        (Ok(pattern), _) => pattern,
        (Err(_), Some(literal)) => return Ok(Output::only(literal)),
        (Err(error), None) => return Err(wrong(&error)),
    };
    pattern.notes().iter().for_each(|note| cx.note(note.clone()));
    let start = match pattern.prefix() {
        "" => from,
        prefix => from.resolve(prefix)?,
    };
    let wanted = Wanted { pattern, start, literal };
    let opened = match Start::open(&wanted.start) {
        Ok(opened) => opened,
        Err(error) if !wanted.pattern.prefix().is_empty() => return absent(cx, &wanted, error),
        Err(error) => return Err(error.into()),
    };
    let (page, tally) = search_tree(search, args, &wanted, &opened, (stop, trickle));
    let output = page.answer(args, &wanted, cx, stop.timed_out());
    explain(cx, args, &output, &tally);
    if output.total == 0 && !output.timed_out {
        suggest(cx, search, args, &opened, stop);
    }
    Ok(output.with(tally, &shown_prefix(&wanted.start)))
}

fn search_tree(
    search: &Search,
    args: &Args,
    wanted: &Wanted,
    start: &Start,
    (stop, trickle): (&Stop, &Trickle<String>),
) -> (Page, Tally) {
    let most = args.offset.unwrap_or(0).saturating_add(args.limit.unwrap_or(DEFAULT_LIMIT));
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let prefix = shown_prefix(&wanted.start);
    let literal = wanted.literal.as_ref().map(ToString::to_string);
    let sink = || Page {
        files: First::new(most),
        directories: First::new(most),
        literal: literal.clone(),
        prefix: prefix.clone(),
        trickle: trickle.clone(),
    };
    let query = Query {
        judge: Judge {
            pattern: &wanted.pattern,
            hidden: args.hidden.unwrap_or(false),
            ignored: args.ignored.unwrap_or(false),
        },
        times: args.sort == Some(Sort::Modified),
        threads: search.threads(),
    };
    let (pages, tally) = search.walk(start, query, stop, sink);
    let page = pages.into_iter().reduce(Page::merge).unwrap_or_else(sink);
    (page, tally)
}

/// What one thread found.
struct Page {
    files: First,
    directories: First,
    /// Shown first, so not counted here.
    literal: Option<String>,
    prefix: String,
    trickle: Trickle<String>,
}

impl Sink for Page {
    fn hit(&mut self, hit: &Hit<'_>) {
        if self.literal.as_ref().is_some_and(|literal| *literal == shown(&self.prefix, hit.path)) {
            return;
        }
        if hit.kind == FileKind::Directory {
            return self.directories.add(hit.modified, hit.path);
        }
        self.files.add(hit.modified, hit.path);
        let prefix = &self.prefix;
        self.trickle.found(|| shown(prefix, hit.path));
    }
}

impl Page {
    fn merge(mut self, other: Self) -> Self {
        self.files.merge(other.files);
        self.directories.merge(other.directories);
        self
    }

    /// The page that was asked for. Directories are answered if there is nothing else.
    fn answer(self, args: &Args, wanted: &Wanted, cx: &Cx<Events>, timed_out: bool) -> Output {
        let (offset, limit) = (args.offset.unwrap_or(0), args.limit.unwrap_or(DEFAULT_LIMIT));
        let only_directories = self.files.total() == 0;
        let others = if only_directories { 0 } else { self.directories.total() };
        if others > 0 && !wanted.pattern.is_recursive() {
            let them = if others == 1 { "1 directory".to_owned() } else { format!("{others} directories") };
            cx.note(format!("{them} match as well; a pattern that ends in / lists directories"));
        }
        let (kept, end) = match only_directories {
            true => (self.directories, "/"),
            false => (self.files, ""),
        };
        let total = kept.total() + u64::from(wanted.literal.is_some());
        let found = kept.into_sorted().into_iter();
        let found = found.map(|found| format!("{}{end}", shown(&self.prefix, &found.path)));
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let take = usize::try_from(limit).unwrap_or(usize::MAX);
        let paths: Vec<String> =
            wanted.literal.iter().map(shown_literal).chain(found).skip(skip).take(take).collect();
        let end = offset.saturating_add(paths.len() as u64);
        let truncated = end < total && !paths.is_empty();
        if offset > 0 && offset >= total {
            cx.note(format!("offset {offset} \u{2265} {total}: there is nothing after the last path"));
        }
        Output {
            paths,
            total,
            truncated,
            next_offset: truncated.then_some(end),
            hidden_by_ignore: 0,
            errors: Vec::new(),
            timed_out,
        }
    }
}

impl Output {
    fn of(paths: Vec<String>) -> Self {
        let total = paths.len() as u64;
        let (truncated, next_offset, hidden_by_ignore, errors, timed_out) = Default::default();
        Self { paths, total, truncated, next_offset, hidden_by_ignore, errors, timed_out }
    }

    fn only(literal: &JailPath) -> Self {
        Self::of(vec![shown_literal(literal)])
    }

    fn with(mut self, tally: Tally, prefix: &str) -> Self {
        self.hidden_by_ignore = tally.ignored;
        self.errors = Unreadable::list(tally, prefix);
        self
    }
}

impl Unreadable {
    /// What a walk could not read, where paths are shown with `prefix`.
    pub(crate) fn list(tally: Tally, prefix: &str) -> Vec<Self> {
        let unreadable = |(path, message): (Vec<u8>, String)| {
            let path = shown(prefix, &path);
            Self { path: if path.is_empty() { ".".to_owned() } else { path }, message }
        };
        tally.errors.into_iter().map(unreadable).collect()
    }
}

/// The place whose name is exactly the pattern, if there is one and the pattern is not a plain name anyway.
fn spelled_exactly(pattern: &str, from: &JailPath) -> Option<JailPath> {
    if !pattern.contains(['*', '?', '[', ']', '{', '}', '\\', '!']) {
        return None;
    }
    let path = from.resolve(pattern).ok().filter(|path| path.note().is_none())?;
    let named = path.relative().as_os_str().as_encoded_bytes();
    let spelled = named.ends_with(pattern.trim_start_matches("./").trim_matches('/').as_bytes());
    (spelled && path.exists().unwrap_or(false) && !path.file_name().is_some_and(is_temp_name)).then_some(path)
}

fn shown_literal(literal: &JailPath) -> String {
    let directory = literal.symlink_metadata().is_ok_and(|found| found.kind == FileKind::Directory);
    format!("{literal}{}", if directory { "/" } else { "" })
}

fn wrong(error: &PatternError) -> ToolError {
    ToolError::invalid_arguments(format!("pattern: {error}"))
}

/// The answer where the directory of the pattern's beginning is not there.
fn absent(cx: &Cx<Events>, wanted: &Wanted, error: PathError) -> Result<Output, ToolError> {
    match error {
        PathError::NotFound { .. } | PathError::NotADirectory { .. } | PathError::NotDirectory { .. } => {
            cx.note(format!("nothing can match: {error}"));
            Ok(wanted.literal.as_ref().map_or_else(|| Output::of(Vec::new()), Output::only))
        }
        other => Err(other.into()),
    }
}

/// How paths from `start` begin when they are shown.
pub(crate) fn shown_prefix(start: &JailPath) -> String {
    match start.to_string() {
        here if here == "." => String::new(),
        path if path.ends_with('/') => path,
        path => format!("{path}/"),
    }
}

pub(crate) fn shown(prefix: &str, path: &[u8]) -> String {
    let path = escape_bytes(OsStr::from_bytes(path));
    match path.is_empty() {
        true => prefix.trim_end_matches('/').to_owned(),
        false => format!("{prefix}{path}"),
    }
}

/// Says what the numbers of the result do not.
fn explain(cx: &Cx<Events>, args: &Args, output: &Output, tally: &Tally) {
    let entries = |count: u64| match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    };
    if output.timed_out {
        let found = output.total;
        cx.note(format!(
            "time ran out; the {found} found until then are answered, and there may be more: start further down, or use a narrower pattern"
        ));
    }
    if output.total == 0 && tally.ignored > 0 && args.ignored != Some(true) {
        cx.note(format!(
            "left out as ignore files say: {}; ignored: true includes them",
            entries(tally.ignored)
        ));
    }
    if output.total == 0 && tally.hidden > 0 && args.hidden != Some(true) {
        let them = entries(tally.hidden);
        cx.note(format!("left out because the name begins with a dot: {them}; hidden: true includes them"));
    }
    if tally.outside > 0 {
        let links = if tally.outside == 1 {
            "1 symbolic link".to_owned()
        } else {
            format!("{} symbolic links", tally.outside)
        };
        cx.note(format!("not followed, because out of the allowed roots: {links}"));
    }
    if tally.more_errors > 0 {
        cx.note(format!("{} more directories could not be searched", tally.more_errors));
    }
}

/// Says what would have matched, where nothing did.
fn suggest(cx: &Cx<Events>, search: &Search, args: &Args, start: &Start, stop: &Stop) {
    if args.pattern.contains('\\') {
        cx.note("`\\` takes the next character as it is; names are separated by /");
    }
    if args.pattern.contains(['/', '\\']) || args.pattern == "**" {
        return;
    }
    let deeper = format!("**/{}", args.pattern);
    let Ok(pattern) = Pattern::new(&deeper) else { return };
    let judge = Judge {
        pattern: &pattern,
        hidden: args.hidden.unwrap_or(false),
        ignored: args.ignored.unwrap_or(false),
    };
    let query = Query { judge, times: false, threads: search.threads() };
    let (counts, _) = search.walk(start, query, stop, || Count(0));
    let count: u64 = counts.iter().map(|count| count.0).sum();
    if count > 0 {
        cx.note(format!(
            "`{}` is only looked for in the directory itself; `{deeper}` matches {count}",
            args.pattern
        ));
    }
}

struct Count(u64);

impl Sink for Count {
    fn hit(&mut self, _: &Hit<'_>) {
        self.0 += 1;
    }
}
