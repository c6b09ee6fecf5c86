//! A provider in a checkout of this repository: its crate, and its place in everything that lists providers.

use std::path::{Path, PathBuf};

use crate::name::ProviderName;
use crate::plan::{Plan, PlanError};
use crate::template::{calls, renamed, shared};

/// A file that lists the providers, and how a provider is added to its text.
struct List {
    path: &'static str,
    /// What the text must have for a provider to be listed.
    entry: fn(&ProviderName) -> String,
    /// The text with the entry. `None` where the list is not found.
    add: fn(&str, &str) -> Option<String>,
    /// What is looked for, for the error.
    place: &'static str,
}

const LISTS: [List; 5] = [
    List {
        path: "Cargo.toml",
        entry: |name| format!("{package} = {{ path = \"crates/{package}\" }}", package = name.package()),
        add: add_dependency,
        place: "the dependencies named provider-…",
    },
    List {
        path: "crates/toolctl/Cargo.toml",
        entry: workspace_dependency,
        add: add_dependency,
        place: "the dependencies named provider-…",
    },
    List {
        path: "crates/xtask/Cargo.toml",
        entry: workspace_dependency,
        add: add_dependency,
        place: "the dependencies named provider-…",
    },
    List {
        path: "crates/toolctl/src/embedded.rs",
        entry: |name| format!("(\"{name}\", provider_core::run::<{}::{}>)", name.library(), name.type_name()),
        add: |text, entry| add_item(text, &["const PROVIDERS", "=", "["], entry),
        place: "the table PROVIDERS",
    },
    List {
        path: "crates/xtask/src/docs.rs",
        entry: |name| format!("declared::<{}::{}>()?", name.library(), name.type_name()),
        add: |text, entry| add_item(text, &["fn providers()", "vec!["], entry),
        place: "the list in providers()",
    },
];

fn workspace_dependency(name: &ProviderName) -> String {
    format!("{}.workspace = true", name.package())
}

/// The Rust files that a plan may change; they want formatting after it was applied.
pub fn rust_lists<'a>() -> impl Iterator<Item = &'a Path> {
    LISTS
        .iter()
        .map(|list| Path::new(list.path))
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
}

/// A crate below `crates/`, listed everywhere.
///
/// # Errors
/// There is such a crate, or a list is not found where it should be.
pub fn plan(name: &ProviderName, root: &Path) -> Result<Plan, PlanError> {
    let folder = PathBuf::from("crates").join(name.package());
    if root.join(&folder).exists() {
        return Err(PlanError::Exists { path: folder });
    }
    let manifest = renamed(include_str!("../template/Cargo.toml"), name);
    let mut creates = vec![(folder.join("Cargo.toml"), manifest)];
    let (path, text) = calls(name);
    creates.push((PathBuf::from(path), text));
    creates.extend(shared(name).map(|(path, text)| (folder.join(path), text)));
    let edits = LISTS.iter().filter_map(|list| edit(list, name, root).transpose());
    Ok(Plan { root: root.to_owned(), creates, edits: edits.collect::<Result<_, _>>()? })
}

fn edit(list: &List, name: &ProviderName, root: &Path) -> Result<Option<(PathBuf, String)>, PlanError> {
    let path = root.join(list.path);
    let text = std::fs::read_to_string(&path).map_err(PlanError::io(&path))?;
    let entry = (list.entry)(name);
    if text.contains(&entry) {
        return Ok(None);
    }
    match (list.add)(&text, &entry) {
        Some(text) => Ok(Some((PathBuf::from(list.path), text))),
        None => Err(PlanError::Unknown {
            path: PathBuf::from(list.path),
            reason: format!("{} not found; add `{entry}` by hand", list.place),
        }),
    }
}

/// The lists that lack a provider whose crate exists, one sentence each.
///
/// # Errors
/// A list cannot be read.
pub fn missing(root: &Path) -> Result<Vec<String>, PlanError> {
    let mut missing = Vec::new();
    for package in provider_packages(root)? {
        for list in &LISTS {
            let path = root.join(list.path);
            let text = std::fs::read_to_string(&path).map_err(PlanError::io(&path))?;
            // The Rust files may name the type in other ways than a plan does; the library they must name.
            let wanted =
                if list.path.ends_with(".rs") { package.replace('-', "_") + "::" } else { package.clone() };
            if !text.contains(&wanted) {
                missing.push(format!("{package} is not in {} of {}", list.place, list.path));
            }
        }
    }
    Ok(missing)
}

/// The crates of providers, sorted.
fn provider_packages(root: &Path) -> Result<Vec<String>, PlanError> {
    let crates = root.join("crates");
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(&crates).map_err(PlanError::io(&crates))? {
        let name = entry.map_err(PlanError::io(&crates))?.file_name().to_string_lossy().into_owned();
        let is_provider = name.starts_with("provider-") && name != "provider-core";
        if is_provider && crates.join(&name).join("src/main.rs").is_file() {
            packages.push(name);
        }
    }
    packages.sort();
    Ok(packages)
}

