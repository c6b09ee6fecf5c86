//! Replacing text by splicing the original bytes: whatever lies outside the replaced span is copied, never decoded
//! and encoded again.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use super::explain::{Ambiguity, Explanation};
use super::find::{MatchKind, Matches, find};
use super::patience;
use super::text::{Ending, SpliceError, Text, split_ending};

/// What to replace by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// The text to look for.
    pub old_str: &'a str,
    /// The text to put in its place, literally: nothing in it is expanded or unescaped. Only its line endings follow
    /// those of the place.
    pub new_str: &'a str,
    /// Which occurrences are meant.
    pub select: Select,
}

/// Which occurrences an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Select {
    /// The only one; several are an error.
    #[default]
    Unique,
    /// All of them, at least one.
    All,
    /// All of them, and there must be this many.
    Count(u64),
    /// The one nearest to this line, from 1; two at the same distance are an error.
    Near(u64),
}

impl Select {
    /// The selection that the arguments of an edit ask for.
    ///
    /// # Errors
    /// [`ConflictingSelection`] when `near_line`, which asks for one occurrence, comes with an argument that asks for
    /// several.
    pub fn from_arguments(
        replace_all: bool,
        expected_count: Option<u64>,
        near_line: Option<u64>,
    ) -> Result<Self, ConflictingSelection> {
        match (near_line, expected_count) {
            (Some(line), None | Some(1)) if !replace_all => Ok(Self::Near(line)),
            (Some(_), _) => Err(ConflictingSelection),
            (None, Some(count)) => Ok(Self::Count(count)),
            (None, None) if replace_all => Ok(Self::All),
            (None, None) => Ok(Self::Unique),
        }
    }
}

/// `near_line` was combined with a wish for several replacements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "near_line picks one occurrence: it cannot be combined with replace_all or an expected_count other than 1"
)]
pub struct ConflictingSelection;

/// A planned edit: the whole new file, not yet written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The new content of the file.
    pub bytes: Vec<u8>,
    /// Where the new text stands in the new file, in order.
    pub replacements: Vec<LineRange>,
    /// How the old text was matched.
    pub matched: MatchKind,
    /// Whether the new content differs from the old.
    pub changed: bool,
}

/// Lines from `start_line` to `end_line`, both included, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The line that holds the first character.
    pub start_line: u64,
    /// The line that holds the last character; `start_line` where nothing is left.
    pub end_line: u64,
}

/// Why an edit cannot be made. The message says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is nothing to look for.
    #[error("old_str is empty: give the text to replace, or use write_file to give a file its whole content")]
    EmptyOldStr,
    /// The text does not occur.
    #[error("{0}")]
    NoMatch(Box<Explanation>),
    /// The text occurs more than once.
    #[error("{0}")]
    Ambiguous(Box<Ambiguity>),
    /// The text does not occur as often as expected.
    #[error("old_str occurs {found} times, expected_count is {expected}; nothing was changed. It begins in lines {}", line_list(.lines))]
    CountMismatch {
        /// The count that was asked for.
        expected: u64,
        /// The count that was found.
        found: u64,
        /// The lines where the occurrences begin, from 1; the first 100.
        lines: Vec<u64>,
    },
    /// The file's encoding does not allow it.
    #[error(transparent)]
    Encoding(#[from] SpliceError),
}

impl EditError {
    /// The stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyOldStr => "invalid_arguments",
            Self::NoMatch(_) => "no_match",
            Self::Ambiguous(_) => "ambiguous",
            Self::CountMismatch { .. } => "count_mismatch",
            Self::Encoding(_) => "unencodable",
        }
    }
}

/// Plans the edit of one file.
///
/// # Errors
/// [`EditError`] when it is not certain what is to be replaced.
pub fn plan(text: &Text<'_>, replacement: &Replacement<'_>) -> Result<Edit, EditError> {
    let body = text.body();
    if replacement.old_str.is_empty() {
        return Err(EditError::EmptyOldStr);
    }
    let matches = find(body, replacement.old_str)
        .ok_or_else(|| EditError::NoMatch(Box::new(Explanation::of(body, replacement.old_str))))?;
    let spans = select(body, &matches, replacement)?;
    let endings = Endings::of(replacement, matches.kind);
    splice(text, &spans, matches.kind, |span| endings.adapt(body, span))
}

