//! How characters are stored as bytes: names, byte order marks, what a file is in, and both directions.
//!
//! Valid UTF-8 always wins. What is not is UTF-16 or UTF-32 by its byte order mark (UTF-16 also by its pattern of
//! zeros), else one of the encodings of the WHATWG by how its characters are distributed. A decoder never fails: a
//! sequence that stands for nothing becomes U+FFFD, and whoever splices the file keeps the bytes.

mod decode;
mod detect;
mod encode;

use std::fmt;

pub use decode::{Decoder, Transcoded};
pub(super) use detect::has_jis_escape;
pub use detect::{Binary, BinaryReason, Detected, Survey};
pub use encode::Unencodable;

/// The UTF-8 byte order mark.
pub const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// How the characters of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8. ASCII is UTF-8.
    Utf8,
    /// UTF-16, little end first.
    Utf16Le,
    /// UTF-16, big end first.
    Utf16Be,
    /// UTF-32, little end first.
    Utf32Le,
    /// UTF-32, big end first.
    Utf32Be,
    /// An encoding older than Unicode, such as `windows-1252`, `shift_jis` or `gbk`.
    Legacy(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// The encoding that a label means: the names that [`Display`](fmt::Display) gives, `utf-16` and `utf-32` (little
    /// end first), and every label that browsers know. `ascii` is UTF-8: what is not ASCII has to go somewhere.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        let label = label.trim().to_ascii_lowercase().replace('_', "-");
        Some(match label.as_str() {
            "ascii" | "us-ascii" | "utf8" | "utf-8" => Self::Utf8,
            "utf-16" | "utf16" | "utf-16le" | "utf-16-le" | "utf16le" => Self::Utf16Le,
            "utf-16be" | "utf-16-be" | "utf16be" => Self::Utf16Be,
            "utf-32" | "utf32" | "utf-32le" | "utf-32-le" | "utf32le" => Self::Utf32Le,
            "utf-32be" | "utf-32-be" | "utf32be" => Self::Utf32Be,
            other => {
                let named = encoding_rs::Encoding::for_label(other.as_bytes())
                    .or_else(|| encoding_rs::Encoding::for_label(other.replace('-', "_").as_bytes()))?;
                Self::from_whatwg(named)?
            }
        })
    }

    /// The encoding of the WHATWG's, unless it only stands for bytes that must not be decoded.
    fn from_whatwg(encoding: &'static encoding_rs::Encoding) -> Option<Self> {
        match encoding {
            utf8 if utf8 == encoding_rs::UTF_8 => Some(Self::Utf8),
            little if little == encoding_rs::UTF_16LE => Some(Self::Utf16Le),
            big if big == encoding_rs::UTF_16BE => Some(Self::Utf16Be),
            none if none == encoding_rs::REPLACEMENT || none == encoding_rs::X_USER_DEFINED => None,
            legacy => Some(Self::Legacy(legacy)),
        }
    }

    /// The byte order mark; empty for encodings that have none.
    #[must_use]
    pub fn bom(self) -> &'static [u8] {
        match self {
            Self::Utf8 => UTF8_BOM,
            Self::Utf16Le => b"\xFF\xFE",
            Self::Utf16Be => b"\xFE\xFF",
            Self::Utf32Le => b"\xFF\xFE\0\0",
            Self::Utf32Be => b"\0\0\xFE\xFF",
            Self::Legacy(_) => b"",
        }
    }

    /// Whether what bytes mean depends on what stands before them, so that a piece cannot be exchanged.
    #[must_use]
    pub fn is_stateful(self) -> bool {
        self == Self::Legacy(encoding_rs::ISO_2022_JP)
    }

    /// The bytes of one unit: characters begin and end at multiples of it.
    fn unit(self) -> usize {
        match self {
            Self::Utf8 | Self::Legacy(_) => 1,
            Self::Utf16Le | Self::Utf16Be => 2,
            Self::Utf32Le | Self::Utf32Be => 4,
        }
    }
}

/// The name in lower case: `utf-8`, `utf-16le`, `windows-1252`.
impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf8 => f.write_str("utf-8"),
            Self::Utf16Le => f.write_str("utf-16le"),
            Self::Utf16Be => f.write_str("utf-16be"),
            Self::Utf32Le => f.write_str("utf-32le"),
            Self::Utf32Be => f.write_str("utf-32be"),
            Self::Legacy(encoding) => f.write_str(&encoding.name().to_ascii_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests;
