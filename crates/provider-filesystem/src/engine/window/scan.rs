//! What is known of a file from going over all of it: totals, endings, hash, and whether it is text.

use std::fmt::Write as _;

use memchr::{memchr, memchr_iter};
use sha2::{Digest as _, Sha256};

use crate::engine::encoding::{UTF8_BOM, has_jis_escape};
use crate::engine::text::{Ending, Eol};

/// Counts and hashes the chunks of a file as they pass.
pub(super) struct Scan {
    hash: Option<Sha256>,
    /// Whether the scan began at the start of the file, so that lines are numbered.
    from_start: bool,
    /// Whether a byte order mark at the beginning was taken off already.
    is_unmarked: bool,
    utf8: Utf8Check,
    has_nul: bool,
    /// Whether what looks like ASCII may be another encoding.
    may_be_jis: bool,
    bom: bool,
    newlines: u64,
    eol: Eol,
    last_byte: Option<u8>,
}

/// The result of a scan.
pub(super) struct Verdict {
    pub(super) binary: bool,
    pub(super) bom: bool,
    pub(super) eol: Eol,
    pub(super) total_lines: Option<u64>,
    pub(super) sha256: Option<String>,
}

impl Scan {
    /// A scan from the start of the file; `hashed` if it will see all of it.
    pub(super) fn new(hashed: bool) -> Self {
        Self {
            hash: hashed.then(Sha256::new),
            from_start: true,
            is_unmarked: false,
            utf8: Utf8Check::default(),
            has_nul: false,
            may_be_jis: false,
            bom: false,
            newlines: 0,
            eol: Eol::None,
            last_byte: None,
        }
    }

    /// For text from which the byte order mark was taken off: another one at its beginning is a character.
    pub(super) fn unmarked(self) -> Self {
        Self { is_unmarked: true, ..self }
    }

    /// Says that the first chunk will be the one at `byte`.
    pub(super) fn begin_inside(&mut self, byte: u64) {
        self.from_start = byte == 0;
        self.utf8.may_begin_inside_a_character = byte > 0;
    }

    /// Whether lines can be numbered.
    pub(super) fn knows_lines(&self) -> bool {
        self.from_start
    }

    /// Whether something was seen that no text in UTF-8 has.
    pub(super) fn is_binary(&self) -> bool {
        self.has_nul || self.utf8.is_invalid || self.may_be_jis
    }

    /// Takes the chunk at `at`. The first chunk holds the whole byte order mark, if there is one.
    pub(super) fn feed(&mut self, at: u64, bytes: &[u8]) {
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        let mut text = bytes;
        if let (0, false, Some(rest)) = (at, self.is_unmarked, bytes.strip_prefix(UTF8_BOM)) {
            self.bom = true;
            text = rest;
        }
        self.has_nul = self.has_nul || memchr(0, text).is_some();
        self.may_be_jis = self.may_be_jis || has_jis_escape(text);
        self.utf8.feed(text);
        self.count_lines(text);
        self.last_byte = text.last().copied().or(self.last_byte);
    }

    fn count_lines(&mut self, text: &[u8]) {
        for newline in memchr_iter(b'\n', text) {
            self.newlines += 1;
            if self.eol != Eol::Mixed {
                let ending = match (newline, self.last_byte) {
                    (0, Some(b'\r')) => Ending::Crlf,
                    _ => Ending::at(text, newline),
                };
                self.eol = self.eol.with(ending);
            }
        }
    }

    /// Concludes; `at_end` if the last chunk reached the end of the file.
    pub(super) fn finish(self, at_end: bool) -> Verdict {
        let unfinished = at_end && self.utf8.is_inside_a_character();
        let rest = u64::from(self.last_byte.is_some_and(|last| last != b'\n'));
        Verdict {
            binary: self.is_binary() || unfinished,
            bom: self.bom,
            eol: self.eol,
            total_lines: (self.from_start && at_end).then_some(self.newlines + rest),
            sha256: self.hash.filter(|_| at_end).map(|hash| hex(&hash.finalize())),
        }
    }
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether chunks that may be split anywhere are UTF-8 when put together.
#[derive(Default)]
pub(in crate::engine) struct Utf8Check {
    /// The beginning of a character that the last chunk ended inside: at most 3 bytes.
    open: Vec<u8>,
    may_begin_inside_a_character: bool,
    is_invalid: bool,
}

impl Utf8Check {
    pub(in crate::engine) fn is_inside_a_character(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether something was no UTF-8.
    pub(in crate::engine) fn is_invalid(&self) -> bool {
        self.is_invalid
    }

    pub(in crate::engine) fn feed(&mut self, mut bytes: &[u8]) {
        if std::mem::take(&mut self.may_begin_inside_a_character) {
            let inside = bytes.iter().take(3).take_while(|&&byte| is_continuation(byte)).count();
            bytes = bytes.get(inside..).unwrap_or_default();
        }
        // At most three bytes complete or break the open character.
        while let (false, [first, rest @ ..], false) = (self.open.is_empty(), bytes, self.is_invalid) {
            self.open.push(*first);
            bytes = rest;
            match std::str::from_utf8(&self.open) {
                Ok(_) => self.open.clear(),
                Err(error) => self.is_invalid = error.error_len().is_some(),
            }
        }
        if self.is_invalid {
            return;
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            match error.error_len() {
                Some(_) => self.is_invalid = true,
                None => self.open.extend_from_slice(bytes.get(error.valid_up_to()..).unwrap_or_default()),
            }
        }
    }
}

/// Whether `byte` continues a UTF-8 character rather than beginning one.
pub(in crate::engine) fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}
