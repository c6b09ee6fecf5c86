//! What may be linked, as `deny.toml` says it: the part of `cargo deny` that every machine that builds can check, without
//! the network and without another tool. Other platforms and advisories are left to `cargo deny` itself.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use toml_edit::DocumentMut;

/// Packages that are linked or built on this platform, as cargo knows them.
fn packages() -> Vec<Value> {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(xtask::workspace_root()).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc is needed for this test");
    let rustc = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let metadata = run(&["metadata", "--format-version", "1", "--locked", "--filter-platform", &host]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let linked: BTreeSet<&str> = nodes.iter().map(|node| node["id"].as_str().unwrap()).collect();
    let all = metadata["packages"].as_array().unwrap().iter();
    all.filter(|package| linked.contains(package["id"].as_str().unwrap())).cloned().collect()
}

fn rules() -> DocumentMut {
    std::fs::read_to_string(xtask::workspace_root().join("deny.toml")).unwrap().parse().unwrap()
}

fn named(package: &Value) -> String {
    format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap())
}

/// Whether a licence expression can be met with what is allowed: `OR` is a choice, `AND` is not.
fn is_met(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&words, &mut at, is_allowed);
    let ends = words.last().is_some_and(|word| !["OR", "AND", "WITH"].contains(word));
    met && ends && at == words.len()
}

fn any(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = all(words, at, is_allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at, is_allowed);
    }
    met
}

fn all(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut met = one(words, at, is_allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, is_allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = any(words, at, is_allowed);
        let is_closed = words.get(*at) == Some(&")");
        *at += 1;
        return met && is_closed;
    }
    match words.get(*at..*at + 2) {
        Some(["WITH", exception]) => {
            *at += 2;
            is_allowed(&format!("{word} WITH {exception}"))
        }
        _ => is_allowed(word),
    }
}

#[test]
fn licence_expressions_are_understood() {
    let is_allowed =
        |licence: &str| ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].contains(&licence);
    for met in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-2.0/MIT",
        "(MIT OR GPL-3.0) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        "GPL-3.0 OR (MIT AND Apache-2.0)",
    ] {
        assert!(is_met(met, &is_allowed), "{met}");
    }
    for unmet in [
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "GPL-2.0 WITH Classpath-exception-2.0",
        "",
        "MIT OR",
        "(MIT",
        "MIT MIT",
    ] {
        assert!(!is_met(unmet, &is_allowed), "{unmet}");
    }
}

#[test]
fn every_licence_is_allowed() {
    let rules = rules();
    let allowed: BTreeSet<&str> =
        rules["licenses"]["allow"].as_array().unwrap().iter().map(|entry| entry.as_str().unwrap()).collect();
    let packages = packages();
    assert!(packages.len() > 200, "{} packages", packages.len());
    let unmet: Vec<String> = packages
        .iter()
        .filter(|package| {
            let expression = package["license"].as_str().unwrap_or_default();
            !is_met(expression, &|licence| allowed.contains(licence))
        })
        .map(|package| format!("{}: {}", named(package), package["license"]))
        .collect();
    assert!(unmet.is_empty(), "deny.toml allows no licence of {unmet:#?}");
}

#[test]
fn nothing_that_is_banned_is_linked_and_no_version_is_open() {
    let rules = rules();
    let banned: Vec<String> = rules["bans"]["deny"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry.as_inline_table().unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(!banned.is_empty());
    assert_eq!(rules["bans"]["wildcards"].as_str(), Some("deny"));
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        assert!(!banned.iter().any(|banned| banned == name), "{} is banned", named(&package));
        // Only ours; those of others are theirs to judge.
        if package["source"].is_null() {
            for dependency in package["dependencies"].as_array().unwrap() {
                let is_open = dependency["req"] == "*" && dependency["path"].is_null();
                assert!(!is_open, "{name} takes any version of {}", dependency["name"]);
            }
        }
    }
}

#[test]
fn everything_comes_from_the_public_registry_or_from_here() {
    let rules = rules();
    for kind in ["unknown-registry", "unknown-git"] {
        assert_eq!(rules["sources"][kind].as_str(), Some("deny"));
    }
    let lock = std::fs::read_to_string(xtask::workspace_root().join("Cargo.lock")).unwrap();
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = "));
    let foreign: BTreeSet<&str> = sources
        .filter(|source| !source.contains("registry+https://github.com/rust-lang/crates.io-index"))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
