//! `toolctl check`: every provider of the catalog against the tool protocol.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Bench;

fn calls_file(provider: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    folder.join(format!("{provider}.json"))
}

/// The names of the catalog.
fn providers(bench: &Bench) -> Vec<String> {
    let listed = bench.run(&["list", "--json"]).json();
    let mut names: Vec<String> = listed["providers"]
        .as_array()
        .expect("a list of providers")
        .iter()
        .map(|provider| provider["name"].as_str().expect("a name").to_owned())
        .collect();
    names.dedup();
    names
}

/// What is wrong with a provider, one line for each finding; empty if it conforms. What could not be looked at has a
/// reason in the calls file, or is wrong too.
fn shortcomings(bench: &Bench, provider: &str) -> String {
    let calls = calls_file(provider);
    if !calls.exists() {
        return format!("{provider}: {} is missing\n", calls.display());
    }
    let ran = bench.run(&["check", provider, "--calls", calls.to_str().unwrap(), "--strict", "--json"]);
    let report = ran.json();
    let wrong = |finding: &&Value| match finding["outcome"].as_str() {
        Some("pass") => finding.get("excused").is_some(),
        Some("not_reached") => finding.get("excused").is_none() && finding["level"] != "MAY",
        _ => true,
    };
    let findings = report["findings"].as_array().expect("findings");
    let mut lines: Vec<String> =
        findings.iter().filter(wrong).map(|finding| format!("{provider}: {finding}\n")).collect();
    if lines.is_empty() && ran.code != 0 {
        lines.push(format!("{provider}: exit code {}\n{}", ran.code, ran.stderr));
    }
    lines.concat()
}

#[test]
fn every_provider_of_the_catalog_conforms() {
    let bench = Bench::new(&[]);
    let names = providers(&bench);
    assert!(names.iter().any(|name| name == "filesystem"), "{names:?}");
    let wrong: String = names.iter().map(|name| shortcomings(&bench, name)).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_provider_that_breaks_a_must_exits_with_five() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["check", &crate::support::awkward_argument()]);
    assert_eq!(ran.code, 5, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("FAIL"), "{}", ran.stdout);
    assert!(ran.stdout.contains("$AWKWARD does not conform: "), "{}", ran.stdout);
}

#[test]
fn a_wrong_calls_file_is_a_usage_error() {
    let bench = Bench::new(&[("calls.json", "{\"format_version\": \"1.0\", \"cals\": []}")]);
    let ran = bench.run(&["check", "filesystem", "--calls", "calls.json"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--calls: calls.json: unknown field `cals`"), "{}", ran.stderr);
    assert_eq!(bench.run(&["check", "filesystem", "--calls", "none.json"]).code, 2);
}

#[test]
fn the_junit_report_has_a_case_for_every_requirement() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["check", "filesystem", "--json", "--junit", "report.xml"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let report = bench.read("report.xml");
    let findings = ran.json()["findings"].as_array().unwrap().clone();
    assert_eq!(report.matches("<testcase ").count(), findings.len());
    assert!(findings.iter().all(|it| report.contains(it["id"].as_str().unwrap())));
}
