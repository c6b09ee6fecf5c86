//! A page of a file in another encoding than UTF-8, decoded as it passes.
//!
//! Where a line begins can only be told by decoding everything before it, so the file is always read from its start;
//! in bounded memory all the same.

use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest as _, Sha256};

use super::collect::{Collector, Start};
use super::scan::{Scan, hex};
use super::{CHUNK, Next, Reading, Request, Window};
use crate::engine::encoding::{Detected, Transcoded};

pub(super) fn read<R: Read + Seek>(
    source: &mut R,
    len: u64,
    detected: Detected,
    request: &Request,
) -> io::Result<Reading> {
    let line = match request.offset {
        ..0 => {
            let lines = Pass::over(source, len, detected, false)?.count_lines()?;
            (lines.saturating_add(1)).saturating_sub(request.offset.unsigned_abs()).max(1)
        }
        line => line.unsigned_abs().max(1),
    };
    let skip = request.byte_offset.unwrap_or(0);
    let start = if line == 1 { Start::Byte { origin: 0, skip } } else { Start::InLine { line, skip } };
    let whole = len <= request.limits.max_full_read;
    let mut pass = Pass::over(source, len, detected, whole)?;
    let mut collector = Collector::new(request, start, true).unmarked();
    while pass.next_chunk()? {
        collector.feed(pass.at, &pass.chunk);
        if !whole && collector.is_done() {
            break;
        }
    }
    Ok(pass.conclude(collector, len, detected, request))
}

/// One pass over the decoded text.
struct Pass<'a, R> {
    text: Transcoded<Counted<'a, R>>,
    scan: Scan,
    chunk: Vec<u8>,
    /// Where `chunk` begins in the text, in bytes of UTF-8.
    at: u64,
    at_end: bool,
}

impl<'a, R: Read + Seek> Pass<'a, R> {
    fn over(source: &'a mut R, len: u64, detected: Detected, hashed: bool) -> io::Result<Self> {
        source.seek(SeekFrom::Start(0))?;
        let hash = hashed.then(Sha256::new);
        let mut counted = Counted { inner: source.take(len), hash, count: 0 };
        let mut mark = Vec::new();
        counted.by_ref().take(detected.bom_len as u64).read_to_end(&mut mark)?;
        let text = Transcoded::new(counted, detected.encoding);
        Ok(Self {
            text,
            scan: Scan::new(false).unmarked(),
            chunk: Vec::with_capacity(CHUNK),
            at: 0,
            at_end: false,
        })
    }

    /// Reads on; `false` at the end.
    fn next_chunk(&mut self) -> io::Result<bool> {
        self.at += self.chunk.len() as u64;
        self.chunk.clear();
        self.text.by_ref().take(CHUNK as u64).read_to_end(&mut self.chunk)?;
        self.scan.feed(self.at, &self.chunk);
        self.at_end = self.chunk.is_empty();
        Ok(!self.at_end)
    }

    /// The number of lines, once everything has passed.
    fn count_lines(mut self) -> io::Result<u64> {
        while self.next_chunk()? {}
        Ok(self.scan.finish(true).total_lines.unwrap_or(0))
    }

    fn conclude(self, collector: Collector, len: u64, detected: Detected, request: &Request) -> Reading {
        let damaged = self.text.had_errors();
        let text_len = if self.at_end { self.at } else { u64::MAX };
        let Counted { hash, count, .. } = self.text.into_inner();
        let verdict = self.scan.finish(self.at_end);
        let page = collector.finish(text_len);
        let next = match (page.rest_of_last_line, page.next_line) {
            (Some(byte), _) => Some(Next::Byte(byte - page.origin)),
            _ if page.end_byte >= text_len => None,
            (None, Some(line)) if request.byte_offset.is_none() => Some(Next::Line(line)),
            _ => Some(Next::Byte(page.end_byte - page.origin)),
        };
        Reading::Text(Window {
            content: String::from_utf8_lossy(&page.content).into_owned(),
            start_line: page.lines.map(|(first, _)| first),
            end_line: page.lines.map(|(_, last)| last),
            start_byte: page.start_byte,
            total_lines: verdict.total_lines,
            total_bytes: if self.at_end { count } else { len },
            truncated: next.is_some() || !page.cut_lines.is_empty(),
            next,
            cut_lines: page.cut_lines,
            encoding: detected.encoding,
            damaged,
            bom: detected.bom_len > 0,
            eol: verdict.eol,
            sha256: hash.filter(|_| self.at_end).map(|hash| hex(&hash.finalize())),
            shrank: self.at_end && count < len,
        })
    }
}

/// A reader that counts and hashes what passes.
struct Counted<'a, R> {
    inner: io::Take<&'a mut R>,
    hash: Option<Sha256>,
    count: u64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let new = buffer.get(..read).unwrap_or_default();
        if let Some(hash) = &mut self.hash {
            hash.update(new);
        }
        self.count += read as u64;
        Ok(read)
    }
}
