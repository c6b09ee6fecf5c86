//! From text to bytes, or not at all: nothing is ever replaced by a question mark.

use std::borrow::Cow;

use encoding_rs::EncoderResult;

use super::{Decoder, Encoding};

/// A character that an encoding has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{encoding} has no character {character:?} (U+{:04X})", u32::from(*.character))]
pub struct Unencodable {
    /// The character.
    pub character: char,
    /// The encoding.
    pub encoding: Encoding,
}

impl Encoding {
    /// The bytes of `text`, without a byte order mark.
    ///
    /// # Errors
    /// [`Unencodable`] names the first character that the encoding has not, or that would be read back as another.
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, Unencodable> {
        Ok(match self {
            Self::Utf8 => Cow::Borrowed(text.as_bytes()),
            Self::Utf16Le => Cow::Owned(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Cow::Owned(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Utf32Le => Cow::Owned(text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
            Self::Utf32Be => Cow::Owned(text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
            Self::Legacy(_) if text.is_ascii() && !self.is_stateful() => Cow::Borrowed(text.as_bytes()),
            Self::Legacy(legacy) => Cow::Owned(self.encode_legacy(legacy, text)?),
        })
    }

    fn encode_legacy(
        self,
        legacy: &'static encoding_rs::Encoding,
        text: &str,
    ) -> Result<Vec<u8>, Unencodable> {
        let mut encoder = legacy.new_encoder();
        let mut bytes = Vec::with_capacity(text.len() + 16);
        let mut rest = text;
        loop {
            let room = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
            bytes.reserve(room.unwrap_or(rest.len()).max(16));
            let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
            rest = rest.get(read..).unwrap_or_default();
            match result {
                EncoderResult::InputEmpty => break,
                EncoderResult::OutputFull => {}
                EncoderResult::Unmappable(character) => {
                    return Err(Unencodable { character, encoding: self });
                }
            }
        }
        let mut back = String::new();
        Decoder::new(self).decode(&bytes, true, &mut back);
        // Shift_JIS writes the yen sign as a backslash.
        match text
            .chars()
            .zip(back.chars().map(Some).chain(std::iter::repeat(None)))
            .find(|&(one, two)| Some(one) != two)
        {
            Some((character, _)) => Err(Unencodable { character, encoding: self }),
            None => Ok(bytes),
        }
    }
}
