//! Which paths may not be read or written, whatever they are reached by.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::RootError;

/// Globs over paths, as configured.
///
/// A pattern is relative to every root, absolute, or begins with `~`. It covers what it matches and, where that is a
/// directory, everything beneath; a trailing `/` or `/**` adds nothing to that. `*` stops at a `/`, `**` does not. A
/// relative pattern without a `/` (`.env`, `*.pem`) holds in every directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Neither read nor written.
    pub deny: Vec<String>,
    /// Read, but not written, renamed or removed.
    pub protect: Vec<String>,
}

/// What an operation is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// [`Rules`] for one set of roots, ready to match absolute paths.
#[derive(Debug, Default)]
pub(crate) struct CompiledRules {
    deny: PatternList,
    protect: PatternList,
}

/// A pattern that forbids an access.
pub(crate) enum Forbidden<'a> {
    Denied(&'a str),
    Protected(&'a str),
}

impl CompiledRules {
    /// `names` are all absolute names of all roots.
    pub(crate) fn compile(rules: &Rules, names: &[PathBuf], home: Option<&Path>) -> Result<Self, RootError> {
        Ok(Self {
            deny: PatternList::compile("deny", &rules.deny, names, home)?,
            protect: PatternList::compile("protect", &rules.protect, names, home)?,
        })
    }

    pub(crate) fn forbids(&self, access: Access, absolute: &Path) -> Option<Forbidden<'_>> {
        if let Some(pattern) = self.deny.covering(absolute) {
            return Some(Forbidden::Denied(pattern));
        }
        match access {
            Access::Read => None,
            Access::Write => self.protect.covering(absolute).map(Forbidden::Protected),
        }
    }

    /// Whether nothing can be forbidden, so that no path need be put together.
    pub(crate) fn allow_all(&self, access: Access) -> bool {
        self.deny.patterns.is_empty() && (access == Access::Read || self.protect.patterns.is_empty())
    }
}

#[derive(Debug, Default)]
struct PatternList {
    patterns: Vec<String>,
    set: GlobSet,
    /// For each glob of `set`, the pattern it was made from.
    origins: Vec<usize>,
}

impl PatternList {
    fn compile(
        list: &'static str,
        patterns: &[String],
        names: &[PathBuf],
        home: Option<&Path>,
    ) -> Result<Self, RootError> {
        let mut builder = GlobSetBuilder::new();
        let mut origins = Vec::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let error = |reason: String| RootError::Pattern { list, index, pattern: pattern.clone(), reason };
            for text in spell_out(pattern, names, home).map_err(error)? {
                let glob = GlobBuilder::new(&text)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .case_insensitive(cfg!(target_vendor = "apple"))
                    .build()
                    .map_err(|source| error(source.kind().to_string()))?;
                builder.add(glob);
                origins.push(index);
            }
        }
        let set = builder.build().map_err(|source| RootError::Pattern {
            list,
            index: 0,
            pattern: patterns.join(", "),
            reason: source.to_string(),
        })?;
        Ok(Self { patterns: patterns.to_vec(), set, origins })
    }

    fn covering(&self, absolute: &Path) -> Option<&str> {
        if self.patterns.is_empty() {
            return None;
        }
        let first = *self.set.matches(absolute).first()?;
        self.origins.get(first).and_then(|origin| self.patterns.get(*origin)).map(String::as_str)
    }
}

/// Every absolute glob that one configured pattern stands for.
fn spell_out(pattern: &str, names: &[PathBuf], home: Option<&Path>) -> Result<Vec<String>, String> {
    let body = strip_descendants(pattern);
    let mut globs = Vec::new();
    if body.starts_with('/') || is_home(body) {
        let absolute = match body.strip_prefix('~') {
            None => body.to_owned(),
            Some(rest) => {
                let home = home.ok_or("there is no home directory to put in place of `~`")?;
                format!("{}{}", escape(home), rest)
            }
        };
        globs.extend(physical(&absolute));
        globs.push(absolute);
    } else {
        let body = body.strip_prefix("./").unwrap_or(body);
        let anywhere = if body.contains('/') || body == "**" { "" } else { "**/" };
        globs.extend(names.iter().map(|name| format!("{}/{anywhere}{body}", escape(name))));
        globs.extend(names.iter().filter_map(|name| physical(&format!("{}/{body}", escape(name)))));
    }
    if pattern.is_empty() {
        return Err("the pattern is empty".to_owned());
    }
    let beneath: Vec<String> =
        globs.iter().map(|glob| format!("{}/**", glob.trim_end_matches('/'))).collect();
    globs.extend(beneath);
    Ok(globs)
}

fn strip_descendants(pattern: &str) -> &str {
    let mut body = pattern;
    loop {
        let shorter = body.strip_suffix("/**").or_else(|| body.strip_suffix('/')).unwrap_or(body);
        if shorter.is_empty() || shorter.len() == body.len() {
            return body;
        }
        body = shorter;
    }
}

fn is_home(pattern: &str) -> bool {
    pattern == "~" || pattern.starts_with("~/")
}

/// The glob with its fixed beginning spelled as it really is on disk, where a symbolic link makes that differ.
fn physical(glob: &str) -> Option<String> {
    let path = Path::new(glob);
    let literal: PathBuf = path
        .components()
        .take_while(|component| !component.as_os_str().to_string_lossy().contains(['*', '?', '[', '{', '\\']))
        .collect();
    let rest = path.strip_prefix(&literal).ok()?;
    let (existing, real) = literal.ancestors().find_map(|path| Some((path, path.canonicalize().ok()?)))?;
    let missing = literal.strip_prefix(existing).ok()?;
    let mut spelled = escape(&real);
    for part in [missing, rest] {
        for component in part.components().filter(|component| matches!(component, Component::Normal(_))) {
            spelled.push('/');
            spelled.push_str(&component.as_os_str().to_string_lossy());
        }
    }
    (spelled != glob).then_some(spelled)
}

/// A path as a glob for exactly itself, without a trailing slash. Bytes that are no text match anything.
fn escape(path: &Path) -> String {
    let text = path.to_string_lossy();
    globset::escape(text.trim_end_matches('/')).replace(char::REPLACEMENT_CHARACTER, "*")
}
