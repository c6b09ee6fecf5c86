//! What a file is in, from one pass over its bytes.

use std::io::{self, Read};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use memchr::{memchr, memchr_iter};

use super::{Decoder, Encoding, UTF8_BOM};

/// What a file turned out to be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// How its characters are stored.
    pub encoding: Encoding,
    /// The bytes of the byte order mark it begins with; 0 where there is none.
    pub bom_len: usize,
}

/// The file is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file is binary: {reason} at byte {offset}")]
pub struct Binary {
    /// Bytes before the first that cannot be text.
    pub offset: u64,
    /// What was found there.
    pub reason: BinaryReason,
}

/// What makes a file binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BinaryReason {
    /// A NUL, which no text has.
    #[error("a NUL byte")]
    Nul,
    /// Neither UTF-8 nor text in another encoding.
    #[error("bytes that are no text in any known encoding")]
    NotText,
}

const CHUNK: usize = 64 * 1024;
/// Bytes looked at where the encoding shows: at the beginning, and from the first character that is not ASCII on.
const SAMPLE: usize = 256 * 1024;
/// Bytes before that character which are looked at with it.
const LEAD: usize = 64;

/// What is known of a file's bytes from going over them once, in bounded memory.
#[derive(Default)]
pub struct Survey {
    len: u64,
    head: Vec<u8>,
    /// What stands around the first bytes that are not ASCII.
    sample: Vec<u8>,
    first_odd: Option<u64>,
    first_nul: Option<u64>,
    nuls_at_even: u64,
    nuls_at_odd: u64,
    /// Characters of several bytes that are valid UTF-8, and sequences that are not.
    utf8_characters: u64,
    utf8_errors: u64,
    first_utf8_error: Option<u64>,
    /// Control characters that text has no use for.
    controls: u64,
}

impl Survey {
    /// Goes over all that `source` gives.
    ///
    /// # Errors
    /// Whatever reading fails with.
    pub fn of(mut source: impl Read) -> io::Result<Self> {
        let mut survey = Self::default();
        let mut chunk = Vec::with_capacity(CHUNK + 4);
        loop {
            // A character that the last chunk ended inside is looked at again, whole.
            let open = open_character(&chunk);
            chunk.drain(..chunk.len() - open);
            source.by_ref().take((CHUNK - open) as u64).read_to_end(&mut chunk)?;
            let is_last = chunk.len() == open;
            survey.count_characters(survey.len - open as u64, &chunk, is_last);
            if is_last {
                return Ok(survey);
            }
            survey.feed(chunk.get(open..).unwrap_or_default());
        }
    }

    fn feed(&mut self, new: &[u8]) {
        let room = SAMPLE.saturating_sub(self.head.len()).min(new.len());
        self.head.extend_from_slice(new.get(..room).unwrap_or_default());
        self.count_nuls(new);
        self.controls += new.iter().filter(|&&byte| is_odd_control(byte)).count() as u64;
        self.take_sample(new);
        self.len += new.len() as u64;
    }

    fn count_nuls(&mut self, new: &[u8]) {
        for at in memchr_iter(0, new) {
            let at = self.len + at as u64;
            self.first_nul.get_or_insert(at);
            *(if at.is_multiple_of(2) { &mut self.nuls_at_even } else { &mut self.nuls_at_odd }) += 1;
        }
    }

    fn take_sample(&mut self, new: &[u8]) {
        if self.first_odd.is_none() {
            let Some(odd) = new.iter().position(|byte| !byte.is_ascii()) else { return };
            self.first_odd = Some(self.len + odd as u64);
            self.sample.extend_from_slice(new.get(odd.saturating_sub(LEAD)..odd).unwrap_or_default());
            return self.extend_sample(new.get(odd..).unwrap_or_default());
        }
        self.extend_sample(new);
    }

    fn extend_sample(&mut self, new: &[u8]) {
        let room = SAMPLE.saturating_sub(self.sample.len()).min(new.len());
        self.sample.extend_from_slice(new.get(..room).unwrap_or_default());
    }

    /// Counts what is UTF-8 and what is not in the chunk at `at`; an open character at its end belongs to the next.
    fn count_characters(&mut self, mut at: u64, chunk: &[u8], last: bool) {
        if chunk.is_ascii() {
            return;
        }
        let mut chunks = chunk.utf8_chunks().peekable();
        while let Some(piece) = chunks.next() {
            self.utf8_characters += piece.valid().chars().filter(|c| !c.is_ascii()).count() as u64;
            at += piece.valid().len() as u64;
            let is_open = chunks.peek().is_none() && !last && could_go_on(piece.invalid());
            if !piece.invalid().is_empty() && !is_open {
                self.utf8_errors += 1;
                self.first_utf8_error.get_or_insert(at);
            }
            at += piece.invalid().len() as u64;
        }
    }

