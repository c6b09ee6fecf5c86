//! Commands that go on beside the calls: the table of jobs, and what drives each of them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use provider_core::ToolError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::process::{Process, Step};
use crate::record::{JobStatus, Record, ending};

/// Most jobs at work at one time.
const MOST_RUNNING: usize = 16;
/// Most jobs that have ended whose output is kept.
const MOST_ENDED: usize = 32;
/// How often to look whether a terminal is waited for.
const LOOK: Duration = Duration::from_millis(50);
/// How long input may wait for room.
const INPUT_LIMIT: Duration = Duration::from_secs(5);
const TERM: i32 = 15;

/// What a job is told.
enum Order {
    Signal(i32),
    End { signal: i32, grace: Duration, status: JobStatus },
    Input { text: Vec<u8>, close: bool, done: oneshot::Sender<Result<(), InputError>> },
}

/// Why input was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// There is nothing that could take it.
    #[error("its standard input is /dev/null or was closed")]
    Closed,
    /// It does not read.
    #[error("it took {taken} of {all} bytes and does not read on")]
    Full { taken: usize, all: usize },
    /// It does not run any more.
    #[error("it has ended")]
    Ended,
    /// Something else.
    #[error("{0}")]
    Io(io::Error),
}

/// A command beside the calls.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    /// The session it belongs to.
    pub(crate) owner: String,
    pub(crate) started: SystemTime,
    pub(crate) record: Arc<Record>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Job {
    /// Sends a signal to all its processes.
    pub(crate) fn signal(&self, signal: i32) {
        let _ = self.orders.send(Order::Signal(signal));
    }

    /// Ends it: `signal`, and SIGKILL after the grace.
    pub(crate) fn end(&self, signal: i32, grace: Duration) {
        let _ = self.orders.send(Order::End { signal, grace, status: JobStatus::Killed });
    }

    /// Gives it input.
    pub(crate) async fn write(&self, text: Vec<u8>, close: bool) -> Result<(), InputError> {
        let (done, answer) = oneshot::channel();
        if self.orders.send(Order::Input { text, close, done }).is_err() {
            return Err(InputError::Ended);
        }
        answer.await.unwrap_or(Err(InputError::Ended))
    }

    /// Whether it goes on.
    pub(crate) fn is_running(&self) -> bool {
        self.record.ending().is_none()
    }
}

/// The jobs of a provider, by number.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    jobs: BTreeMap<u64, Arc<Job>>,
}

/// What becomes a job.
pub(crate) struct Candidate {
    pub(crate) process: Process,
    pub(crate) record: Arc<Record>,
    pub(crate) command: String,
    pub(crate) owner: String,
    pub(crate) started: SystemTime,
    /// When it is ended.
    pub(crate) deadline: Option<(Instant, Duration)>,
}

impl Jobs {
    fn locked(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses when there are as many jobs as there may be.
    ///
    /// # Errors
    /// Which jobs there are.
    pub(crate) fn ensure_room(&self) -> Result<(), ToolError> {
        let running: Vec<String> =
            self.all().iter().filter(|job| job.is_running()).map(|job| job.id.clone()).collect();
        if running.len() < MOST_RUNNING {
            return Ok(());
        }
        let message = format!(
            "{} jobs run already, which is the limit ({}); end one with job_kill first",
            running.len(),
            running.join(", ")
        );
        Err(ToolError::execution_failed(message))
    }

    /// Makes a job of a command and lets it go on.
    pub(crate) fn adopt(&self, candidate: Candidate) -> Arc<Job> {
        let (orders, incoming) = mpsc::unbounded_channel();
        let Candidate { process, record, command, owner, started, deadline } = candidate;
        let mut table = self.locked();
        table.last += 1;
        let id = format!("job-{}", table.last);
        let job = Arc::new(Job { id, command, owner, started, record: record.clone(), orders });
        let number = table.last;
        table.jobs.insert(number, job.clone());
        forget_old(&mut table);
        drop(table);
        tokio::spawn(Drive { process, record, status: None, deadline }.run(incoming));
        job
    }

    /// The job called `id`.
    ///
    /// # Errors
    /// `not_found`, with the jobs there are.
    pub(crate) fn get(&self, id: &str) -> Result<Arc<Job>, ToolError> {
        let all = self.all();
        all.iter().find(|job| job.id == id).cloned().ok_or_else(|| {
            let ids: Vec<&str> = all.iter().map(|job| job.id.as_str()).collect();
            let there = match ids.as_slice() {
                [] => "there are no jobs".to_owned(),
                ids => format!("there are {}", ids.join(", ")),
            };
            ToolError::not_found(format!("there is no job {id:?}; {there}"))
        })
    }

    /// Takes the jobs of a session out of the table.
    pub(crate) fn take_of(&self, owner: &str) -> Vec<Arc<Job>> {
        self.locked().jobs.extract_if(.., |_, job| job.owner == owner).map(|(_, job)| job).collect()
    }

    /// All jobs, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.locked().jobs.values().cloned().collect()
    }
}

