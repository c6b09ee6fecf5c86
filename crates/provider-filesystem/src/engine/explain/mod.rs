//! Why a text does not occur, or which of its occurrences could be meant: never to apply something looser than was
//! asked for, always to say in one message what to ask for instead.
//!
//! All work is bounded: a few passes over the file, then comparisons of blocks no larger than what was given.

mod ambiguous;
mod compare;
mod difference;
mod line_numbers;
mod loose;
mod nearest;
mod reason;
mod visible;

use std::fmt;
use std::ops::Range;

pub use ambiguous::{Ambiguity, Candidate};
pub use difference::LineDifference;
pub use reason::Reason;

use super::find::find;
use super::text::LineIndex;

/// Files of more bytes are not searched for something similar.
pub const MAX_SEARCHED_BYTES: usize = 8 * 1024 * 1024;

/// More bytes of a nearest text are not shown.
const MAX_SHOWN_BYTES: usize = 4 * 1024;

/// More differing lines are not shown.
const MAX_SHOWN_LINES: usize = 5;

/// Why a text does not occur in a file. As a string it is the whole message for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What is different, the most telling first. Empty when nothing similar was found.
    pub reasons: Vec<Reason>,
    /// The text that was most likely meant.
    pub nearest: Option<Nearest>,
    /// The text that was looked for without the line numbers that were copied along, if there were any.
    pub cleaned: Option<String>,
    /// Whether, and why not, the file was searched for something similar.
    pub search: Search,
}

/// Whether a file was searched for something similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// It was.
    Done,
    /// There is nothing in it.
    Empty,
    /// It is too large for that.
    TooLarge,
}

/// A piece of the file that resembles what was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The line it begins in, from 1.
    pub start_line: usize,
    /// The line it ends in.
    pub end_line: usize,
    /// The piece as it stands in the file, except that lines end with `\n`: what to give in order to match it.
    pub text: String,
    /// The lines that differ, the first few.
    pub differences: Vec<LineDifference>,
    /// Other lines where an equally similar piece begins.
    pub also_in_lines: Vec<usize>,
}

impl Explanation {
    /// What can be said of a text that does not occur in a file too large to be searched for something similar.
    #[must_use]
    pub fn unsearched(needle: &str) -> Self {
        let cleaned = line_numbers::without_line_numbers(needle);
        let reasons = cleaned.iter().map(|_| Reason::LineNumbers).collect();
        Self { reasons, nearest: None, cleaned, search: Search::TooLarge }
    }

    /// Explains why `needle` does not occur in `haystack`.
    #[must_use]
    pub fn of(haystack: &str, needle: &str) -> Self {
        let cleaned = line_numbers::without_line_numbers(needle);
        let mut reasons: Vec<Reason> = cleaned.iter().map(|_| Reason::LineNumbers).collect();
        if haystack.len() > MAX_SEARCHED_BYTES {
            return Self::unsearched(needle);
        }
        let search = if haystack.is_empty() { Search::Empty } else { Search::Done };
        let index = LineIndex::new(haystack);
        let mut wanted = cleaned.as_deref().unwrap_or(needle).replace("\r\n", "\n");
        let mut found = cleaned.as_ref().and_then(|_| find(haystack, &wanted));
        if let (None, Some(text)) = (&found, unescaped(&wanted)) {
            found = find(haystack, &text);
            if found.is_some() {
                reasons.push(Reason::Escapes);
                wanted = text;
            }
        }
        let open = wanted.strip_suffix('\n').filter(|open| found.is_none() && !open.is_empty());
        if let Some(open) = open
            && !haystack.ends_with('\n')
            && let Some(at_end) = ends_with(haystack, open)
        {
            reasons.push(Reason::FinalNewline);
            let nearest = Nearest {
                start_line: index.line_of(at_end),
                end_line: index.len(),
                text: to_offer(haystack, &(at_end..haystack.len())),
                differences: Vec::new(),
                also_in_lines: Vec::new(),
            };
            return Self { reasons, nearest: Some(nearest), cleaned, search };
        }
        let place = match found {
            Some(matches) => Some(nearest::Place::of(&matches.spans)),
            None => nearest::locate(&index, &wanted),
        };
        let nearest = place.map(|place| {
            let text = to_offer(haystack, &place.span);
            let start_line = index.line_of(place.span.start);
            let compared =
                compare::compare(&text.replace("\r\n", "\n"), &wanted, start_line, place.is_loose_match);
            reasons.extend(compared.reasons);
            Nearest {
                start_line,
                end_line: index.line_of(place.span.end.saturating_sub(1).max(place.span.start)),
                text,
                differences: compared.differences,
                also_in_lines: place.others.iter().map(|&at| index.line_of(at)).collect(),
            }
        });
        Self { reasons, nearest, cleaned, search }
    }
}

