//! Text in other encodings than UTF-8.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// Bytes looked at to tell an encoding.
const SAMPLE: usize = 64 * 1024;

/// The name of the encoding that a byte order mark announces, other than UTF-8.
pub fn by_mark(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xff, 0xfe, ..] => Some("utf-16le"),
        [0xfe, 0xff, ..] => Some("utf-16be"),
        _ => None,
    }
}

/// The likeliest encoding of bytes that are not UTF-8.
pub fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    detector.feed(sample, sample.len() == bytes.len());
    detector.guess(None, Utf8Detection::Deny)
}

/// The encoding's name, in lower case.
pub fn name(encoding: &'static Encoding) -> String {
    encoding.name().to_ascii_lowercase()
}

/// Bytes as text, in the encoding they are likeliest in.
pub fn decode<'a>(bytes: &'a [u8], encoding: Option<&'static Encoding>) -> Cow<'a, str> {
    match (std::str::from_utf8(bytes), encoding) {
        (Ok(text), _) => Cow::Borrowed(text),
        (Err(_), Some(encoding)) => encoding.decode_without_bom_handling(bytes).0,
        (Err(_), None) => String::from_utf8_lossy(bytes),
    }
}

/// Whether bytes that come in pieces are UTF-8.
#[derive(Clone, Debug, Default)]
pub struct Utf8Check {
    invalid: bool,
    /// The beginning of a character at the end of the last piece.
    pending: Vec<u8>,
}

impl Utf8Check {
    /// Looks at the next piece.
    pub fn feed(&mut self, mut piece: &[u8]) {
        while !self.invalid && !self.pending.is_empty() && !piece.is_empty() {
            self.pending.push(piece[0]);
            piece = &piece[1..];
            match std::str::from_utf8(&self.pending) {
                Ok(_) => self.pending.clear(),
                Err(error) => self.invalid = error.error_len().is_some(),
            }
        }
        if self.invalid {
            return;
        }
        if let Err(error) = std::str::from_utf8(piece) {
            self.invalid = error.error_len().is_some();
            self.pending.extend_from_slice(&piece[error.valid_up_to()..]);
        }
    }

    /// Whether something came that is not UTF-8.
    pub fn is_invalid(&self) -> bool {
        self.invalid || !self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_and_chinese_are_told_apart() {
        assert_eq!(name(guess(b"caf\xe9 au lait, d\xe9j\xe0 vu\n")), "windows-1252");
        let chinese = encoding_rs::GBK.encode("函数返回错误的结果，请检查输入").0;
        assert_eq!(name(guess(&chinese)), "gbk");
        assert_eq!(decode(b"caf\xe9", Some(guess(b"caf\xe9"))), "café");
        assert_eq!(decode("caf\u{e9}".as_bytes(), None), "café");
    }

    #[test]
    fn pieces_are_utf_8_wherever_they_are_cut() {
        let text = "aé漢😀z".as_bytes();
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut check = Utf8Check::default();
                for piece in [&text[..cut], &text[cut..second], &text[second..]] {
                    check.feed(piece);
                }
                assert!(!check.is_invalid(), "{cut} {second}");
            }
        }
        for wrong in [&b"caf\xe9"[..], b"\xe9a", b"\xff", b"ab\xc3"] {
            let mut check = Utf8Check::default();
            wrong.chunks(1).for_each(|piece| check.feed(piece));
            assert!(check.is_invalid(), "{wrong:?}");
        }
    }
}
