//! What a provider may be called.

use std::fmt;

/// The name of a provider, for example `web` or `issue-tracker`: words of `a-z` and `0-9` that begin with a
/// letter, joined by `-`, 32 characters at most.
///
/// It is the catalog name, the last part of the crate's name and of `required_providers`' source, and it must
/// make a Rust identifier, so it is stricter than a crate's name.
///
/// ```
/// let name = scaffold::ProviderName::parse("issue-tracker").unwrap();
/// assert_eq!((name.package(), name.library()), ("provider-issue-tracker".into(), "provider_issue_tracker".into()));
/// assert_eq!(name.type_name(), "IssueTracker");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderName(String);

/// Why a text is no provider's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A character, an end or a start that names do not have.
    #[error(
        "`{given}` cannot be a provider's name: wanted words of a-z and 0-9 that begin with a letter, joined by -, \
         such as `web` or `issue-tracker`{}", hint(.suggestion)
    )]
    Form {
        /// What was given.
        given: String,
        /// The nearest name that would do.
        suggestion: Option<String>,
    },
    /// More than 32 characters.
    #[error("`{given}` is too long for a provider's name: {} characters, and 32 are allowed", .given.len())]
    Length {
        /// What was given.
        given: String,
    },
    /// A crate of the SDK has the name.
    #[error("`{given}` cannot be a provider's name: provider-{given} is a crate that providers are made of")]
    Reserved {
        /// What was given.
        given: String,
    },
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or_else(String::new, |name| format!("; `{name}` would do"))
}

const LONGEST: usize = 32;

/// Names of crates that a provider of that name would hide.
const RESERVED: [&str; 2] = ["core", "template"];

/// Types that the template's files name; a provider's own type must not hide them.
const TYPES_IN_USE: [&str; 26] = [
    "Arc",
    "Args",
    "Box",
    "Code",
    "Concurrency",
    "Cx",
    "Err",
    "Events",
    "Greet",
    "Greeting",
    "None",
    "Node",
    "Ok",
    "Option",
    "Output",
    "Preview",
    "Process",
    "Provider",
    "Resource",
    "Result",
    "Risk",
    "Self",
    "Setup",
    "Silent",
    "Some",
    "String",
];

impl ProviderName {
    /// Reads a name.
    ///
    /// # Errors
    /// Says which rule the text breaks, and the nearest name that breaks none.
    pub fn parse(given: &str) -> Result<Self, NameError> {
        if !is_well_formed(given) {
            return Err(NameError::Form { given: given.to_owned(), suggestion: nearest_name(given) });
        }
        if given.len() > LONGEST {
            return Err(NameError::Length { given: given.to_owned() });
        }
        if RESERVED.contains(&given) {
            return Err(NameError::Reserved { given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }

    /// The name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The package: `provider-issue-tracker`.
    pub fn package(&self) -> String {
        format!("provider-{}", self.0)
    }

    /// The library as code names it: `provider_issue_tracker`.
    pub fn library(&self) -> String {
        self.package().replace('-', "_")
    }

    /// The provider's type: `IssueTracker`, or `ProcessProvider` where the plain word means something else.
    pub fn type_name(&self) -> String {
        let word = |word: &str| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        };
        let plain: String = self.0.split('-').map(word).collect();
        if TYPES_IN_USE.contains(&plain.as_str()) { plain + "Provider" } else { plain }
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_well_formed(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('-').all(word)
}

/// The text with everything taken out that names do not have: `My_Provider` and `provider-my` lead to `my`.
fn nearest_name(text: &str) -> Option<String> {
    // Letters that names do not have would leave a name that says something else.
    if text.chars().any(|letter| letter.is_alphabetic() && !letter.is_ascii()) {
        return None;
    }
    let mut name = String::new();
    for letter in text.trim().chars() {
        match letter {
            'a'..='z' | '0'..='9' => name.push(letter),
            'A'..='Z' => {
                if name.ends_with(|last: char| last.is_ascii_lowercase()) {
                    name.push('-');
                }
                name.push(letter.to_ascii_lowercase());
            }
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    let name = name.trim_start_matches(|first: char| !first.is_ascii_lowercase()).trim_end_matches('-');
    (is_well_formed(name) && (2..=LONGEST).contains(&name.len()) && !RESERVED.contains(&name))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        let got = ProviderName::parse(given).map_or_else(|error| error.to_string(), |name| name.type_name());
        assert!(got.contains(expected), "{given}: {got}");
    }

    #[test]
    fn words_joined_by_hyphens_become_a_type() {
        check("web", "Web");
        check("issue-tracker", "IssueTracker");
        check("s3", "S3");
        check("a-1", "A1");
    }

    #[test]
    fn a_type_does_not_hide_one_that_the_files_use() {
        check("process", "ProcessProvider");
        check("self", "SelfProvider");
        check("result", "ResultProvider");
        check("greet", "GreetProvider");
    }

    #[test]
    fn a_bad_name_comes_with_a_good_one() {
        check("", "wanted words");
        check("Web", "`web` would do");
        check("my_provider", "`my-provider` would do");
        check("IssueTracker", "`issue-tracker` would do");
        check("web-", "`web` would do");
        check("a--b", "`a-b` would do");
        check("3d", "such as `web` or `issue-tracker`");
        check("../etc", "`etc` would do");
        check("a/b", "`a-b` would do");
        check("météo", "such as `web`");
        check("天气", "wanted words");
        check("42", "such as `web`");
    }

    #[test]
    fn length_and_crates_of_the_sdk_are_refused() {
        check(&"a".repeat(32), "Aaaa");
        check(&"a".repeat(33), "33 characters");
        check("core", "is a crate");
    }
}
