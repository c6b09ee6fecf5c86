//! Lines of text under what stands before each of them: quotation marks, list markers, indentation.

/// What separates a block from the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// Nothing: the line goes on.
    #[default]
    None,
    /// A new line.
    Line,
    /// An empty line.
    Blank,
}

/// Deeper levels are not indented further, so that no input makes lines of mostly indentation.
const MOST_LEVELS: usize = 12;

/// One level of what stands before lines.
#[derive(Debug)]
struct Level {
    /// Before the first line.
    first: String,
    /// Before the others.
    rest: &'static str,
    /// How often `rest` is repeated.
    times: usize,
    is_used: bool,
}

/// Text that is being written, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    out: String,
    levels: Vec<Level>,
    gap: Gap,
    line_is_open: bool,
    limit: usize,
}

impl Lines {
    /// At most about `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { out: String::new(), levels: Vec::new(), gap: Gap::None, line_is_open: false, limit }
    }

    /// Whether there is as much as there may be.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.limit
    }

    /// How many bytes may still be written.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.out.len())
    }

    /// What has been written.
    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn as_str(&self) -> &str {
        &self.out
    }

    /// Takes back what was written from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// Whether the next text goes on the line that the last is on.
    pub(super) fn is_line_open(&self) -> bool {
        self.line_is_open
    }

    /// Ends the line, and keeps at least `gap` before the next.
    pub(super) fn separate(&mut self, gap: Gap) {
        self.line_is_open = false;
        // Between a marker and what it marks there is no gap.
        let is_marked = self.levels.last().is_some_and(|level| !level.is_used);
        self.gap = self.gap.max(if is_marked { gap.min(Gap::Line) } else { gap });
    }

    /// Begins a level; answers whether it is one, which [`Lines::leave`] ends.
    #[must_use]
    pub(super) fn enter(&mut self, first: String, rest: &'static str, times: usize) -> bool {
        let is_level = self.levels.len() < MOST_LEVELS;
        if is_level {
            self.levels.push(Level { first, rest, times, is_used: false });
        }
        is_level
    }

    /// Ends the innermost level.
    pub(super) fn leave(&mut self) {
        self.line_is_open = false;
        self.levels.pop();
    }

    /// Begins a line if none is open.
    pub(super) fn begin(&mut self) {
        if self.line_is_open {
            return;
        }
        self.line_is_open = true;
        if !self.out.is_empty() {
            self.out.push('\n');
            if self.gap == Gap::Blank {
                for level in self.levels.iter().filter(|level| level.is_used) {
                    push_times(&mut self.out, level.rest, level.times);
                }
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
                self.out.push('\n');
            }
        }
        self.gap = Gap::None;
        for level in &mut self.levels {
            if std::mem::replace(&mut level.is_used, true) {
                push_times(&mut self.out, level.rest, level.times);
            } else {
                self.out.push_str(&level.first);
            }
        }
    }

    /// Writes on the open line, or on a new one.
    pub(super) fn push(&mut self, text: &str) {
        self.begin();
        self.out.push_str(text);
    }

    /// Writes lines as they are.
    pub(super) fn push_lines(&mut self, text: &str) {
        for line in text.split('\n') {
            if self.is_full() {
                return;
            }
            self.separate(Gap::Line);
            self.begin();
            self.out.push_str(line);
            if line.is_empty() {
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
            }
        }
    }
}

fn push_times(out: &mut String, text: &str, times: usize) {
    for _ in 0..times {
        out.push_str(text);
    }
}
