//! Where in a file the text most similar to a given one stands.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::engine::text::LineIndex;

use super::loose::{loose_matches, loosened};

/// Places that are compared in detail.
const MAX_PLACES: usize = 20;

/// The least share of trigrams in common, in per cent, for a place to be worth showing.
const LEAST_SIMILARITY: usize = 35;

/// Bytes of blocks that are compared in detail, in all.
const MAX_COMPARED_BYTES: usize = 4 * 1024 * 1024;

/// A place that resembles what was looked for.
pub(super) struct Place {
    pub(super) span: Range<usize>,
    /// Where other places that resemble it as much begin.
    pub(super) others: Vec<usize>,
    /// It differs in nothing but white space, case and look-alike characters.
    pub(super) is_loose_match: bool,
}

impl Place {
    /// The first of some spans that are equally good.
    pub(super) fn of(spans: &[Range<usize>]) -> Self {
        let mut starts = spans.iter().map(|span| span.start);
        let first = spans.first().cloned().unwrap_or_default();
        starts.next();
        Self { span: first, others: starts.take(MAX_PLACES).collect(), is_loose_match: true }
    }
}

/// The place in the indexed text that is nearest to `wanted`, whose lines end with `\n`.
pub(super) fn locate(index: &LineIndex<'_>, wanted: &str) -> Option<Place> {
    let place = locate_roughly(index, wanted)?;
    let span = whole_endings(index.text(), place.span);
    (!span.is_empty()).then_some(Place { span, ..place })
}

fn locate_roughly(index: &LineIndex<'_>, wanted: &str) -> Option<Place> {
    let text = index.text();
    let loose = loose_matches(text, wanted, MAX_PLACES);
    if !loose.is_empty() {
        let spans: Vec<_> = loose.into_iter().map(|span| with_outer_blanks(text, span, wanted)).collect();
        let least = spans.iter().min_by_key(|span| distance(text, span, wanted))?.clone();
        let others = spans.iter().filter(|span| **span != least).map(|span| span.start).collect();
        return Some(Place { span: least, others, is_loose_match: true });
    }
    let span = most_similar_block(index, wanted)?;
    Some(Place { span: edges_like(text, span, wanted), others: Vec::new(), is_loose_match: false })
}

/// The span with the line endings at its edges whole: a `\r` alone would not match.
fn whole_endings(text: &str, span: Range<usize>) -> Range<usize> {
    let is_inside = |at: usize| at > 0 && text.as_bytes().get(at - 1..at + 1) == Some(b"\r\n");
    span.start - usize::from(is_inside(span.start))..span.end - usize::from(is_inside(span.end))
}

/// How much a loose match differs from what was wanted: lines that are not the same, then how far the lengths are
/// apart.
fn distance(text: &str, span: &Range<usize>, wanted: &str) -> (usize, usize) {
    let found = text.get(span.clone()).unwrap_or_default();
    let differing = found.lines().zip(wanted.lines()).filter(|(one, two)| one != two).count();
    (differing, found.len().abs_diff(wanted.len()))
}

/// Widens a match over the blanks before and after it if what was wanted has blanks there too.
fn with_outer_blanks(text: &str, span: Range<usize>, wanted: &str) -> Range<usize> {
    let lead = wanted.len() - wanted.trim_start().len();
    let trail = wanted.trim_end().len();
    let breaks = |blanks: Option<&str>| blanks.unwrap_or_default().matches('\n').count();
    let mut start = span.start;
    if lead > 0 {
        let mut left = breaks(wanted.get(..lead));
        for (at, c) in text.get(..span.start).unwrap_or_default().char_indices().rev() {
            if !c.is_whitespace() || (c == '\n' && left == 0) {
                break;
            }
            left -= usize::from(c == '\n');
            start = at;
            if c == '\n' && left == 0 && wanted.starts_with(['\r', '\n']) {
                break;
            }
        }
    }
    let mut end = span.end;
    if trail < wanted.len() {
        let mut left = breaks(wanted.get(trail..));
        let only_blanks = left == 0;
        for c in text.get(span.end..).unwrap_or_default().chars() {
            if !c.is_whitespace() || (c == '\n' && only_blanks) {
                break;
            }
            end += c.len_utf8();
            left -= usize::from(c == '\n');
            if c == '\n' && left == 0 {
                break;
            }
        }
    }
    start..end
}

/// Cuts whole lines to what was wanted: no indentation and no final newline if that had none.
fn edges_like(text: &str, span: Range<usize>, wanted: &str) -> Range<usize> {
    let found = text.get(span.clone()).unwrap_or_default();
    let lead = match wanted.chars().next() {
        Some(c) if !c.is_whitespace() => found.len() - found.trim_start().len(),
        _ => 0,
    };
    let kept = if wanted.ends_with('\n') { found.len() } else { found.trim_end_matches(['\r', '\n']).len() };
    span.start + lead.min(kept)..span.start + kept
}

/// Three bytes in a row of a loose text.
fn trigrams(loose: &str) -> impl Iterator<Item = [u8; 3]> + '_ {
    loose.as_bytes().windows(3).filter_map(|window| window.try_into().ok())
}

