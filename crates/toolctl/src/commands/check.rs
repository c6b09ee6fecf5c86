//! `toolctl check`: a provider against the tool protocol.

use std::path::Path;

use conformance::{Calls, Counts, Finding, Level, Outcome, Report, Subject};

use crate::cli::Check;
use crate::embedded;
use crate::exit::{Exit, Failure};
use crate::open::variable;
use crate::paint::{Ink, Look, safe};
use crate::shell::Shell;

pub(super) async fn run(args: Check, shell: &Shell) -> Result<Exit, Failure> {
    let source = embedded::source(&args.provider)?;
    let env = args.env.iter().map(|given| variable(given)).collect::<Result<_, _>>()?;
    let calls = args.calls.as_deref().map(calls).transpose()?;
    let report = report(&Subject::new(&source, env), calls.as_ref(), &args.topic).await;
    if let Some(path) = &args.junit {
        std::fs::write(path, report.to_junit(args.strict)).map_err(|error| {
            Failure::wrong_usage(format!("--junit: cannot write {}: {error}", path.display()))
        })?;
    }
    if shell.json() {
        shell.json_document(&report.to_json());
    } else {
        shell.data(&text(&report, &args, shell.out()));
    }
    Ok(if report.conforms(args.strict) { Exit::Done } else { Exit::Nonconforming })
}

/// The report about these topics; about all of them where none is named.
async fn report(subject: &Subject, calls: Option<&Calls>, topics: &[String]) -> Report {
    if topics.is_empty() {
        return conformance::check(subject, calls).await;
    }
    let words: Vec<&str> = topics.iter().map(String::as_str).collect();
    let mut report = conformance::check_topics(subject, calls, &words).await;
    report.findings.retain(|finding| words.contains(&finding.requirement.topic()));
    report
}

fn calls(path: &Path) -> Result<Calls, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::wrong_usage(format!("--calls: cannot read {}: {error}", path.display())))?;
    Calls::parse(&text).map_err(|error| Failure::wrong_usage(format!("--calls: {}: {error}", path.display())))
}

/// The report for people: the topics with what is not as it should be, then the counts.
fn text(report: &Report, args: &Check, look: Look) -> String {
    let mut out = String::new();
    for (word, about, _) in conformance::topics() {
        let findings: Vec<_> =
            report.findings.iter().filter(|finding| finding.requirement.topic() == word).collect();
        if findings.is_empty() {
            continue;
        }
        let passed = findings.iter().filter(|finding| finding.outcome == Outcome::Pass).count();
        let total = findings.len();
        out.push_str(&format!("{}  {about}: {passed} of {total} passed\n", look.ink(Ink::Bold, word)));
        for finding in findings {
            if args.verbose || finding.outcome != Outcome::Pass {
                out.push_str(&entry(finding, args.strict, look));
            }
        }
    }
    out.push_str(&verdict(report, args, look));
    out
}

fn entry(finding: &Finding, strict: bool, look: Look) -> String {
    let requirement = finding.requirement;
    let (word, ink) = match (&finding.outcome, requirement.level) {
        (Outcome::Pass, _) => ("pass", Ink::Green),
        (Outcome::Fail { .. }, Level::Must) => ("FAIL", Ink::Red),
        (Outcome::Fail { .. }, _) => ("warn", Ink::Yellow),
        (Outcome::NotReached { .. }, _) if finding.is_failure(strict) => ("OPEN", Ink::Yellow),
        (Outcome::NotReached { .. }, _) => ("-   ", Ink::Dim),
    };
    let word = look.ink(ink, word);
    let mut out = format!("  {word}  {}  {:6}  {}\n", requirement.id, requirement.level, requirement.title);
    match &finding.outcome {
        Outcome::Pass => {
            if finding.excused.is_some() {
                out.push_str("        passed, though the calls file says that it is not reached\n");
            }
        }
        Outcome::Fail { came } => {
            out.push_str(&format!("        expected: {}\n", requirement.expected));
            for came in came {
                out.push_str(&format!("        came:     {}\n", safe(came)));
            }
        }
        Outcome::NotReached { why } => {
            let why = finding.excused.as_ref().unwrap_or(why);
            out.push_str(&format!(
                "        {}\n",
                look.ink(Ink::Dim, &format!("not reached: {}", safe(why)))
            ));
        }
    }
    out
}

fn verdict(report: &Report, args: &Check, look: Look) -> String {
    let Counts { passed, failed, warnings, not_reached } = report.counts();
    let (word, ink) = match report.conforms(args.strict) {
        true => ("conforms", Ink::Green),
        false => ("does not conform", Ink::Red),
    };
    let warnings_word = if warnings == 1 { "warning" } else { "warnings" };
    format!(
        "\n{} {}: {passed} passed, {failed} failed, {warnings} {warnings_word}, {not_reached} not reached\n",
        safe(&report.provider),
        look.ink(ink, word),
    )
}
