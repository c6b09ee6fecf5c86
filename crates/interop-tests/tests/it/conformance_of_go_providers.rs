//! The conformance suite over Go providers on the real plugin library: the right one passes, each wrong one fails for
//! its reason.

use std::collections::BTreeSet;

use conformance::{Calls, Level, Outcome, Report, Subject, check_topics, topics};
use tool_host::ProviderSource;

use crate::programs;

const CALLS: &str = include_str!("goprovider.json");

/// What Go's protobuf library cannot show: it writes maps in random order.
const RANDOM_ORDER: &str = "SCHEMA-26";

fn run(conduct: &str, words: &[&str]) -> Report {
    let subject = Subject::new(&ProviderSource::Path(programs::go_provider(conduct)), Vec::new());
    let calls = Calls::parse(CALLS).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(check_topics(&subject, Some(&calls), words))
}

/// The requirements that were broken, whatever their level.
fn broken(report: &Report) -> BTreeSet<&'static str> {
    let failed = report.findings.iter().filter(|it| matches!(it.outcome, Outcome::Fail { .. }));
    failed.map(|finding| finding.requirement.id).filter(|id| *id != RANDOM_ORDER).collect()
}

#[test]
fn the_right_provider_conforms() {
    let all: Vec<&str> = topics().map(|(word, _, _)| word).collect();
    let report = run("good", &all);
    let musts: Vec<_> = report
        .findings
        .iter()
        .filter(|it| it.requirement.level == Level::Must && matches!(it.outcome, Outcome::Fail { .. }))
        .collect();
    assert!(musts.is_empty(), "{musts:#?}");
    assert!(report.conforms(false));
}

#[track_caller]
fn check(conduct: &str, expected: &[&str]) {
    let right = broken(&run("good", &["STREAM"]));
    let wrong = broken(&run(conduct, &["STREAM"]));
    let new: Vec<&str> = wrong.difference(&right).copied().collect();
    assert_eq!(new, expected, "{conduct}");
}

#[test]
fn a_missing_terminal_is_one_finding() {
    check("no-terminal", &["STREAM-01"]);
}

#[test]
fn a_second_terminal_is_one_finding() {
    check("two-terminals", &["STREAM-02"]);
}

#[test]
fn a_chunk_after_the_terminal_is_one_finding() {
    check("chunk-after-terminal", &["STREAM-02"]);
}

#[test]
fn an_exit_in_a_call_is_one_finding() {
    check("exit-mid-stream", &["INVOKE-05"]);
}

#[test]
fn output_beside_the_handshake_is_one_finding() {
    check("long-stdout-line", &["HANDSHAKE-04"]);
}

#[test]
fn a_null_in_a_result_is_one_finding() {
    check("null-field", &["INVOKE-02"]);
}

#[test]
fn a_missing_field_in_a_result_is_one_finding() {
    check("missing-field", &["INVOKE-02"]);
}
