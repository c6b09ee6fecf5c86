//! Bytes as text: the body of a file and the way back to its bytes, line endings and line numbers.
//!
//! A line ends with `\n`; a non-empty rest after the last `\n` is a line too; a lone `\r` ends none.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::encoding::{Binary, Decoder, Detected, Encoding, Survey, UTF8_BOM, Unencodable, has_jis_escape};
use super::patience;

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

/// A text file: its bytes, and the text they stand for.
///
/// The *body* is the decoded text without the byte order mark. Positions in it are byte offsets into that `str`;
/// [`original_span`](Self::original_span) turns them into positions in the file, and [`splice`](Self::splice)
/// exchanges pieces of the body for others without touching a byte outside them.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    bytes: &'a [u8],
    body: Cow<'a, str>,
    encoding: Encoding,
    bom_len: usize,
    /// Where the body can be decoded from, where it does not stand in the file as it is.
    blocks: Vec<Block>,
    is_damaged: bool,
}

/// A place where a character begins, in the body and in the file.
#[derive(Debug, Clone, Copy)]
struct Block {
    body: usize,
    original: usize,
}

/// Why a piece of a text cannot be exchanged. The message says what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// The new text has a character that the encoding of the file has not.
    #[error(
        "the file is stored in {}, which has no character {:?} (U+{:04X}); nothing was changed. Leave it out, or give \
         the whole file another encoding with write_file and encoding: \"utf-8\"",
        .0.encoding, .0.character, u32::from(.0.character)
    )]
    Unencodable(#[from] Unencodable),
    /// What bytes mean depends on what stands before them.
    #[error(
        "the file is stored as {encoding}, where what a byte means depends on those before it, so that a piece \
             of it cannot be exchanged; nothing was changed. Give the whole file another encoding with write_file \
             and encoding: \"utf-8\""
    )]
    Stateful {
        /// The encoding of the file.
        encoding: Encoding,
    },
    /// The place begins or ends inside bytes that stand for no character.
    #[error(
        "line {line} has bytes that are not valid {encoding}, and the text to replace begins or ends inside \
             them; nothing was changed. Replace the whole line"
    )]
    InsideDamage {
        /// The encoding of the file.
        encoding: Encoding,
        /// The line, from 1.
        line: usize,
    },
    /// The new text has U+FFFD, which in this file is shown for bytes that stand for no character.
    #[error(
        "the file has bytes that are not valid {encoding}, which are shown as U+FFFD (\u{fffd}), and the new text \
             has that character: writing it would lose those bytes; nothing was changed. Leave them out of old_str \
             and new_str"
    )]
    Replacement {
        /// The encoding of the file.
        encoding: Encoding,
    },
}