/// The spans to replace, none overlapping another.
fn select(
    body: &str,
    matches: &Matches,
    replacement: &Replacement<'_>,
) -> Result<Vec<Range<usize>>, EditError> {
    let ambiguous =
        |spans: &[Range<usize>], near| Err(EditError::Ambiguous(Box::new(Ambiguity::of(body, spans, near))));
    match (replacement.select, matches.spans.as_slice()) {
        (Select::Unique | Select::Near(_), [only]) => Ok(vec![only.clone()]),
        // Which one is meant makes no difference when nothing changes.
        (Select::Unique, [first, ..]) if replacement.old_str == replacement.new_str => {
            Ok(vec![first.clone()])
        }
        (Select::Unique, spans) => ambiguous(spans, None),
        (Select::Near(line), spans) => match nearest(body, spans, line).as_slice() {
            [only] => Ok(vec![only.clone()]),
            tied => ambiguous(tied, Some(line)),
        },
        (Select::All, _) => Ok(matches.disjoint()),
        (Select::Count(expected), _) => {
            let spans = matches.disjoint();
            if spans.len() as u64 == expected {
                return Ok(spans);
            }
            let lines = lines_of(body, spans.iter().take(100));
            Err(EditError::CountMismatch { expected, found: spans.len() as u64, lines })
        }
    }
}

/// The spans at the smallest distance from `line`; a span that covers the line is at distance 0.
fn nearest(body: &str, spans: &[Range<usize>], line: u64) -> Vec<Range<usize>> {
    let first_lines = lines_of(body, spans.iter());
    let distances: Vec<u64> = spans
        .iter()
        .zip(first_lines)
        .map(|(span, first)| {
            let inside = body.as_bytes().get(span.start..span.end.saturating_sub(1)).unwrap_or_default();
            let last = first + memchr_iter(b'\n', inside).count() as u64;
            first.saturating_sub(line).max(line.saturating_sub(last))
        })
        .collect();
    let smallest = distances.iter().min().copied();
    spans
        .iter()
        .zip(distances)
        .filter(|&(_, at)| Some(at) == smallest)
        .map(|(span, _)| span.clone())
        .collect()
}

/// The numbers of the lines where `spans`, which are in order, begin.
fn lines_of<'s>(body: &str, spans: impl Iterator<Item = &'s Range<usize>>) -> Vec<u64> {
    let mut line = 1;
    let mut at = 0;
    spans
        .map(|span| {
            patience::check();
            line +=
                memchr_iter(b'\n', body.as_bytes().get(at..span.start).unwrap_or_default()).count() as u64;
            at = span.start;
            line
        })
        .collect()
}

fn line_list(lines: &[u64]) -> String {
    let shown: Vec<String> = lines.iter().map(u64::to_string).collect();
    shown.join(", ")
}

/// The file with each span of its body replaced, and where the new text stands.
fn splice<'a>(
    text: &Text<'_>,
    spans: &[Range<usize>],
    matched: MatchKind,
    new_text: impl Fn(Range<usize>) -> Cow<'a, str>,
) -> Result<Edit, EditError> {
    let body = text.body();
    let mut pieces: Vec<(Range<usize>, String)> = Vec::with_capacity(spans.len());
    let mut replacements = Vec::with_capacity(spans.len());
    let mut line = 1;
    let mut from = 0;
    // The last character before the place that is looked at, in the new file.
    let mut last = None;
    for span in spans {
        patience::check();
        let untouched = body.get(from..span.start).unwrap_or_default();
        line += count_breaks(untouched);
        last = untouched.chars().next_back().or(last);
        let inserted = new_text(span.clone());
        let rest = body.get(span.end..).unwrap_or_default();
        let inserted = without_doubled_return(last == Some('\r'), &inserted, rest);
        last = inserted.chars().next_back().or(last);
        let breaks = count_breaks(inserted);
        let end_line = line + breaks - u64::from(inserted.ends_with('\n'));
        replacements.push(LineRange { start_line: line, end_line });
        line += breaks;
        from = span.end;
        pieces.push((span.clone(), inserted.to_owned()));
    }
    let rest = body.get(from..).unwrap_or_default();
    last = rest.chars().next_back().or(last);
    let is_open = last.is_some_and(|last| last != '\n');
    let last_line = (line - 1 + count_breaks(rest) + u64::from(is_open)).max(1);
    for range in &mut replacements {
        range.start_line = range.start_line.min(last_line);
        range.end_line = range.end_line.min(last_line);
    }
    let bytes = text.splice(&pieces)?;
    Ok(Edit { changed: bytes != text.bytes(), bytes, replacements, matched })
}

