//! From bytes to text, a piece at a time.

use std::io::{self, Read};

use super::Encoding;

/// Decodes a stream of bytes that may be split anywhere. What stands for no character becomes U+FFFD.
pub struct Decoder {
    kind: Kind,
    had_errors: bool,
}

enum Kind {
    Whatwg(Box<encoding_rs::Decoder>),
    Utf32 { big: bool, open: Vec<u8> },
}

impl Decoder {
    /// A decoder for bytes without a byte order mark.
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        let whatwg = match encoding {
            Encoding::Utf8 => encoding_rs::UTF_8,
            Encoding::Utf16Le => encoding_rs::UTF_16LE,
            Encoding::Utf16Be => encoding_rs::UTF_16BE,
            Encoding::Legacy(legacy) => legacy,
            Encoding::Utf32Le | Encoding::Utf32Be => {
                let kind = Kind::Utf32 { big: encoding == Encoding::Utf32Be, open: Vec::new() };
                return Self { kind, had_errors: false };
            }
        };
        let decoder = whatwg.new_decoder_without_bom_handling();
        Self { kind: Kind::Whatwg(Box::new(decoder)), had_errors: false }
    }

    /// Appends the text of `bytes` to `text`; `last` at the end of the stream.
    pub fn decode(&mut self, bytes: &[u8], last: bool, text: &mut String) {
        match &mut self.kind {
            Kind::Whatwg(decoder) => {
                let mut rest = bytes;
                loop {
                    text.reserve(decoder.max_utf8_buffer_length(rest.len()).unwrap_or(rest.len()).max(16));
                    let (result, read, errors) = decoder.decode_to_string(rest, text, last);
                    self.had_errors |= errors;
                    rest = rest.get(read..).unwrap_or_default();
                    if result == encoding_rs::CoderResult::InputEmpty {
                        return;
                    }
                }
            }
            Kind::Utf32 { big, open } => {
                for &byte in bytes {
                    open.push(byte);
                    if let Ok(unit) = <[u8; 4]>::try_from(open.as_slice()) {
                        open.clear();
                        let code = if *big { u32::from_be_bytes(unit) } else { u32::from_le_bytes(unit) };
                        self.had_errors |= char::from_u32(code).is_none();
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                }
                if last && !open.is_empty() {
                    open.clear();
                    self.had_errors = true;
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
    }

    /// Whether something stood for no character.
    #[must_use]
    pub fn had_errors(&self) -> bool {
        self.had_errors
    }
}

/// Bytes decoded at a time; where one block ends and the next begins, so do characters.
const BLOCK: usize = 4096;

impl Encoding {
    /// `stored` in blocks that can be decoded each by itself: they end after a line feed, which is never a part of
    /// another character.
    pub(in crate::engine) fn blocks(self, stored: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = stored;
        std::iter::from_fn(move || {
            let (block, after) = rest.split_at(self.block_length(rest));
            rest = after;
            (!block.is_empty()).then_some(block)
        })
    }

    fn block_length(self, stored: &[u8]) -> usize {
        if self.is_stateful() {
            return stored.len();
        }
        let unit = self.unit();
        if unit > 1 {
            // Two units can make one character; the first of those is not a line feed.
            let line_feed = self.encode("\n").unwrap_or_default();
            let from = BLOCK.min(stored.len()) / unit;
            let mut units = stored.chunks_exact(unit).enumerate().skip(from);
            let end = units.find(|(_, found)| *found == &*line_feed);
            return end.map_or(stored.len(), |(index, _)| (index + 1) * unit);
        }
        let from = BLOCK.min(stored.len());
        let line_feed = memchr::memchr(b'\n', stored.get(from..).unwrap_or_default());
        line_feed.map_or(stored.len(), |at| from + at + 1)
    }

    /// How many bytes of `stored`, a block, stand for the first `length` bytes of its text; `None` if that ends
    /// inside what is decoded together.
    pub(in crate::engine) fn length_of(self, stored: &[u8], length: usize) -> Option<usize> {
        if self == Self::Utf8 {
            return length_of_utf8(stored, length);
        }
        let mut decoder = Decoder::new(self);
        let mut text = String::new();
        let mut used = 0;
        for unit in stored.chunks(self.unit()) {
            if text.len() >= length {
                break;
            }
            decoder.decode(unit, false, &mut text);
            used += unit.len();
        }
        (text.len() == length).then_some(used)
    }
}

/// [`Encoding::length_of`] for UTF-8 with damage.
fn length_of_utf8(stored: &[u8], length: usize) -> Option<usize> {
    let (mut used, mut text) = (0, 0);
    for chunk in stored.utf8_chunks() {
        if length <= text + chunk.valid().len() {
            return Some(used + length - text);
        }
        used += chunk.valid().len() + chunk.invalid().len();
        text += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            text += char::REPLACEMENT_CHARACTER.len_utf8();
        }
    }
    (text == length).then_some(used)
}

/// A reader of bytes in some encoding as a reader of UTF-8.
pub struct Transcoded<R> {
    inner: R,
    decoder: Decoder,
    text: String,
    /// How much of `text` was handed out.
    taken: usize,
    at_end: bool,
}

impl<R: Read> Transcoded<R> {
    /// Reads what `inner` gives, from after the byte order mark on.
    pub fn new(inner: R, encoding: Encoding) -> Self {
        Self { inner, decoder: Decoder::new(encoding), text: String::new(), taken: 0, at_end: false }
    }

    /// Whether something so far stood for no character.
    #[must_use]
    pub fn had_errors(&self) -> bool {
        self.decoder.had_errors()
    }

    /// The reader of bytes.
    pub fn into_inner(self) -> R {
        self.inner
    }

    fn refill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        self.text.clear();
        self.taken = 0;
        while self.text.is_empty() && !self.at_end {
            let count = match self.inner.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            self.at_end = count == 0;
            self.decoder.decode(chunk.get(..count).unwrap_or_default(), self.at_end, &mut self.text);
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len() {
            self.refill()?;
        }
        let rest = self.text.as_bytes().get(self.taken..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}
