//! The screen of a program that was given a terminal.

use std::num::NonZeroU16;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: NonZeroU16,
    /// Characters in a line.
    pub columns: NonZeroU16,
}

impl Default for Size {
    fn default() -> Self {
        Self { rows: NonZeroU16::MIN.saturating_add(23), columns: NonZeroU16::MIN.saturating_add(119) }
    }
}

/// What a terminal shows, and what it answers to a program that asks it something.
pub struct Terminal {
    parser: vt100::Parser<Answers>,
}

/// What the program asked of the terminal and must be told, or else it may wait for ever.
#[derive(Debug, Default)]
struct Answers {
    pending: Vec<u8>,
    title: String,
}

/// A program that asks without reading the answers is told no more than this.
const MOST_PENDING: usize = 4096;

impl vt100::Callbacks for Answers {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title.get(..256).unwrap_or(title)).into_owned();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        let asked = parameters.first().and_then(|numbers| numbers.first()).copied().unwrap_or(0);
        let answer = match (first, second, letter, asked) {
            (None, None, 'n', 5) => "\x1b[0n".to_owned(),
            (None, None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", u32::from(row) + 1, u32::from(column) + 1)
            }
            // A VT102, which has no abilities that a program could be tempted to use.
            (None, None, 'c', 0) => "\x1b[?6c".to_owned(),
            (Some(b'>'), None, 'c', 0) => "\x1b[>0;0;0c".to_owned(),
            _ => return,
        };
        if self.pending.len() + answer.len() <= MOST_PENDING {
            self.pending.extend_from_slice(answer.as_bytes());
        }
    }
}

impl Terminal {
    /// An empty screen. What scrolls off it is not kept here: the output as a whole is a
    /// [`Transcript`](super::transcript::Transcript).
    pub fn new(size: Size) -> Self {
        Self { parser: vt100::Parser::new_with_callbacks(size.rows, size.columns, 0, Answers::default()) }
    }

    /// Shows what the program wrote, and returns what must be written back to it.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().pending)
    }

    /// Changes the size. The program is told by the kernel, through its terminal.
    pub fn resize(&mut self, size: Size) {
        self.parser.set_size(size.rows, size.columns);
    }

    /// The lines of the screen without trailing blanks; without the empty ones at its end.
    pub fn screen(&self) -> String {
        // Programs print blanks to erase what was there, and the parser keeps them.
        let contents = self.parser.screen().contents();
        let lines: Vec<&str> = contents.lines().map(|line| line.trim_end_matches(' ')).collect();
        lines.join("\n").trim_end_matches('\n').to_owned()
    }

    /// Where the cursor is: row and column, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    /// Whether the program uses the whole screen, as editors and pagers do.
    pub fn full_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// The window title that the program set; empty if none.
    pub fn title(&self) -> &str {
        &self.parser.callbacks().title
    }
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("screen", &self.screen()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Size, Terminal};

    fn terminal(input: &str) -> Terminal {
        let mut terminal = Terminal::new(Size::default());
        terminal.push(input.as_bytes());
        terminal
    }

    #[test]
    fn a_full_screen_program_shows_its_screen() {
        let shown = terminal("shell\r\n\u{1b}[?1049h\u{1b}[2J\u{1b}[1;1Htop line\u{1b}[3;5Hmiddle");
        assert_eq!(shown.screen(), "top line\n\n    middle");
        assert!(shown.full_screen());
        assert_eq!(shown.cursor(), (2, 10));
    }

    #[test]
    fn blanks_that_only_erase_are_not_shown() {
        let line = format!("~{}\r\n", " ".repeat(60));
        let screen = terminal(&format!("\x1b[?1049h\x1b[H{}  two{}\r\n   ", line.repeat(3), " ".repeat(9)));
        assert_eq!(screen.screen(), "~\n~\n~\n  two");
    }

    #[test]
    fn leaving_the_full_screen_brings_the_lines_back() {
        let shown = terminal("shell\r\n\u{1b}[?1049h\u{1b}[2Jeditor\u{1b}[?1049l");
        assert_eq!(shown.screen(), "shell");
        assert!(!shown.full_screen());
    }

    #[test]
    fn a_question_to_the_terminal_is_answered() {
        let mut terminal = Terminal::new(Size::default());
        assert_eq!(terminal.push(b"ab\x1b[6n"), b"\x1b[1;3R");
        assert_eq!(terminal.push(b"\x1b[c\x1b[5n"), b"\x1b[?6c\x1b[0n");
        assert_eq!(terminal.push(b"text"), b"");
    }

    #[test]
    fn a_flood_of_questions_is_not_kept() {
        let mut terminal = Terminal::new(Size::default());
        assert!(terminal.push("\u{1b}[c".repeat(100_000).as_bytes()).len() <= super::MOST_PENDING);
    }

    #[test]
    fn a_title_is_not_on_the_screen() {
        let shown = terminal("\u{1b}]2;vim\u{7}text");
        assert_eq!((shown.screen().as_str(), shown.title()), ("text", "vim"));
    }
}
