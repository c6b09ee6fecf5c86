//! A plugin's name.

use std::fmt;
use std::str::FromStr;

/// The longest name.
const LONGEST: usize = 64;

/// The name of a plugin: 1 to 64 letters, digits, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginName(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wanted 1 to {LONGEST} letters, digits, _ or -")]
pub struct NameError;

impl PluginName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-';
        let good = (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits);
        good.then(|| Self(text.to_owned())).ok_or(NameError)
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
