//! Holding hunks against a text.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::ops::Range;

use super::{Hunk, HunkLine, LineKind};
use crate::engine::explain::{Ambiguity, Explanation};
use crate::engine::patience;
use crate::engine::text::{Ending, Eol, SpliceError, Text, split_ending};

/// What the hunks of one file make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The whole new file, with those hunks in it that apply.
    pub bytes: Vec<u8>,
    /// What became of each hunk, in their order.
    pub reports: Vec<HunkReport>,
    /// Whether every hunk that applies had one place only, so that no line number was needed to choose.
    pub unique: bool,
}

/// What became of one hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkReport {
    /// Its number in the file's patch, from 1.
    pub index: usize,
    /// The line of the patch it begins in, from 1.
    pub patch_line: usize,
    /// What became of it.
    pub status: Status,
    /// Where its new lines stand in the new file; where it could be meant, if it is ambiguous.
    pub places: Vec<Place>,
    /// Why it did not apply, and what to do.
    pub explained: Option<Explained>,
}

/// A message about a hunk that did not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained(pub String);

/// What became of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its new lines are in the new file.
    Applied,
    /// They were in the old one.
    AlreadyApplied,
    /// Several places could be meant.
    Ambiguous,
    /// Its old lines are nowhere.
    NotFound,
}

/// Lines from the first to the last, both included, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The first line.
    pub start_line: usize,
    /// The last line; the first where none is left.
    pub end_line: usize,
}

/// Holds the hunks against the text, one after another, each below the one before.
///
/// # Errors
/// When the new text cannot be stored in the file's encoding.
pub fn apply(text: &Text<'_>, hunks: &[Hunk]) -> Result<Applied, SpliceError> {
    let file = FileLines::of(text.body());
    let mut run = Run { file: &file, pieces: Vec::new(), cursor: 0, shift: 0, grown: 0, unique: true };
    let reports = hunks.iter().enumerate().map(|(index, hunk)| run.hunk(index + 1, hunk)).collect();
    let unique = run.unique;
    let pieces = run.pieces;
    let bytes = if pieces.is_empty() { text.bytes().to_vec() } else { text.splice(&pieces)? };
    Ok(Applied { bytes, reports, unique })
}

/// The content of a file that a patch adds.
pub(crate) fn added(hunks: &[Hunk]) -> String {
    let lines: Vec<&HunkLine> = hunks.iter().flat_map(Hunk::after).collect();
    let mut content = String::new();
    for (index, line) in lines.iter().enumerate() {
        content.push_str(&line.text);
        if line.no_newline && index + 1 == lines.len() {
            break;
        }
        content.push_str(if line.carriage_return { "\r\n" } else { "\n" });
    }
    content
}

/// A text as lines, each known by a number that equal lines share.
struct FileLines<'t> {
    body: &'t str,
    lines: Vec<FileLine<'t>>,
    ids: HashMap<&'t str, u32>,
    numbers: Vec<u32>,
    eol: Eol,
}

struct FileLine<'t> {
    start: usize,
    text: &'t str,
    ending: Ending,
}

/// The number of a line that the text has not.
const NOWHERE: u32 = u32::MAX;

impl<'t> FileLines<'t> {
    fn of(body: &'t str) -> Self {
        let mut start = 0;
        let (mut ids, mut numbers) = (HashMap::new(), Vec::new());
        let lines: Vec<FileLine<'t>> = body
            .split_inclusive('\n')
            .map(|line| {
                patience::check();
                let (text, ending) = split_ending(line);
                let next = u32::try_from(ids.len()).unwrap_or(NOWHERE - 1);
                numbers.push(*ids.entry(text).or_insert(next));
                let line_start = start;
                start += line.len();
                FileLine { start: line_start, text, ending }
            })
            .collect();
        Self { body, lines, ids, numbers, eol: Eol::of(body.as_bytes()) }
    }

    fn len(&self) -> usize {
        self.lines.len()
    }

