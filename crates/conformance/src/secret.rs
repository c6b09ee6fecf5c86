//! Values that must not come back.

use std::sync::Arc;

use crate::judge::Judge;
use crate::topics::secret::{ANSWERS, COMMANDS, ENVIRONMENT, LOGS};

/// The secrets of the configuration, looked for in everything the provider shows. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Canaries {
    judge: Judge,
    values: Arc<[String]>,
}

impl Canaries {
    pub(crate) fn new(judge: &Judge, values: Vec<String>) -> Self {
        if values.is_empty() {
            judge.all_unreached(&[ANSWERS, LOGS, COMMANDS], "no sensitive attribute is configured");
        }
        judge.all_unreached(&[COMMANDS, ENVIRONMENT], "it was never seen to run a process");
        Self { judge: judge.clone(), values: values.into() }
    }

    /// Looks for them in an answer.
    pub(crate) fn look(&self, place: &str, bytes: &[u8]) {
        self.look_for(ANSWERS, place, bytes);
    }

    /// Looks for them in what the provider wrote on the side.
    pub(crate) fn look_in_logs(&self, place: &str, bytes: &[u8]) {
        self.look_for(LOGS, place, bytes);
    }

    /// Looks for them in a command line.
    pub(crate) fn look_in_command(&self, bytes: &[u8]) {
        let program = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        self.look_for(COMMANDS, &format!("that of {}", String::from_utf8_lossy(program)), bytes);
    }

    /// Holds the environment of a process that the provider started against the rule; `marked` is whether it has a
    /// variable that only the provider was given.
    pub(crate) fn look_in_environment(&self, program: &str, marked: bool) {
        self.judge.demand(ENVIRONMENT, !marked, || format!("{program} was given all of it"));
    }

    /// Whether there are any.
    pub(crate) fn are_none(&self) -> bool {
        self.values.is_empty()
    }

    fn look_for(&self, requirement: &'static crate::Requirement, place: &str, bytes: &[u8]) {
        if self.values.is_empty() {
            return;
        }
        let found = self.values.iter().any(|value| contains(bytes, value.as_bytes()));
        self.judge.demand(requirement, !found, || format!("{place} contains one"));
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    !wanted.is_empty() && bytes.windows(wanted.len()).any(|window| window == wanted)
}
