//! Driving a command while its caller waits.

use std::sync::Arc;
use std::time::Duration;

use provider_core::prelude::*;
use provider_core::supervisor::{Piece, ProcessName, Source};
use tokio::time::{Instant, sleep_until};

use crate::process::{Process, Step};
use crate::record::Record;

/// How long what lives on when the shell has ended may go on printing before the call returns.
const SETTLE_LIMIT: Duration = Duration::from_millis(500);
/// Between two looks at whether it still does anything.
const SETTLE_LOOK: Duration = Duration::from_millis(10);
/// After so many looks at which it did not, it has settled.
const SETTLED: u32 = 3;
/// Between two looks at whether a terminal is waited for.
const WAITING_LOOK: Duration = Duration::from_millis(50);
/// After so many looks at which it was, the caller should know.
const WAITING: u32 = 10;
/// What killing may take after the grace.
const KILL_LIMIT: Duration = Duration::from_secs(3);

const TERM: i32 = 15;

/// How a caller's wait came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The shell ended.
    Exited,
    /// The time ran out.
    TimedOut,
    /// The caller wanted to wait no longer, or the command waits for somebody to type; it goes on.
    Yielded,
    /// The call was given up.
    Cancelled,
}

/// A command that somebody waits for.
pub(crate) struct Foreground {
    pub(crate) process: Process,
    pub(crate) record: Arc<Record>,
    pub(crate) cx: Cx<provider_core::Process>,
}

impl Foreground {
    /// Drives the command until it ends, or waiting does.
    pub(crate) async fn wait(&mut self, timeout: Instant, yielding: Option<Instant>) -> Wait {
        let cx = self.cx.clone();
        let terminal = self.process.waits_for_input().is_some();
        let mut waits = 0;
        while self.process.status.is_none() && !self.process.is_over() {
            tokio::select! {
                biased;
                () = cx.cancelled() => return Wait::Cancelled,
                () = sleep_until(timeout) => return Wait::TimedOut,
                () = async { if let Some(at) = yielding { sleep_until(at).await } }, if yielding.is_some() => {
                    return Wait::Yielded;
                }
                () = self.step() => waits = 0,
                () = tokio::time::sleep(WAITING_LOOK), if terminal => {
                    waits = if self.process.waits_for_input() == Some(true) { waits + 1 } else { 0 };
                    if waits == WAITING {
                        // Nobody can type while the caller waits.
                        return Wait::Yielded;
                    }
                }
            }
        }
        Wait::Exited
    }

    /// The next step, recorded and passed on.
    async fn step(&mut self) {
        if let Step::Piece(piece) = self.record.advance(&mut self.process).await {
            pass_on(&self.cx, piece).await;
        }
    }

    /// After the shell has ended: reads on while what lives on still has something to say. Answers what lives on.
    pub(crate) async fn settle(&mut self) -> Vec<ProcessName> {
        let cx = self.cx.clone();
        let limit = Instant::now() + SETTLE_LIMIT;
        let mut quiet = 0;
        while !self.process.is_over() && !self.process.output_ended() && quiet < SETTLED {
            let look = Instant::now() + SETTLE_LOOK;
            tokio::select! {
                biased;
                () = cx.cancelled() => break,
                () = sleep_until(limit) => break,
                () = self.step() => quiet = 0,
                () = sleep_until(look) => {
                    let idle = self.process.processes().await.iter().all(|process| sleeps(process.pid));
                    quiet = if idle { quiet + 1 } else { 0 };
                }
            }
        }
        if self.process.is_over() {
            return Vec::new();
        }
        while let Some(piece) = self.process.piece().filter(|_| Instant::now() < limit) {
            self.record.take(&self.process, &piece);
            pass_on(&self.cx, piece).await;
        }
        self.process.processes().await
    }

    /// Ends the command and reads what it still prints: `signal`, and SIGKILL after the grace.
    pub(crate) async fn end(&mut self, grace: Duration) {
        self.process.end(TERM, grace);
        let limit = Instant::now() + grace + KILL_LIMIT;
        while !self.process.is_over() {
            tokio::select! {
                biased;
                () = sleep_until(limit) => return,
                () = self.step() => {}
            }
        }
    }

    /// Reads what is left when no process is.
    pub(crate) async fn drain(&mut self) {
        while let Step::Piece(piece) = self.record.advance(&mut self.process).await {
            pass_on(&self.cx, piece).await;
        }
    }
}

async fn pass_on(cx: &Cx<provider_core::Process>, piece: Piece) {
    let output = match piece.source {
        Source::Stdout => Output::Stdout,
        Source::Stderr => Output::Stderr,
    };
    cx.chunk(output, piece.bytes).await;
}

/// Whether a process waits for something, as far as the kernel says.
fn sleeps(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state stands behind the name, which is in parentheses.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('R' | 'D'))
}
