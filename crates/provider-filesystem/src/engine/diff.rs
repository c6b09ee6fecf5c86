//! What changed between two versions of a file, by lines.

use std::fmt::Write as _;
use std::ops::Range;

use imara_diff::sources::{ByteLines, byte_lines};
use imara_diff::{Algorithm, InternedInput, TokenSource};
use memchr::memchr_iter;

use super::encoding::Encoding;
use super::patience;
use super::text::{Ending, Eol, Text};

/// Unchanged lines shown around a change.
pub const CONTEXT_LINES: usize = 3;

/// Where a unified diff is cut by default, in bytes.
pub const MAX_UNIFIED_BYTES: usize = 32 * 1024;

/// Unchanged lines around the changed region that take part in aligning it: enough to slide a hunk to where a
/// person would put it, while the rest of a huge file is never looked at line by line.
const SLIDE_LINES: usize = 64;

/// The changes from one version of a file to another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// The changed places in order, each with its context. Empty when nothing changed.
    pub hunks: Vec<Hunk>,
    /// How the ending of the last line changed, if it did.
    pub final_newline: Option<FinalNewline>,
    /// The line endings before and after, if they differ in kind.
    pub eol: Option<(Eol, Eol)>,
    /// The encodings before and after, if the characters are stored in another.
    pub encoding: Option<(Encoding, Encoding)>,
}

/// One changed place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The first line in the old version, from 1; the line before it when `old_lines` is 0.
    pub old_start: usize,
    /// How many lines of the old version the hunk covers.
    pub old_lines: usize,
    /// The first line in the new version, from 1; the line before it when `new_lines` is 0.
    pub new_start: usize,
    /// How many lines of the new version the hunk covers.
    pub new_lines: usize,
    /// The lines, context included.
    pub lines: Vec<DiffLine>,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// What happens to the line.
    pub op: Op,
    /// The line without its ending. Bytes that are not UTF-8 are shown as U+FFFD.
    pub text: String,
    /// How the line ends.
    pub ending: Ending,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// It stays.
    Context,
    /// It is in the old version only.
    Delete,
    /// It is in the new version only.
    Insert,
}

impl Op {
    /// The first column of a unified diff.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Self::Context => ' ',
            Self::Delete => '-',
            Self::Insert => '+',
        }
    }
}

/// A change of the newline at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalNewline {
    /// The old version had none, the new one has.
    Added,
    /// The old version had one, the new one has none.
    Removed,
}

impl Diff {
    /// Compares two versions. Work and memory are linear in the sizes for all practical input; the unchanged
    /// beginning and end cost one pass and nothing more.
    #[must_use]
    pub fn between(old: &[u8], new: &[u8]) -> Self {
        if old == new {
            return Self::default();
        }
        let region = Region::around_changes(old, new);
        let input = InternedInput::new(lines(region.old), lines(region.new));
        let mut changes = imara_diff::Diff::compute(Algorithm::Histogram, &input);
        changes.postprocess_lines(&input);

        let before: Vec<&[u8]> = lines(region.old).collect();
        let after: Vec<&[u8]> = lines(region.new).collect();
        let changes: Vec<Change> = changes.hunks().map(Change::from).collect();
        let hunks = changes
            .chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT_LINES)
            .map(|group| hunk(&before, &after, group, region.lines_before))
            .collect();
        let (old_eol, new_eol) = (Eol::of(old), Eol::of(new));
        Self {
            hunks,
            final_newline: final_newline(old, new),
            eol: (old_eol != new_eol && old_eol != Eol::None && new_eol != Eol::None)
                .then_some((old_eol, new_eol)),
            encoding: None,
        }
    }

    /// Compares two versions of a file as the texts they hold, whatever their encodings.
    #[must_use]
    pub fn of_files(old: &[u8], new: &[u8]) -> Self {
        let Ok(before) = Text::parse(old) else { return Self::between(old, new) };
        let after = match (Text::parse(new), before.encoding()) {
            // What an encoding of old is guessed to be depends on the text; a change does not make it another.
            (Ok(after), Encoding::Legacy(_)) if matches!(after.encoding(), Encoding::Legacy(_)) => {
                Text::parse_as(new, before.encoding())
            }
            (Ok(after), _) => after,
            (Err(_), Encoding::Utf8) => return Self::between(old, new),
            (Err(_), encoding) => Text::parse_as(new, encoding),
        };
        if before.encoding() == Encoding::Utf8 && after.encoding() == Encoding::Utf8 {
            return Self::between(old, new);
        }
        let in_characters = Self::between(before.body().as_bytes(), after.body().as_bytes());
        // The same characters in other bytes are a change all the same.
        let diff = if in_characters.is_empty() { Self::between(old, new) } else { in_characters };
        let is_told = before.encoding() != after.encoding() && !old.is_ascii() && !new.is_ascii();
        Self { encoding: is_told.then_some((before.encoding(), after.encoding())), ..diff }
    }

    /// The diff of an excerpt as one of the whole text, in which `lines` lines stand before it. What is only known of
    /// the whole, such as its final newline, is left out.
    #[must_use]
    pub fn of_excerpt(mut self, lines: usize) -> Self {
        for hunk in &mut self.hunks {
            hunk.old_start += lines;
            hunk.new_start += lines;
        }
        Self { final_newline: None, eol: None, encoding: None, ..self }
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }

    /// How many lines were added and removed.
    #[must_use]
    pub fn line_counts(&self) -> (usize, usize) {
        let lines = || self.hunks.iter().flat_map(|hunk| &hunk.lines);
        let count = |op| lines().filter(|line| line.op == op).count();
        (count(Op::Insert), count(Op::Delete))
    }

    /// The diff as `patch` and `git apply` read it; empty when nothing changed.
    ///
    /// `old` and `new` are the names of the two versions, `None` for one that does not exist. What does not fit
    /// into `max_bytes` is left out from the end, by whole hunks if possible, and a last line says how much.
    #[must_use]
    pub fn unified(&self, old: Option<&str>, new: Option<&str>, max_bytes: usize) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = format!("--- {}\n+++ {}\n", name("a/", old), name("b/", new));
        for (index, hunk) in self.hunks.iter().enumerate() {
            let mut printed = hunk.to_string();
            let mut hidden = 0;
            if text.len() + printed.len() > max_bytes {
                hidden = if index == 0 {
                    cut_lines(&mut printed, max_bytes.saturating_sub(text.len()))
                } else {
                    std::mem::take(&mut printed);
                    hunk.lines.len()
                };
            }
            text.push_str(&printed);
            if hidden > 0 {
                let rest = self.hunks.get(index + 1..).unwrap_or_default();
                hidden += rest.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
                let of = self.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
                // Writing to a String cannot fail.
                let _ = writeln!(text, "... diff cut at {max_bytes} bytes: {hidden} of {of} lines left out");
                break;
            }
        }
        text
    }

    /// What a reader of the lines alone would not see: a changed final newline, changed line endings, another encoding.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let newline = self.final_newline.map(|change| match change {
            FinalNewline::Added => "newline at the end of the file added".to_owned(),
            FinalNewline::Removed => "newline at the end of the file removed".to_owned(),
        });
        let eol =
            self.eol.map(|(old, new)| format!("line endings changed: {} to {}", old.name(), new.name()));
        let encoding = self.encoding.map(|(old, new)| format!("encoding changed: {old} to {new}"));
        newline.into_iter().chain(eol).chain(encoding).collect()
    }
}