/// Adds a line among those that begin with `provider-`, which are sorted.
fn add_dependency(manifest: &str, entry: &str) -> Option<String> {
    let mut lines: Vec<&str> = manifest.lines().collect();
    let ours = |line: &str| line.starts_with("provider-");
    let last = lines.iter().rposition(|line| ours(line))?;
    let next = lines.iter().position(|line| ours(line) && *line > entry);
    lines.insert(next.unwrap_or(last + 1), entry);
    Some(lines.join("\n") + "\n")
}

/// Adds an item at the end of the bracketed list behind `anchors`, which follow each other.
fn add_item(code: &str, anchors: &[&str], item: &str) -> Option<String> {
    let start =
        anchors.iter().try_fold(0, |at, anchor| Some(at + code[at..].find(anchor)? + anchor.len()))?;
    let mut depth = 1_usize;
    let closing = code[start..].char_indices().find_map(|(at, letter)| {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(start + at)
    })?;
    let items = code[start..closing].trim().trim_end_matches(',');
    let separator = if items.is_empty() { "" } else { ", " };
    Some(format!("{}{items}{separator}{item}{}", &code[..start], &code[closing..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[track_caller]
    fn check_dependency(manifest: &str, expected: &str) {
        assert_eq!(add_dependency(manifest, "provider-m.workspace = true").as_deref(), Some(expected));
    }

    #[test]
    fn dependencies_stay_sorted_among_themselves() {
        check_dependency("provider-a.x\nz\n", "provider-a.x\nprovider-m.workspace = true\nz\n");
        check_dependency("[d]\nprovider-z.x\n", "[d]\nprovider-m.workspace = true\nprovider-z.x\n");
        check_dependency(
            "provider-a.x\nprovider-z.x\n",
            "provider-a.x\nprovider-m.workspace = true\nprovider-z.x\n",
        );
        assert_eq!(add_dependency("[dependencies]\n", "provider-m"), None);
    }

    #[track_caller]
    fn check_item(code: &str, expected: &str) {
        let got = add_item(code, &["const P", "=", "["], "(c)");
        assert_eq!(got.as_deref(), Some(expected));
    }

    #[test]
    fn an_item_is_added_however_the_list_is_formatted() {
        check_item("const P: &[(A)] = &[(a)];", "const P: &[(A)] = &[(a), (c)];");
        check_item("const P: &[(A)] =\n    &[(a), ([b])];", "const P: &[(A)] =\n    &[(a), ([b]), (c)];");
        check_item("const P: &[A] = &[\n    (a),\n    (b),\n];", "const P: &[A] = &[(a),\n    (b), (c)];");
        check_item("const P: &[A] = &[];", "const P: &[A] = &[(c)];");
        assert_eq!(add_item("const Q", &["const P"], "(c)"), None);
    }

    #[test]
    fn a_new_provider_is_listed_everywhere_once() {
        let name = ProviderName::parse("issue-tracker").unwrap();
        let plan = plan(&name, &root()).unwrap();
        let edited: Vec<_> = plan.edits.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
        assert_eq!(edited, LISTS.map(|list| list.path.to_owned()));
        for (path, text) in &plan.edits {
            let before = std::fs::read_to_string(root().join(path)).unwrap();
            assert!(
                !before.contains("issue-tracker") && !before.contains("issue_tracker"),
                "{}",
                path.display()
            );
            let mentions =
                text.matches("issue_tracker").count() + text.matches("provider-issue-tracker").count();
            assert!((1..=2).contains(&mentions), "{}: {text}", path.display());
        }
        let created: Vec<_> =
            plan.creates.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
        assert!(
            created.contains(&"crates/provider-issue-tracker/src/tools/greet.rs".to_owned()),
            "{created:?}"
        );
    }

    #[test]
    fn an_existing_provider_is_refused() {
        let name = ProviderName::parse("filesystem").unwrap();
        let error = plan(&name, &root()).unwrap_err();
        assert_eq!(error.to_string(), "crates/provider-filesystem exists already; nothing was written");
    }

    #[test]
    fn a_list_that_is_not_found_says_what_to_add_by_hand() {
        let copy = tempfile::tempdir().unwrap();
        for list in &LISTS {
            let path = copy.path().join(list.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::copy(root().join(list.path), path).unwrap();
        }
        let name = ProviderName::parse("web2").unwrap();
        assert!(plan(&name, copy.path()).is_ok());
        std::fs::write(copy.path().join("crates/toolctl/src/embedded.rs"), "// moved\n").unwrap();
        let error = plan(&name, copy.path()).unwrap_err().to_string();
        assert!(error.contains("embedded.rs cannot be changed: the table PROVIDERS not found"), "{error}");
        assert!(
            error.contains("add `(\"web2\", provider_core::run::<provider_web2::Web2>)` by hand"),
            "{error}"
        );
    }
}
