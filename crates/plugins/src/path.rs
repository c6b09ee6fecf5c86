//! Paths that a manifest names.

use std::fmt;
use std::str::FromStr;

/// A path inside the plugin's folder, with `/` between its names: relative, and without `..`. It says nothing about links;
/// those are followed only as far as they stay inside, when the file is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InnerPath(String);

/// Why a text is no such path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InnerPathError {
    /// It is empty, or names the folder itself.
    #[error("wanted a file of the plugin's folder, such as rules.md")]
    Empty,
    /// It does not begin at the folder.
    #[error("`{0}` is absolute: wanted a path relative to the plugin's folder")]
    Absolute(String),
    /// It leads up.
    #[error("`{0}` leads out of its folder with ..: wanted a path inside the plugin's folder")]
    Up(String),
    /// It has a character that no path here has.
    #[error("`{0}` has a backslash or a control character: wanted names with / between them")]
    Character(String),
}

impl InnerPath {
    /// The path as the manifest has it, without needless `.` and `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// What follows the last dot of the last name.
    pub fn extension(&self) -> Option<&str> {
        self.file_name().rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension)
    }
}

impl FromStr for InnerPath {
    type Err = InnerPathError;

    fn from_str(text: &str) -> Result<Self, InnerPathError> {
        if text.chars().any(|letter| letter == '\\' || letter.is_control()) {
            return Err(InnerPathError::Character(text.escape_default().to_string()));
        }
        let drive = text.len() > 1 && text.as_bytes()[1] == b':' && text.as_bytes()[0].is_ascii_alphabetic();
        if text.starts_with(['/', '~']) || drive {
            return Err(InnerPathError::Absolute(text.to_owned()));
        }
        let names: Vec<&str> = text.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") {
            return Err(InnerPathError::Up(text.to_owned()));
        }
        match names.is_empty() {
            true => Err(InnerPathError::Empty),
            false => Ok(Self(names.join("/"))),
        }
    }
}

impl fmt::Display for InnerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let got = text.parse::<InnerPath>();
        let got = got.as_ref().map(InnerPath::as_str).map_err(ToString::to_string);
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_path_stays_inside() {
        check("rules.md", Ok("rules.md"));
        check("./docs//rules.md", Ok("docs/rules.md"));
        check("..rules.md", Ok("..rules.md"));
        check("", Err("wanted a file of the plugin's folder, such as rules.md"));
        check("./", Err("wanted a file of the plugin's folder, such as rules.md"));
        check("/etc/passwd", Err("`/etc/passwd` is absolute: wanted a path relative to the plugin's folder"));
        check("~/x", Err("`~/x` is absolute: wanted a path relative to the plugin's folder"));
        check("C:/x", Err("`C:/x` is absolute: wanted a path relative to the plugin's folder"));
        let up = "leads out of its folder with ..: wanted a path inside the plugin's folder";
        check("a/../../x", Err(&format!("`a/../../x` {up}")));
        check("a/..", Err(&format!("`a/..` {up}")));
        let character = "has a backslash or a control character: wanted names with / between them";
        check("a\\b", Err(&format!("`a\\\\b` {character}")));
        check("a\0b", Err(&format!("`a\\u{{0}}b` {character}")));
    }
}
