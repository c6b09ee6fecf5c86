//! Chunks whose characters are whole.

use std::mem;

use crate::event::{Chunk, Event, Pipe};

/// Puts characters together that a provider split between two chunks of one pipe.
///
/// At most three bytes are held back, and only until the next chunk of the pipe or the end of the call.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Joiner {
    /// The chunk with what was held back in front, and without an unfinished character at its end.
    pub(crate) fn push(&mut self, pipe: Pipe, bytes: &[u8]) -> Option<Event> {
        let held = match pipe {
            Pipe::Stdout => &mut self.stdout,
            Pipe::Stderr => &mut self.stderr,
        };
        let mut bytes = [mem::take(held).as_slice(), bytes].concat();
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            *held = bytes.split_off(error.valid_up_to());
        }
        event(pipe, bytes)
    }

    /// What is still held back.
    pub(crate) fn finish(&mut self) -> impl Iterator<Item = Event> + use<> {
        let rest = [(Pipe::Stdout, mem::take(&mut self.stdout)), (Pipe::Stderr, mem::take(&mut self.stderr))];
        rest.into_iter().filter_map(|(pipe, bytes)| event(pipe, bytes))
    }
}

fn event(stream: Pipe, bytes: Vec<u8>) -> Option<Event> {
    (!bytes.is_empty()).then(|| Event::OutputChunk { stream, data: Chunk::from(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chunks: &[&[u8]], expected: &[Chunk]) {
        let mut joiner = Joiner::default();
        let mut events: Vec<_> = chunks.iter().filter_map(|chunk| joiner.push(Pipe::Stdout, chunk)).collect();
        events.extend(joiner.finish());
        let expected: Vec<_> = expected
            .iter()
            .map(|data| Event::OutputChunk { stream: Pipe::Stdout, data: data.clone() })
            .collect();
        assert_eq!(events, expected);
    }

    #[test]
    fn a_split_character_is_put_together() {
        check(&[b"a\xe2\x82", b"\xac!"], &[Chunk::Text("a".into()), Chunk::Text("€!".into())]);
        check(&[b"\xe2", b"\x82", b"\xac"], &[Chunk::Text("€".into())]);
    }

    #[test]
    fn what_is_not_utf8_passes_as_bytes() {
        check(&[b"\xff\xfe"], &[Chunk::Bytes(vec![0xff, 0xfe])]);
        check(&[b"ok\xe2\x82"], &[Chunk::Text("ok".into()), Chunk::Bytes(vec![0xe2, 0x82])]);
    }
}
