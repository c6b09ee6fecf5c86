//! The report as JUnit XML, which build servers read.

use std::fmt::Write as _;

use crate::report::{Outcome, Report};
use crate::topics::TOPICS;

impl Report {
    /// The report as JUnit XML: a suite for each topic, a case for each requirement. What was not reached is
    /// skipped; with `strict` unset, a warning is a case that passes and says so in its output.
    pub fn to_junit(&self, strict: bool) -> String {
        let mut suites = String::new();
        let (mut total, mut failed, mut skipped) = (0, 0, 0);
        for (word, about, _) in TOPICS {
            let findings: Vec<_> =
                self.findings.iter().filter(|finding| finding.requirement.topic() == *word).collect();
            let failures = findings.iter().filter(|finding| finding.is_failure(strict)).count();
            let unreached = findings
                .iter()
                .filter(|it| matches!(it.outcome, Outcome::NotReached { .. }) && !it.is_failure(strict))
                .count();
            let _ = writeln!(
                suites,
                "  <testsuite name=\"{word}: {}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{unreached}\">",
                escaped(about),
                findings.len(),
            );
            findings.iter().for_each(|finding| case(&mut suites, finding, strict));
            suites.push_str("  </testsuite>\n");
            total += findings.len();
            failed += failures;
            skipped += unreached;
        }
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" tests=\"{total}\" failures=\"{failed}\" skipped=\"{skipped}\">\n{suites}</testsuites>\n",
            escaped(&self.provider),
        )
    }
}

fn case(out: &mut String, finding: &crate::Finding, strict: bool) {
    let requirement = finding.requirement;
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{} {} {}\"",
        escaped(requirement.topic()),
        requirement.id,
        requirement.level,
        escaped(requirement.title),
    );
    let text = match &finding.outcome {
        Outcome::Pass => String::new(),
        Outcome::Fail { came } => {
            format!("expected: {}\ncame: {}", requirement.expected, came.join("\n      "))
        }
        Outcome::NotReached { why } => format!("not reached: {why}"),
    };
    let element = match (&finding.outcome, finding.is_failure(strict)) {
        (_, true) => "failure",
        (Outcome::Pass, false) => return out.push_str("/>\n"),
        (Outcome::NotReached { .. }, false) => "skipped",
        (Outcome::Fail { .. }, false) => {
            let _ = writeln!(out, "><system-out>{}</system-out></testcase>", escaped(&text));
            return;
        }
    };
    let _ = writeln!(out, "><{element} message=\"{}\"/></testcase>", escaped(&text));
}

/// The text as XML has it. Control characters have no place there, not even escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(letter),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Finding;
    use crate::topics::{handshake, schema};

    #[test]
    fn a_warning_fails_only_when_strict() {
        let finding = |requirement, outcome| Finding { requirement, outcome, excused: None };
        let came = vec!["a <b> & \"c\"\u{1b}".to_owned()];
        let report = Report {
            provider: "p".to_owned(),
            findings: vec![
                finding(handshake::HEALTH, Outcome::Fail { came: came.clone() }),
                finding(handshake::READY, Outcome::Pass),
                finding(schema::COMMANDS, Outcome::NotReached { why: "none".to_owned() }),
            ],
        };
        let lax = report.to_junit(false);
        assert!(lax.contains("tests=\"3\" failures=\"0\" skipped=\"1\">\n"), "{lax}");
        assert!(lax.contains("a &lt;b&gt; &amp; &quot;c&quot;\u{fffd}</system-out>"), "{lax}");
        let strict = report.to_junit(true);
        assert!(strict.contains("tests=\"3\" failures=\"2\" skipped=\"0\">\n"), "{strict}");
    }
}