impl<'a> Text<'a> {
    /// Decodes a whole file, in whatever encoding it is.
    ///
    /// # Errors
    /// [`Binary`] when it is no text.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Binary> {
        if let Some(text) = Self::plain(bytes) {
            return Ok(text);
        }
        // Reading a slice cannot fail.
        let survey = Survey::of(bytes).unwrap_or_default();
        survey.conclude().map(|detected| Self::decode(bytes, detected))
    }

    /// Decodes a file of which the encoding is known. A byte order mark is kept apart if it is there.
    #[must_use]
    pub fn parse_as(bytes: &'a [u8], encoding: Encoding) -> Self {
        let mark = encoding.bom();
        let bom_len = if bytes.starts_with(mark) { mark.len() } else { 0 };
        Self::decode(bytes, Detected { encoding, bom_len })
    }

    /// Text in UTF-8 without a flaw, which needs no copy.
    fn plain(bytes: &'a [u8]) -> Option<Self> {
        let is_plain = memchr(0, bytes).is_none() && !has_jis_escape(bytes);
        let body =
            std::str::from_utf8(bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes)).ok().filter(|_| is_plain)?;
        Some(Self::of_utf8(bytes, body))
    }

    /// A text that is no file.
    #[must_use]
    pub fn of_str(text: &'a str) -> Self {
        Self::of_utf8(text.as_bytes(), text)
    }

    fn of_utf8(bytes: &'a [u8], body: &'a str) -> Self {
        Self {
            bytes,
            body: Cow::Borrowed(body),
            encoding: Encoding::Utf8,
            bom_len: bytes.len() - body.len(),
            blocks: Vec::new(),
            is_damaged: false,
        }
    }

    fn decode(bytes: &'a [u8], detected: Detected) -> Self {
        let Detected { encoding, bom_len } = detected;
        let stored = bytes.get(bom_len..).unwrap_or_default();
        if let (Encoding::Utf8, Ok(body)) = (encoding, std::str::from_utf8(stored)) {
            return Self::of_utf8(bytes, body);
        }
        let (mut body, mut blocks, mut is_damaged) = (String::new(), Vec::new(), false);
        let mut original = bom_len;
        for block in encoding.blocks(stored) {
            patience::check();
            blocks.push(Block { body: body.len(), original });
            let mut decoder = Decoder::new(encoding);
            decoder.decode(block, true, &mut body);
            is_damaged |= decoder.had_errors();
            original += block.len();
        }
        Self { bytes, body: Cow::Owned(body), encoding, bom_len, blocks, is_damaged }
    }

    /// The file as it is.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The decoded text, without the byte order mark. Bytes that stand for no character are U+FFFD.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// How the text is stored.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether the file begins with a byte order mark.
    #[must_use]
    pub fn has_bom(&self) -> bool {
        self.bom_len > 0
    }

    /// Whether some bytes stand for no character.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
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

    /// The position in the file of a span of the body; `None` where it begins or ends inside bytes that are decoded
    /// together.
    #[must_use]
    pub fn original_span(&self, span: Range<usize>) -> Option<Range<usize>> {
        Some(self.original_position(span.start)?..self.original_position(span.end)?)
    }

    fn original_position(&self, at: usize) -> Option<usize> {
        if self.blocks.is_empty() {
            return Some(at + self.bom_len);
        }
        let index = self.blocks.partition_point(|block| block.body <= at);
        let block = self.blocks.get(index.checked_sub(1)?)?;
        if at == self.body.len() {
            return Some(self.bytes.len());
        }
        let end = self.blocks.get(index).map_or(self.bytes.len(), |next| next.original);
        let stored = self.bytes.get(block.original..end)?;
        Some(block.original + self.encoding.length_of(stored, at - block.body)?)
    }

    /// The file with each of `pieces` (spans of the body in order, none overlapping another, each with its new text)
    /// exchanged. Every byte outside the spans is copied from the original.
    ///
    /// # Errors
    /// [`SpliceError`] when the new text cannot be stored in the file's encoding, or the place is not one of whole
    /// characters.
    pub fn splice<S: AsRef<str>>(&self, pieces: &[(Range<usize>, S)]) -> Result<Vec<u8>, SpliceError> {
        let encoding = self.encoding;
        if encoding.is_stateful() {
            return Err(SpliceError::Stateful { encoding });
        }
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut from = 0;
        for (span, new) in pieces {
            patience::check();
            let new = new.as_ref();
            if self.is_damaged && new.contains(char::REPLACEMENT_CHARACTER) {
                return Err(SpliceError::Replacement { encoding });
            }
            let place = self.original_span(span.clone()).ok_or_else(|| SpliceError::InsideDamage {
                encoding,
                line: self.lines().line_of(span.start),
            })?;
            bytes.extend_from_slice(self.bytes.get(from..place.start).unwrap_or_default());
            bytes.extend_from_slice(&encoding.encode(new)?);
            from = place.end;
        }
        bytes.extend_from_slice(self.bytes.get(from..).unwrap_or_default());
        Ok(bytes)
    }

    /// The lines of the body, to look lines up by number and numbers by position.
    #[must_use]
    pub fn lines(&self) -> LineIndex<'_> {
        LineIndex::new(&self.body)
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
    fn lines_are_found_by_number_and_by_position() {
        let index = LineIndex::new("a\nbc\n\nd");
        assert_eq!([1, 2, 3, 4, 5].map(|number| index.line(number)), ["a\n", "bc\n", "\n", "d", ""]);
        assert_eq!([0, 1, 2, 4, 5, 6, 99].map(|offset| index.line_of(offset)), [1, 1, 2, 2, 3, 4, 4]);
        assert_eq!(index.block(2, 3), "bc\n\n");
    }

    #[test]
    fn spans_of_the_body_become_spans_of_the_file() {
        assert_eq!(Text::parse(b"\xEF\xBB\xBFabc").unwrap().original_span(1..2), Some(4..5));
        assert_eq!(Text::parse(b"abc").unwrap().original_span(1..2), Some(1..2));
        assert_eq!(Text::parse(b"\xFF\xFEa\0b\0c\0").unwrap().original_span(1..2), Some(4..6));
    }
}
