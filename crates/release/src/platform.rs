//! What a program was built for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An operating system and an architecture, in the words of Go: `linux_amd64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Platform {
    text: String,
}

/// A text that names no platform.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is no platform; wanted <os>_<arch> such as linux_amd64 or darwin_arm64")]
pub struct PlatformError {
    text: String,
}

/// Go's names for what Rust calls otherwise.
const OPERATING_SYSTEMS: &[(&str, &str)] = &[("macos", "darwin")];
/// Go's names for what Rust calls otherwise.
const ARCHITECTURES: &[(&str, &str)] =
    &[("x86_64", "amd64"), ("aarch64", "arm64"), ("x86", "386"), ("riscv64gc", "riscv64")];

impl Platform {
    /// The platform this program was built for.
    #[must_use]
    pub fn here() -> Self {
        Self::of(std::env::consts::OS, std::env::consts::ARCH)
    }

    /// The platform of a Rust target such as `aarch64-apple-darwin`.
    ///
    /// # Errors
    /// The triple has no operating system that providers are built for.
    pub fn of_target(triple: &str) -> Result<Self, PlatformError> {
        let unknown = || PlatformError { text: triple.to_owned() };
        let architecture = triple.split('-').next().ok_or_else(unknown)?;
        let systems = [("-linux-", "linux"), ("-apple-darwin", "macos"), ("-windows-", "windows")];
        let (_, system) = systems.iter().find(|(part, _)| triple.contains(part)).ok_or_else(unknown)?;
        Ok(Self::of(system, architecture))
    }

    fn of(system: &str, architecture: &str) -> Self {
        Self { text: format!("{}_{}", go(OPERATING_SYSTEMS, system), go(ARCHITECTURES, architecture)) }
    }

    /// `linux_amd64`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the file name of a program ends with on this platform.
    #[must_use]
    pub fn program_suffix(&self) -> &'static str {
        if self.text.starts_with("windows_") { ".exe" } else { "" }
    }
}

fn go<'a>(names: &'a [(&str, &str)], rust: &'a str) -> &'a str {
    names.iter().find(|(ours, _)| *ours == rust).map_or(rust, |(_, theirs)| theirs)
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let word = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        match text.split_once('_') {
            Some((system, architecture)) if word(system) && word(architecture) => {
                Ok(Self { text: text.to_owned() })
            }
            _ => Err(PlatformError { text: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for Platform {
    type Error = PlatformError;

    fn try_from(text: String) -> Result<Self, PlatformError> {
        text.parse()
    }
}

impl From<Platform> for String {
    fn from(platform: Platform) -> Self {
        platform.text
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(triple: &str, expected: Option<&str>) {
        let platform = Platform::of_target(triple).ok();
        assert_eq!(platform.as_ref().map(Platform::as_str), expected, "{triple}");
    }

    #[test]
    fn targets_have_the_names_of_go() {
        check("x86_64-unknown-linux-gnu", Some("linux_amd64"));
        check("aarch64-unknown-linux-musl", Some("linux_arm64"));
        check("aarch64-apple-darwin", Some("darwin_arm64"));
        check("x86_64-pc-windows-msvc", Some("windows_amd64"));
        check("wasm32-unknown-unknown", None);
    }

    #[test]
    fn a_platform_is_two_words() {
        assert!("linux_amd64".parse::<Platform>().is_ok());
        for wrong in
            ["", "linux", "linux_", "_amd64", "Linux_amd64", "linux_amd64_v2", "../x_y", "linux/amd64"]
        {
            assert!(wrong.parse::<Platform>().is_err(), "{wrong}");
        }
    }
}
