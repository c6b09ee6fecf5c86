//! `grep`: the lines of files that a pattern matches.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use provider_core::Style;
use provider_core::jail::{FileKind, JailPath};
use provider_core::prelude::*;
use tokio::sync::mpsc;

use crate::Search;
use crate::engine::filter;
use crate::engine::grep::{Findings, Query, grep};
use crate::engine::hits::{FileHits, Hit, Unit};
use crate::engine::matcher::{self, Pattern};
use crate::engine::stop::Stop;
use crate::engine::walk;
use crate::running::StopOnDrop;

/// Results of one page when no limit is given.
const DEFAULT_LIMIT: u64 = 100;
/// Bytes of text in one page.
const LARGEST_PAGE: usize = 48 * 1024;
/// So few hits are shown with lines around them, unless asked otherwise.
const FEW: u64 = 3;
/// The lines before and after each of few hits.
const AROUND_FEW: usize = 2;
/// Hits are sent as partial results this far apart.
const PARTIAL_PAUSE: Duration = Duration::from_millis(100);
/// A pattern of more bytes is a text sent by mistake. It would take long to be made ready, and that cannot be stopped.
const LONGEST_PATTERN: usize = 64 << 10;
/// Threads beyond this many would wait for each other.
const MOST_THREADS: usize = 12;

/// Searches the contents of files for a regular expression, or with fixed_strings for a text. Honours ignore files,
/// skips hidden and binary files, and says what it skipped. Hits come in the order of paths; totals are exact.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What to search for: a regular expression in Rust's syntax; look-around and back-references work too, slower.
    #[schemars(extend("x-aliases" = ["query", "regex"]))]
    pattern: String,
    /// The directory or file to search, absolute or relative to the working directory, which is the default.
    #[schemars(extend("x-aliases" = ["directory", "dir", "file"]))]
    path: Option<String>,
    /// Only files that a glob matches: *.rs, src/**, !*.lock; several are separated by commas.
    #[schemars(extend("x-aliases" = ["include"]))]
    glob: Option<String>,
    /// Only files of a type: rust, py, js; several are separated by commas.
    #[schemars(extend("x-aliases" = ["file_type"]))]
    r#type: Option<String>,
    /// What to answer: the matching lines (content, the default), only the files that have any (files), or the files
    /// with their number of hits (count).
    #[schemars(extend("x-aliases" = ["output_mode"]))]
    mode: Option<Mode>,
    /// Whether the pattern is a text, not a regular expression.
    #[schemars(extend("x-aliases" = ["literal"]))]
    fixed_strings: Option<bool>,
    /// Upper and lower case: smart (the default) tells them apart only if the pattern has an upper-case letter.
    case: Option<Case>,
    /// Whether a hit must begin and end at the edge of a word.
    word: Option<bool>,
    /// Whether a hit may go over line ends. A pattern with \n in it does so on its own.
    multiline: Option<bool>,
    /// How many lines before each hit to show. Default 0, or 2 when there are few hits.
    #[schemars(range(min = 0, max = 100), extend("x-aliases" = ["before_context", "-B"]))]
    before: Option<u64>,
    /// How many lines after each hit to show. Default 0, or 2 when there are few hits.
    #[schemars(range(min = 0, max = 100), extend("x-aliases" = ["after_context", "-A"]))]
    after: Option<u64>,
    /// How many lines before and after each hit to show.
    #[schemars(range(min = 0, max = 100), extend("x-aliases" = ["-C"]))]
    context: Option<u64>,
    /// How many results to answer at most. Default 100.
    #[schemars(range(min = 1, max = 10_000), extend("x-aliases" = ["head_limit", "max_results"]))]
    limit: Option<u64>,
    /// How many results to skip.
    #[schemars(range(min = 0, max = 100_000))]
    offset: Option<u64>,
    /// Whether files and directories whose name begins with a dot are searched.
    hidden: Option<bool>,
    /// Whether files that ignore files exclude are searched.
    #[schemars(extend("x-aliases" = ["no_ignore"]))]
    ignored: Option<bool>,
    /// Whether binary files are searched as if they were text.
    binary: Option<bool>,
}

/// What is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// The matching lines.
    #[default]
    Content,
    /// The files with hits.
    Files,
    /// The files with their number of hits.
    Count,
}

/// How upper and lower case are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Case {
    /// Only if the pattern has an upper-case letter.
    #[default]
    Smart,
    /// Always.
    Sensitive,
    /// Never.
    Insensitive,
}

impl From<Case> for matcher::Case {
    fn from(case: Case) -> Self {
        match case {
            Case::Smart => Self::Smart,
            Case::Sensitive => Self::Sensitive,
            Case::Insensitive => Self::Insensitive,
        }
    }
}

