//! Reading what a plugin writes, without ever making it wait.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// How much is remembered, in bytes.
const TAIL: usize = 16 << 10;

/// Longer lines are handed on in pieces of this many bytes.
const LONGEST_PIECE: usize = 64 << 10;

/// A handshake is a few hundred bytes, even with a certificate.
const LONGEST_HANDSHAKE: usize = 64 << 10;

/// Receives line by line.
pub(super) type Sink = Box<dyn FnMut(&str) + Send>;

/// Receives bytes as they come.
pub(super) type RawSink = Box<dyn FnMut(&[u8]) + Send>;

/// What a plugin says to people: handed on line by line, and its end remembered.
#[derive(Clone)]
pub(super) struct Words {
    tail: Arc<Mutex<Tail>>,
    sink: Option<Arc<Mutex<Sink>>>,
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

impl Words {
    pub(super) fn new(sink: Option<Sink>) -> Self {
        Self { tail: Arc::default(), sink: sink.map(|sink| Arc::new(Mutex::new(sink))) }
    }

    /// The end of it, with whatever is not UTF-8 replaced.
    pub(super) fn tail(&self) -> String {
        String::from_utf8_lossy(lock(&self.tail).0.make_contiguous()).into_owned()
    }

    /// One of the ways by which words come in; lines of different sources are not mixed up.
    pub(super) fn source(&self) -> Source {
        Source { words: self.clone(), pending: Vec::new() }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(TAIL)..];
        let excess = (self.0.len() + kept.len()).saturating_sub(TAIL);
        self.0.drain(..excess);
        self.0.extend(kept);
    }
}

/// Cuts a stream of bytes into lines, and lines that are too long into pieces. What is left when it is dropped
/// is a line too.
pub(super) struct Source {
    words: Words,
    pending: Vec<u8>,
}

impl Source {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        lock(&self.words.tail).push(bytes);
        if self.words.sink.is_none() {
            return;
        }
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
        if let Some(sink) = &self.words.sink {
            lock(sink)(&String::from_utf8_lossy(line));
        }
        self.pending.clear();
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if !self.pending.is_empty() {
            self.flush();
        }
    }
}

/// A pipe's reading end.
pub(super) fn pipe(end: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(end.into())
}

/// Reads the standard error to its end.
pub(super) async fn drain_stderr(mut pipe: Receiver, mut source: Source) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        source.push(&buffer[..count]);
    }
}

/// Reads the standard output to its end and throws it away: after the handshake, nothing in it means
/// anything.
/// `rest` is what was read beyond the first line.
pub(super) async fn drain_stdout(mut pipe: Receiver, rest: Vec<u8>, mut sink: Option<RawSink>) {
    let mut receive = |bytes: &[u8]| {
        if let Some(sink) = sink.as_mut().filter(|_| !bytes.is_empty()) {
            sink(bytes);
        }
    };
    receive(&rest);
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        receive(&buffer[..count]);
    }
}

/// The first line of the standard output, or what there was of it when the output ended or the line grew
/// too long; `None` if there was nothing at all. What was read beyond it goes to `rest`.
pub(super) async fn first_line(pipe: &mut Receiver, rest: &mut Vec<u8>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut buffer = [0; 512];
    while line.len() < LONGEST_HANDSHAKE {
        let count = pipe.read(&mut buffer).await?;
        let end = buffer[..count].iter().position(|&byte| byte == b'\n');
        line.extend_from_slice(&buffer[..end.unwrap_or(count)]);
        rest.extend_from_slice(&buffer[end.map_or(count, |end| end + 1)..count]);
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
        let words = Words::new(Some(Box::new(move |line| sink.lock().unwrap().push(line.to_owned()))));
        let mut source = words.source();
        for push in pushes {
            source.push(push);
        }
        drop(source);
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn lines_are_put_together_across_reads() {
        check_lines(&[b"one\ntw", b"o\r\n", b"\nrest"], &["one", "two", "", "rest"]);
    }

    #[test]
    fn a_line_without_end_comes_in_pieces() {
        let piece = vec![b'x'; LONGEST_PIECE];
        let text = String::from_utf8(piece.clone()).unwrap();
        check_lines(&[&piece, &piece, b"end\n"], &[&text, &text, "end"]);
    }

    #[test]
    fn the_tail_keeps_the_last_bytes_only() {
        let words = Words::new(None);
        words.source().push(&vec![b'a'; 3 * TAIL]);
        words.source().push(b"end");
        assert_eq!(words.tail(), "a".repeat(TAIL - 3) + "end");
    }
}