    fn numbers_of<'h>(&self, lines: impl Iterator<Item = &'h HunkLine>) -> Vec<u32> {
        lines.map(|line| self.ids.get(line.text.as_str()).copied().unwrap_or(NOWHERE)).collect()
    }

    /// Where a line begins; the end of the text for the line after the last.
    fn start_of(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.body.len(), |line| line.start)
    }

    fn span(&self, lines: Range<usize>) -> Range<usize> {
        self.start_of(lines.start)..self.start_of(lines.end)
    }

    fn ends_without_newline(&self) -> bool {
        self.lines.last().is_some_and(|line| line.ending == Ending::None)
    }

    fn is_at(&self, wanted: &[u32], line: usize) -> bool {
        self.numbers.get(line..line + wanted.len()).is_some_and(|found| found == wanted)
    }

    /// All lines where `wanted`, which is not empty, begins.
    fn occurrences(&self, wanted: &[u32]) -> Vec<usize> {
        if wanted.is_empty() || wanted.contains(&NOWHERE) {
            return Vec::new();
        }
        // How much of the beginning each beginning ends with, so that no line is looked at twice.
        let mut border = vec![0; wanted.len()];
        let mut matched = 0;
        for at in 1..wanted.len() {
            while matched > 0 && wanted[at] != wanted[matched] {
                matched = border[matched - 1];
            }
            matched += usize::from(wanted[at] == wanted[matched]);
            border[at] = matched;
        }
        let (mut found, mut matched) = (Vec::new(), 0);
        for (at, number) in self.numbers.iter().enumerate() {
            patience::check();
            while matched > 0 && *number != wanted[matched] {
                matched = border[matched - 1];
            }
            matched += usize::from(*number == wanted[matched]);
            if matched == wanted.len() {
                found.push(at + 1 - wanted.len());
                matched = border[matched - 1];
            }
        }
        found
    }

    /// The lines that an `@@` line can mean: equal but for blanks around; else that begin with it; else that have it.
    fn anchors(&self, anchor: &str) -> Vec<usize> {
        let wanted = anchor.trim();
        let all = |matches: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let lines = self.lines.iter().enumerate();
            lines.filter(|(_, line)| matches(line.text.trim())).map(|(index, _)| index).collect()
        };
        let equal = all(&|line| line == wanted);
        if !equal.is_empty() {
            return equal;
        }
        let beginning = all(&|line| line.starts_with(wanted));
        if beginning.is_empty() { all(&|line| line.contains(wanted)) } else { beginning }
    }

    /// The line after the block that is headed by `line`: the next that is indented no deeper and only closes nothing.
    fn block_end(&self, line: usize) -> usize {
        let indent = |text: &str| text.len() - text.trim_start().len();
        let head = self.lines.get(line).map_or(0, |line| indent(line.text));
        let ends = |line: &FileLine<'_>| {
            let text = line.text.trim();
            !text.is_empty() && indent(line.text) <= head && !text.starts_with(['}', ')', ']']) && text != "{"
        };
        let rest = self.lines.iter().skip(line + 1);
        rest.take_while(|line| !ends(line)).count() + line + 1
    }
}

/// Where hunks have been applied so far.
struct Run<'f, 't> {
    file: &'f FileLines<'t>,
    pieces: Vec<(Range<usize>, String)>,
    /// The first line that the next hunk may change.
    cursor: usize,
    /// How many lines further down than its number says the last hunk was found.
    shift: isize,
    /// How many lines more the new text has so far.
    grown: isize,
    unique: bool,
}

/// What is known about where a hunk belongs.
enum Found {
    At(usize),
    Already(usize),
    Ambiguous(Vec<usize>),
    Nowhere(String),
}

impl Run<'_, '_> {
    fn hunk(&mut self, index: usize, hunk: &Hunk) -> HunkReport {
        let report = |status, places, explained: Option<String>| HunkReport {
            index,
            patch_line: hunk.patch_line,
            status,
            places,
            explained: explained.map(Explained),
        };
        let old_lines = hunk.before().count();
        let shifted = |line: usize, grown: isize| line.saturating_add_signed(grown) + 1;
        match self.find(hunk) {
            Found::At(line) => {
                let place = self.put(hunk, line);
                report(Status::Applied, vec![place], None)
            }
            Found::Already(line) => {
                let new_lines = hunk.after().count().max(1);
                self.cursor = self.cursor.max((line + new_lines).min(self.file.len()));
                let start_line = shifted(line, self.grown);
                let place = Place { start_line, end_line: start_line + new_lines - 1 };
                report(Status::AlreadyApplied, vec![place], None)
            }
            Found::Ambiguous(lines) => {
                let place = |line: &usize| Place { start_line: line + 1, end_line: line + old_lines.max(1) };
                let places: Vec<Place> = lines.iter().map(place).collect();
                let explained = self.ambiguous(&lines, old_lines);
                report(Status::Ambiguous, places, Some(explained))
            }
            Found::Nowhere(explained) => report(Status::NotFound, Vec::new(), Some(explained)),
        }
    }

