//! What authors call has an example: every public type, trait, function and constant of the SDK.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::workspace_root;

/// The sources of the crates that authors build on.
const SOURCES: [&str; 2] = ["crates/provider-core/src", "crates/goplugin/src"];

/// Generated code, whose comments come from the contract.
const GENERATED: &str = "wire/plugin.rs";

/// Words before the name of what is declared. A module's example is in the file that it is.
const KINDS: [&str; 6] = ["struct ", "enum ", "trait ", "fn ", "const ", "type "];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => rust_files(&path, files),
            false if !path.ends_with(GENERATED) => files.push(path),
            false => {}
        }
    }
}

/// The name of the public item that a line declares. Items of a module begin a line, and nothing else does: the
/// sources are formatted.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["async ", "unsafe "].iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let rest =
        rest.strip_prefix("const fn ").or_else(|| KINDS.iter().find_map(|kind| rest.strip_prefix(kind)))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// The items of a source without an example in their documentation, and how many items there are.
fn without_example(source: &str) -> (Vec<&str>, usize) {
    let (mut missing, mut items) = (Vec::new(), 0);
    let mut has_example = false;
    for line in source.lines() {
        match declared(line) {
            Some(name) => {
                items += 1;
                if !has_example {
                    missing.push(name);
                }
                has_example = false;
            }
            None if line.starts_with("/// ```") => has_example = true,
            // An item that is not public ends here.
            None if line.starts_with(|first: char| first == '}' || first.is_ascii_alphabetic()) => {
                has_example = false;
            }
            None => {}
        }
    }
    (missing, items)
}

#[test]
fn every_public_item_of_the_sdk_has_an_example() {
    let mut files = Vec::new();
    SOURCES.iter().for_each(|source| rust_files(&workspace_root().join(source), &mut files));
    let (mut missing, mut items) = (String::new(), 0);
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let (without, found) = without_example(&source);
        items += found;
        without.iter().for_each(|name| missing.push_str(&format!("{}: {name}\n", file.display())));
    }
    assert!(missing.is_empty(), "these have no example:\n{missing}");
    assert!(items > 100, "only {items} items were found");
}

#[test]
fn an_item_without_an_example_is_noticed() {
    let source = "/// A.\n///\n/// ```\n/// a();\n/// ```\n#[must_use]\npub async fn a() {}\n\n/// B.\npub struct B;\n\
                  \n/// ```\n/// c\n/// ```\nstruct C;\n\n/// D.\npub const fn d() {}\npub(crate) fn e() {}\n";
    assert_eq!(without_example(source), (vec!["B", "d"], 3));
}
