//! Bytes as text: encoding, byte order mark, line endings and line numbers.
//!
//! A line ends with `\n`; a non-empty rest after the last `\n` is a line too; a lone `\r` ends none.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

/// The UTF-8 byte order mark.
pub const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// How the characters of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark. ASCII is UTF-8.
    Utf8,
}

impl Encoding {
    /// The name shown to people: `utf-8`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
        }
    }
}

/// Which line endings a text uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eol {
    /// The text has no line ending at all.
    #[default]
    None,
    /// Every line ends with `\n`.
    Lf,
    /// Every line ends with `\r\n`.
    Crlf,
    /// Both occur.
    Mixed,
}

impl Eol {
    /// The endings of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut eol = Self::None;
        for at in memchr_iter(b'\n', bytes) {
            eol = eol.with(Ending::at(bytes, at));
            if eol == Self::Mixed {
                break;
            }
        }
        eol
    }

    /// The endings of a text of which one more line ending has become known.
    #[must_use]
    pub fn with(self, ending: Ending) -> Self {
        match (self, ending) {
            (_, Ending::None) => self,
            (Self::None | Self::Lf, Ending::Lf) => Self::Lf,
            (Self::None | Self::Crlf, Ending::Crlf) => Self::Crlf,
            _ => Self::Mixed,
        }
    }

    /// The name used in results: `none`, `lf`, `crlf` or `mixed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lf => "lf",
            Self::Crlf => "crlf",
            Self::Mixed => "mixed",
        }
    }
}

/// How one line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It does not: it is the last line of a text without a final newline.
    None,
    /// `\n`
    Lf,
    /// `\r\n`
    Crlf,
}

impl Ending {
    /// The ending whose `\n` stands at `newline` in `bytes`.
    #[must_use]
    pub fn at(bytes: &[u8], newline: usize) -> Self {
        match newline.checked_sub(1).and_then(|before| bytes.get(before)) {
            Some(b'\r') => Self::Crlf,
            _ => Self::Lf,
        }
    }

    /// The ending as it stands in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
        }
    }
}

/// The file is not text that can be decoded: it holds NUL bytes or is not valid UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file is binary: {reason} at byte {offset}")]
pub struct Binary {
    /// Bytes before the first that cannot be text.
    pub offset: usize,
    /// What was found there.
    pub reason: BinaryReason,
}

/// What makes a file binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BinaryReason {
    /// A NUL byte, which no text has.
    #[error("a NUL byte")]
    Nul,
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    InvalidUtf8,
}

/// A text file: its bytes, and the text they stand for.
///
/// The *body* is the decoded text without the byte order mark. Positions in it are byte offsets into that `str`;
/// [`original_span`](Self::original_span) turns them into positions in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    bytes: &'a [u8],
    body: &'a str,
}

impl<'a> Text<'a> {
    /// Decodes a whole file.
    ///
    /// # Errors
    /// [`Binary`] when the bytes hold a NUL or are not UTF-8.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Binary> {
        if let Some(offset) = memchr(0, bytes) {
            return Err(Binary { offset, reason: BinaryReason::Nul });
        }
        let rest = bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes);
        let body = std::str::from_utf8(rest).map_err(|error| Binary {
            offset: bytes.len() - rest.len() + error.valid_up_to(),
            reason: BinaryReason::InvalidUtf8,
        })?;
        Ok(Self { bytes, body })
    }

    /// The file as it is.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The decoded text, without the byte order mark.
    #[must_use]
    pub fn body(&self) -> &'a str {
        self.body
    }

    /// How the text is stored.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        Encoding::Utf8
    }

    /// Whether the file begins with a byte order mark.
    #[must_use]
    pub fn has_bom(&self) -> bool {
        self.body.len() != self.bytes.len()
    }

    /// Which line endings the text uses.
    #[must_use]
    pub fn eol(&self) -> Eol {
        Eol::of(self.body.as_bytes())
    }

    /// How many lines the text has.
    #[must_use]
    pub fn line_count(&self) -> u64 {
        count_lines(self.body.as_bytes())
    }

    /// The position in the file of a span of the body.
    #[must_use]
    pub fn original_span(&self, span: Range<usize>) -> Range<usize> {
        let shift = self.bytes.len() - self.body.len();
        span.start + shift..span.end + shift
    }

    /// The lines of the body, to look lines up by number and numbers by position.
    #[must_use]
    pub fn lines(&self) -> LineIndex<'a> {
        LineIndex::new(self.body)
    }
}

