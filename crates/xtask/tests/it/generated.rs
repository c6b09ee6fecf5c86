//! Checked-in generated code is what the contract says today.

use std::fs;
use std::path::PathBuf;

use prost_types::FileDescriptorSet;
use prost_types::source_code_info::Location;
use xtask::{proto, workspace_root};

fn contract() -> FileDescriptorSet {
    proto::compile(&workspace_root().join("proto")).unwrap()
}

#[test]
fn checked_in_rust_is_current() {
    let stale = proto::rust(&contract()).unwrap().differences(&workspace_root()).unwrap();
    assert!(stale.is_empty(), "run `cargo xtask proto`: {stale:?}");
}

#[test]
fn checked_in_go_is_current() {
    let root = workspace_root();
    let stale = proto::go(&root, &contract()).unwrap().differences(&root).unwrap();
    assert!(stale.is_empty(), "run `cargo xtask proto`: {stale:?}");
}

#[test]
fn changed_missing_and_left_over_files_are_noticed_and_repaired() {
    let generated = proto::rust(&contract()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    generated.write(copy.path()).unwrap();
    assert_eq!(generated.differences(copy.path()).unwrap(), Vec::<PathBuf>::new());

    let changed = generated.directory.join("pluggableharness.common.v1.rs");
    let missing = generated.directory.join("pluggableharness.tool.v1.rs");
    let left_over = generated.directory.join("pluggableharness.zebra.v1.rs");
    fs::write(copy.path().join(&changed), "// edited by hand\n").unwrap();
    fs::remove_file(copy.path().join(&missing)).unwrap();
    fs::write(copy.path().join(&left_over), "").unwrap();
    assert_eq!(generated.differences(copy.path()).unwrap(), [changed, missing, left_over]);

    generated.write(copy.path()).unwrap();
    assert_eq!(generated.differences(copy.path()).unwrap(), Vec::<PathBuf>::new());
}

/// Paths of descriptors end with these numbers: fields of a file, a message, an enum and a service.
fn names_something(path: &[i32]) -> bool {
    match path {
        [4..=6, _] => true,
        // A nested message, enum or field of a message; a value of an enum; a method of a service.
        [4, _, rest @ ..] => matches!(rest, [2 | 8, _]) || names_nested(rest),
        [5 | 6, _, 2, _] => true,
        _ => false,
    }
}

fn names_nested(path: &[i32]) -> bool {
    match path {
        [3 | 4, _] | [3, _, 2, _] | [4, _, 2, _] => true,
        [3, _, rest @ ..] => names_nested(rest),
        _ => false,
    }
}

#[test]
fn every_part_of_the_contract_has_a_comment() {
    let contract = contract();
    let mut named = 0;
    for file in contract.file.iter().filter(|file| file.package() != "google.protobuf") {
        let info = file.source_code_info.as_ref().expect("positions are kept");
        for Location { path, span, leading_comments, .. } in
            info.location.iter().filter(|location| names_something(&location.path))
        {
            named += 1;
            let line = span[0] + 1;
            let comment = leading_comments.as_deref().unwrap_or_default().trim();
            assert!(!comment.is_empty(), "{}:{line} has no comment ({path:?})", file.name());
        }
    }
    assert!(named > 800, "only {named} parts were looked at");
}