/// One hit, or in the other modes one file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Found {
    /// The file, relative to the working directory if beneath it, else absolute.
    path: String,
    /// The line the hit begins in, from 1.
    line: Option<u64>,
    /// Where the hit begins in the line, in bytes from 1.
    column: Option<u64>,
    /// Bytes of the hit.
    match_length: Option<u64>,
    /// The line without its end; of a long one the part around this hit, with … where something was left out. Each hit
    /// in a long line is answered by itself.
    text: Option<String>,
    /// Bytes of the line, when text is only a part of it.
    line_length: Option<u64>,
    /// Where the hit begins in text, in bytes from 0, when that is not column - 1.
    text_offset: Option<u64>,
    /// The lines right before.
    before: Option<Vec<String>>,
    /// The lines right after.
    after: Option<Vec<String>>,
    /// The encoding of the file, when it is not UTF-8.
    encoding: Option<String>,
    /// Present and true when the line is not UTF-8, so that text is a reading of its bytes.
    lossy: Option<bool>,
    /// Hits in the file, in mode count.
    count: Option<u64>,
}

/// What was not searched.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Skipped {
    /// Files and directories that ignore files exclude; ignored: true searches them.
    ignored: u64,
    /// Files and directories whose name begins with a dot; hidden: true searches them.
    hidden: u64,
    /// Binary files; binary: true searches them.
    binary: u64,
    /// FIFOs, sockets and devices.
    special: u64,
    /// Files with a line, or hits over line ends, too large to hold.
    too_large: u64,
    /// Symbolic links that lead out of the allowed roots.
    outside: u64,
}

/// Something that could not be read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Unread {
    /// The file or directory.
    path: String,
    /// Why.
    message: String,
}

/// A page of hits.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The hits, or in the modes files and count the files.
    matches: Vec<Found>,
    /// Hits in all: lines, and of a line too long to be shown whole each hit.
    total_matches: u64,
    /// Lines with hits in all, when that is another number.
    total_lines: Option<u64>,
    /// Files with hits in all.
    total_files: u64,
    /// Files that were searched.
    searched_files: u64,
    /// What was not searched.
    skipped: Skipped,
    /// What could not be read.
    errors: Vec<Unread>,
    /// Present and true when there may be hits in what could not be searched.
    incomplete: Option<bool>,
    /// Whether there are results after this page.
    truncated: bool,
    /// The offset of the next page.
    next_offset: Option<u64>,
    /// Whether the search was ended by its deadline.
    timed_out: bool,
}

/// Hits that are already known.
#[derive(Serialize)]
struct Part {
    matches: Vec<Found>,
}

pub(crate) struct Grep;

impl DataSource for Grep {
    const NAME: &'static str = "grep";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(30);
    type Provider = Search;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(search: Arc<Search>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let _busy = search.busy();
        let request = Request::new(&search, &args, &cx)?;
        let stop = Arc::new(Stop::at(search.deadline(&cx)));
        let _ends = StopOnDrop(stop.clone());
        let (sender, receiver) = mpsc::channel(256);
        let work = {
            let (stop, context) = (stop.clone(), cx.clone());
            cx.blocking(move || request.run(&stop, &context, &sender))
        };
        report(work, receiver, &stop, &cx).await
    }

    fn render(output: &Output) -> Option<Node> {
        Some(render(output))
    }
}

/// Sends hits as they come until the search is over.
async fn report(
    work: impl Future<Output = Result<Output, ToolError>>,
    mut found: mpsc::Receiver<Vec<Found>>,
    stop: &Stop,
    cx: &Cx<Events>,
) -> Result<Output, ToolError> {
    tokio::pin!(work);
    let mut cancelled = std::pin::pin!(cx.cancelled());
    let (mut pending, mut due) = (Vec::new(), tokio::time::Instant::now());
    loop {
        tokio::select! {
            biased;
            // The threads see it soon; nobody waits for them.
            () = &mut cancelled => {
                stop.now();
                return Err(ToolError::cancelled());
            }
            Some(more) = found.recv() => pending.extend(more),
            result = &mut work => return result,
            () = tokio::time::sleep_until(due), if !pending.is_empty() => {}
        }
        if !pending.is_empty() && tokio::time::Instant::now() >= due {
            cx.partial(&Part { matches: std::mem::take(&mut pending) }).await?;
            due = tokio::time::Instant::now() + PARTIAL_PAUSE;
        }
    }
}

