//! Reading what a plugin writes, without ever making it wait.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// How much of the standard error is remembered, in bytes.
const TAIL: usize = 16 << 10;

/// Longer lines are handed on in pieces of this many bytes.
const LONGEST_PIECE: usize = 64 << 10;

/// A handshake is a few hundred bytes, even with a certificate.
const LONGEST_HANDSHAKE: usize = 64 << 10;

/// Receives the standard error line by line.
pub(super) type Sink = Box<dyn FnMut(&str) + Send>;

/// The last bytes a plugin wrote to its standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &bytes[bytes.len().saturating_sub(TAIL)..];
        let excess = (tail.len() + kept.len()).saturating_sub(TAIL);
        tail.drain(..excess);
        tail.extend(kept);
    }

    /// As text, with whatever is not UTF-8 replaced.
    pub(super) fn text(&self) -> String {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(tail.make_contiguous()).into_owned()
    }
}

/// Cuts a stream of bytes into lines, and lines that are too long into pieces.
struct Lines {
    sink: Sink,
    pending: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.pending.len() >= LONGEST_PIECE {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        let line = self.pending.strip_suffix(b"\n").unwrap_or(&self.pending);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (self.sink)(&String::from_utf8_lossy(line));
        self.pending.clear();
    }
}

/// A pipe's reading end.
pub(super) fn pipe(end: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(end.into())
}

/// Reads the standard error to its end.
pub(super) async fn drain_stderr(mut pipe: Receiver, tail: Tail, sink: Option<Sink>) {
    let mut lines = sink.map(|sink| Lines { sink, pending: Vec::new() });
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        tail.push(&buffer[..count]);
        if let Some(lines) = &mut lines {
            lines.push(&buffer[..count]);
        }
    }
    if let Some(lines) = lines.as_mut().filter(|lines| !lines.pending.is_empty()) {
        lines.flush();
    }
}

/// Reads the standard output to its end and throws it away: after the handshake, nothing in it means
/// anything.
pub(super) async fn drain_stdout(mut pipe: Receiver) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(1..) = pipe.read(&mut buffer).await {}
}

/// The first line of the standard output, or what there was of it when the output ended or the line grew
/// too long; `None` if there was nothing at all.
pub(super) async fn first_line(pipe: &mut Receiver) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut buffer = [0; 512];
    while line.len() < LONGEST_HANDSHAKE {
        let count = pipe.read(&mut buffer).await?;
        let end = buffer[..count].iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&buffer[..end.unwrap_or(count)]);
        match (end, count) {
            (None, 1..) => {}
            (None, 0) if line.is_empty() => return Ok(None),
            (Some(_), _) | (None, 0) => break,
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_lines(pushes: &[&[u8]], expected: &[&str]) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let mut lines = Lines {
            sink: Box::new(move |line| sink.lock().unwrap().push(line.to_owned())),
            pending: Vec::new(),
        };
        for push in pushes {
            lines.push(push);
        }
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn lines_are_put_together_across_reads() {
        check_lines(&[b"one\ntw", b"o\r\n", b"\nrest"], &["one", "two", ""]);
    }

    #[test]
    fn a_line_without_end_comes_in_pieces() {
        let piece = vec![b'x'; LONGEST_PIECE];
        let text = String::from_utf8(piece.clone()).unwrap();
        check_lines(&[&piece, &piece, b"end\n"], &[&text, &text, "end"]);
    }

    #[test]
    fn the_tail_keeps_the_last_bytes_only() {
        let tail = Tail::default();
        tail.push(&vec![b'a'; 3 * TAIL]);
        tail.push(b"end");
        assert_eq!(tail.text(), "a".repeat(TAIL - 3) + "end");
    }
}
