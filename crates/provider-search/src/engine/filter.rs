//! Which files a search is about: by glob and by type.

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

/// Why a glob or type cannot be used. The message stands alone.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// Not a glob.
    #[error("glob: `{glob}`: {reason}; write [ as \\[ to mean the character itself")]
    Glob {
        /// The glob.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No type of this name.
    #[error("type: there is no type `{name}`{}; use glob for other files, for example *.{name}", meant(.nearest))]
    Type {
        /// The name.
        name: String,
        /// Types that may have been meant.
        nearest: Vec<String>,
    },
}

fn meant(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(" or ")) }
}

/// Globs relative to the start of a search, as in an ignore file: one without a slash holds in every directory, one
/// with `!` before it leaves files out. Several are separated by commas outside of braces and brackets.
///
/// # Errors
/// The first glob that is none.
pub fn globs(text: Option<&str>) -> Result<Override, FilterError> {
    let mut builder = OverrideBuilder::new("");
    let each = text.map(split).unwrap_or_default();
    for glob in &each {
        builder.add(glob).map_err(|error| glob_error(glob, &error))?;
    }
    builder.build().map_err(|error| glob_error(&each.join(","), &error))
}

fn glob_error(glob: &str, error: &ignore::Error) -> FilterError {
    let reason = match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    };
    FilterError::Glob { glob: glob.to_owned(), reason }
}

/// Splits at commas that are not inside `{…}` or `[…]` and have no backslash before them.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut current, mut depth, mut escaped) = (Vec::new(), String::new(), 0_usize, false);
    for character in text.chars() {
        match character {
            ',' if depth == 0 && !escaped => parts.push(std::mem::take(&mut current)),
            ',' if escaped && depth == 0 => {
                current.pop();
                current.push(',');
            }
            _ => current.push(character),
        }
        match character {
            '{' | '[' if !escaped => depth += 1,
            '}' | ']' if !escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = character == '\\' && !escaped;
    }
    parts.push(current);
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The types named, and how names that are extensions were read.
///
/// # Errors
/// The first name that is no type.
pub fn types(text: Option<&str>) -> Result<(Types, Vec<String>), FilterError> {
    let Some(text) = text else { return Ok((Types::empty(), Vec::new())) };
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let known = builder.definitions();
    let mut notes = Vec::new();
    for name in text.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()) {
        let (negated, name) = name.strip_prefix('!').map_or((false, name), |name| (true, name));
        let is_type = name == "all" || known.iter().any(|known| known.name() == name);
        let by_extension = || {
            let glob = format!("*.{}", name.trim_start_matches('.'));
            known.iter().filter(|known| known.globs().contains(&glob)).min_by_key(|known| known.globs().len())
        };
        let found = match is_type {
            true => name,
            false => by_extension().map(|known| known.name()).ok_or_else(|| unknown(name, &known))?,
        };
        if !is_type {
            notes.push(format!("type: `{name}` was read as {found}"));
        }
        if negated {
            builder.negate(found)
        } else {
            builder.select(found)
        };
    }
    let types =
        builder.build().map_err(|error| FilterError::Type { name: error.to_string(), nearest: vec![] })?;
    Ok((types, notes))
}

fn unknown(name: &str, known: &[ignore::types::FileTypeDef]) -> FilterError {
    let nearest = provider_core::nearest(name, known.iter().map(|known| known.name()));
    FilterError::Type { name: name.to_owned(), nearest: nearest.map(str::to_owned).into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_separated_by_commas_outside_of_braces() {
        assert_eq!(split("*.rs"), ["*.rs"]);
        assert_eq!(split("*.{rs,toml}, !target/**"), ["*.{rs,toml}", "!target/**"]);
        assert_eq!(split(r"a\,b,[,]c"), ["a,b", "[,]c"]);
        assert_eq!(split(" , "), Vec::<String>::new());
    }

    #[track_caller]
    fn check(glob: &str, path: &str, expected: bool) {
        let globs = globs(Some(glob)).unwrap();
        let matched = globs.matched(path, false);
        assert_eq!(!matched.is_ignore(), expected, "{glob} {path}");
    }

    #[test]
    fn globs_hold_as_in_an_ignore_file() {
        check("*.rs", "a/b.rs", true);
        check("*.rs", "a/b.py", false);
        check("a/*.rs", "a/b.rs", true);
        check("a/*.rs", "c/a/b.rs", false);
        check("!*.rs", "b.py", true);
        check("!*.rs", "b.rs", false);
        check("*.{rs,py}", "b.py", true);
        let message = globs(Some("a[b")).unwrap_err().to_string();
        assert!(message.contains("`a[b`") && message.contains("unclosed"), "{message}");
    }

    #[test]
    fn types_may_be_named_by_their_extension() {
        let (rust, notes) = types(Some("rust")).unwrap();
        assert!(rust.matched("a.rs", false).is_whitelist() && notes.is_empty());
        let (rust, notes) = types(Some("rs")).unwrap();
        assert!(rust.matched("a.rs", false).is_whitelist() && rust.matched("a.py", false).is_ignore());
        assert_eq!(notes, ["type: `rs` was read as rust"]);
        let message = types(Some("pyton")).unwrap_err().to_string();
        assert!(message.contains("did you mean python?"), "{message}");
    }
}