/// The block of lines most similar to `wanted`, or the part of it that is, if any is similar enough.
fn most_similar_block(index: &LineIndex<'_>, wanted: &str) -> Option<Range<usize>> {
    let wanted_lines: Vec<String> = wanted.lines().map(loosened).collect();
    let file_lines: Vec<String> = (1..=index.len()).map(|number| loosened(index.line(number))).collect();
    let profile = Profile::of(&loosened(wanted));
    let mut candidates = between_anchors(&file_lines, &wanted_lines);
    candidates.extend(best_windows(&file_lines, &wanted_lines, &profile));

    let mut left = MAX_COMPARED_BYTES;
    let by_line: Vec<Profile> = wanted_lines.iter().map(|line| Profile::of(line)).collect();
    let mut best: Option<(usize, Range<usize>)> = None;
    for (lines, bonus) in candidates {
        let block = index.span(lines.start + 1).start..index.span(lines.end).end;
        let span = excerpt(index.text(), block, wanted);
        let Some(rest) = left.checked_sub(span.len()) else { continue };
        left = rest;
        let found = index.text().get(span.clone()).unwrap_or_default();
        let similarity = profile.similarity(&loosened(found)) + bonus;
        // Of blocks that have much the same in them, the one with the same in each line.
        let rank = similarity + aligned(&by_line, file_lines.get(lines).unwrap_or_default()) / 2;
        if similarity >= LEAST_SIMILARITY && best.as_ref().is_none_or(|(most, _)| rank > *most) {
            best = Some((rank, span));
        }
    }
    best.map(|(_, span)| span)
}

/// The share of trigrams, in per cent, that lines have in common with those in their places.
fn aligned(wanted: &[Profile], lines: &[String]) -> usize {
    let shares = wanted.iter().zip(lines).map(|(wanted, line)| wanted.similarity(line) * wanted.total);
    let total: usize = wanted.iter().map(|profile| profile.total).sum();
    shares.sum::<usize>() / total.max(1)
}

/// Blocks whose first and last lines are those that were wanted, with a bonus in per cent for that.
fn between_anchors(file: &[String], wanted: &[String]) -> Vec<(Range<usize>, usize)> {
    const BONUS: usize = 30;
    let mut solid = wanted.iter().filter(|line| !line.is_empty());
    let (Some(first), Some(last)) = (solid.next(), solid.next_back()) else { return Vec::new() };
    let longest = 2 * wanted.len() + 20;
    let starts = file.iter().enumerate().filter(|(_, line)| *line == first).map(|(at, _)| at);
    starts
        .take(MAX_PLACES)
        .filter_map(|start| {
            let wished = start + wanted.len() - 1;
            let ends = start + 1..(start + longest).min(file.len());
            let end = ends.filter(|&at| file.get(at) == Some(last)).min_by_key(|at| at.abs_diff(wished))?;
            Some((start..end + 1, BONUS))
        })
        .collect()
}

/// The windows of as many lines as were wanted that have the most in common with it.
fn best_windows(file: &[String], wanted: &[String], profile: &Profile) -> Vec<(Range<usize>, usize)> {
    let height = wanted.len().clamp(1, file.len().max(1));
    let known: HashSet<&str> = wanted.iter().filter(|line| line.len() > 2).map(String::as_str).collect();
    let scores: Vec<i64> = file
        .iter()
        .map(|line| {
            let whole = if known.contains(line.as_str()) { line.len() as i64 } else { 0 };
            profile.score(line) + whole
        })
        .collect();
    let mut sum: i64 = scores.iter().take(height).sum();
    let mut sums = vec![(sum, 0)];
    for start in 1..=file.len().saturating_sub(height) {
        sum += scores.get(start + height - 1).unwrap_or(&0) - scores.get(start - 1).unwrap_or(&0);
        sums.push((sum, start));
    }
    sums.sort_by_key(|&(sum, start)| (std::cmp::Reverse(sum), start));
    sums.into_iter().take(MAX_PLACES).map(|(_, start)| (start..(start + height).min(file.len()), 0)).collect()
}

/// The trigrams of a text and how often each occurs.
struct Profile {
    counts: HashMap<[u8; 3], usize>,
    total: usize,
}

impl Profile {
    fn of(loose: &str) -> Self {
        let mut counts = HashMap::new();
        for trigram in trigrams(loose) {
            *counts.entry(trigram).or_insert(0) += 1;
        }
        Self { total: counts.values().sum(), counts }
    }

    /// Trigrams of `line` that occur in the profile, less half of those that do not.
    fn score(&self, line: &str) -> i64 {
        let (mut hits, mut misses) = (0, 0);
        for trigram in trigrams(line) {
            if self.counts.contains_key(&trigram) { hits += 1 } else { misses += 1 }
        }
        2 * hits - misses
    }

    /// The share of trigrams in common with `loose`, in per cent.
    fn similarity(&self, loose: &str) -> usize {
        let other = Self::of(loose);
        let common: usize = other
            .counts
            .iter()
            .map(|(trigram, &count)| count.min(self.counts.get(trigram).copied().unwrap_or(0)))
            .sum();
        200 * common / (self.total + other.total).max(1)
    }
}

/// The part of a block that is most similar to `wanted`, when the block is one of much longer lines.
fn excerpt(text: &str, block: Range<usize>, wanted: &str) -> Range<usize> {
    if block.len() <= 4 * wanted.len() + 2000 {
        return block;
    }
    let known: HashSet<&[u8]> = wanted.as_bytes().windows(3).collect();
    let bytes = text.as_bytes().get(block.clone()).unwrap_or_default();
    let is_hit = |at: usize| bytes.get(at..at + 3).is_some_and(|window| known.contains(window));
    let width = wanted.len();
    let mut hits = (0..width).filter(|&at| is_hit(at)).count();
    let mut best = (hits, 0);
    for start in 1..bytes.len().saturating_sub(width) {
        hits += usize::from(is_hit(start + width - 1));
        hits -= usize::from(is_hit(start - 1));
        if hits > best.0 {
            best = (hits, start);
        }
    }
    let start = block.start + best.1;
    text.floor_char_boundary(start)..text.ceil_char_boundary((start + width).min(block.end))
}
