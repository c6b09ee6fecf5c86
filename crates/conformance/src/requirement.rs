//! What is required: each rule declared once, as a value.

use std::fmt;

use serde::Serialize;

/// One rule of the contract that can be seen from outside.
#[derive(Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Names it for good, for example `INVOKE-03`: a number is never given to another rule.
    pub id: &'static str,
    /// How binding it is.
    pub level: Level,
    /// The rule, as a sentence about the provider.
    pub title: &'static str,
    /// What a provider that keeps it shows.
    pub expected: &'static str,
}

impl Requirement {
    /// What it is about: the word before the number.
    pub fn topic(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }
}

/// How binding a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Breaking it fails the check.
    Must,
    /// Breaking it is a warning.
    Should,
    /// A choice. It passes where the choice was made and is not reached where it was not.
    May,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        })
    }
}

/// Declares the requirements of one topic: a constant for each, and `ALL` of them in order.
macro_rules! requirements {
    ($($name:ident = $id:literal $level:ident $title:literal, $expected:literal;)*) => {
        $(pub(crate) const $name: &$crate::Requirement = &$crate::Requirement {
            id: $id,
            level: $crate::Level::$level,
            title: $title,
            expected: $expected,
        };)*
        pub(crate) const ALL: &[&$crate::Requirement] = &[$($name),*];
    };
}
pub(crate) use requirements;
