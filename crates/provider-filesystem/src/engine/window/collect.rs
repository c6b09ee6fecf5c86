//! The part of a file that a page shows, cut out of the chunks as they pass.

use memchr::{memchr, memchr_iter};

use super::scan::is_continuation;
use super::{CutLine, Request};
use crate::engine::encoding::UTF8_BOM;

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// `skip` bytes after the byte at `origin`.
    Byte { origin: u64, skip: u64 },
    /// `skip` bytes after the beginning of a line, from 1.
    InLine { line: u64, skip: u64 },
}

/// What was collected.
pub(super) struct Page {
    pub(super) content: Vec<u8>,
    /// The numbers of the first and the last line shown.
    pub(super) lines: Option<(u64, u64)>,
    pub(super) start_byte: Option<u64>,
    /// Where in the file the page ends.
    pub(super) end_byte: u64,
    /// What `byte_offset` is counted from.
    pub(super) origin: u64,
    pub(super) next_line: Option<u64>,
    pub(super) cut_lines: Vec<CutLine>,
    /// Where the rest of the last line begins, if that line is cut and the last of the file.
    pub(super) rest_of_last_line: Option<u64>,
}

/// Collects one page.
pub(super) struct Collector {
    request: Request,
    start: Start,
    phase: Phase,
    knows_lines: bool,
    /// Whether a byte order mark at the beginning was taken off already.
    is_unmarked: bool,
    /// The number of the line that the next byte belongs to.
    line: u64,
    first_line: u64,
    lines_taken: u64,
    content: Vec<u8>,
    start_byte: Option<u64>,
    end_byte: u64,
    current: Option<OpenLine>,
    cut_lines: Vec<CutLine>,
    /// Whether the line taken last is cut.
    last_is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Inside,
    Done,
}

/// The line that is being collected.
struct OpenLine {
    /// Where it begins in the content, its number included.
    content_start: usize,
    /// Where it, or what is shown of it, begins in the file.
    byte: u64,
    chars: usize,
    shown: usize,
    omitted: u64,
    last_byte: u8,
}

impl Collector {
    pub(super) fn new(request: &Request, start: Start, knows_lines: bool) -> Self {
        Self {
            request: *request,
            start,
            phase: Phase::Before,
            knows_lines,
            is_unmarked: false,
            line: 1,
            first_line: 0,
            lines_taken: 0,
            content: Vec::new(),
            start_byte: None,
            end_byte: 0,
            current: None,
            cut_lines: Vec::new(),
            last_is_cut: false,
        }
    }

