//! Text made comparable: without white space, in lower case, with plain quotes and dashes.

use memchr::memmem;
use std::ops::Range;

/// The characters that matter of a text, and where each of them stands.
pub(super) fn loose_chars(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|&(_, c)| !is_ignored(c)).map(|(at, c)| (at, loose(c)))
}

/// The character that stands for all those that are easily taken for it.
fn loose(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut base = None;
    unicode_normalization::char::decompose_canonical(plain(c), |part| {
        base.get_or_insert(part);
    });
    let base = base.unwrap_or(c);
    base.to_lowercase().next().unwrap_or(base)
}

/// The characters that matter of a text.
pub(super) fn loosened(text: &str) -> String {
    loose_chars(text).map(|(_, c)| c).collect()
}

/// The places of `haystack` that equal `needle` in everything that matters, the first `limit` of them. Each begins
/// and ends with a character that matters.
pub(super) fn loose_matches(haystack: &str, needle: &str, limit: usize) -> Vec<Range<usize>> {
    let (loose_haystack, loose_needle) = (loosened(haystack), loosened(needle));
    if loose_needle.is_empty() {
        return Vec::new();
    }
    let mut starts =
        memmem::find_iter(loose_haystack.as_bytes(), loose_needle.as_bytes()).take(limit).peekable();
    // Positions in the loose text are found again by walking over the original, which costs no memory.
    let mut spans = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut loose_at = 0;
    for (at, c) in loose_chars(haystack) {
        if starts.peek() == Some(&loose_at) {
            starts.next();
            open = Some((at, loose_at + loose_needle.len()));
        }
        loose_at += c.len_utf8();
        if let Some((start, _)) = open.filter(|&(_, end)| loose_at >= end) {
            spans.push(start..end_of_character(haystack, at));
            open = None;
        } else if open.is_none() && starts.peek().is_none() {
            break;
        }
    }
    spans
}

/// Where the character at `at` ends, with the marks that combine with it.
fn end_of_character(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let mut chars = rest.char_indices().skip(1);
    let next = chars.find(|&(_, c)| !unicode_normalization::char::is_combining_mark(c));
    at + next.map_or(rest.len(), |(length, _)| length)
}

fn is_ignored(c: char) -> bool {
    c.is_whitespace()
        || (!c.is_ascii()
            && (super::visible::is_invisible(c) || unicode_normalization::char::is_combining_mark(c)))
}

/// The character a keyboard gives for one that looks like it.
pub(super) fn plain(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' | '´' => '\'',
        '“' | '”' | '„' | '‟' | '″' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
}