    /// What the file is in.
    ///
    /// # Errors
    /// [`Binary`] when it is no text.
    pub fn conclude(&self) -> Result<Detected, Binary> {
        if let Some(detected) = self.by_mark() {
            return Ok(detected);
        }
        if let Some(offset) = self.first_nul {
            return match self.utf16_by_zeros() {
                Some(encoding) => Ok(Detected { encoding, bom_len: 0 }),
                None => Err(Binary { offset, reason: BinaryReason::Nul }),
            };
        }
        let encoding = self.without_zeros()?;
        let bom_len =
            if encoding == Encoding::Utf8 && self.head.starts_with(UTF8_BOM) { UTF8_BOM.len() } else { 0 };
        Ok(Detected { encoding, bom_len })
    }

    /// UTF-16 and UTF-32 with a byte order mark, if what follows it is text.
    fn by_mark(&self) -> Option<Detected> {
        // The mark of UTF-32 begins with that of UTF-16, which cannot go on with a NUL.
        const MARKED: [Encoding; 4] =
            [Encoding::Utf32Le, Encoding::Utf32Be, Encoding::Utf16Le, Encoding::Utf16Be];
        MARKED.into_iter().find_map(|encoding| {
            let rest = self.head.strip_prefix(encoding.bom())?;
            looks_like_text(encoding, rest).then_some(Detected { encoding, bom_len: encoding.bom().len() })
        })
    }

    /// UTF-16 without a mark: its ASCII characters have a zero byte each, all on the same side.
    fn utf16_by_zeros(&self) -> Option<Encoding> {
        const FEW_UNITS: u64 = 32;
        let (encoding, zeros) = match (self.nuls_at_even, self.nuls_at_odd) {
            (0, zeros) => (Encoding::Utf16Le, zeros),
            (zeros, 0) => (Encoding::Utf16Be, zeros),
            _ => return None,
        };
        let units = self.len / 2;
        let enough = if units < FEW_UNITS { 2 * zeros > units } else { 20 * zeros >= units };
        let mut text = String::new();
        let mut decoder = Decoder::new(encoding);
        decoder.decode(&self.head, self.head.len() as u64 == self.len, &mut text);
        let is_text = !decoder.had_errors() && !text.chars().any(|c| c.is_control() && !is_plain_control(c));
        (self.len.is_multiple_of(2) && enough && is_text).then_some(encoding)
    }

    fn without_zeros(&self) -> Result<Encoding, Binary> {
        let Some(offset) = self.first_utf8_error else {
            let jis = Encoding::Legacy(encoding_rs::ISO_2022_JP);
            let is_jis = self.first_odd.is_none() && has_jis_escape(&self.head) && decodes(jis, &self.head);
            return Ok(if is_jis { jis } else { Encoding::Utf8 });
        };
        if self.controls > 0 {
            return Err(Binary { offset, reason: BinaryReason::NotText });
        }
        // UTF-8 with some damage: hardly any text in another encoding looks like UTF-8 most of the time.
        if self.utf8_characters > self.utf8_errors || self.head.starts_with(UTF8_BOM) {
            return Ok(Encoding::Utf8);
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(&self.sample, self.sample.len() < SAMPLE);
        Encoding::from_whatwg(detector.guess(None, Utf8Detection::Deny))
            .ok_or(Binary { offset, reason: BinaryReason::NotText })
    }
}

/// How many bytes at the end of `chunk` begin a character of UTF-8 that is not complete.
fn open_character(chunk: &[u8]) -> usize {
    let tail = |count: usize| chunk.get(chunk.len().checked_sub(count)?..);
    (1..=3).find(|&count| tail(count).is_some_and(could_go_on)).unwrap_or(0)
}

/// Whether more bytes could make a character of these.
fn could_go_on(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Whether nearly all of `bytes` decodes, and to no NUL.
fn looks_like_text(encoding: Encoding, bytes: &[u8]) -> bool {
    let mut text = String::new();
    Decoder::new(encoding).decode(bytes, false, &mut text);
    let odd = text.chars().filter(|&c| c == char::REPLACEMENT_CHARACTER).count();
    memchr(0, text.as_bytes()).is_none() && 16 * odd <= text.chars().count().max(16)
}

fn decodes(encoding: Encoding, bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(encoding);
    decoder.decode(bytes, false, &mut String::new());
    !decoder.had_errors()
}

/// The escape sequences with which ISO-2022-JP begins Japanese characters.
pub(in crate::engine) fn has_jis_escape(bytes: &[u8]) -> bool {
    memchr_iter(0x1b, bytes).any(|at| matches!(bytes.get(at + 1..at + 3), Some(b"$@" | b"$B")))
}

/// Whether text in an encoding of old has no use for this byte.
fn is_odd_control(byte: u8) -> bool {
    (byte < 0x20 && !is_plain_control(char::from(byte))) || byte == 0x7f
}

/// Control characters that occur in text: tab, line ends, form feed, backspace, escape, end of file in DOS.
fn is_plain_control(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{8}' | '\u{1b}' | '\u{1a}')
}
