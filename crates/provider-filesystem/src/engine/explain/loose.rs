//! Text made comparable: without white space, in lower case, with plain quotes and dashes.

use memchr::memmem;
use std::ops::Range;

/// The characters that matter of a text, and where each of them stands.
pub(super) fn loose_chars(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|&(_, c)| !is_ignored(c)).map(|(at, c)| {
        let c = plain(c);
        let lower = if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) };
        (at, lower)
    })
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
            let length = haystack.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            spans.push(start..at + length);
            open = None;
        } else if open.is_none() && starts.peek().is_none() {
            break;
        }
    }
    spans
}

fn is_ignored(c: char) -> bool {
    c.is_whitespace() || super::visible::is_invisible(c)
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