    fn find(&mut self, hunk: &Hunk) -> Found {
        let old = self.file.numbers_of(hunk.before());
        if old.is_empty() {
            return self.find_insertion(hunk);
        }
        let everywhere = self.file.occurrences(&old);
        let mut candidates: Vec<usize> =
            everywhere.iter().copied().filter(|line| *line >= self.cursor).collect();
        if hunk.at_end {
            candidates.retain(|line| line + old.len() == self.file.len());
        }
        if !hunk.anchors.is_empty() {
            let heads = self.heads(hunk);
            if heads.is_empty() {
                return Found::Nowhere(missing_anchor(hunk));
            }
            candidates = below(self.file, &heads, &candidates);
        }
        match candidates.as_slice() {
            [] => self.already(hunk, &everywhere),
            [only] => self.at(hunk, *only),
            several => {
                let hinted = hunk.old_start.and_then(|line| {
                    line.checked_sub(1)?.checked_add_signed(self.shift).filter(|line| several.contains(line))
                });
                match hinted {
                    Some(line) => {
                        self.unique = false;
                        self.at(hunk, line)
                    }
                    None => Found::Ambiguous(several.to_vec()),
                }
            }
        }
    }

    /// The hunk belongs at `line`, unless it only adds lines that are there already.
    fn at(&self, hunk: &Hunk, line: usize) -> Found {
        let only_adds = hunk.lines.iter().all(|line| line.kind != LineKind::Delete);
        let telling =
            hunk.lines.iter().any(|line| line.kind == LineKind::Insert && !line.text.trim().is_empty());
        if only_adds && telling {
            let leading = hunk.lines.iter().take_while(|line| line.kind == LineKind::Insert).count();
            let new = self.file.numbers_of(hunk.after());
            if let Some(start) = line.checked_sub(leading)
                && self.file.is_at(&new, start)
            {
                return Found::Already(start);
            }
        }
        Found::At(line)
    }

    /// A hunk without any line that stays or goes.
    fn find_insertion(&mut self, hunk: &Hunk) -> Found {
        let new = self.file.numbers_of(hunk.after());
        let there =
            |line: usize| if self.file.is_at(&new, line) { Found::Already(line) } else { Found::At(line) };
        if !hunk.anchors.is_empty() {
            let heads = self.heads(hunk);
            return match heads.as_slice() {
                [] => Found::Nowhere(missing_anchor(hunk)),
                [only] if only + 1 >= self.cursor => there(only + 1),
                [_] => Found::Nowhere("its @@ line stands above what an earlier hunk changed".to_owned()),
                several => Found::Ambiguous(several.to_vec()),
            };
        }
        if self.file.len() == 0 {
            return Found::At(0);
        }
        if hunk.at_end {
            let tail = self.file.len().saturating_sub(new.len());
            return if self.file.is_at(&new, tail) {
                Found::Already(tail)
            } else {
                Found::At(self.file.len())
            };
        }
        Found::Nowhere(
            "it has only lines that come, and so nothing to find its place by: add the lines around the place, which \
             stay, or a line that stands above it after @@"
                .to_owned(),
        )
    }

    /// The lines that the hunk's `@@` lines lead to, each below the ones before it.
    fn heads(&self, hunk: &Hunk) -> Vec<usize> {
        let mut heads: Option<BTreeSet<usize>> = None;
        for anchor in &hunk.anchors {
            let lines = self.file.anchors(anchor);
            heads = Some(match heads {
                None => lines.into_iter().collect(),
                Some(above) => {
                    above.iter().filter_map(|above| lines.iter().copied().find(|line| line > above)).collect()
                }
            });
        }
        heads.into_iter().flatten().collect()
    }