/// The hunk as it stands in a unified diff.
impl std::fmt::Display for Hunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = |start: usize, lines: usize| match lines {
            1 => start.to_string(),
            _ => format!("{start},{lines}"),
        };
        let (old, new) = (range(self.old_start, self.old_lines), range(self.new_start, self.new_lines));
        writeln!(f, "@@ -{old} +{new} @@")?;
        for line in &self.lines {
            // The `\r` of a CRLF belongs to what `patch` compares; the `\n` is the diff's own.
            let carriage_return = if line.ending == Ending::Crlf { "\r" } else { "" };
            writeln!(f, "{}{}{carriage_return}", line.op.sign(), line.text)?;
            if line.ending == Ending::None {
                writeln!(f, "\\ No newline at end of file")?;
            }
        }
        Ok(())
    }
}

/// The name of a version as `patch` expects it: a tab ends a name with blanks in it.
fn name(prefix: &str, name: Option<&str>) -> String {
    let Some(name) = name else { return "/dev/null".to_owned() };
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let end = if name.contains(' ') { "\t" } else { "" };
    format!("{prefix}{name}{end}")
}

/// Cuts a printed hunk to at most `max_bytes` at a line boundary; returns how many of its lines were dropped.
fn cut_lines(printed: &mut String, max_bytes: usize) -> usize {
    let ends = memchr_iter(b'\n', printed.as_bytes()).map(|at| at + 1).take_while(|&end| end <= max_bytes);
    // A header alone would be a hunk without lines.
    let keep = match ends.collect::<Vec<_>>().as_slice() {
        [] | [_] => 0,
        [.., last] => *last,
    };
    let dropped = printed.split_off(keep);
    dropped.lines().filter(|line| !line.starts_with(['@', '\\'])).count()
}

/// One changed range, in lines of the compared region.
struct Change {
    before: Range<usize>,
    after: Range<usize>,
}

impl From<imara_diff::Hunk> for Change {
    fn from(hunk: imara_diff::Hunk) -> Self {
        let wide = |range: Range<u32>| range.start as usize..range.end as usize;
        Self { before: wide(hunk.before), after: wide(hunk.after) }
    }
}