/// A call, with everything in it read and found right.
struct Request {
    start: JailPath,
    pattern: Pattern,
    walk: walk::Options,
    mode: Mode,
    before: Option<usize>,
    after: Option<usize>,
    limit: usize,
    offset: usize,
    binary: bool,
}

impl Request {
    fn new(search: &Search, args: &Args, cx: &Cx<Events>) -> Result<Self, ToolError> {
        let start = search.start(args.path.as_deref(), cx.working_directory())?;
        start.note().into_iter().for_each(|note| cx.note(note));
        if args.pattern.is_empty() {
            let message =
                "pattern: it is empty and would match every line; use read_file to see a whole file";
            return Err(ToolError::invalid_arguments(message));
        }
        if args.pattern.len() > LONGEST_PATTERN {
            let message = format!(
                "pattern: it has {} bytes, and at most {LONGEST_PATTERN} are taken; search for a part of it",
                args.pattern.len()
            );
            return Err(ToolError::invalid_arguments(message));
        }
        let on = |flag: Option<bool>| flag.unwrap_or(false);
        let options = matcher::Options {
            fixed_strings: on(args.fixed_strings),
            case: args.case.unwrap_or_default().into(),
            word: on(args.word),
            multiline: on(args.multiline),
        };
        let wrong = |error: &dyn std::error::Error| ToolError::invalid_arguments(format!("grep: {error}"));
        let pattern = Pattern::new(&args.pattern, options).map_err(|error| wrong(&error))?;
        pattern.notes.iter().for_each(|note| cx.note(note));
        if pattern.multiline && !options.multiline {
            cx.note("the pattern has a line end in it, so it was searched for across lines");
        }
        let globs = filter::globs(args.glob.as_deref()).map_err(|error| wrong(&error))?;
        let (types, notes) = filter::types(args.r#type.as_deref()).map_err(|error| wrong(&error))?;
        notes.into_iter().for_each(|note| cx.note(note));
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let count = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
        Ok(Self {
            start,
            pattern,
            walk: walk::Options { hidden: on(args.hidden), ignored: on(args.ignored), globs, types, threads },
            mode: args.mode.unwrap_or_default(),
            before: count(args.before.or(args.context)),
            after: count(args.after.or(args.context)),
            limit: count(args.limit.or(Some(DEFAULT_LIMIT))).unwrap_or(usize::MAX),
            offset: count(args.offset).unwrap_or_default(),
            binary: on(args.binary),
        })
    }

    fn run(
        &self,
        stop: &Stop,
        cx: &Cx<Events>,
        sender: &mpsc::Sender<Vec<Found>>,
    ) -> Result<Output, ToolError> {
        let begun = Instant::now();
        let sent = std::sync::atomic::AtomicUsize::new(0);
        let found = |file: &FileHits| {
            let already = sent.fetch_add(file.hits.len().max(1), std::sync::atomic::Ordering::Relaxed);
            if already < self.limit {
                // Parts are a foretaste: where they are not taken fast enough, the result still has everything.
                let _ = sender.try_send(self.shown(file).take(self.limit - already).collect());
            }
        };
        let unit = if self.mode == Mode::Content { Unit::Hit } else { Unit::File };
        let mut query = Query {
            pattern: &self.pattern,
            walk: &self.walk,
            unit,
            first: self.offset.saturating_add(self.limit),
            before: self.before.unwrap_or(0),
            after: self.after.unwrap_or(0),
            binary: self.binary,
            found: &found,
        };
        let mut findings = grep(&self.start, &query, stop)?;
        cx.check_cancelled()?;
        let asked_around = self.before.is_some() || self.after.is_some();
        if unit == Unit::Hit && !asked_around && findings.totals.hits <= FEW && !stop.reached() {
            query = Query { before: AROUND_FEW, after: AROUND_FEW, found: &|_: &FileHits| {}, ..query };
            self.look_around(&mut findings, &query, stop);
        }
        Ok(self.output(&findings, stop, cx, begun.elapsed()))
    }

    /// Adds the lines around hits by searching their files once more; what has changed meanwhile stays as it was.
    fn look_around(&self, findings: &mut Findings, query: &Query<'_>, stop: &Stop) {
        for file in &mut findings.files {
            let again = grep(&self.place(&file.path), query, stop);
            let Some(again) = again.ok().and_then(|again| again.files.into_iter().next()) else { continue };
            let same = again.hits.len() == file.hits.len()
                && again
                    .hits
                    .iter()
                    .zip(&file.hits)
                    .all(|(new, old)| (new.line, &new.excerpt) == (old.line, &old.excerpt));
            if same {
                file.hits = again.hits;
            }
        }
    }

    fn output(&self, findings: &Findings, stop: &Stop, cx: &Cx<Events>, took: Duration) -> Output {
        let all = findings.files.iter().flat_map(|file| self.shown(file));
        let mut matches: Vec<Found> = Vec::new();
        let mut bytes = 0;
        for found in all.skip(self.offset).take(self.limit) {
            bytes += found.weight();
            if bytes > LARGEST_PAGE && !matches.is_empty() {
                break;
            }
            matches.push(found);
        }
        let totals = findings.totals;
        let total = if self.mode == Mode::Content { totals.hits } else { totals.files };
        let end = (self.offset + matches.len()) as u64;
        let truncated = !matches.is_empty() && end < total;
        self.note_about(findings, stop, cx, took, total);
        let tally = &findings.tally;
        let incomplete = stop.reached()
            || tally.failed > 0
            || tally.too_large > 0
            || self.pattern.given_up() > 0
            || (self.is_file() && tally.binary > 0);
        let unread =
            |(path, message): &(Vec<u8>, String)| Unread { path: self.name(path), message: message.clone() };
        Output {
            matches,
            total_matches: totals.hits,
            total_lines: (totals.lines != totals.hits).then_some(totals.lines),
            total_files: totals.files,
            searched_files: tally.searched,
            skipped: Skipped {
                ignored: tally.ignored,
                hidden: tally.hidden,
                binary: tally.binary,
                special: tally.special,
                too_large: tally.too_large,
                outside: tally.outside,
            },
            errors: findings.errors.iter().map(unread).collect(),
            incomplete: incomplete.then_some(true),
            truncated,
            next_offset: truncated.then_some(end),
            timed_out: stop.timed_out(),
        }
    }

    fn is_file(&self) -> bool {
        self.start.metadata().is_ok_and(|metadata| metadata.kind != FileKind::Directory)
    }

    /// Says in words what the numbers of a result mean for the caller's next step.
    fn note_about(&self, findings: &Findings, stop: &Stop, cx: &Cx<Events>, took: Duration, total: u64) {
        let tally = &findings.tally;
        if stop.timed_out() {
            cx.note(format!(
                "stopped by the deadline after {} ms, having searched {} files, the last of them `{}`; narrow the search \
                 with path, glob or type",
                took.as_millis(),
                tally.searched,
                self.name(&tally.reached),
            ));
        }
        if self.offset as u64 >= total && self.offset > 0 {
            let what = if self.mode == Mode::Content { "matches" } else { "files" };
            cx.note(format!("offset {} ≥ {total}: there are only {total} {what} in all", self.offset));
        }
        let unnamed = tally.failed - (findings.errors.len() as u64).min(tally.failed);
        if unnamed > 0 {
            cx.note(format!("{unnamed} more files and directories could not be read"));
        }
        if tally.too_large > 0 {
            let files = tally.too_large;
            cx.note(format!(
                "{files} files were too large to hold as the pattern needs and were not searched to the end"
            ));
        }
        match self.pattern.given_up() {
            0 => {}
            lines => cx.note(format!(
                "{lines} lines were given up after a million steps each; a pattern without nested repetitions would not need so many"
            )),
        }
        if total > 0 {
            return;
        }
        if self.is_file() && tally.binary > 0 {
            cx.note("the file is binary and was not searched to the end; binary: true does so");
        } else if tally.searched == 0 && tally.filtered > 0 {
            cx.note("no file is covered by the glob and type given, so nothing was searched");
        } else {
            self.note_left_out(findings, cx);
        }
    }

    /// Where nothing was found, what was left out matters.
    fn note_left_out(&self, findings: &Findings, cx: &Cx<Events>) {
        let tally = &findings.tally;
        let left_out: Vec<String> = [
            (tally.ignored, "ignored (ignored: true searches them)"),
            (tally.hidden, "hidden (hidden: true)"),
            (tally.binary, "binary (binary: true)"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if !left_out.is_empty() {
            cx.note(format!("files and directories left out: {}", left_out.join(", ")));
        }
    }

    /// The place with this path from the start.
    fn place(&self, path: &[u8]) -> JailPath {
        let names = Path::new(OsStr::from_bytes(path)).iter();
        names.fold(self.start.clone(), |place, name| place.join(name).unwrap_or(place))
    }

    /// How it is named in answers.
    fn name(&self, path: &[u8]) -> String {
        self.place(path).to_string()
    }

    /// The results in one file.
    fn shown<'a>(&'a self, file: &'a FileHits) -> Box<dyn Iterator<Item = Found> + 'a> {
        let path = self.name(&file.path);
        match self.mode {
            Mode::Content => Box::new(file.hits.iter().map(move |hit| Found::hit(path.clone(), file, hit))),
            Mode::Files => Box::new(std::iter::once(Found::file(path, None))),
            Mode::Count => Box::new(std::iter::once(Found::file(path, Some(file.total)))),
        }
    }
}

impl Found {
    fn file(path: String, count: Option<u64>) -> Self {
        Self {
            path,
            line: None,
            column: None,
            match_length: None,
            text: None,
            line_length: None,
            text_offset: None,
            before: None,
            after: None,
            encoding: None,
            lossy: None,
            count,
        }
    }

    fn hit(path: String, file: &FileHits, hit: &Hit) -> Self {
        let excerpt = &hit.excerpt;
        let lines = |lines: &Vec<String>| (!lines.is_empty()).then(|| lines.clone());
        Self {
            line: Some(hit.line),
            column: Some(excerpt.column),
            match_length: Some(excerpt.hit_length),
            text: Some(excerpt.text.clone()),
            line_length: excerpt.line_length,
            text_offset: (excerpt.hit_start as u64 + 1 != excerpt.column).then_some(excerpt.hit_start as u64),
            before: lines(&hit.before),
            after: lines(&hit.after),
            encoding: file.encoding.clone(),
            lossy: excerpt.lossy.then_some(true),
            ..Self::file(path, None)
        }
    }

    /// Bytes of text in the result.
    fn weight(&self) -> usize {
        let lines =
            |lines: &Option<Vec<String>>| lines.iter().flatten().map(|line| line.len() + 4).sum::<usize>();
        self.path.len() + self.text.as_ref().map_or(0, String::len) + lines(&self.before) + lines(&self.after)
    }

    /// The line with the hit between marks.
    fn marked(&self) -> String {
        let text = self.text.as_deref().unwrap_or_default();
        let (Some(column), Some(length)) = (self.column, self.match_length) else { return text.to_owned() };
        if length == 0 {
            return text.to_owned();
        }
        let start = self.text_offset.unwrap_or(column.saturating_sub(1));
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(text.len());
        match (text.get(..start), text.get(start..end), text.get(end..)) {
            (Some(before), Some(hit), Some(after)) => format!("{before}«{hit}»{after}"),
            _ => text.to_owned(),
        }
    }
}

/// One group per file: its name, then its hits with their line numbers.
fn render(output: &Output) -> Node {
    let mut nodes = Vec::new();
    for file in output.matches.chunk_by(|one, next| one.path == next.path) {
        let Some(first) = file.first() else { continue };
        if first.line.is_none() {
            let count = first.count.map_or_else(String::new, |count| format!(": {count}"));
            nodes.push(Node::text(format!("{}{count}", first.path)));
            continue;
        }
        let children = file.iter().flat_map(lines_of).collect();
        nodes.push(Node::Collapsible { summary: first.path.clone(), children, collapsed: false });
    }
    nodes.push(Node::styled(summary(output), Style::Dim));
    Node::Group(nodes)
}

fn lines_of(found: &Found) -> Vec<Node> {
    let line = found.line.unwrap_or_default();
    let before = found.before.as_deref().unwrap_or_default();
    let after = found.after.as_deref().unwrap_or_default();
    let around = |number: u64, text: &String| Node::styled(format!("{number:>6}- {text}"), Style::Dim);
    let first = line.saturating_sub(before.len() as u64);
    let hit_lines = found.text.as_deref().map_or(1, |text| text.matches('\n').count() as u64 + 1);
    let mut nodes: Vec<Node> = (first..).zip(before).map(|(number, text)| around(number, text)).collect();
    nodes.extend(
        (line..)
            .zip(found.marked().split('\n'))
            .map(|(number, text)| Node::text(format!("{number:>6}: {text}"))),
    );
    nodes.extend((line + hit_lines..).zip(after).map(|(number, text)| around(number, text)));
    nodes
}

/// The last line: "no matches" only where everything was searched.
fn summary(output: &Output) -> String {
    let searched = format!("{} files searched", output.searched_files);
    let incomplete = if output.timed_out {
        "; stopped by the deadline"
    } else if output.incomplete == Some(true) {
        "; not everything could be searched"
    } else {
        ""
    };
    let unread: String =
        output.errors.iter().map(|unread| format!("\n{}: {}", unread.path, unread.message)).collect();
    match (output.total_matches, incomplete) {
        (0, "") => format!("no matches, {searched}"),
        (0, why) => format!("nothing found so far, {searched}{why}{unread}"),
        (hits, why) => {
            let more =
                output.next_offset.map_or_else(String::new, |next| format!("; offset {next} continues"));
            format!("{hits} matches in {} files, {searched}{more}{why}{unread}", output.total_files)
        }
    }
}