    /// For text from which the byte order mark was taken off: another one at its beginning is a character.
    pub(super) fn unmarked(self) -> Self {
        Self { is_unmarked: true, ..self }
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Takes the chunk at `at`. The first chunk holds the whole byte order mark, if there is one.
    pub(super) fn feed(&mut self, at: u64, bytes: &[u8]) {
        let mark =
            if at == 0 && !self.is_unmarked && bytes.starts_with(UTF8_BOM) { UTF8_BOM.len() } else { 0 };
        let mut used = mark;
        if self.phase == Phase::Before {
            used = self.seek(at, bytes, mark);
        }
        let mut at = at + used as u64;
        let mut rest = bytes.get(used..).unwrap_or_default();
        while self.phase == Phase::Inside && !rest.is_empty() {
            let len = memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
            let (piece, after) = rest.split_at(len);
            self.take(at, piece);
            at += len as u64;
            rest = after;
        }
    }

    /// Concludes at the end of the file, or where the file was left.
    pub(super) fn finish(mut self, total_bytes: u64) -> Page {
        if let (Phase::Inside, Some(open)) = (self.phase, self.current.take()) {
            self.end_line(open, false);
        }
        let mut rest_of_last_line = None;
        if self.phase != Phase::Done {
            self.end_byte = total_bytes;
            rest_of_last_line = self.cut_lines.last().map(|cut| cut.byte_offset).filter(|_| self.last_is_cut);
        }
        if rest_of_last_line.is_some() {
            // What follows is the rest of this line, so its ending comes with that.
            let cut =
                self.content.strip_suffix(b"\n").map(|text| text.strip_suffix(b"\r").unwrap_or(text).len());
            self.content.truncate(cut.unwrap_or(self.content.len()));
        }
        let origin = match self.start {
            Start::Byte { origin, .. } => origin,
            Start::InLine { .. } => total_bytes,
        };
        let numbered = self.knows_lines && self.lines_taken > 0;
        Page {
            lines: numbered.then(|| (self.first_line, self.first_line + self.lines_taken - 1)),
            content: self.content,
            start_byte: self.start_byte,
            end_byte: self.end_byte,
            origin,
            next_line: (self.phase == Phase::Done).then_some(self.first_line + self.lines_taken),
            cut_lines: self.cut_lines,
            rest_of_last_line,
        }
    }

    /// Looks for the start of the page; returns how much of the chunk lies before it.
    fn seek(&mut self, at: u64, bytes: &[u8], mark: usize) -> usize {
        let mut used = mark;
        if let Start::InLine { line, skip } = self.start {
            used += self.pass_lines(bytes.get(mark..).unwrap_or_default(), line);
            if self.line < line {
                return bytes.len();
            }
            self.start = Start::Byte { origin: at + used as u64, skip };
        }
        let Start::Byte { origin, skip } = self.start else { return bytes.len() };
        let begin = usize::try_from(origin.saturating_add(skip).saturating_sub(at)).unwrap_or(usize::MAX);
        let begin = begin.clamp(used, bytes.len().max(used));
        let skipped = bytes.get(used..begin).unwrap_or_default();
        self.line += memchr_iter(b'\n', skipped).count() as u64;
        let rest = bytes.get(begin..).unwrap_or_default();
        let inside = rest.iter().take_while(|&&byte| is_continuation(byte)).count();
        if inside < rest.len() {
            self.phase = Phase::Inside;
            self.first_line = self.line;
        }
        begin + inside
    }

    /// Counts lines until `target` begins; returns how many bytes that took.
    fn pass_lines(&mut self, bytes: &[u8], target: u64) -> usize {
        for newline in memchr_iter(b'\n', bytes) {
            if self.line == target {
                break;
            }
            self.line += 1;
            if self.line == target {
                return newline + 1;
            }
        }
        if self.line == target { 0 } else { bytes.len() }
    }

    /// Takes a piece of one line; it ends the line if it ends with a newline.
    fn take(&mut self, at: u64, piece: &[u8]) {
        let mut open = match self.current.take() {
            Some(open) => open,
            None if self.lines_taken >= self.request.limit.max(1) => return self.stop(at),
            None => self.open_line(at),
        };
        let (body, is_ended) = match piece {
            [body @ .., b'\n'] => (body, true),
            body => (body, false),
        };
        if self.request.byte_offset.is_some() {
            self.take_bytes(open, piece, is_ended);
            return;
        }
        self.append(&mut open, body);
        if self.content.len() > self.request.limits.max_bytes && self.lines_taken > 0 {
            self.stop_before(&open);
        } else if is_ended {
            self.end_line(open, true);
        } else {
            self.current = Some(open);
        }
    }

    fn open_line(&mut self, at: u64) -> OpenLine {
        self.start_byte.get_or_insert(at);
        let content_start = self.content.len();
        if self.request.line_numbers && self.knows_lines {
            self.content.extend_from_slice(format!("{:>6}\t", self.line).as_bytes());
        }
        OpenLine { content_start, byte: at, chars: 0, shown: 0, omitted: 0, last_byte: 0 }
    }

    /// Appends what a line may still show.
    fn append(&mut self, open: &mut OpenLine, body: &[u8]) {
        let fits = if open.omitted > 0 { 0 } else { self.fitting(open, body) };
        let (shown, omitted) = body.split_at(fits);
        self.content.extend_from_slice(shown);
        open.chars += shown.iter().filter(|&&byte| !is_continuation(byte)).count();
        open.shown += shown.len();
        open.omitted += omitted.len() as u64;
        open.last_byte = body.last().copied().unwrap_or(open.last_byte);
    }

    /// How many bytes of `body` still fit into the line, at a character boundary.
    fn fitting(&self, open: &OpenLine, body: &[u8]) -> usize {
        const LONGEST_CHAR: usize = 4;
        const LONGEST_ENDING: usize = 2;
        let number = self.content.len() - open.content_start - open.shown;
        let max_bytes =
            self.request.limits.max_bytes.saturating_sub(number + LONGEST_ENDING).max(LONGEST_CHAR);
        let (mut chars, mut bytes) = (open.chars, open.shown);
        for (index, &byte) in body.iter().enumerate() {
            if !is_continuation(byte) {
                if chars >= self.request.limits.max_line_chars.max(1) || bytes + LONGEST_CHAR > max_bytes {
                    return index;
                }
                chars += 1;
            }
            bytes += 1;
        }
        body.len()
    }

    fn end_line(&mut self, open: OpenLine, has_newline: bool) {
        let is_crlf = has_newline && open.last_byte == b'\r';
        let omitted = open.omitted - u64::from(is_crlf && open.omitted > 0);
        if omitted > 0 {
            self.cut_lines.push(CutLine {
                line: self.knows_lines.then_some(self.line),
                byte_offset: open.byte + open.shown as u64,
                omitted,
            });
        }
        if is_crlf && open.omitted > 0 {
            self.content.push(b'\r');
        }
        if has_newline {
            self.content.push(b'\n');
        }
        if self.content.len() > self.request.limits.max_bytes && self.lines_taken > 0 {
            self.cut_lines.truncate(self.cut_lines.len() - usize::from(omitted > 0));
            return self.stop_before(&open);
        }
        self.last_is_cut = omitted > 0;
        self.lines_taken += 1;
        self.line += 1;
    }

    /// Takes a piece when paging by bytes: as much as fits, then back to the end of a line or of a character.
    fn take_bytes(&mut self, mut open: OpenLine, piece: &[u8], is_ended: bool) {
        const SMALLEST_PAGE: usize = 16;
        let max_bytes = self.request.limits.max_bytes.max(SMALLEST_PAGE);
        if self.content.len() + piece.len() > max_bytes {
            if self.lines_taken > 0 {
                return self.stop_before(&open);
            }
            let fits = max_bytes.saturating_sub(self.content.len()).min(piece.len());
            self.content.extend_from_slice(piece.get(..fits).unwrap_or_default());
            let broken = broken_tail(&self.content);
            self.content.truncate(self.content.len() - broken);
            self.lines_taken += 1;
            return self.stop(open.byte + (open.shown + fits - broken) as u64);
        }
        self.content.extend_from_slice(piece);
        open.shown += piece.len();
        if is_ended {
            self.lines_taken += 1;
            self.line += 1;
        } else {
            self.current = Some(open);
        }
    }

    fn stop_before(&mut self, open: &OpenLine) {
        self.content.truncate(open.content_start);
        self.stop(open.byte);
    }

    fn stop(&mut self, end_byte: u64) {
        self.end_byte = end_byte;
        self.phase = Phase::Done;
    }
}

/// How many bytes at the end of `text` begin a character without completing it.
fn broken_tail(text: &[u8]) -> usize {
    let inside = text.iter().rev().take(3).take_while(|&&byte| is_continuation(byte)).count();
    let needed = match text.len().checked_sub(inside + 1).and_then(|lead| text.get(lead)) {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xFF) => 4,
        _ => return 0,
    };
    if inside + 1 < needed { inside + 1 } else { 0 }
}
