//! What came of a run: one finding for every requirement.

use serde::Serialize;
use serde_json::{Value, json};

use crate::requirement::{Level, Requirement};

/// Version of the JSON form: a minor step adds, a major step breaks.
pub const FORMAT_VERSION: &str = "1.0";

/// What came of one requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was looked at and held every time.
    Pass,
    /// It was broken.
    Fail {
        /// What came instead, one sentence for each place.
        came: Vec<String>,
    },
    /// Nothing in the run could show it. Never the same as a pass.
    NotReached {
        /// Why not.
        why: String,
    },
}

/// A requirement and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub requirement: &'static Requirement,
    /// What came of it.
    pub outcome: Outcome,
    /// The reason the calls file gives for not reaching it, where it gives one.
    pub excused: Option<String>,
}

impl Finding {
    /// Whether this makes the run fail; `strict` takes warnings, and what nobody said would not be reached, as
    /// failures too.
    pub fn is_failure(&self, strict: bool) -> bool {
        match (&self.outcome, self.requirement.level) {
            (Outcome::Fail { .. }, Level::Must) => true,
            (Outcome::Fail { .. }, _) => strict,
            (Outcome::Pass, _) => strict && self.excused.is_some(),
            (Outcome::NotReached { .. }, Level::May) => false,
            (Outcome::NotReached { .. }, _) => strict && self.excused.is_none(),
        }
    }
}

/// How many findings there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Held.
    pub passed: usize,
    /// A MUST was broken.
    pub failed: usize,
    /// A SHOULD was broken.
    pub warnings: usize,
    /// Nothing could show it.
    pub not_reached: usize,
}

/// Everything that came of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The provider, as it was named to the check.
    pub provider: String,
    /// One finding for every requirement, in the order of the declarations.
    pub findings: Vec<Finding>,
}

impl Report {
    /// How many findings there are of each kind.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for finding in &self.findings {
            match (&finding.outcome, finding.requirement.level) {
                (Outcome::Pass, _) => counts.passed += 1,
                (Outcome::Fail { .. }, Level::Must) => counts.failed += 1,
                (Outcome::Fail { .. }, _) => counts.warnings += 1,
                (Outcome::NotReached { .. }, _) => counts.not_reached += 1,
            }
        }
        counts
    }

    /// Whether the provider conforms. See [`Finding::is_failure`].
    pub fn conforms(&self, strict: bool) -> bool {
        !self.findings.iter().any(|finding| finding.is_failure(strict))
    }

    /// The finding about one requirement.
    pub fn finding(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.requirement.id == id)
    }

    /// The report as JSON, with the same facts as the text.
    pub fn to_json(&self) -> Value {
        let finding = |finding: &Finding| {
            let requirement = finding.requirement;
            let mut out = json!({
                "id": requirement.id,
                "level": requirement.level,
                "title": requirement.title,
                "expected": requirement.expected,
            });
            if let (Value::Object(out), Ok(Value::Object(outcome))) =
                (&mut out, serde_json::to_value(&finding.outcome))
            {
                out.extend(outcome);
                if let Some(reason) = &finding.excused {
                    out.insert("excused".to_owned(), reason.clone().into());
                }
            }
            out
        };
        json!({
            "format_version": FORMAT_VERSION,
            "provider": self.provider,
            "counts": self.counts(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}
