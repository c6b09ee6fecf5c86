//! `toolctl install`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use release::{Builder, Described, LockFile, Platform, PluginCache, Sha256};
use serde_json::json;

use crate::support::Bench;

/// Writes a release of two providers; the programs are scripts that say which version they are.
pub(crate) fn release(folder: &Path, version: &str) {
    let mut builder = Builder::new(folder, version.parse().unwrap(), version).unwrap();
    for name in ["filesystem", "user"] {
        let example = if name == "user" { json!({}) } else { json!({"allowed_roots": ["."]}) };
        let described = Described {
            name: name.to_owned(),
            source: format!("github.com/pluggable-harness/provider-{name}"),
            category: "tool".to_owned(),
            example: serde_json::from_value(example).unwrap(),
        };
        let program = format!("#!/bin/sh\necho {name} {version}\n# {}\n", "x".repeat(200_000)).into_bytes();
        builder.add(&described, &Platform::here(), program, &[]).unwrap();
    }
    builder.finish().unwrap();
}

const INSTALL: [&str; 5] = ["install", "--for", "harness", "--from", "dist"];

fn lock_file(bench: &Bench) -> String {
    bench.read(".agent/agent.lock.hcl")
}

/// What is recorded is what is installed.
#[track_caller]
pub(crate) fn check_whole(bench: &Bench) {
    let file = LockFile::parse(&lock_file(bench)).unwrap();
    let cache = PluginCache::new(bench.path().join(".cache/agent/plugins"));
    for name in ["filesystem", "user"] {
        let row = file.row(name).unwrap().unwrap();
        let program = fs::read(cache.program(&row.source, &row.version, &Platform::here())).unwrap();
        assert_eq!(Sha256::of(&program), row.checksums[&Platform::here()], "{name} {}", row.version);
    }
}

#[test]
fn an_installed_provider_runs_from_the_kernels_cache() {
    let bench = Bench::new(&[]);
    release(&bench.path().join("dist"), "0.1.0");
    let ran = bench.run(&INSTALL);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, include_str!("../golden/agent.hcl")), "{}", ran.stderr);
    check_whole(&bench);

    let row = lock_file(&bench);
    let moment = row.split("resolved_at = \"").nth(1).unwrap().split('"').next().unwrap();
    let golden =
        row.replace(moment, "2026-01-02T03:04:05Z").replace(Platform::here().as_str(), "linux_amd64");
    assert_eq!(golden, include_str!("../golden/agent.lock.hcl"));

    let place = format!(
        ".cache/agent/plugins/github.com_pluggable-harness_provider-user/0.1.0/{}/provider-user",
        Platform::here()
    );
    let said = std::process::Command::new(bench.path().join(place)).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "user 0.1.0\n");
}

#[test]
fn a_dry_run_writes_nothing() {
    let bench = Bench::new(&[]);
    release(&bench.path().join("dist"), "0.1.0");
    let ran = bench.run(&[&INSTALL[..], &["--dry-run", "--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let actions: Vec<String> = ran.json()["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["action"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(actions, ["install", "install", "record", "record"]);
    let left: BTreeSet<String> = fs::read_dir(bench.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, BTreeSet::from(["dist".to_owned()]));
}

#[test]
fn wrong_wishes_are_refused_by_name() {
    #[track_caller]
    fn check(bench: &Bench, arguments: &[&str], part: &str) {
        let ran = bench.run(&[&["install", "--for", "harness"], arguments].concat());
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{ran:?}");
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let bench = Bench::new(&[("file", "")]);
    release(&bench.path().join("dist"), "0.1.0");
    check(&bench, &["--from", "nowhere"], "nowhere");
    check(&bench, &["--from", "dist", "--provider", "web"], "no provider web; it has filesystem, user");
    check(&bench, &["--from", "dist", "--platform", "linux"], "\"linux\" is no platform");
    check(&bench, &["--from", "dist", "--platform", "plan9_mips"], "no filesystem for plan9_mips");
    check(&bench, &["--from", "dist", "--release", "^9"], "no version that fits ^9");
    check(&bench, &["--from", "dist", "--project", "file"], "--project file: it is no folder");
    check(&bench, &[], "--from");
}

#[test]
fn whoever_is_killed_leaves_no_half() {
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path().join(".agent")).unwrap();
    let foreign =
        "# ours\nlock_file_version = 1\n\nprovider \"other\" {\n  source = \"gitlab.com/a/b\" # kept\n}\n";
    fs::write(bench.path().join(".agent/agent.lock.hcl"), foreign).unwrap();
    release(&bench.path().join("dist"), "0.1.0");
    bench.run(&INSTALL);
    let mut whole = 0;
    for round in 0..50_u64 {
        let before = lock_file(&bench);
        fs::remove_dir_all(bench.path().join("dist")).unwrap();
        release(&bench.path().join("dist"), &format!("0.2.{round}"));
        let mut child = bench.command(&INSTALL).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // From before the program has begun to after its end, a little later each time.
        std::thread::sleep(Duration::from_micros(round * 800));
        child.kill().unwrap();
        child.wait().unwrap();
        check_whole(&bench);
        let after = lock_file(&bench);
        assert!(after.starts_with(foreign), "{after}");
        let versions = after.matches(&format!("\"0.2.{round}\"")).count();
        assert!(versions == 2 || after == before, "all rows are new, or none: {after}");
        whole += usize::from(versions == 2);
    }
    let ran = bench.run(&INSTALL);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    check_whole(&bench);
    let left = fs::read_dir(bench.path().join(".agent")).unwrap().count();
    assert_eq!(left, 1, "only the lock file is left ({whole} of 50 came to their end)");
}
