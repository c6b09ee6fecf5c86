//! Bytes to text, however the bytes were cut.

/// Turns one stream of bytes into UTF-8. What is not UTF-8 becomes U+FFFD, exactly as in
/// [`String::from_utf8_lossy`] of the whole stream, wherever the reads were cut.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The beginning of a character whose rest has not come yet: at most three bytes.
    held: Vec<u8>,
}

impl Decoder {
    /// Decodes the next bytes. `emit` gets the text in order, in pieces.
    pub fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(&str)) {
        while let (false, Some((&first, rest))) = (self.held.is_empty(), bytes.split_first()) {
            self.held.push(first);
            bytes = rest;
            self.settle(&mut emit);
        }
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            left -= chunk.valid().len() + chunk.invalid().len();
            if !chunk.valid().is_empty() {
                emit(chunk.valid());
            }
            match chunk.invalid() {
                [] => {}
                // Only at the very end can the rest still come.
                beginning if left == 0 && is_beginning(beginning) => self.held.extend_from_slice(beginning),
                _ => emit("\u{FFFD}"),
            }
        }
    }

    /// The end of the stream: a character that was never finished becomes one U+FFFD.
    pub fn finish(&mut self, mut emit: impl FnMut(&str)) {
        if !std::mem::take(&mut self.held).is_empty() {
            emit("\u{FFFD}");
        }
    }

    /// How many bytes are held back because their character is not complete.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Emits what is certain of the held bytes after one more has come.
    fn settle(&mut self, emit: &mut impl FnMut(&str)) {
        while !self.held.is_empty() && !is_beginning(&self.held) {
            let held = std::mem::take(&mut self.held);
            match std::str::from_utf8(&held) {
                Ok(text) => emit(text),
                Err(error) => {
                    emit("\u{FFFD}");
                    // The byte that ended the sequence may itself begin a character.
                    self.held.extend_from_slice(held.get(error.error_len().unwrap_or(1)..).unwrap_or(&[]));
                }
            }
        }
    }
}

/// Whether more bytes could make these a character.
fn is_beginning(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Decoder;

    fn decoded(pieces: &[&[u8]]) -> String {
        let mut text = String::new();
        let mut decoder = Decoder::default();
        pieces.iter().for_each(|piece| decoder.push(piece, |part| text.push_str(part)));
        decoder.finish(|part| text.push_str(part));
        text
    }

    #[test]
    fn a_character_split_between_reads_is_whole() {
        assert_eq!(decoded(&[b"cleanup \xe2", b"\x80\x94 end"]), "cleanup — end");
        assert_eq!(decoded(&[b"\xf0", b"\x9f", b"\x98", b"\x80"]), "😀");
    }

    #[test]
    fn an_incomplete_tail_is_one_replacement_character() {
        assert_eq!(decoded(&[b"a\xf0\x9f\x98"]), "a\u{FFFD}");
        assert_eq!(decoded(&[b"a\xf0", b"\x9f"]), "a\u{FFFD}");
    }

    #[test]
    fn a_byte_that_breaks_a_character_is_not_lost() {
        assert_eq!(decoded(&[b"\xe2", b"A\xe2", b"\xe2\x80\x94"]), "\u{FFFD}A\u{FFFD}—");
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let interesting =
            prop::sample::select(b"a\n\x80\xbf\xc0\xc3\xa9\xe2\x94\xed\xa0\xf0\x9f\x98\xf4\xff".to_vec());
        prop::collection::vec(prop_oneof![interesting, any::<u8>()], 0..40)
    }

    proptest! {
        #[test]
        fn any_cuts_give_what_the_whole_gives(bytes in bytes(), cuts in prop::collection::vec(0..40_usize, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decoded(&pieces), String::from_utf8_lossy(&bytes));
        }
    }
}
