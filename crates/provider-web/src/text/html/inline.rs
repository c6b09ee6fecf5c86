//! The words of a line: blanks as one, markers only around something, escapes only where they are needed.

use super::escape::{push_first_word, push_word};
use super::lines::{Gap, Lines};

/// A marker that is written when a word follows it.
#[derive(Debug)]
enum Opener {
    /// `**` and the like.
    Marker(&'static str),
    /// The bracket of a link.
    Link,
}

/// Where lines of words are written.
#[derive(Debug)]
pub(super) struct Inline {
    pub(super) lines: Lines,
    is_markdown: bool,
    /// Openers that nothing has followed yet.
    pending: Vec<Opener>,
    pending_space: bool,
    /// Everything is kept on one line: for headings and cells.
    pub(super) one_line: bool,
    /// What line breaks become in a cell.
    pub(super) in_cell: bool,
    links: usize,
    /// The address of a link around blocks; the next line of words carries it.
    pub(super) block_link: Option<String>,
    line_link: Option<String>,
}

/// An opened marker or link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    pending: usize,
    /// Where the text after a link's bracket begins, unless it is pending.
    start: usize,
}

impl Inline {
    pub(super) fn new(limit: usize, is_markdown: bool) -> Self {
        Self {
            lines: Lines::new(limit),
            is_markdown,
            pending: Vec::new(),
            pending_space: false,
            one_line: false,
            in_cell: false,
            links: 0,
            block_link: None,
            line_link: None,
        }
    }

    /// Ends the line of words.
    pub(super) fn separate(&mut self, gap: Gap) {
        if self.one_line {
            // A cell is written alone: nobody after it ends the link.
            if self.in_cell {
                self.end_line();
            }
            self.line_break();
            return;
        }
        self.end_line();
        self.lines.separate(gap);
    }

    /// Ends what only a line can have.
    pub(super) fn end_line(&mut self) {
        if let Some(target) = self.line_link.take() {
            self.links -= 1;
            self.lines.push(&format!("]({target})"));
        }
        self.pending_space = false;
    }

    /// A `<br>`.
    pub(super) fn line_break(&mut self) {
        if self.one_line {
            if self.in_cell && self.is_markdown && self.lines.is_line_open() {
                if !self.lines.as_str().ends_with("<br>") {
                    self.lines.push("<br>");
                }
                self.pending_space = false;
            } else {
                self.pending_space = true;
            }
            return;
        }
        if self.lines.is_line_open() && self.is_markdown && self.pending.is_empty() {
            self.lines.push("  ");
        }
        self.pending_space = false;
        self.lines.separate(Gap::Line);
    }

    /// Writes prose.
    pub(super) fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(start) = rest.find(|c| !is_blank(c)) {
            self.pending_space |= start > 0;
            rest = &rest[start..];
            let end = rest.find(is_blank).unwrap_or(rest.len());
            self.word(&rest[..end]);
            rest = &rest[end..];
        }
        self.pending_space |= !rest.is_empty();
    }

    fn word(&mut self, word: &str) {
        // Characters that only say where a word may be broken.
        const INVISIBLE: [char; 4] = ['\u{ad}', '\u{200b}', '\u{feff}', '\u{2060}'];
        if !word.is_ascii() && word.contains(INVISIBLE) {
            let visible = word.replace(INVISIBLE, "");
            if !visible.is_empty() {
                self.visible_word(&visible);
            }
            return;
        }
        self.visible_word(word);
    }

    fn visible_word(&mut self, word: &str) {
        let is_first = self.before_word();
        if !self.is_markdown {
            self.lines.push(word);
            return;
        }
        if is_plain(word) && (!is_first || self.one_line) {
            self.lines.push(word);
            return;
        }
        let mut written = String::new();
        let push = if is_first && !self.one_line { push_first_word } else { push_word };
        push(&mut written, word, self.links > 0, self.in_cell);
        self.lines.push(&written);
    }

    /// Writes what stands between the last word and the next one. Answers whether that begins a line.
    fn before_word(&mut self) -> bool {
        let is_first = !self.lines.is_line_open();
        self.lines.begin();
        if is_first && let Some(target) = self.block_link.take() {
            self.lines.push("[");
            self.links += 1;
            self.line_link = Some(target);
        }
        if std::mem::take(&mut self.pending_space) && !is_first && !self.lines.as_str().ends_with([' ', '\n'])
        {
            self.lines.push(" ");
        }
        for opener in self.pending.drain(..) {
            match opener {
                Opener::Marker(marker) => self.lines.push(marker),
                Opener::Link => self.lines.push("["),
            }
        }
        is_first
    }

    /// Writes punctuation at the end of the last word.
    pub(super) fn end_word(&mut self, text: &str) {
        self.pending_space = false;
        self.lines.push(text);
    }

    /// Writes something that is no prose: code, a picture.
    pub(super) fn raw(&mut self, text: &str) {
        self.before_word();
        self.lines.push(text);
    }

    /// Opens emphasis.
    pub(super) fn open(&mut self, marker: &'static str) -> Opened {
        let opened = Opened { pending: self.pending.len(), start: 0 };
        if self.is_markdown {
            self.pending.push(Opener::Marker(marker));
        }
        opened
    }

    /// Closes emphasis; where nothing was written in it, there is none.
    pub(super) fn close(&mut self, opened: Opened, marker: &str) {
        if self.pending.len() > opened.pending {
            self.pending.truncate(opened.pending);
        } else if self.is_markdown {
            self.lines.push(marker);
        }
    }

    /// Opens a link.
    pub(super) fn open_link(&mut self) -> Opened {
        let opened = Opened { pending: self.pending.len(), start: self.lines.as_str().len() };
        if self.is_markdown {
            self.pending.push(Opener::Link);
            self.links += 1;
        }
        opened
    }

    /// Closes a link to `target`.
    pub(super) fn close_link(&mut self, opened: Opened, target: &str) {
        if !self.is_markdown {
            return;
        }
        self.links -= 1;
        if self.pending.len() > opened.pending {
            self.pending.truncate(opened.pending);
            return;
        }
        let written = self.lines.as_str().get(opened.start..).unwrap_or_default();
        let is_address =
            written.len() <= target.len() + 4 && written.trim_start().strip_prefix('[') == Some(target);
        if is_address {
            let bracket = opened.start + written.find('[').unwrap_or_default();
            self.lines.truncate(bracket);
            self.lines.push(&format!("<{target}>"));
        } else {
            self.lines.push(&format!("]({target})"));
        }
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{3000}' | '\u{202f}')
}

/// Whether a word has nothing that Markdown could take for its own.
fn is_plain(word: &str) -> bool {
    !word.bytes().any(|byte| matches!(byte, b'*' | b'`' | b'_' | b'<' | b'\\' | b'&' | b'[' | b']' | b'|'))
}
