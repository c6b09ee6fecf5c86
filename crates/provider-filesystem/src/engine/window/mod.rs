//! A page of a file of any size, in bounded memory.
//!
//! [`read_window`] goes over a file once, in chunks: what lies in the window is collected, everything else is only
//! counted and hashed. Following [`Window::next`] from page to page gives the whole file, with no gap and no repeat,
//! unless a line was too long for its page: then [`Window::cut_lines`] says where to read on inside it.

mod collect;
mod scan;
mod tail;
mod transcoded;

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::encoding::{Encoding, Survey};
use super::text::Eol;
use collect::{Collector, Start};
use scan::{Scan, Verdict};
pub(super) use scan::{Utf8Check, is_continuation};

const CHUNK: usize = 64 * 1024;
/// Bytes of a file too large to be read whole from which its encoding is told.
const MAX_SURVEYED: u64 = 4 * 1024 * 1024;

/// Which part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The first line, from 1; 0 means 1; −n means the last n lines.
    pub offset: i64,
    /// Bytes to skip from the start of line `offset`: pages by bytes, inside a line that is too long for a page. One
    /// that falls inside a character begins at the next.
    pub byte_offset: Option<u64>,
    /// The most lines to return; 0 counts as 1.
    pub limit: u64,
    /// Whether each line begins with its number, as `%6d\t`.
    pub line_numbers: bool,
    /// How much may be returned and looked at.
    pub limits: Limits,
}

impl Default for Request {
    fn default() -> Self {
        Self { offset: 1, byte_offset: None, limit: 2000, line_numbers: false, limits: Limits::default() }
    }
}

/// Bounds of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of content, line numbers included.
    pub max_bytes: usize,
    /// The most characters of one line when paging by lines.
    pub max_line_chars: usize,
    /// Files of more bytes are not read beyond the window: their totals and hash stay unknown.
    pub max_full_read: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 48 * 1024, max_line_chars: 2000, max_full_read: 256 * 1024 * 1024 }
    }
}

/// What a file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Text, of which this is the window.
    Text(Window),
    /// Not text.
    Binary {
        /// The size of the file.
        total_bytes: u64,
        /// SHA-256 of the whole file in lower-case hex; `None` when the file was too large to read whole.
        sha256: Option<String>,
    },
}

/// A page of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The text as it stands in the file, line endings included, without the byte order mark.
    pub content: String,
    /// The number of the first line shown; `None` when none is, or when the number would need a full read.
    pub start_line: Option<u64>,
    /// The number of the last line shown; `None` as for `start_line`.
    pub end_line: Option<u64>,
    /// Where in the file the content begins, in bytes; `None` when nothing is shown.
    pub start_byte: Option<u64>,
    /// The lines of the file; `None` when they were not counted.
    pub total_lines: Option<u64>,
    /// The size of the file in bytes.
    pub total_bytes: u64,
    /// Whether the file goes on after the window, or a line in it was cut.
    pub truncated: bool,
    /// How to read on; `None` at the end of the file.
    pub next: Option<Next>,
    /// The lines that were too long, in order.
    pub cut_lines: Vec<CutLine>,
    /// How the text is stored. In any other encoding than UTF-8, positions (`start_byte`, `byte_offset`) are those in
    /// the text as UTF-8.
    pub encoding: Encoding,
    /// Whether some bytes stand for no character and are shown as U+FFFD.
    pub damaged: bool,
    /// Whether the file begins with a byte order mark.
    pub bom: bool,
    /// The line endings of the file, as far as it was read.
    pub eol: Eol,
    /// SHA-256 of the whole file in lower-case hex; `None` when it was not read whole.
    pub sha256: Option<String>,
    /// The file was shorter than `len` when it was read.
    pub shrank: bool,
}

/// Where the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At this line: the `offset` to ask for.
    Line(u64),
    /// At this byte, counted like the `byte_offset` that was asked for, with the same `offset`.
    Byte(u64),
}

/// A line of which only the beginning is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutLine {
    /// Its number; `None` when that would need a full read.
    pub line: Option<u64>,
    /// Where the rest of it begins, in bytes from the start of the file: the `byte_offset` to read on at (with no
    /// `offset`).
    pub byte_offset: u64,
    /// How many bytes of it are not shown.
    pub omitted: u64,
}

impl Window {
    /// What is not shown and how to get it, for people and models; empty when the window is all there is.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        const MAX_CUT_LINES: usize = 10;
        let mut notices = Vec::new();
        if let Some(next) = self.next {
            let lines = match (self.start_line, self.end_line, self.total_lines) {
                (Some(first), Some(last), Some(total)) => format!("lines {first}–{last} of {total}; "),
                _ => String::new(),
            };
            notices.push(match next {
                Next::Line(line) => format!("{lines}next: offset={line}"),
                Next::Byte(byte) => {
                    format!("{lines}{} bytes in all; next: byte_offset={byte}", self.total_bytes)
                }
            });
        }
        for cut in self.cut_lines.iter().take(MAX_CUT_LINES) {
            let line = cut.line.map_or_else(|| "a line".to_owned(), |line| format!("line {line}"));
            notices.push(format!(
                "{line} is cut, {} bytes of it are not shown; read on inside it: byte_offset={}",
                cut.omitted, cut.byte_offset
            ));
        }
        if self.damaged {
            notices.push(format!(
                "some bytes are not valid {} and are shown as U+FFFD; edits elsewhere keep them",
                self.encoding
            ));
        }
        if let Some(more) = self.cut_lines.len().checked_sub(MAX_CUT_LINES).filter(|&more| more > 0) {
            notices.push(format!("{more} more lines are cut"));
        }
        notices
    }
}

