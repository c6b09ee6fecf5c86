//! Where a piece of text occurs: exactly, or equal but for line endings. Nothing looser is ever a match.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

use super::patience;

/// How closely the text that was asked for equals what the file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// Byte for byte.
    Exact,
    /// Byte for byte, once `\r\n` and `\n` count as the same.
    LineEndings,
}

/// All places where a text occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matches {
    /// How they match; the same for all.
    pub kind: MatchKind,
    /// Their places as byte offsets, in order; never empty. Two may overlap: `aa` occurs twice in `aaa`.
    pub spans: Vec<Range<usize>>,
}

impl Matches {
    /// The occurrences that can all be replaced at once: from the left, none overlapping the one before.
    #[must_use]
    pub fn disjoint(&self) -> Vec<Range<usize>> {
        let mut taken: Vec<Range<usize>> = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            if taken.last().is_none_or(|last| last.end <= span.start) {
                taken.push(span.clone());
            }
        }
        taken
    }
}

/// How many bytes a match of `needle` can take at most.
pub(super) fn longest_match(needle: &str) -> usize {
    needle.len() + memchr_iter(b'\n', needle.as_bytes()).count() + 1
}

/// Finds `needle` in `haystack`; `None` when it does not occur, or is empty.
///
/// An exact match rules out the looser one. A match that would begin between a `\r` and its `\n` begins before the
/// `\r`, so that a line ending is replaced whole or not at all.
#[must_use]
pub fn find(haystack: &str, needle: &str) -> Option<Matches> {
    if needle.is_empty() {
        return None;
    }
    let bytes = haystack.as_bytes();
    let exact = occurrences(bytes, needle.as_bytes());
    if !exact.is_empty() {
        let spans: Vec<_> = exact.into_iter().map(|span| whole_ending(bytes, span)).collect();
        let is_exact = spans.iter().all(|span| span.len() == needle.len());
        let kind = if is_exact { MatchKind::Exact } else { MatchKind::LineEndings };
        return Some(Matches { kind, spans });
    }
    let spans = but_for_line_endings(bytes, needle);
    (!spans.is_empty()).then_some(Matches { kind: MatchKind::LineEndings, spans })
}

/// All occurrences from the left; if that is one, also the one that overlaps it, so that it is not taken as unique.
/// (Looking for all that overlap would be quadratic in a file of nothing but `a`.)
fn occurrences(haystack: &[u8], needle: &[u8]) -> Vec<Range<usize>> {
    let finder = memmem::Finder::new(needle);
    let mut spans: Vec<_> = finder
        .find_iter(haystack)
        .map(|at| {
            patience::check();
            at..at + needle.len()
        })
        .collect();
    if let [only] = spans.as_slice() {
        let from = only.start + 1;
        if let Some(at) = haystack.get(from..).and_then(|rest| finder.find(rest)) {
            spans.push(from + at..from + at + needle.len());
        }
    }
    spans
}

/// The span widened over a `\r` that stands before a `\n` it begins with.
fn whole_ending(haystack: &[u8], span: Range<usize>) -> Range<usize> {
    let begins_inside = haystack.get(span.start) == Some(&b'\n')
        && span.start.checked_sub(1).and_then(|before| haystack.get(before)) == Some(&b'\r');
    span.start - usize::from(begins_inside)..span.end
}

fn but_for_line_endings(haystack: &[u8], needle: &str) -> Vec<Range<usize>> {
    let plain = WithoutReturns::of(haystack);
    if plain.dropped.is_empty() && !needle.contains("\r\n") {
        return Vec::new();
    }
    occurrences(&plain.bytes, needle.replace("\r\n", "\n").as_bytes())
        .into_iter()
        .map(|span| plain.original(span.start)..plain.original(span.end))
        .collect()
}

/// A text in which every `\r\n` has become `\n`, and the way back.
struct WithoutReturns {
    bytes: Vec<u8>,
    /// Where in `bytes` a `\r` is missing, in order.
    dropped: Vec<usize>,
}

impl WithoutReturns {
    fn of(haystack: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(haystack.len());
        let mut dropped = Vec::new();
        let mut from = 0;
        for newline in memchr_iter(b'\n', haystack) {
            patience::check();
            let line = haystack.get(from..newline).unwrap_or_default();
            let body = line.strip_suffix(b"\r").unwrap_or(line);
            bytes.extend_from_slice(body);
            if body.len() != line.len() {
                dropped.push(bytes.len());
            }
            bytes.push(b'\n');
            from = newline + 1;
        }
        bytes.extend_from_slice(haystack.get(from..).unwrap_or_default());
        Self { bytes, dropped }
    }

    /// Where `position` lies in the original: before a `\r\n` rather than inside it.
    fn original(&self, position: usize) -> usize {
        position + self.dropped.partition_point(|&at| at < position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(haystack: &str, needle: &str, expected: Option<(MatchKind, &[&str], &[usize])>) {
        let found = find(haystack, needle);
        let shown = found.as_ref().map(|matches| {
            let texts: Vec<_> = matches.spans.iter().map(|span| &haystack[span.clone()]).collect();
            let starts: Vec<_> = matches.spans.iter().map(|span| span.start).collect();
            (matches.kind, texts, starts)
        });
        assert_eq!(shown, expected.map(|(kind, texts, starts)| (kind, texts.to_vec(), starts.to_vec())));
    }

    use MatchKind::{Exact, LineEndings};

    #[test]
    fn exact_text_is_found_everywhere() {
        check("a b a", "a", Some((Exact, &["a", "a"], &[0, 4])));
        check("a b a", "c", None);
        check("a", "", None);
    }

    #[test]
    fn an_overlapping_occurrence_counts() {
        check("aaa", "aa", Some((Exact, &["aa", "aa"], &[0, 1])));
        assert_eq!(find("aaa", "aa").unwrap().disjoint(), vec![0..2]);
        assert_eq!(find("aaaa", "aa").unwrap().disjoint(), vec![0..2, 2..4]);
    }

    #[test]
    fn lf_in_the_needle_finds_crlf_in_the_file() {
        check("x\r\na\r\nb\r\n", "a\nb", Some((LineEndings, &["a\r\nb"], &[3])));
        check("x\r\na\r\nb\r\n", "a\nb\n", Some((LineEndings, &["a\r\nb\r\n"], &[3])));
    }

    #[test]
    fn crlf_in_the_needle_finds_lf_in_the_file() {
        check("x\na\nb\n", "a\r\nb", Some((LineEndings, &["a\nb"], &[2])));
    }

    #[test]
    fn mixed_endings_match_either_way() {
        check("a\r\nb\nc", "a\nb\r\nc", Some((LineEndings, &["a\r\nb\nc"], &[0])));
    }

    #[test]
    fn a_match_takes_a_line_ending_whole() {
        check("a\r\nb", "\nb", Some((LineEndings, &["\r\nb"], &[1])));
        check("a\r\nb", "a", Some((Exact, &["a"], &[0])));
        check("a\r\nb", "\n", Some((LineEndings, &["\r\n"], &[1])));
    }

    #[test]
    fn an_exact_match_rules_out_the_looser_one() {
        check("a\r\nb a\nb", "a\nb", Some((Exact, &["a\nb"], &[5])));
    }

    #[test]
    fn a_lone_carriage_return_is_not_a_line_ending() {
        check("a\rb", "a\nb", None);
    }
}
