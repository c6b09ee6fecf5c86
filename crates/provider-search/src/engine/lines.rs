//! What the searcher reports about one file, turned into hits.

use std::fs::File;
use std::io::{self, Read};

use encoding_rs::Encoding;
use grep_matcher::{Match, Matcher};
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use crate::engine::encoding::{self, Utf8Check};
use crate::engine::excerpt::{self, LONGEST};
use crate::engine::hits::{FileHits, Hit};
use crate::engine::stop::Stop;

/// A file that stops being read when the search must end.
pub(crate) struct Checked<'a> {
    file: &'a File,
    stop: &'a Stop,
    /// Bytes the file had when it was opened and that have not been read.
    left: Option<u64>,
    pub(crate) text: Option<Utf8Check>,
}

impl<'a> Checked<'a> {
    pub(crate) fn new(file: &'a File, size: u64, stop: &'a Stop, check_text: bool) -> Self {
        // Files made up by the kernel say that they are empty.
        let left = (size > 0).then_some(size);
        Self { file, stop, left, text: check_text.then(Utf8Check::default) }
    }
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.reached() {
            return Err(io::Error::other("stopped"));
        }
        // Saves asking once more for the end of every file.
        if self.left == Some(0) {
            return Ok(0);
        }
        let count = self.file.read(buffer)?;
        self.left = self.left.map(|left| left.saturating_sub(count as u64));
        if let Some(text) = &mut self.text {
            text.feed(&buffer[..count]);
        }
        Ok(count)
    }
}

/// Receives the lines of one file.
pub(crate) struct Lines<'a, M> {
    matcher: &'a M,
    stop: &'a Stop,
    multiline: bool,
    /// Hits that are kept.
    wanted: usize,
    hits: Vec<Hit>,
    total: u64,
    lines: u64,
    /// Whether the file turned out not to be text.
    pub(crate) binary: bool,
    /// The encoding of the lines that are not UTF-8.
    guess: Option<&'static Encoding>,
    before: Vec<String>,
    /// Whether the last hit was kept, so that what follows it is as well.
    last_kept: bool,
}

impl<'a, M: Matcher> Lines<'a, M> {
    pub(crate) fn new(matcher: &'a M, stop: &'a Stop, wanted: usize, multiline: bool) -> Self {
        Self {
            matcher,
            stop,
            multiline,
            wanted,
            hits: Vec::new(),
            total: 0,
            lines: 0,
            binary: false,
            guess: None,
            before: Vec::new(),
            last_kept: false,
        }
    }

    pub(crate) fn into_hits(self) -> FileHits {
        let lossy = self.hits.iter().any(|hit| hit.excerpt.lossy);
        FileHits {
            path: Box::default(),
            hits: self.hits,
            total: self.total,
            lines: self.lines,
            encoding: self.guess.filter(|_| lossy).map(encoding::name),
        }
    }

    /// Counts a hit, and keeps it if it is wanted.
    fn hit(&mut self, line: u64, text: &[u8], at: Match) {
        self.total += 1;
        self.last_kept = self.hits.len() < self.wanted;
        if !self.last_kept {
            return;
        }
        let guess = self.guess_for(text);
        let excerpt = excerpt::around(excerpt::trimmed(text), at.start()..at.end(), guess);
        let before = std::mem::take(&mut self.before);
        self.hits.push(Hit { line, excerpt, before, after: Vec::new() });
    }

    fn guess_for(&mut self, text: &[u8]) -> Option<&'static Encoding> {
        if std::str::from_utf8(text).is_ok() {
            return None;
        }
        Some(*self.guess.get_or_insert_with(|| encoding::guess(text)))
    }

    /// A line that has at least one hit.
    fn line(&mut self, number: u64, line: &[u8]) {
        self.lines += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.len() > LONGEST {
            return self.long_line(number, text);
        }
        if self.hits.len() >= self.wanted {
            self.total += 1;
            self.last_kept = false;
            return;
        }
        let at = self.matcher.find(text).ok().flatten().unwrap_or_else(|| Match::zero(0));
        self.hit(number, text, at);
    }

    /// Each hit in a line that is too long to be shown whole is one of its own.
    fn long_line(&mut self, number: u64, text: &[u8]) {
        let (matcher, stop) = (self.matcher, self.stop);
        let (mut seen, before) = (0_u64, self.total);
        let _ = matcher.find_iter(text, |at| {
            seen += 1;
            if !at.is_empty() {
                self.hit(number, text, at);
            }
            !(seen.is_multiple_of(1024) && stop.reached())
        });
        if self.total == before {
            self.hit(number, text, Match::zero(0));
        }
    }

    /// Lines that one or more hits go over.
    fn block(&mut self, first: u64, found: &SinkMatch<'_>) {
        let (buffer, block) = (found.buffer(), found.bytes_range_in_buffer());
        self.lines += found.lines().count() as u64;
        let (matcher, stop, before) = (self.matcher, self.stop, self.total);
        let (mut counted_to, mut line, mut last) = (block.start, first, None);
        let _ = matcher.find_iter_at(buffer, block.start, |at| {
            if at.start() >= block.end || stop.reached() {
                return false;
            }
            if at.is_empty() {
                return true;
            }
            line += memchr::memchr_iter(b'\n', &buffer[counted_to..at.start()]).count() as u64;
            counted_to = at.start();
            let start = memchr::memrchr(b'\n', &buffer[block.start..at.start()])
                .map_or(block.start, |end| block.start + end + 1);
            let last_byte = at.end().max(at.start() + 1) - 1;
            let end = memchr::memchr(b'\n', &buffer[last_byte..]).map_or(buffer.len(), |end| last_byte + end);
            // Hits beside each other in lines that are shown whole are one.
            if last != Some(line) || end - start > LONGEST {
                self.hit(line, &buffer[start..end], at.offset_back(start));
            }
            last = Some(line);
            true
        });
        if self.total == before {
            self.hit(first, &buffer[block], Match::zero(0));
        }
    }
}

/// A place relative to a later beginning.
trait OffsetBack {
    fn offset_back(self, start: usize) -> Match;
}

impl OffsetBack for Match {
    fn offset_back(self, start: usize) -> Match {
        Match::new(self.start() - start, self.end() - start)
    }
}

impl<M: Matcher> Sink for Lines<'_, M> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or_default();
        match self.multiline {
            true => self.block(number, found),
            false => self.line(number, found.bytes()),
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let guess = self.guess_for(context.bytes());
        let text = || excerpt::beginning(context.bytes(), LONGEST, guess);
        match context.kind() {
            SinkContextKind::After if self.last_kept => {
                if let Some(hit) = self.hits.last_mut() {
                    hit.after.push(text());
                }
            }
            SinkContextKind::Before if self.hits.len() < self.wanted => self.before.push(text()),
            _ => {}
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