fn hunk(before: &[&[u8]], after: &[&[u8]], changes: &[Change], lines_before: usize) -> Hunk {
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return Hunk { old_start: 0, old_lines: 0, new_start: 0, new_lines: 0, lines: Vec::new() };
    };
    let lead = first.before.start.min(CONTEXT_LINES);
    let tail = (before.len() - last.before.end).min(CONTEXT_LINES);
    let old = first.before.start - lead..last.before.end + tail;
    let new = first.after.start - lead..last.after.end + tail;

    let mut lines = Vec::new();
    let mut push = |op, from: &[&[u8]], range: Range<usize>| {
        lines.extend(from.get(range).unwrap_or_default().iter().map(|line| diff_line(op, line)));
    };
    let mut at = old.start;
    for change in changes {
        push(Op::Context, before, at..change.before.start);
        push(Op::Delete, before, change.before.clone());
        push(Op::Insert, after, change.after.clone());
        at = change.before.end;
    }
    push(Op::Context, before, at..old.end);

    let start = |range: &Range<usize>| lines_before + range.start + usize::from(!range.is_empty());
    Hunk { old_start: start(&old), old_lines: old.len(), new_start: start(&new), new_lines: new.len(), lines }
}

/// The lines of a part, as long as somebody waits for the diff.
#[derive(Clone, Copy)]
struct Lines<'a>(ByteLines<'a>);

fn lines(part: &[u8]) -> Lines<'_> {
    Lines(byte_lines(part))
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        patience::check();
        self.0.next()
    }
}

impl<'a> TokenSource for Lines<'a> {
    type Token = &'a [u8];
    type Tokenizer = Self;

    fn tokenize(&self) -> Self {
        *self
    }

    fn estimate_tokens(&self) -> u32 {
        self.0.estimate_tokens()
    }
}

fn diff_line(op: Op, line: &[u8]) -> DiffLine {
    let (text, ending) = match line {
        [text @ .., b'\r', b'\n'] => (text, Ending::Crlf),
        [text @ .., b'\n'] => (text, Ending::Lf),
        text => (text, Ending::None),
    };
    DiffLine { op, text: String::from_utf8_lossy(text).into_owned(), ending }
}

fn final_newline(old: &[u8], new: &[u8]) -> Option<FinalNewline> {
    // A file that begins or ceases to hold anything has no last line to compare.
    match (old.last()? == &b'\n', new.last()? == &b'\n') {
        (false, true) => Some(FinalNewline::Added),
        (true, false) => Some(FinalNewline::Removed),
        _ => None,
    }
}

/// The part of two versions that has to be compared line by line: all changes and some lines around them.
struct Region<'a> {
    old: &'a [u8],
    new: &'a [u8],
    /// Lines before the region, the same in both.
    lines_before: usize,
}

impl<'a> Region<'a> {
    fn around_changes(old: &'a [u8], new: &'a [u8]) -> Self {
        let prefix = back_over_lines(old, common_prefix(old, new), SLIDE_LINES);
        let (old_rest, new_rest) =
            (old.get(prefix..).unwrap_or_default(), new.get(prefix..).unwrap_or_default());
        let suffix = common_suffix(old_rest, new_rest);
        let suffix = suffix - forward_over_lines(old_rest, old_rest.len() - suffix, SLIDE_LINES);
        Self {
            old: old_rest.get(..old_rest.len() - suffix).unwrap_or_default(),
            new: new_rest.get(..new_rest.len() - suffix).unwrap_or_default(),
            lines_before: memchr_iter(b'\n', old.get(..prefix).unwrap_or_default()).count(),
        }
    }
}

const BLOCK: usize = 4096;

/// How many bytes both begin with.
pub(crate) fn common_prefix(one: &[u8], two: &[u8]) -> usize {
    let blocks = one.chunks(BLOCK).zip(two.chunks(BLOCK)).take_while(|(one, two)| one == two).count();
    let from = (blocks * BLOCK).min(one.len()).min(two.len());
    from + one.iter().skip(from).zip(two.iter().skip(from)).take_while(|(one, two)| one == two).count()
}

/// How many bytes both end with.
pub(crate) fn common_suffix(one: &[u8], two: &[u8]) -> usize {
    let blocks = one.rchunks(BLOCK).zip(two.rchunks(BLOCK)).take_while(|(one, two)| one == two).count();
    let from = (blocks * BLOCK).min(one.len()).min(two.len());
    let tails = one.iter().rev().skip(from).zip(two.iter().rev().skip(from));
    from + tails.take_while(|(one, two)| one == two).count()
}

/// The beginning of the line that lies `lines` lines before the one that holds `at`.
fn back_over_lines(bytes: &[u8], at: usize, lines: usize) -> usize {
    let before = bytes.get(..at).unwrap_or_default();
    memchr::memrchr_iter(b'\n', before).nth(lines).map_or(0, |newline| newline + 1)
}

/// How many bytes from `at` to the end of the line that lies `lines` lines after the one that holds `at`.
fn forward_over_lines(bytes: &[u8], at: usize, lines: usize) -> usize {
    let after = bytes.get(at..).unwrap_or_default();
    memchr_iter(b'\n', after).nth(lines).map_or(after.len(), |newline| newline + 1)
}

#[cfg(test)]
mod tests;