    /// A hunk whose old lines are nowhere: applied already, if its new ones are there, in one place, and it is certain
    /// that they are meant.
    fn already(&self, hunk: &Hunk, everywhere: &[usize]) -> Found {
        let new = self.file.numbers_of(hunk.after());
        let telling =
            hunk.lines.iter().any(|line| line.kind == LineKind::Insert && !line.text.trim().is_empty())
                || new.len() > 2;
        let found: Vec<usize> =
            self.file.occurrences(&new).into_iter().filter(|line| *line >= self.cursor).collect();
        match found.as_slice() {
            [only] if telling && self.is_certain(hunk, *only) => Found::Already(*only),
            [only] if telling => Found::Nowhere(format!(
                "{}\nIts new lines stand in line {} already: if they were put there by this change, leave it out",
                self.explain(hunk, everywhere).trim_end(),
                only + 1
            )),
            _ => Found::Nowhere(self.explain(hunk, everywhere)),
        }
    }

    /// Whether new lines at `line` are those of the hunk, and not like them by chance: other lines of the hunk are
    /// around them, it says where it is, or there are many.
    fn is_certain(&self, hunk: &Hunk, line: usize) -> bool {
        const MANY: usize = 3;
        let solid = |kind| move |line: &&HunkLine| line.kind == kind && !line.text.trim().is_empty();
        let around = hunk.lines.iter().any(|line| solid(LineKind::Context)(&line));
        let inserted = hunk.lines.iter().filter(solid(LineKind::Insert)).count();
        around || !hunk.anchors.is_empty() || hunk.old_start == Some(line + 1) || inserted >= MANY
    }

    /// Puts the hunk's changes at `line`; what stays is not touched.
    fn put(&mut self, hunk: &Hunk, line: usize) -> Place {
        let mut at = line;
        let (mut first, mut last) = (None, 0);
        let mut rest = hunk.lines.as_slice();
        let has = |carriage_return| hunk.lines.iter().any(|line| line.carriage_return == carriage_return);
        // With both kinds in the patch, and those of the old lines right, it means them.
        let means_endings = has(true) && has(false) && self.is_faithful(hunk, line);
        while let Some(next) = rest.first() {
            if next.kind == LineKind::Context {
                at += 1;
                rest = &rest[1..];
                continue;
            }
            let changed = rest.iter().take_while(|line| line.kind != LineKind::Context).count();
            let (change, following) = rest.split_at(changed);
            let deleted = change.iter().filter(|line| line.kind == LineKind::Delete).count();
            let inserted: Vec<&HunkLine> =
                change.iter().filter(|line| line.kind == LineKind::Insert).collect();
            let new = self.new_text(hunk, means_endings, at..at + deleted, &inserted);
            self.pieces.push((self.file.span(at..at + deleted), new));
            let start = at.saturating_add_signed(self.grown) + 1;
            first.get_or_insert(start);
            last = start + inserted.len().max(1) - 1;
            self.grown += inserted.len().cast_signed() - deleted.cast_signed();
            at += deleted;
            // What stays below the change may be what the next hunk begins with.
            self.cursor = at;
            rest = following;
        }
        if let Some(claimed) = hunk.old_start.and_then(|start| start.checked_sub(1)) {
            self.shift = line.cast_signed() - claimed.cast_signed();
        }
        let start_line = first.unwrap_or(line + 1);
        Place { start_line, end_line: last.max(start_line) }
    }

    /// The lines that come, with the endings of those that go, and with or without a newline at the end as it was or
    /// as the patch says.
    fn new_text(
        &self,
        hunk: &Hunk,
        means_endings: bool,
        old: Range<usize>,
        inserted: &[&HunkLine],
    ) -> String {
        let file = self.file;
        let mut text = String::new();
        let Some((last, _)) = inserted.split_last() else { return text };
        let at_file_end = old.end == file.len();
        let says = hunk.lines.iter().any(|line| line.no_newline);
        if old.is_empty() && at_file_end && file.ends_without_newline() {
            text.push_str(self.ending(means_endings, &old, 0, inserted));
        }
        for (index, line) in inserted.iter().enumerate() {
            text.push_str(&line.text);
            let bare = if says { last.no_newline } else { file.ends_without_newline() };
            if index + 1 == inserted.len() && at_file_end && bare {
                break;
            }
            text.push_str(self.ending(means_endings, &old, index, inserted));
        }
        text
    }

    /// Whether the old lines of a hunk that begins at `start` end as those of the file do.
    fn is_faithful(&self, hunk: &Hunk, start: usize) -> bool {
        let found = self.file.lines.iter().skip(start);
        hunk.before().zip(found).all(|(line, found)| line.carriage_return == (found.ending == Ending::Crlf))
    }