/// Reads one window of the `len` bytes of `source`, which is what the file held when it was opened.
///
/// Memory is bounded by `limits.max_bytes`, whatever the file holds. An `offset` past the end gives an empty content
/// with the totals.
///
/// # Errors
/// Whatever reading or seeking fails with. A file that became shorter is not an error: see [`Window::shrank`].
pub fn read_window<R: Read + Seek>(source: &mut R, len: u64, request: &Request) -> io::Result<Reading> {
    let reading = read_utf8(source, len, request)?;
    let Reading::Binary { .. } = &reading else { return Ok(reading) };
    source.seek(SeekFrom::Start(0))?;
    let looked_at = if len <= request.limits.max_full_read { len } else { len.min(MAX_SURVEYED) };
    match Survey::of(source.by_ref().take(looked_at))?.conclude() {
        Ok(detected) => transcoded::read(source, len, detected, request),
        Err(_) => Ok(reading),
    }
}

/// [`read_window`] for a file in UTF-8; any other is binary.
fn read_utf8<R: Read + Seek>(source: &mut R, len: u64, request: &Request) -> io::Result<Reading> {
    let whole = len <= request.limits.max_full_read;
    let skip = request.byte_offset.unwrap_or(0);
    let start = match request.offset {
        ..0 => {
            let tail = tail::start_of_last_lines(source, len, request.offset.unsigned_abs())?;
            Start::Byte { origin: tail, skip }
        }
        0 | 1 => Start::Byte { origin: 0, skip },
        line => Start::InLine { line: line.unsigned_abs(), skip },
    };
    let mut scan = Scan::new(whole);
    let mut from = 0;
    if let (Start::Byte { origin, skip }, false) = (start, whole) {
        from = origin.saturating_add(skip).min(len);
        scan.begin_inside(from);
    }
    source.seek(SeekFrom::Start(from))?;
    let mut collector = Collector::new(request, start, scan.knows_lines());
    let outcome = pump(source, from..len, whole, &mut scan, &mut collector)?;
    Ok(assemble(request, len, outcome, scan, collector))
}

/// How far a file was read.
enum Outcome {
    /// To the end, which is where it was when the file was opened.
    Whole,
    /// To the end, which came early, after this many bytes.
    Shrank(u64),
    /// Only as far as the page needed.
    Part,
}

/// Feeds the file to the scan and the collector.
fn pump<R: Read>(
    source: &mut R,
    range: Range<u64>,
    whole: bool,
    scan: &mut Scan,
    collector: &mut Collector,
) -> io::Result<Outcome> {
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut at = range.start;
    while at < range.end {
        let want = (range.end - at).min(CHUNK as u64);
        chunk.clear();
        source.by_ref().take(want).read_to_end(&mut chunk)?;
        scan.feed(at, &chunk);
        if !scan.is_binary() {
            collector.feed(at, &chunk);
        }
        at += chunk.len() as u64;
        if (chunk.len() as u64) < want {
            return Ok(Outcome::Shrank(at));
        }
        if !whole && at < range.end && (collector.is_done() || scan.is_binary()) {
            return Ok(Outcome::Part);
        }
    }
    Ok(Outcome::Whole)
}

fn assemble(request: &Request, len: u64, outcome: Outcome, scan: Scan, collector: Collector) -> Reading {
    let (total_bytes, at_end, shrank) = match outcome {
        Outcome::Whole => (len, true, false),
        Outcome::Shrank(read) => (read, true, true),
        Outcome::Part => (len, false, false),
    };
    let knows_lines = scan.knows_lines();
    let Verdict { binary, bom, eol, total_lines, sha256 } = scan.finish(at_end);
    let page = collector.finish(total_bytes);
    let content = match String::from_utf8(page.content) {
        Ok(content) if !binary => content,
        _ => return Reading::Binary { total_bytes, sha256 },
    };
    let next = match (page.rest_of_last_line, page.next_line) {
        (Some(byte), _) => Some(Next::Byte(byte - page.origin)),
        _ if page.end_byte >= total_bytes => None,
        (None, Some(line)) if knows_lines && request.byte_offset.is_none() => Some(Next::Line(line)),
        _ => Some(Next::Byte(page.end_byte - page.origin)),
    };
    Reading::Text(Window {
        content,
        start_line: page.lines.map(|(first, _)| first),
        end_line: page.lines.map(|(_, last)| last),
        start_byte: page.start_byte,
        total_lines,
        total_bytes,
        truncated: next.is_some() || !page.cut_lines.is_empty(),
        next,
        cut_lines: page.cut_lines,
        encoding: Encoding::Utf8,
        damaged: false,
        bom,
        eol,
        sha256,
        shrank,
    })
}

#[cfg(test)]
mod tests;
