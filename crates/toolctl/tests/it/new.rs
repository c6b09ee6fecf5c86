//! `new`: what it writes, and what it refuses.

use std::path::Path;

use crate::support::Bench;

/// This checkout.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn a_crate_is_written_and_each_file_is_named() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["new", "issue-tracker", "--sdk", CHECKOUT]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("create Cargo.toml\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cd provider-issue-tracker\n"), "{}", ran.stderr);
    let manifest = bench.read("provider-issue-tracker/Cargo.toml");
    assert!(manifest.contains("name = \"provider-issue-tracker\""), "{manifest}");
    let lib = bench.read("provider-issue-tracker/src/lib.rs");
    assert!(lib.contains("const NAME: &'static str = \"issue-tracker\";"), "{lib}");
    assert!(bench.path().join("provider-issue-tracker/.gitignore").is_file());
}

#[test]
fn a_dry_run_writes_nothing() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["new", "web", "folder", "--dry-run"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.starts_with("would create Cargo.toml\n"), "{}", ran.stderr);
    assert!(!bench.path().join("folder").exists());
}

#[track_caller]
fn check_refused(arguments: &[&str], reason: &str) {
    let bench = Bench::new(&[("occupied", "mine")]);
    let ran = bench.run(&[&["new"], arguments].concat());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    let names: Vec<_> =
        std::fs::read_dir(bench.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["occupied"]);
    assert_eq!(bench.read("occupied"), "mine");
}

#[test]
fn bad_names_taken_places_and_wrong_checkouts_are_refused() {
    check_refused(&["IssueTracker"], "`issue-tracker` would do");
    check_refused(&["core"], "is a crate that providers are made of");
    check_refused(&["web", "occupied"], "occupied exists already; nothing was written");
    check_refused(&["web", "--sdk", "."], "no checkout of the SDK");
    check_refused(&["web", "--sdk", "nowhere"], "no checkout of the SDK");
    assert!(Path::new(CHECKOUT).join("crates/provider-core").is_dir());
}
