//! A call that has been made, on a task of its own, and what comes out of it.
//!
//! The task outlives the request that began the call: in a stateless revision a question ends the request, and the next
//! one goes on with the call.

use tokio::sync::{mpsc, oneshot};
use tool_host::{Canceller, Event, Invocation, Outcome};

use super::questions::Asked;

/// Reports that wait for somebody to pass them on; more are dropped, as the next ones say more.
const REPORTS_AHEAD: usize = 64;
/// Characters of an output line that make a report.
const REPORTED_CHARACTERS: usize = 200;

/// What a call says of its progress.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    pub(super) message: String,
    /// From 0 to 1.
    pub(super) fraction: Option<f64>,
}

/// A call that has been made. Dropping it gives the call up.
pub(super) struct Running {
    pub(super) reports: mpsc::Receiver<Report>,
    pub(super) questions: mpsc::Receiver<Asked>,
    pub(super) done: oneshot::Receiver<Outcome>,
    canceller: Canceller,
}

impl Running {
    /// Follows the call; `questions` are those that its answerer is asked.
    pub(super) fn follow(mut made: Invocation, questions: mpsc::Receiver<Asked>) -> Self {
        let canceller = made.canceller();
        let (sender, reports) = mpsc::channel(REPORTS_AHEAD);
        let (ended, done) = oneshot::channel();
        tokio::spawn(async move {
            while let Some(event) = made.next().await {
                if let Some(report) = report(event) {
                    let _ = sender.try_send(report);
                }
            }
            // Nobody waits for the end of a call that was given up.
            let _ = ended.send(made.outcome().await);
        });
        Self { reports, questions, done, canceller }
    }

    /// Asks the call to end.
    pub(super) fn cancel(&self) {
        self.canceller.cancel();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}

fn report(event: Event) -> Option<Report> {
    match event {
        Event::Progress { message, fraction_complete } => {
            Some(Report { message, fraction: fraction_complete })
        }
        Event::OutputChunk { data, .. } => {
            let text = String::from_utf8_lossy(data.as_bytes());
            let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            Some(Report { message: line.chars().take(REPORTED_CHARACTERS).collect(), fraction: None })
        }
        Event::PartialResult { .. } | Event::ExitStatus { .. } => None,
    }
}
