//! A provider in a checkout of this repository: its crate, and its place in everything that lists providers.

use std::collections::BTreeMap;
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

/// The lists that lack a provider whose crate exists, one sentence each. A crate without a calls file is not in the
/// catalog yet, and need not be in its lists.
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

/// How a planned crate differs from the template as it stands in the checkout at `root`, one sentence each. A file
/// that was added to the template and not to what is copied from it is one difference.
///
/// # Errors
/// A file of the template cannot be read.
pub fn differences(name: &ProviderName, plan: &Plan, root: &Path) -> Result<Vec<String>, PlanError> {
    let template = root.join("crates/scaffold/template");
    let folder = PathBuf::from("crates").join(name.package());
    let mut planned: BTreeMap<PathBuf, &str> =
        plan.creates.iter().map(|(path, text)| (path.clone(), text.as_str())).collect();
    let mut differences = Vec::new();
    for file in files_below(&template)? {
        let text = std::fs::read_to_string(template.join(&file)).map_err(PlanError::io(&file))?;
        // The calls of all providers of a workspace are in one place.
        let place = match file.strip_prefix("tests/conformance") {
            Ok(_) => PathBuf::from(calls(name).0),
            Err(_) => folder.join(&file),
        };
        match planned.remove(&place) {
            Some(planned) if planned == renamed(&text, name) => {}
            Some(_) => differences.push(format!("{} is not the template's", place.display())),
            None => differences.push(format!("{} of the template is left out", file.display())),
        }
    }
    differences.extend(planned.keys().map(|path| format!("{} is not in the template", path.display())));
    Ok(differences)
}

/// The files below a folder, by path from it, sorted.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, PlanError> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).map_err(PlanError::io(&directory))? {
            let path = entry.map_err(PlanError::io(&directory))?.path();
            match path.is_dir() {
                true => open.push(path),
                false => files.extend(path.strip_prefix(folder).map(Path::to_owned)),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The crates of the catalog's providers, sorted.
fn provider_packages(root: &Path) -> Result<Vec<String>, PlanError> {
    let crates = root.join("crates");
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(&crates).map_err(PlanError::io(&crates))? {
        let name = entry.map_err(PlanError::io(&crates))?.file_name().to_string_lossy().into_owned();
        let Some(provider) = name.strip_prefix("provider-") else { continue };
        let calls = root.join("tests/conformance").join(provider).with_extension("json");
        if calls.is_file() && crates.join(&name).join("src/main.rs").is_file() {
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
    fn what_is_planned_is_the_template_and_a_stray_file_is_noticed() {
        let name = ProviderName::parse("issue-tracker").unwrap();
        let mut plan = plan(&name, &root()).unwrap();
        assert_eq!(differences(&name, &plan, &root()).unwrap(), Vec::<String>::new());
        let (place, text) = plan.creates.remove(2);
        plan.creates.push((PathBuf::from("crates/provider-issue-tracker/src/other.rs"), text + "// more"));
        plan.creates[0].1.push('\n');
        let place = place.strip_prefix("crates/provider-issue-tracker").unwrap().display().to_string();
        assert_eq!(
            differences(&name, &plan, &root()).unwrap(),
            [
                "crates/provider-issue-tracker/Cargo.toml is not the template's".to_owned(),
                format!("{place} of the template is left out"),
                "crates/provider-issue-tracker/src/other.rs is not in the template".to_owned(),
            ]
        );
    }

    #[test]
    fn an_existing_provider_is_refused() {
        let name = ProviderName::parse("filesystem").unwrap();
        let error = plan(&name, &root()).unwrap_err();
        assert_eq!(error.to_string(), "crates/provider-filesystem exists already; nothing was written");
    }

    #[test]
    fn a_provider_with_calls_that_no_list_has_is_named() {
        let copy = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = copy.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        LISTS.iter().for_each(|list| put(list.path, ""));
        put("crates/provider-web2/src/main.rs", "");
        assert_eq!(missing(copy.path()).unwrap(), Vec::<String>::new());
        put("tests/conformance/web2.json", "{}");
        let missing = missing(copy.path()).unwrap();
        assert_eq!(missing.len(), LISTS.len(), "{missing:?}");
        assert!(missing[0].starts_with("provider-web2 is not in the dependencies"), "{missing:?}");
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