/// Where the text begins that the other ends with, line endings aside.
fn ends_with(haystack: &str, text: &str) -> Option<usize> {
    let spans = find(haystack, text)?.spans;
    spans.iter().find(|span| span.end == haystack.len()).map(|span| span.start)
}

/// A piece of the file as the text to ask for: with `\n` for `\r\n`, which is what it is matched as, unless that would
/// match another place. (In a file of mixed endings an exact match elsewhere would win.)
fn to_offer(haystack: &str, span: &Range<usize>) -> String {
    let piece = haystack.get(span.clone()).unwrap_or_default();
    let plain = piece.replace("\r\n", "\n");
    let is_at_its_place = |text: &str| {
        find(haystack, text).is_some_and(|found| found.spans.iter().any(|at| at.end == span.end))
    };
    if plain == piece || is_at_its_place(&plain) { plain } else { piece.to_owned() }
}

/// A text with its escape sequences resolved, if it has any.
fn unescaped(text: &str) -> Option<String> {
    const ESCAPES: [(&str, &str); 4] = [("\\n", "\n"), ("\\t", "\t"), ("\\\"", "\""), ("\\'", "'")];
    let resolved = ESCAPES.iter().fold(text.to_owned(), |text, (escape, c)| text.replace(escape, c));
    (resolved != text).then_some(resolved)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("old_str does not occur in the file; nothing was changed.")?;
        match self.search {
            Search::Done => {}
            Search::Empty => {
                f.write_str(" The file is empty: give it its content with write_file.")?;
            }
            Search::TooLarge => {
                f.write_str(" The file is too large to look for similar text: find the place with grep.")?;
            }
        }
        for reason in &self.reasons {
            write!(f, "\n- {reason}")?;
        }
        match &self.nearest {
            Some(nearest) => nearest.fmt(f),
            None => match &self.cleaned {
                Some(cleaned) if cleaned.len() <= MAX_SHOWN_BYTES => {
                    write!(f, " Without the line numbers it is not in the file either:\n{cleaned}")
                }
                Some(_) => f.write_str(" Without them it is not in the file either."),
                None if self.search != Search::Done => Ok(()),
                None => {
                    f.write_str(" Nothing in it is similar: read the file again and copy the text from it.")
                }
            },
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = match self.end_line {
            end if end == self.start_line => format!("line {end}"),
            end => format!("lines {} to {end}", self.start_line),
        };
        if self.differences.is_empty() {
            write!(f, "\nThe text that was meant is {lines}.")?;
        } else {
            write!(f, "\nThe nearest text is {lines} (→ is a tab, · a space):")?;
        }
        for difference in &self.differences {
            write!(f, "\n{difference}")?;
        }
        if !self.also_in_lines.is_empty() {
            let others: Vec<String> = self.also_in_lines.iter().map(usize::to_string).collect();
            write!(f, "\nText as similar also begins in line {}.", others.join(", "))?;
        }
        if self.text.len() <= MAX_SHOWN_BYTES {
            write!(f, "\nTo replace that text, give exactly this as old_str:\n{}", self.text)
        } else {
            write!(
                f,
                "\nIt is {} bytes long: read {lines} again and copy old_str from there.",
                self.text.len()
            )
        }
    }
}

#[cfg(test)]
mod tests;