    /// The ending of the line that comes as number `index`.
    fn ending(
        &self,
        means_endings: bool,
        old: &Range<usize>,
        index: usize,
        inserted: &[&HunkLine],
    ) -> &'static str {
        let own = |line: &HunkLine| if line.carriage_return { "\r\n" } else { "\n" };
        let line = inserted.get(index);
        let lines = &self.file.lines;
        if means_endings && let Some(line) = line {
            return own(line);
        }
        let replaced = lines.get(old.clone()).unwrap_or_default();
        let counterpart = replaced.get(..=index).unwrap_or(replaced).iter().rev();
        let above = old.start.checked_sub(1).and_then(|above| lines.get(above));
        let around = above.into_iter().chain(lines.get(old.end)).chain(lines.first());
        let known = counterpart.chain(around).map(|line| line.ending).find(|ending| *ending != Ending::None);
        match (known, self.file.eol) {
            (Some(ending), _) => ending.as_str(),
            (None, Eol::Crlf) => "\r\n",
            (None, _) => line.map_or("\n", |line| own(line)),
        }
    }

    fn ambiguous(&self, lines: &[usize], old_lines: usize) -> String {
        let spans: Vec<Range<usize>> =
            lines.iter().map(|line| self.file.span(*line..line + old_lines.max(1))).collect();
        let ambiguity = Ambiguity::of(self.file.body, &spans, None);
        let mut text = format!("its old lines stand in {} places:", ambiguity.total);
        for candidate in &ambiguity.candidates {
            // Writing to a String cannot fail.
            let _ = write!(text, "\nline {}:\n{}", candidate.line, candidate.context.trim_end_matches('\n'));
        }
        text.push_str(
            "\nAdd lines that stay above or below until only one place has them, or write a line that stands above it \
             after @@",
        );
        text
    }

    fn explain(&self, hunk: &Hunk, everywhere: &[usize]) -> String {
        if let Some(line) = everywhere.first() {
            let line = line + 1;
            return match (hunk.at_end, everywhere.iter().all(|line| *line < self.cursor)) {
                (_, true) => format!(
                    "its old lines stand in line {line}, above what an earlier hunk changed: put the hunks in the order of \
                     the file"
                ),
                (true, _) => format!(
                    "its old lines stand in line {line}, but not at the end of the file: leave out `*** End of File`"
                ),
                _ => format!(
                    "its old lines stand in line {line}, but not below the line after @@: correct that line"
                ),
            };
        }
        let old: String = hunk.before().map(|line| format!("{}\n", line.text)).collect();
        let explanation = Explanation::of(self.file.body, &old).to_string();
        // It speaks to those who edit.
        let explanation = explanation
            .replacen("old_str does not occur in the file; nothing was changed.", "", 1)
            .replace("old_str", "the old lines");
        format!("its old lines (those that stay or go) are not in the file.{explanation}")
    }
}

fn missing_anchor(hunk: &Hunk) -> String {
    let anchors: Vec<String> = hunk.anchors.iter().map(|anchor| format!("`{anchor}`")).collect();
    format!(
        "no line of the file has what follows @@ ({}): write a line that stands above the change, as it is in the file",
        anchors.join(", ")
    )
}

/// The candidates below the heads. The nearest below each head is meant, as long as it is in the block that the head
/// begins; one that is not counts only where there is no other anywhere.
fn below(file: &FileLines<'_>, heads: &[usize], candidates: &[usize]) -> Vec<usize> {
    let nearest: BTreeSet<(usize, usize)> = heads
        .iter()
        .filter_map(|head| Some((*candidates.iter().find(|line| *line >= head)?, *head)))
        .collect();
    let inside: BTreeSet<usize> =
        nearest.iter().filter(|(line, head)| *line < file.block_end(*head)).map(|(line, _)| *line).collect();
    if !inside.is_empty() {
        return inside.into_iter().collect();
    }
    let reached: BTreeSet<usize> = nearest.into_iter().map(|(line, _)| line).collect();
    match candidates {
        [only] if reached.contains(only) => vec![*only],
        _ if reached.is_empty() => Vec::new(),
        several => several.iter().copied().filter(|line| heads.iter().any(|head| line >= head)).collect(),
    }
}
