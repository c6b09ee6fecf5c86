//! Collects what the scenes see, requirement by requirement.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::calls::Calls;
use crate::report::{Finding, Outcome, Report};
use crate::requirement::Requirement;

/// More sentences about one requirement help nobody.
const MOST_FAILURES: usize = 8;

/// Takes verdicts from everywhere. Clones share them.
///
/// One failure outweighs any number of passes, and a pass outweighs a reason for not reaching a requirement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge(Arc<Mutex<BTreeMap<&'static str, Verdict>>>);

#[derive(Debug, Default)]
struct Verdict {
    held: bool,
    failures: Vec<String>,
    unreached: Option<String>,
}

impl Judge {
    fn verdicts(&self) -> MutexGuard<'_, BTreeMap<&'static str, Verdict>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, requirement: &'static Requirement, note: impl FnOnce(&mut Verdict)) {
        note(self.verdicts().entry(requirement.id).or_default());
    }

    /// It held here.
    pub(crate) fn pass(&self, requirement: &'static Requirement) {
        self.note(requirement, |verdict| verdict.held = true);
    }

    /// It was broken: what came instead.
    pub(crate) fn fail(&self, requirement: &'static Requirement, came: impl Into<String>) {
        let came = came.into();
        self.note(requirement, |verdict| {
            if verdict.failures.len() < MOST_FAILURES && !verdict.failures.contains(&came) {
                verdict.failures.push(came);
            }
        });
    }

    /// It held, or what came instead.
    pub(crate) fn rule(&self, requirement: &'static Requirement, finding: Result<(), String>) {
        match finding {
            Ok(()) => self.pass(requirement),
            Err(came) => self.fail(requirement, came),
        }
    }

    /// It held if `holds`; otherwise `came` is what came instead.
    pub(crate) fn demand(
        &self,
        requirement: &'static Requirement,
        holds: bool,
        came: impl FnOnce() -> String,
    ) {
        self.rule(requirement, if holds { Ok(()) } else { Err(came()) });
    }

    /// It could not be looked at here.
    pub(crate) fn unreached(&self, requirement: &'static Requirement, why: impl Into<String>) {
        let why = why.into();
        self.note(requirement, |verdict| {
            verdict.unreached.get_or_insert(why);
        });
    }

    /// None of these could be looked at here.
    pub(crate) fn all_unreached(&self, requirements: &[&'static Requirement], why: &str) {
        requirements.iter().for_each(|requirement| self.unreached(requirement, why));
    }

    /// The report, with a finding for every requirement whether a scene came to it or not.
    pub(crate) fn report(&self, provider: String, calls: Option<&Calls>) -> Report {
        let verdicts = self.verdicts();
        let finding = |requirement: &&'static Requirement| Finding {
            requirement,
            outcome: outcome(verdicts.get(requirement.id)),
            excused: calls.and_then(|calls| calls.excuse(requirement.id).cloned()),
        };
        Report { provider, findings: crate::topics::all().map(finding).collect() }
    }
}

fn outcome(verdict: Option<&Verdict>) -> Outcome {
    match verdict {
        Some(verdict) if !verdict.failures.is_empty() => Outcome::Fail { came: verdict.failures.clone() },
        Some(verdict) if verdict.held => Outcome::Pass,
        other => {
            let why = other.and_then(|verdict| verdict.unreached.clone());
            Outcome::NotReached { why: why.unwrap_or_else(|| "the run did not get that far".to_owned()) }
        }
    }
}
