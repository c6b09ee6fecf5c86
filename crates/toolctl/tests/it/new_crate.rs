//! The crate that `new` makes builds, passes its tests and conforms.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Bench;

/// This checkout.
fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder for builds that is kept between runs, so that only the first one builds everything.
fn target() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_toolctl")).ancestors().nth(2).unwrap();
    beside.join("tests/new-provider")
}

/// Runs cargo in the crate. Everything it needs was downloaded for this workspace, whose versions it takes.
#[track_caller]
fn cargo(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).arg("--offline").current_dir(folder).env("CARGO_TARGET_DIR", target());
    let output = command.output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_crate_builds_passes_its_tests_and_conforms() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["new", "issue-tracker", "--sdk", checkout().to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let folder = bench.path().join("provider-issue-tracker");
    std::fs::copy(checkout().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    cargo(&folder, &["test"]);
    cargo(&folder, &["build"]);
    let program = target().join("debug/provider-issue-tracker");
    let calls = folder.join("tests/conformance/issue-tracker.json");
    let checked = bench.run(&["check", program.to_str().unwrap(), "--calls", calls.to_str().unwrap()]);
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
}
