//! Rules: texts that plugins add to the instructions of agents.
//!
//! [`read`] takes the files of one plugin; what cannot be taken becomes a warning, and a session goes on without it.
//! [`compose`] puts the texts of several plugins together, in an order and a form that depend on nothing but them, so that
//! the same rules are always the same bytes. The texts are somebody else's: they are never expanded, filled in or run.

use crate::folder::{FileError, Plugin};
use crate::path::InnerPath;

/// A file of rules is no longer than this, in bytes.
pub const LONGEST_FILE: u64 = 64 * 1024;

/// What the rules of one plugin are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Its files, in the manifest's order, each once.
    pub files: Vec<RuleFile>,
    /// What was left out, and why: one sentence each.
    pub warnings: Vec<String>,
}

/// One file of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// Its path in the plugin's folder.
    pub path: String,
    /// Its text: without byte order mark, with `\n` at the ends of lines, and without blank lines around it.
    pub text: String,
}

/// The files of rules that the plugin's manifest lists.
pub fn read(plugin: &Plugin) -> Rules {
    let mut rules = Rules::default();
    for listed in &plugin.manifest.contributes.rules {
        match file(plugin, listed) {
            Ok(file) if rules.files.iter().any(|known| known.path == file.path) => {}
            Ok(file) => rules.files.push(file),
            Err(why) => {
                let name = &plugin.manifest.name;
                rules.warnings.push(format!("the rules {listed:?} of {name} are left out: {why}"));
            }
        }
    }
    rules
}

fn file(plugin: &Plugin, listed: &str) -> Result<RuleFile, String> {
    let path: InnerPath = listed.parse().map_err(|error: crate::path::InnerPathError| error.to_string())?;
    let bytes = plugin.read(&path, LONGEST_FILE).map_err(|error| match error {
        FileError::TooLong { most } => format!("the file is longer than {} KiB", most / 1024),
        other => other.to_string(),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        format!("the file is not UTF-8: byte {} begins no character", error.utf8_error().valid_up_to())
    })?;
    Ok(RuleFile { path: path.to_string(), text: tidy(&text) })
}

/// The text as it is put together with others.
pub fn tidy(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    // Blank lines around it go; what the first line is indented by stays.
    let blank = |line: &&str| line.trim().is_empty();
    let before: usize = text.split_inclusive('\n').take_while(blank).map(str::len).sum();
    text[before..].trim_end().to_owned()
}

/// The texts of several plugins as one: ordered by name, each plugin under one heading, its files in their order. Plugins
/// whose files say nothing have no heading, and with no text at all there is none.
///
/// ```
/// let rules = [("b", vec!["Second."]), ("a", vec!["First.", "And more."]), ("c", vec![])];
/// assert_eq!(plugins::rules::compose(rules), "## a\n\nFirst.\n\nAnd more.\n\n## b\n\nSecond.\n");
/// assert_eq!(plugins::rules::compose([("c", vec![""])]), "");
/// ```
pub fn compose<'a>(plugins: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> String {
    let mut sections: Vec<(&str, String)> = plugins
        .into_iter()
        .map(|(name, texts)| (name, texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>()))
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(name, texts)| (name, format!("## {name}\n\n{}\n", texts.join("\n\n"))))
        .collect();
    sections.sort_by_key(|(name, _)| *name);
    sections.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(tidy(text), expected);
    }

    #[test]
    fn a_text_is_tidied_at_its_edges_only() {
        check("\u{feff}a\r\n\r\nb\r\n", "a\n\nb");
        check("\n \n    code\n  b  \n\n\n", "    code\n  b");
        check("a\rb\n", "a\rb");
        check("", "");
        check(" \r\n\t\n", "");
    }
}
