//! Text of any length in little room: its beginning, its end, and how much lies between.

use std::collections::VecDeque;

/// A place in a stream: how many bytes, and how many line ends, come before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes before.
    pub byte: u64,
    /// Line ends before.
    pub line: u64,
}

/// What was left out between the beginning and the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Where the part that was left out begins.
    pub from: Position,
    /// How many bytes were left out: exactly, where the cuts are between lines or in a line that is shown as it
    /// was written.
    pub bytes: u64,
    /// How many line ends were left out.
    pub lines: u64,
}

/// The beginning and the end of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The beginning; all of it where nothing was left out.
    pub head: String,
    /// What stands between beginning and end, if anything was left out.
    pub omitted: Option<Omitted>,
    /// The end; empty where nothing was left out.
    pub tail: String,
}

impl View {
    /// The text with a line in place of what was left out; `hint` says how to get that.
    pub fn text(&self, hint: &str) -> String {
        let Some(omitted) = self.omitted else { return format!("{}{}", self.head, self.tail) };
        let end = if self.head.is_empty() || self.head.ends_with('\n') { "" } else { "\n" };
        let (bytes, lines) = (omitted.bytes, omitted.lines);
        let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
        format!(
            "{}{end}[... {bytes} bytes ({lines} line ends) left out here{hint} ...]\n{}",
            self.head, self.tail
        )
    }

    /// How many bytes were left out.
    pub fn omitted_bytes(&self) -> u64 {
        self.omitted.map_or(0, |omitted| omitted.bytes)
    }
}

/// Where a piece of the tail begins.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Offset in the text of the tail, counted from its very first byte, dropped ones included.
    at: u64,
    start: Position,
    /// Whether a line begins here.
    line: bool,
}

/// Collects pieces of text, each a line or a part of a long one, and keeps the first and the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    limit: usize,
    head: String,
    /// Where the first text that is not in the head begins; none while everything is.
    head_end: Option<Position>,
    tail: String,
    marks: VecDeque<Mark>,
    /// How many bytes were removed from the front of the tail.
    removed: u64,
    /// Whether the text so far ends in the middle of a line.
    within_line: bool,
}

impl Sheet {
    /// A view of at most `limit` bytes, half of them from the beginning.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            head: String::new(),
            head_end: None,
            tail: String::new(),
            marks: VecDeque::new(),
            removed: 0,
            within_line: false,
        }
    }

    /// Adds the next piece, which begins at `start`.
    pub(crate) fn add(&mut self, piece: &str, start: Position) {
        let begins_line = !std::mem::replace(&mut self.within_line, !piece.ends_with('\n'));
        if piece.is_empty() {
            return;
        }
        if self.head_end.is_some() {
            self.add_to_tail(piece, start, begins_line);
            return;
        }
        let half = self.limit / 2;
        if self.head.len() + piece.len() <= half {
            self.head.push_str(piece);
            return;
        }
        // Cutting between lines is better, unless that would leave most of the room empty.
        let taken = if self.head.len() < half / 2 { floor(piece, half - self.head.len()) } else { 0 };
        let (first, rest) = piece.split_at(taken);
        self.head.push_str(first);
        let start = advance(start, first);
        self.head_end = Some(start);
        self.add_to_tail(rest, start, begins_line && first.is_empty());
    }

    /// Some text was passed over: the head ends where it is, and the tail begins anew.
    pub(crate) fn skip(&mut self, from: Position, within_line: bool) {
        self.head_end = self.head_end.or(Some(from));
        self.removed += self.tail.len() as u64;
        self.tail.clear();
        self.marks.clear();
        self.within_line = within_line;
    }

    fn add_to_tail(&mut self, piece: &str, start: Position, line: bool) {
        self.marks.push_back(Mark { at: self.removed + self.tail.len() as u64, start, line });
        self.tail.push_str(piece);
        if self.tail.len() > self.limit * 4 {
            self.forget();
        }
    }

    /// Removes the pieces before those that a view may need.
    fn forget(&mut self) {
        let end = self.removed + self.tail.len() as u64;
        let needed = end - self.limit as u64;
        while self.marks.get(1).is_some_and(|next| next.at <= needed) {
            self.marks.pop_front();
        }
        let first = self.marks.front().map_or(end, |mark| mark.at);
        let count = usize::try_from(first - self.removed).unwrap_or(self.tail.len());
        self.tail.drain(..count);
        self.removed = first;
    }

    /// The beginning and the end of everything that was added, from a stream that is at `at`.
    pub(crate) fn view(&self, at: Position) -> View {
        let Some(head_end) = self.head_end else {
            return View { head: self.head.clone(), ..View::default() };
        };
        let complete = self.marks.front().is_none_or(|mark| mark.start == head_end);
        if complete && self.head.len() + self.tail.len() <= self.limit {
            return View { head: format!("{}{}", self.head, self.tail), ..View::default() };
        }
        let (start, tail) = self.end_of_tail(self.limit - self.head.len());
        // Within a line that shows more than was written (U+FFFD, say), positions are too far on.
        let from = Position { byte: head_end.byte.min(at.byte), line: head_end.line };
        let omitted = Omitted {
            from,
            bytes: start.byte.min(at.byte).saturating_sub(from.byte),
            lines: start.line.saturating_sub(head_end.line),
        };
        View { head: self.head.clone(), omitted: Some(omitted), tail: tail.to_owned() }
    }

    /// The last lines that fit in `room`, or the last characters where the last line alone is too long.
    fn end_of_tail(&self, room: usize) -> (Position, &str) {
        let cut = ceil(&self.tail, self.tail.len().saturating_sub(room));
        let fits = self.marks.partition_point(|mark| mark.at < self.removed + cut as u64);
        let by_line = self.marks.range(fits..).find(|mark| mark.line);
        let by_line = by_line.map(|mark| (mark.start, self.text_from(mark.at)));
        if let Some((start, text)) = by_line
            && text.len() >= room.min(self.tail.len()) / 2
        {
            return (start, text);
        }
        let at = self.removed + cut as u64;
        let text = self.tail.get(cut..).unwrap_or_default();
        // The piece that is cut is the last one that begins at or before the cut.
        let piece = self.marks.partition_point(|mark| mark.at <= at).checked_sub(1);
        let Some(mark) = piece.and_then(|index| self.marks.get(index)) else {
            return (self.head_end.unwrap_or_default(), text);
        };
        let piece = self.text_from(mark.at);
        let skipped = piece.get(..piece.len() - text.len()).unwrap_or_default();
        (advance(mark.start, skipped), text)
    }

    fn text_from(&self, at: u64) -> &str {
        usize::try_from(at - self.removed).ok().and_then(|at| self.tail.get(at..)).unwrap_or_default()
    }
}

/// The position after `text`, where it stands in the stream as it is here.
fn advance(start: Position, text: &str) -> Position {
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
    Position { byte: start.byte + text.len() as u64, line: start.line + lines }
}

/// The last character boundary at or before `index`.
fn floor(text: &str, index: usize) -> usize {
    text.floor_char_boundary(index)
}

/// The first character boundary at or after `index`.
fn ceil(text: &str, index: usize) -> usize {
    text.ceil_char_boundary(index)
}
