//! The two pipes to the parent: lines in, lines out, with nothing but `read` and `write`.

use std::io::{self, stdin, stdout};

use rustix::io::Errno;
use serde::Serialize;

use crate::clock;
use crate::frames::{LONGEST_FRAME, ToParent};

/// Frames are sent on once this much has gathered, and before every wait.
const FLUSH_AT: usize = 64 * 1_024;
/// Bytes asked for at once.
const CHUNK: usize = 64 * 1_024;

/// Lines from the parent.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no newline, from `start` on.
    searched: usize,
}

impl Inbox {
    /// Whether a whole line is there already.
    pub(crate) fn has_line(&mut self) -> bool {
        self.newline().is_some()
    }

    /// The next line without its newline; `None` when the parent has closed its end or sends what is no line.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.newline() {
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.searched = self.start;
                if self.start == self.buffer.len() {
                    // A large answer must not keep its room.
                    self.buffer = Vec::new();
                    (self.start, self.searched) = (0, 0);
                }
                return Some(line);
            }
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.searched -= self.start;
                self.start = 0;
            }
            if self.buffer.len() > LONGEST_FRAME || self.read().is_none() {
                return None;
            }
        }
    }

    fn newline(&mut self) -> Option<usize> {
        let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        match found {
            Some(at) => Some(self.searched + at),
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    fn read(&mut self) -> Option<()> {
        let old = self.buffer.len();
        self.buffer.resize(old + CHUNK, 0);
        loop {
            match rustix::io::read(stdin(), &mut self.buffer[old..]) {
                Ok(0) => return None,
                Ok(read) => {
                    self.buffer.truncate(old + read);
                    return Some(());
                }
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Lines to the parent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    buffer: Vec<u8>,
}

impl Outbox {
    /// Takes a frame that is JSON on one line already.
    pub(crate) fn push_line(&mut self, line: &[u8]) {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        if self.buffer.len() >= FLUSH_AT {
            self.flush();
        }
    }

    /// Takes a frame.
    pub(crate) fn push(&mut self, frame: &ToParent) {
        match to_line(frame) {
            Ok(line) => self.push_line(&line),
            // Frames are plain data; one that cannot be written is a fault of this program.
            Err(_) => clock::leave(1),
        }
    }

    /// Sends all that has gathered. Where nobody listens any more, the process ends.
    pub(crate) fn flush(&mut self) {
        if write_all(&self.buffer).is_err() {
            clock::leave(1);
        }
        self.buffer.clear();
    }
}

fn to_line<T: Serialize>(frame: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(frame)
}

/// Writes without being cut off: the alarm waits until a frame is whole.
fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let _whole = clock::writing();
    while !bytes.is_empty() {
        match rustix::io::write(stdout(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
