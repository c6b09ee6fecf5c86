//! Which subagents run, and which have ended lately.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::tools::spawn_subagent::Status;

/// Ended subagents that are remembered.
const KEPT: usize = 32;

/// One subagent.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) agent: String,
    pub(crate) owner: String,
    pub(crate) started: SystemTime,
    /// `None` while it runs.
    pub(crate) ended: Option<Status>,
    pub(crate) output_path: Option<PathBuf>,
}

/// All subagents of this provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register(Arc<Mutex<VecDeque<Record>>>);

/// A running subagent's entry. Dropping it says that the subagent was cancelled, unless its end was said.
#[derive(Debug)]
pub(crate) struct Entry {
    register: Register,
    id: String,
    ended: Status,
}

impl Register {
    /// Notes a subagent that begins.
    pub(crate) fn begin(&self, record: Record) -> Entry {
        let id = record.id.clone();
        let mut records = self.records();
        records.push_back(record);
        let mut over = records.iter().filter(|record| record.ended.is_some()).count();
        while over > KEPT {
            let Some(oldest) = records.iter().position(|record| record.ended.is_some()) else { break };
            records.remove(oldest);
            over -= 1;
        }
        Entry { register: self.clone(), id, ended: Status::Cancelled }
    }

    /// All there are, oldest first.
    pub(crate) fn all(&self) -> Vec<Record> {
        self.records().iter().cloned().collect()
    }

    fn records(&self) -> MutexGuard<'_, VecDeque<Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Takes the entry away: nothing was started.
    pub(crate) fn forget(self) {
        self.register.records().retain(|record| record.id != self.id);
    }

    /// Says how it ended.
    pub(crate) fn end(mut self, status: Status) {
        self.ended = status;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut records = self.register.records();
        if let Some(record) = records.iter_mut().find(|record| record.id == self.id) {
            record.ended = Some(self.ended);
        }
    }
}
