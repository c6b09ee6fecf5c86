//! What a program writes to its console, kept within bounds whatever the child sends.

/// Says that there was more.
const NOTICE: &str = "[console truncated at 64 KiB]";

/// Text that stops growing.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    text: String,
    room: usize,
    full: bool,
}

impl Console {
    /// An empty console that keeps so many bytes.
    pub(crate) fn new(room: usize) -> Self {
        Self { text: String::new(), room, full: false }
    }

    /// Adds a line. Answers whether all of it was kept.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if self.full {
            return false;
        }
        let left = self.room - self.text.len();
        if line.len() < left {
            self.text.push_str(line);
            self.text.push('\n');
            return true;
        }
        self.full = true;
        let kept = &line[..line.floor_char_boundary(left.saturating_sub(1))];
        if !kept.is_empty() {
            self.text.push_str(kept);
            self.text.push('\n');
        }
        false
    }

    /// All of it, ending in the notice where something is missing, without a newline at the end.
    pub(crate) fn text(&self) -> String {
        let notice = if self.full { NOTICE } else { "" };
        let mut text = format!("{}{notice}", self.text);
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_console_says_so_and_splits_no_character() {
        let mut console = Console::new(10);
        assert!(console.line("abc") && !console.line("dääää") && !console.line("x"));
        assert_eq!(console.text(), "abc\ndää\n[console truncated at 64 KiB]");
        let mut exact = Console::new(8);
        assert!(exact.line("abc") && exact.line("def"));
        assert_eq!(exact.text(), "abc\ndef");
    }
}
