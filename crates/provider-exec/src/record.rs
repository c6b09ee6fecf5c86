//! What a command has printed and how it ended, shared between the one who drives it and those who ask.

use std::io;
use std::num::NonZeroU16;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use provider_core::prelude::*;
use provider_core::supervisor::{Limit, Piece, Source, Status};
use tokio::sync::watch;

use crate::engine::capture::{Capture, Captured};
use crate::engine::terminal::{Size, Terminal};
use crate::engine::transcript::{Channel, Transcript};
use crate::launch::{COLUMNS, ROWS};
use crate::process::{Process, Step};
use crate::spill::{Kept, Spill};

/// How a command stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobStatus {
    /// It ended by itself.
    #[default]
    Exited,
    /// It goes on.
    Running,
    /// Its time ran out, and it was ended.
    TimedOut,
    /// It was ended: by job_kill, or by a limit.
    Killed,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) status: JobStatus,
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<String>,
}

/// What a piece of the whole output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// Where the next part begins.
    pub(crate) next: u64,
    /// The bytes before the part that are not kept any more.
    pub(crate) lost: u64,
}

/// See the module.
pub(crate) struct Record {
    log: Mutex<Log>,
    changes: watch::Sender<u64>,
    pub(crate) begun: Instant,
}

struct Log {
    capture: Capture,
    spill: Spill,
    screen: Option<Terminal>,
    waits: Option<bool>,
    ending: Option<Ending>,
}

impl Record {
    /// An empty record that shows `limit` bytes.
    pub(crate) fn new(limit: usize, spill: Spill, terminal: bool) -> Self {
        let screen = terminal.then(size).flatten().map(Terminal::new);
        let log = Log { capture: Capture::new(limit), spill, screen, waits: None, ending: None };
        Self { log: Mutex::new(log), changes: watch::Sender::new(0), begun: Instant::now() }
    }

    fn locked(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Adds output; answers what a terminal answers to it.
    fn push(&self, piece: &Piece) -> Vec<u8> {
        let channel = match piece.source {
            Source::Stdout => Channel::Stdout,
            Source::Stderr => Channel::Stderr,
        };
        let mut log = self.locked();
        log.capture.push(channel, &piece.bytes);
        log.spill.write(&piece.bytes);
        let reply = log.screen.as_mut().map(|screen| screen.push(&piece.bytes));
        drop(log);
        self.changed();
        reply.unwrap_or_default()
    }

    /// The next step of a process, recorded. May be dropped and called again.
    pub(crate) async fn advance(&self, process: &mut Process) -> Step {
        // A program that always has something to say must not keep the runtime from its timers and sockets.
        tokio::task::yield_now().await;
        let step = process.step().await;
        if let Step::Piece(piece) = &step {
            self.take(process, piece);
        }
        step
    }

    /// Records a piece.
    pub(crate) fn take(&self, process: &Process, piece: &Piece) {
        let reply = self.push(piece);
        if !reply.is_empty() {
            // A terminal whose input is full is not read, so that nobody waits for the answer.
            let _ = process.write(&reply);
        }
    }

    /// Notes whether a terminal is waited for.
    pub(crate) fn set_waits(&self, waits: Option<bool>) {
        let mut log = self.locked();
        if log.waits != waits {
            log.waits = waits;
            drop(log);
            self.changed();
        }
    }

    /// Whether the command waits for somebody to type.
    pub(crate) fn waits(&self) -> Option<bool> {
        self.locked().waits
    }

    /// Nothing will be added any more.
    pub(crate) fn finish(&self, ending: Ending) {
        let mut log = self.locked();
        log.capture.finish();
        log.ending = Some(ending);
        log.waits = None;
        drop(log);
        self.changed();
    }

    /// How the command ended, once it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.locked().ending.clone()
    }

    /// How the command stands.
    pub(crate) fn status(&self) -> JobStatus {
        self.locked().ending.as_ref().map_or(JobStatus::Running, |ending| ending.status)
    }

