//! SHA-256, as a type of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// A SHA-256 hash; its text is 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256([u8; 32]);

/// A text that is no SHA-256 hash.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is no SHA-256 hash; wanted 64 hexadecimal digits")]
pub struct WrongHash {
    text: String,
}

impl Sha256 {
    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// How the kernel's lock file writes it: `sha256:` and the digits.
    #[must_use]
    pub fn tagged(&self) -> String {
        format!("sha256:{self}")
    }
}

impl FromStr for Sha256 {
    type Err = WrongHash;

    fn from_str(text: &str) -> Result<Self, WrongHash> {
        let wrong = || WrongHash { text: text.to_owned() };
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(2 * index..2 * index + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Sha256 {
    type Error = WrongHash;

    fn try_from(text: String) -> Result<Self, WrongHash> {
        text.parse()
    }
}

impl From<Sha256> for String {
    fn from(hash: Sha256) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_hash_are_the_same() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::of(b"").to_string(), empty);
        assert_eq!(empty.parse::<Sha256>().unwrap(), Sha256::of(b""));
        assert_eq!(Sha256::of(b"").tagged(), format!("sha256:{empty}"));
    }

    #[test]
    fn what_is_no_hash_is_refused() {
        for wrong in ["", "e3b0", &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)] {
            assert!(wrong.parse::<Sha256>().is_err(), "{wrong}");
        }
    }
}
