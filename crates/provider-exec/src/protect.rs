//! Which paths in the root stay as they are.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use provider_core::ToolError;

/// What is protected when nothing is configured: what git runs by itself.
pub(crate) const BY_DEFAULT: &[&str] = &[".git/hooks"];
/// Each protected path is a mount, and every command pays for it.
const MOST_PATHS: usize = 256;
/// Globs are looked for among so many entries.
const MOST_ENTRIES: usize = 300_000;
const SPECIAL: &[char] = &['*', '?', '[', '{'];

/// The paths that the patterns name now. A pattern is a path, or a glob relative to the root; one that ends in `/**`
/// names the directory, with all that it will ever hold. Blocks while it looks.
///
/// # Errors
/// A pattern is no glob, or they name too much.
pub(crate) fn find(
    root: &Path,
    patterns: &[String],
    expanded: impl Fn(&str) -> PathBuf,
) -> Result<Vec<PathBuf>, ToolError> {
    let (globs, paths): (Vec<&str>, Vec<&str>) = patterns
        .iter()
        .map(|pattern| pattern.trim_end_matches("/**"))
        .partition(|pattern| pattern.contains(SPECIAL));
    let mut found: Vec<PathBuf> = paths.into_iter().map(&expanded).collect();
    if !globs.is_empty() {
        walk(root, &set(&globs)?, &mut found)?;
    }
    if found.len() > MOST_PATHS {
        return Err(ToolError::invalid_arguments(format!(
            "protect: the patterns name {} paths, but at most {MOST_PATHS} can be protected; name the directories above them",
            found.len()
        )));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn set(globs: &[&str]) -> Result<GlobSet, ToolError> {
    let wrong = |error: globset::Error| ToolError::invalid_arguments(format!("protect: {error}"));
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(GlobBuilder::new(glob).literal_separator(true).build().map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

/// Adds what matches. What is below a match is protected with it.
fn walk(root: &Path, set: &GlobSet, found: &mut Vec<PathBuf>) -> Result<(), ToolError> {
    let mut directories = vec![root.to_owned()];
    let mut entries = 0;
    while let Some(directory) = directories.pop() {
        // What cannot be listed cannot be matched; nor can it be written by whoever lacks that right.
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                let message = "protect: the root has too many files to look for globs; name paths instead";
                return Err(ToolError::invalid_arguments(message));
            }
            let path = entry.path();
            if set.is_match(path.strip_prefix(root).unwrap_or(&path)) {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::find;

    #[test]
    fn paths_and_globs_name_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [".git/hooks", "sub/.git/hooks", "sub/deep"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in [".env", "sub/.env", "sub/deep/a.lock", "sub/.git/hooks/x"] {
            std::fs::write(root.join(path), "").unwrap();
        }
        let check = |patterns: &[&str], expected: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let expected: Vec<PathBuf> = expected.iter().map(|path| root.join(path)).collect();
            assert_eq!(find(root, &patterns, |path| root.join(path)).unwrap(), expected, "{patterns:?}");
        };
        check(&[".git/hooks"], &[".git/hooks"]);
        check(&["**/.git/hooks/**"], &[".git/hooks", "sub/.git/hooks"]);
        check(&["**/.env", "missing"], &[".env", "missing", "sub/.env"]);
        check(&["sub/*/*.lock"], &["sub/deep/a.lock"]);
        check(&["*.lock"], &[]);
        assert!(find(root, &["[".to_owned()], |path| root.join(path)).is_err());
    }
}
