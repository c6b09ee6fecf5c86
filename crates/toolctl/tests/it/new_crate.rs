//! The crate that `new` makes builds, passes its tests and conforms: the template, as its author gets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::Bench;

/// This checkout.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder that this workspace is built in. The crate is built there too: most of what it depends on is there
/// already, since it is the same packages in the same versions.
fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_toolctl")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs cargo in a folder, without the network, and gives out what it wrote.
#[track_caller]
fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).arg("--offline").current_dir(folder).env("CARGO_TARGET_DIR", target());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {}:\n{said}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder for the new crate that is the same every time, so that builds do not pile up, and empty.
fn empty_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("provider-issue-tracker");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

#[test]
fn a_new_crate_builds_passes_its_tests_and_conforms() {
    let bench = Bench::new(&[]);
    let folder = empty_folder();
    let ran = bench.run(&["new", "issue-tracker", folder.to_str().unwrap(), "--sdk", CHECKOUT]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // The versions that this workspace has are those that were downloaded for it.
    std::fs::copy(Path::new(CHECKOUT).join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let tests = cargo(&folder, &["test"]);
    assert!(tests.contains("test result: ok. 2 passed"), "{tests}");
    // Built for its tests.
    let program = target().join("debug/provider-issue-tracker");
    let calls = folder.join("tests/conformance/issue-tracker.json");
    let arguments = ["check", program.to_str().unwrap(), "--calls", calls.to_str().unwrap(), "--json"];
    let ran = bench.run(&arguments);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let counts = ran.json()["counts"].clone();
    assert_eq!((&counts["failed"], &counts["warnings"]), (&json!(0), &json!(0)), "{}", ran.stdout);
}