fn count_breaks(text: &str) -> u64 {
    memchr_iter(b'\n', text.as_bytes()).count() as u64
}

/// The text to insert without a `\r` at its edge that would make `\r\r\n` of a line ending beside it.
fn without_doubled_return<'t>(after_return: bool, inserted: &'t str, rest: &str) -> &'t str {
    let inserted = match inserted.strip_prefix('\r') {
        Some(without) if after_return && without.starts_with('\n') => without,
        _ => inserted,
    };
    match inserted.strip_suffix('\r') {
        Some(without) if rest.starts_with("\r\n") => without,
        _ => inserted,
    }
}

/// The line endings of the text to insert.
enum Endings<'a> {
    /// As given: the edit is about the endings.
    Literal(&'a str),
    /// Those of the lines that are replaced.
    OfThePlace(&'a str),
}

impl<'a> Endings<'a> {
    fn of(replacement: &Replacement<'a>, matched: MatchKind) -> Self {
        let (old, new) = (replacement.old_str, replacement.new_str);
        // Old and new that differ in nothing but endings, with the old ones in the file: then they are what to change.
        let changes_only_endings = matched == MatchKind::Exact
            && old != new
            && old.replace("\r\n", "\n") == new.replace("\r\n", "\n");
        if changes_only_endings { Self::Literal(new) } else { Self::OfThePlace(new) }
    }

    fn adapt(&self, body: &str, span: Range<usize>) -> Cow<'a, str> {
        match *self {
            Self::Literal(new) => Cow::Borrowed(new),
            Self::OfThePlace(new) if memchr(b'\n', new.as_bytes()).is_none() => Cow::Borrowed(new),
            Self::OfThePlace(new) => Cow::Owned(with_endings_of(body, span, new)),
        }
    }
}

/// `new` with the endings of the lines in `span`; lines that stand in both keep their own, in a mixed file too.
fn with_endings_of(body: &str, span: Range<usize>, new: &str) -> String {
    let around = ending_around(body, &span);
    let old: Vec<(&str, Ending)> =
        body.get(span).unwrap_or_default().split_inclusive('\n').map(split_ending).collect();
    let new: Vec<(&str, Ending)> = new.split_inclusive('\n').map(split_ending).collect();
    let same = |(one, two): &(&(&str, Ending), &(&str, Ending))| one.0 == two.0;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();

    let mut text = String::new();
    for (index, (line, given)) in new.iter().enumerate() {
        text.push_str(line);
        if *given == Ending::None {
            continue;
        }
        let counterpart = if index < new.len() - tail {
            index.min(old.len().saturating_sub(tail + 1))
        } else {
            old.len() - (new.len() - index)
        };
        let nearest = old.get(..=counterpart).unwrap_or(&old).iter().rev().chain(&old);
        let ending = nearest.map(|&(_, ending)| ending).find(|&ending| ending != Ending::None);
        text.push_str(ending.or(around).unwrap_or(*given).as_str());
    }
    text
}

/// The ending of the line that `span` ends in, else of the line before it.
fn ending_around(body: &str, span: &Range<usize>) -> Option<Ending> {
    let bytes = body.as_bytes();
    let after = memchr(b'\n', bytes.get(span.end..)?).map(|at| span.end + at);
    let newline = after.or_else(|| memrchr(b'\n', bytes.get(..span.start)?))?;
    Some(Ending::at(bytes, newline))
}

#[cfg(test)]
mod tests;