/// Forgets the oldest of many jobs that have ended.
fn forget_old(table: &mut Table) {
    let ended = |job: &&Arc<Job>| !job.is_running();
    while table.jobs.values().filter(ended).count() > MOST_ENDED {
        let oldest = table.jobs.iter().find(|(_, job)| !job.is_running()).map(|(number, _)| *number);
        let Some(job) = oldest.and_then(|number| table.jobs.remove(&number)) else { return };
        job.record.forget();
    }
}

/// What drives a job.
struct Drive {
    process: Process,
    record: Arc<Record>,
    /// What the job has been ended as.
    status: Option<JobStatus>,
    deadline: Option<(Instant, Duration)>,
}

impl Drive {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut input: Option<Pending> = None;
        loop {
            let deadline = self.deadline;
            let look = self.process.waits_for_input().is_some();
            tokio::select! {
                biased;
                order = orders.recv(), if input.is_none() => match order {
                    Some(order) => input = self.obey(order),
                    // The provider is gone, and with it whoever could ask for the job.
                    None => return,
                },
                () = async { if let Some((at, _)) = deadline { sleep_until(at).await } }, if deadline.is_some() => {
                    self.time_out();
                }
                () = tokio::time::sleep(Duration::from_millis(2)), if input.is_some() => {
                    input = input.take().and_then(|pending| self.give(pending));
                }
                step = self.record.advance(&mut self.process) => {
                    if let Step::Finished = step {
                        break;
                    }
                }
                () = tokio::time::sleep(LOOK), if look => {
                    self.record.set_waits(self.process.waits_for_input());
                }
            }
        }
        if let Some(pending) = input {
            let _ = pending.done.send(Err(InputError::Ended));
        }
        self.record.finish(ending(&self.process, self.status));
    }

    fn obey(&mut self, order: Order) -> Option<Pending> {
        match order {
            Order::Signal(signal) => self.process.signal(signal),
            Order::End { signal, grace, status } => {
                self.status.get_or_insert(status);
                self.process.end(signal, grace);
            }
            Order::Input { text, close, done } => {
                if !self.process.takes_input() {
                    let _ = done.send(Err(InputError::Closed));
                    return None;
                }
                let until = Instant::now() + INPUT_LIMIT;
                return self.give(Pending { text, taken: 0, close, done, until });
            }
        }
        None
    }

    /// Gives as much input as is taken now; answers what is left to be tried again.
    fn give(&mut self, mut pending: Pending) -> Option<Pending> {
        while pending.taken < pending.text.len() {
            match self.process.write(&pending.text[pending.taken..]) {
                Ok(taken) => pending.taken += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() < pending.until {
                        return Some(pending);
                    }
                    let full = InputError::Full { taken: pending.taken, all: pending.text.len() };
                    let _ = pending.done.send(Err(full));
                    return None;
                }
                Err(error) => {
                    let closed = error.kind() == io::ErrorKind::BrokenPipe;
                    let error = if closed { InputError::Closed } else { InputError::Io(error) };
                    let _ = pending.done.send(Err(error));
                    return None;
                }
            }
        }
        let closed = if pending.close { self.process.close_input() } else { Ok(()) };
        self.record.set_waits(None);
        let _ = pending.done.send(closed.map_err(InputError::Io));
        None
    }

    fn time_out(&mut self) {
        if let Some((_, grace)) = self.deadline.take() {
            self.status.get_or_insert(JobStatus::TimedOut);
            self.process.end(TERM, grace);
        }
    }
}

/// Input that waits for room.
struct Pending {
    text: Vec<u8>,
    taken: usize,
    close: bool,
    done: oneshot::Sender<Result<(), InputError>>,
    until: Instant,
}