    /// How many bytes were printed.
    pub(crate) fn total(&self) -> u64 {
        self.locked().spill.total()
    }

    /// Beginning and end of what was printed, and where all of it is. With `on_disk` it is there even if it is short.
    pub(crate) fn view(&self, on_disk: bool) -> (Captured, Option<Kept>) {
        let mut log = self.locked();
        if on_disk {
            log.spill.to_disk();
        }
        (log.capture.view(), log.spill.kept())
    }

    /// The screen of a program that uses all of it, such as an editor.
    pub(crate) fn full_screen(&self) -> Option<String> {
        let log = self.locked();
        log.screen.as_ref().filter(|screen| screen.full_screen()).map(Terminal::screen)
    }

    /// What was printed from `offset` on, rendered, at most `limit` bytes of it.
    pub(crate) fn part(&self, offset: u64, limit: usize) -> io::Result<Part> {
        let log = self.locked();
        let (start, mut bytes) = log.spill.read(offset, limit)?;
        let more = start + (bytes.len() as u64) < log.spill.total();
        if more || log.ending.is_none() {
            bytes.truncate(cut(&bytes, more));
        }
        drop(log);
        let mut transcript = Transcript::new(usize::MAX / 4);
        transcript.push(Channel::Stdout, &bytes);
        let text = transcript.view(true).text("");
        Ok(Part { text, next: start + bytes.len() as u64, lost: start.saturating_sub(offset) })
    }

    /// Waits until something is printed beyond `offset`, or the command has ended, or waits to be typed to.
    pub(crate) async fn news(&self, offset: u64) {
        let mut changes = self.changes.subscribe();
        let _ = changes
            .wait_for(|_| {
                let log = self.locked();
                log.spill.total() > offset || log.ending.is_some() || log.waits == Some(true)
            })
            .await;
    }

    /// Waits until the command has ended.
    pub(crate) async fn ended(&self) {
        let mut changes = self.changes.subscribe();
        let _ = changes.wait_for(|_| self.locked().ending.is_some()).await;
    }

    /// Removes what is kept on disk.
    pub(crate) fn forget(&self) {
        self.locked().spill.clear();
    }
}

fn size() -> Option<Size> {
    Some(Size { rows: NonZeroU16::new(ROWS)?, columns: NonZeroU16::new(COLUMNS)? })
}

/// Where to cut, so that no line is torn (`more` of them follow), or else at least no character.
fn cut(bytes: &[u8], more: bool) -> usize {
    if more && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
        return end + 1;
    }
    let start = bytes.len().saturating_sub(3);
    let lead = bytes[start..].iter().rposition(|byte| *byte >= 0xC0).map(|index| start + index);
    match lead {
        Some(lead) if std::str::from_utf8(&bytes[lead..]).is_err_and(|error| error.error_len().is_none()) => {
            lead
        }
        _ => bytes.len(),
    }
}

/// How a process ended that has ended, given what was done to it.
pub(crate) fn ending(process: &Process, asked: Option<JobStatus>) -> Ending {
    let status = match (asked, process.limit) {
        (_, Some(Limit::Memory | Limit::Processes)) => JobStatus::Killed,
        (Some(asked), None) => asked,
        (None, None) if process.guard_lost && process.status.is_none() => JobStatus::Killed,
        (None, None) => JobStatus::Exited,
    };
    Ending {
        status,
        code: process.status.map(Status::code),
        signal: process.status.and_then(Status::signal_name),
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn parts_end_between_lines_or_characters() {
        let check =
            |bytes: &[u8], more: bool, expected: usize| assert_eq!(cut(bytes, more), expected, "{bytes:?}");
        check(b"one\ntwo", true, 4);
        check(b"one\ntwo", false, 7);
        check("one—".as_bytes(), false, 6);
        check(&"one—".as_bytes()[..5], false, 3);
        check(&"one—".as_bytes()[..4], true, 3);
        check(b"one\xff", false, 4);
        check(b"", false, 0);
    }
}
