//! Which of several occurrences could be meant.

use std::fmt;
use std::ops::Range;

use memchr::memmem;

use crate::engine::text::LineIndex;

use super::visible::visible;

/// Occurrences that are shown with their context.
const MAX_SHOWN: usize = 10;

/// Occurrences of which the line is named.
const MAX_LISTED: usize = 100;

/// Lines by which an occurrence is widened in search of something unique.
const MAX_WIDENED: usize = 10;

/// Bytes searched for anchors, in all.
const MAX_SEARCHED_BYTES: usize = 64 * 1024 * 1024;

/// A text occurs more than once. As a string it is the whole message for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// How many occurrences could be meant.
    pub total: usize,
    /// The lines they begin in, from 1; the first 100.
    pub lines: Vec<usize>,
    /// The first ten in detail.
    pub candidates: Vec<Candidate>,
    /// The line that was asked for, when two are equally near to it.
    pub tied_near: Option<u64>,
}

/// One of several occurrences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The line it begins in, from 1.
    pub line: usize,
    /// The line before, its own lines and the line after, as they stand in the file.
    pub context: String,
    /// The line that `context` begins with.
    pub context_line: usize,
    /// A longer text that occurs only here and holds no other occurrence, with lines that end in `\n`; `None` when a
    /// few more lines did not make one.
    pub anchor: Option<String>,
}

impl Ambiguity {
    /// Describes the occurrences at `spans`, which are in order.
    #[must_use]
    pub fn of(body: &str, spans: &[Range<usize>], tied_near: Option<u64>) -> Self {
        let index = LineIndex::new(body);
        let mut budget = MAX_SEARCHED_BYTES;
        let candidates =
            spans.iter().take(MAX_SHOWN).map(|span| candidate(&index, spans, span, &mut budget)).collect();
        Self {
            total: spans.len(),
            lines: spans.iter().take(MAX_LISTED).map(|span| index.line_of(span.start)).collect(),
            candidates,
            tied_near,
        }
    }
}

fn candidate(
    index: &LineIndex<'_>,
    spans: &[Range<usize>],
    span: &Range<usize>,
    budget: &mut usize,
) -> Candidate {
    let first = index.line_of(span.start);
    let last = index.line_of(span.end.saturating_sub(1).max(span.start));
    let context_line = first.saturating_sub(1).max(1);
    Candidate {
        line: first,
        context: index.block(context_line, last + 1).to_owned(),
        context_line,
        anchor: anchor(index, spans, (first, last), budget),
    }
}

/// The smallest block of whole lines around lines `first` to `last` that occurs once, and in which no other of the
/// `spans` is.
fn anchor(
    index: &LineIndex<'_>,
    spans: &[Range<usize>],
    (first, last): (usize, usize),
    budget: &mut usize,
) -> Option<String> {
    let widened = (1..=MAX_WIDENED).flat_map(|by| {
        let (before, after) = (first.saturating_sub(by).max(1), last + by);
        [(before, last), (first, after), (before, after)]
    });
    for (from, to) in std::iter::once((first, last)).chain(widened) {
        *budget = budget.checked_sub(index.text().len())?;
        let block = index.block(from, to).trim_end_matches(['\r', '\n']);
        let start = index.span(from).start;
        let place = start..start + block.len();
        if holds_several(spans, &place) {
            continue;
        }
        if !block.is_empty() && is_unique(index.text(), block) {
            return Some(super::to_offer(index.text(), &place));
        }
    }
    None
}

/// Whether more than one of the spans, which are in order, begins in the block.
fn holds_several(spans: &[Range<usize>], block: &Range<usize>) -> bool {
    let before = |at: usize| spans.partition_point(|span| span.start < at);
    before(block.end) > before(block.start) + 1
}

fn is_unique(text: &str, block: &str) -> bool {
    let finder = memmem::Finder::new(block);
    let Some(first) = finder.find(text.as_bytes()) else { return false };
    text.as_bytes().get(first + 1..).is_none_or(|rest| finder.find(rest).is_none())
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tied_near {
            Some(line) => write!(f, "{} occurrences of old_str are equally near to line {line}", self.total)?,
            None => write!(f, "old_str occurs {} times", self.total)?,
        }
        let lines: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        let more = if self.total > self.lines.len() { ", …" } else { "" };
        write!(f, ", in lines {}{more}; nothing was changed.", lines.join(", "))?;
        f.write_str(
            " Give a longer old_str that occurs once, or near_line for one of them, or replace_all for all.",
        )?;
        for candidate in &self.candidates {
            write!(f, "\n{candidate}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CONTEXT_LINES: usize = 7;
        const MAX_ANCHOR_BYTES: usize = 1000;
        write!(f, "line {}:", self.line)?;
        for (number, line) in (self.context_line..).zip(self.context.lines()).take(MAX_CONTEXT_LINES) {
            let shown: String = line.chars().take(200).collect();
            write!(f, "\n  {number:>5} {}", visible(&shown))?;
        }
        match &self.anchor {
            Some(anchor) if anchor.len() <= MAX_ANCHOR_BYTES => {
                // Between marks, so that its own indentation is seen for what it is.
                write!(f, "\n  the lines between the marks occur only here:\n  <<<\n{anchor}\n  >>>")
            }
            _ => Ok(()),
        }
    }
}