/// Where the lines of a text begin. Lines are numbered from 1.
#[derive(Debug, Clone)]
pub struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    /// Indexes `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        let mut starts: Vec<usize> = Vec::new();
        if !text.is_empty() {
            starts.push(0);
        }
        starts
            .extend(memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1).filter(|&start| start < text.len()));
        Self { text, starts }
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The text that is indexed.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The number of the line that holds byte `offset`; the last line for anything beyond, 1 in an empty text.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).max(1)
    }

    /// Where line `number` lies, ending included; empty and at the end of the text when there is no such line.
    #[must_use]
    pub fn span(&self, number: usize) -> Range<usize> {
        let start_of = |number: usize| self.starts.get(number).copied().unwrap_or(self.text.len());
        match number.checked_sub(1) {
            Some(index) => start_of(index)..start_of(number),
            None => 0..0,
        }
    }

    /// Line `number` with its ending; empty when there is no such line.
    #[must_use]
    pub fn line(&self, number: usize) -> &'a str {
        self.text.get(self.span(number)).unwrap_or_default()
    }

    /// The lines `first` to `last`, both included, as they stand in the text.
    #[must_use]
    pub fn block(&self, first: usize, last: usize) -> &'a str {
        self.text.get(self.span(first).start..self.span(last).end).unwrap_or_default()
    }
}

/// How many lines `bytes` have.
#[must_use]
pub fn count_lines(bytes: &[u8]) -> u64 {
    let ended = memchr_iter(b'\n', bytes).count() as u64;
    ended + u64::from(bytes.last().is_some_and(|&last| last != b'\n'))
}

/// A line without its ending, and the ending.
#[must_use]
pub fn split_ending(line: &str) -> (&str, Ending) {
    match line.strip_suffix('\n') {
        None => (line, Ending::None),
        Some(rest) => match rest.strip_suffix('\r') {
            Some(text) => (text, Ending::Crlf),
            None => (rest, Ending::Lf),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], bom: bool, eol: Eol, lines: u64) {
        let text = Text::parse(bytes).unwrap();
        assert_eq!((text.has_bom(), text.eol(), text.line_count()), (bom, eol, lines));
        assert_eq!(text.lines().len() as u64, lines, "the index counts as the text does");
    }

    #[test]
    fn endings_and_lines_are_counted() {
        check(b"", false, Eol::None, 0);
        check(b"\xEF\xBB\xBF", true, Eol::None, 0);
        check(b"\n", false, Eol::Lf, 1);
        check(b"\r\n", false, Eol::Crlf, 1);
        check(b"a", false, Eol::None, 1);
        check(b"a\nb", false, Eol::Lf, 2);
        check(b"a\r\nb\r\n", false, Eol::Crlf, 2);
        check(b"a\r\nb\n", false, Eol::Mixed, 2);
        check(b"\xEF\xBB\xBFa\r\n", true, Eol::Crlf, 1);
    }

    #[test]
    fn a_lone_carriage_return_ends_no_line() {
        check(b"a\rb", false, Eol::None, 1);
        check(b"a\r\rb\n", false, Eol::Lf, 1);
    }

    #[test]
    fn nul_and_broken_utf8_are_binary() {
        let nul = Text::parse(b"ab\0c").unwrap_err();
        assert_eq!(nul, Binary { offset: 2, reason: BinaryReason::Nul });
        let broken = Text::parse(b"\xEF\xBB\xBFab\xff").unwrap_err();
        assert_eq!(broken, Binary { offset: 5, reason: BinaryReason::InvalidUtf8 });
    }

    #[test]
    fn lines_are_found_by_number_and_by_position() {
        let index = LineIndex::new("a\nbc\n\nd");
        assert_eq!([1, 2, 3, 4, 5].map(|number| index.line(number)), ["a\n", "bc\n", "\n", "d", ""]);
        assert_eq!([0, 1, 2, 4, 5, 6, 99].map(|offset| index.line_of(offset)), [1, 1, 2, 2, 3, 4, 4]);
        assert_eq!(index.block(2, 3), "bc\n\n");
    }

    #[test]
    fn spans_of_the_body_become_spans_of_the_file() {
        assert_eq!(Text::parse(b"\xEF\xBB\xBFabc").unwrap().original_span(1..2), 4..5);
        assert_eq!(Text::parse(b"abc").unwrap().original_span(1..2), 1..2);
    }
}
