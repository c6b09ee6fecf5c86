//! `list`, `describe`, `schema`, `doctor`, and what the program says of itself.

use serde_json::json;

use crate::support::{Bench, awkward_argument};

#[test]
fn list_names_every_tool_with_kind_and_risk() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["list"]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
    let words: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split_whitespace().take(4).collect()).collect();
    assert!(words.contains(&vec!["filesystem", "edit_file", "resource", "moderate"]), "{}", ran.stdout);
    assert!(words.contains(&vec!["filesystem", "read_file", "data_source", "read_only"]), "{}", ran.stdout);
    let document = bench.run(&["list", "--json"]).json();
    assert_eq!(document["format_version"], "1.0");
    assert_eq!(document["providers"][0]["name"], "filesystem");
    assert_eq!(document["providers"][0]["tools"][0]["kind"], "data_source");
}

#[test]
fn a_table_stays_within_the_width() {
    let bench = Bench::new(&[]);
    let output = bench.command(&["list"]).env("COLUMNS", "72").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 72 && text.lines().count() > 7, "{text}");
}

#[test]
fn describe_shows_a_tool_in_full() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let ran = bench.run(&["describe", &provider, "enter_keyed"]);
    let expected = "\
enter_keyed(hold_ms?, path?, wait_for?)

Behaves as enter_keyed. Not for real use.

data_source, risk read_only; one at a time per path

Arguments
  name       type    about
  ─────────  ──────  ─────
  hold_ms?   number  A value.
  path?      string  A value.
  wait_for?  number  A value.

Result
  name   type    about
  ─────  ──────  ─────
  text   string  A value.
  note?  string  A value.

Example
  toolctl call $AWKWARD enter_keyed
";
    assert_eq!((ran.stdout.as_str(), ran.code), (expected, 0));
    assert_eq!(bench.run(&["describe", &provider, "nothing"]).code, 2);
    let all = bench.run(&["describe", "filesystem"]).stdout;
    assert!(all.contains("\nConfiguration\n") && all.contains("allowed_roots"), "{all}");
}

#[test]
fn the_schema_is_a_versioned_document() {
    let bench = Bench::new(&[]);
    let document = bench.run(&["schema", "filesystem"]).json();
    assert_eq!(document["format_version"], "1.0");
    assert_eq!(document["provider"]["source"], "github.com/pluggable-harness/provider-filesystem");
    let edit = document["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "edit_file").unwrap();
    assert_eq!(edit["concurrency"], json!({"safe": true, "key_fields": ["path"]}));
    assert_eq!((&edit["default_timeout_ms"], &edit["idempotent"]), (&json!(120_000), &json!(false)));
    assert_eq!(edit["input_schema"]["properties"]["path"]["type"], "string");
    let described = bench.run(&["describe", "filesystem", "--json"]).json();
    assert_eq!(described, document);
}

#[test]
fn the_doctor_starts_what_is_inside() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["doctor", "--json"]);
    let findings = ran.json()["findings"].clone();
    let filesystem =
        findings.as_array().unwrap().iter().find(|finding| finding["check"] == "provider filesystem");
    assert_eq!((&filesystem.unwrap()["status"], ran.code), (&json!("ok"), 0), "{findings}");
    for check in [
        "sandbox",
        "sandbox, network off",
        "sandbox, read only",
        "sandbox levels",
        "landlock",
        "user namespace",
        "mount namespace",
        "network namespace",
        "bubblewrap",
        "control group",
        "limits",
        "PATH of commands",
        "state",
    ] {
        let found = findings.as_array().unwrap().iter().find(|finding| finding["check"] == check);
        let detail = found.and_then(|finding| finding["detail"].as_str());
        assert!(detail.is_some_and(|detail| !detail.is_empty()), "{check}: {findings}");
    }
    let text = bench.run(&["doctor"]).stdout;
    assert!(text.contains("ok   provider filesystem: version "), "{text}");
    assert!(text.contains("nobody can be asked: --yes is needed"), "{text}");
}

#[test]
fn an_embedded_provider_run_by_hand_says_why_it_does_not() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["__provider", "filesystem"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 1));
    assert!(!ran.stderr.is_empty());
    assert_eq!(bench.run(&["__provider", "nothing"]).code, 1);
}

#[test]
fn help_version_completions_and_manual_are_data() {
    let bench = Bench::new(&[]);
    for arguments in [
        vec!["--help"],
        vec!["--version"],
        vec!["call", "--help"],
        vec!["completions", "bash"],
        vec!["man"],
        vec!["man", "call"],
    ] {
        let ran = bench.run(&arguments);
        assert!(!ran.stdout.is_empty() && ran.stderr.is_empty() && ran.code == 0, "{arguments:?}: {ran:?}");
    }
    assert!(
        bench.run(&["--help"]).stdout.starts_with("Call, inspect and preview the tools of any provider\n")
    );
    let ran = bench.run(&[]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 2));
}
