//! Terminal control sequences, told apart from text.

/// What a program asked of the terminal it thinks it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// Printable text without control characters.
    Text(&'a str),
    /// A control character of its own: a C0 character, DEL, or a C1 character.
    Control(char),
    /// `ESC` and a final character, with what stands between.
    Escape(Option<char>, char),
    /// `ESC [`, a private marker or none, numbers (0 where left out), and the final character.
    Csi(Option<char>, &'a [u16], char),
}

/// Numbers of a sequence beyond this many are not looked at.
const PARAMETERS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    Csi,
    /// A title, hyperlink or the like: everything up to its end is dropped. A line end ends it too, so that a
    /// sequence without an end takes no more than its line.
    Title,
    /// A device string, for example an image: as before, but it may have many lines.
    Device,
    /// `ESC` within a string: with `\` it ends, with anything else a new sequence begins.
    StringEscape,
}

/// Takes text apart, one stream at a time. Sequences may be cut anywhere between two calls.
///
/// Titles, hyperlinks and other strings for the terminal's own use are dropped here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Escapes {
    state: State,
    marker: Option<char>,
    numbers: Vec<u16>,
}

impl Escapes {
    /// Takes the next text apart.
    pub(crate) fn push(&mut self, mut text: &str, mut emit: impl FnMut(Token<'_>)) {
        while !text.is_empty() {
            if self.state == State::Ground {
                let plain = text.find(is_control).unwrap_or(text.len());
                let (run, rest) = text.split_at(plain);
                if !run.is_empty() {
                    emit(Token::Text(run));
                }
                text = rest;
            }
            let mut characters = text.chars();
            if let Some(character) = characters.next() {
                self.step(character, &mut emit);
            }
            text = characters.as_str();
        }
    }

    fn step(&mut self, character: char, emit: &mut impl FnMut(Token<'_>)) {
        match (self.state, character) {
            (State::Title, '\n') => {
                self.state = State::Ground;
                emit(Token::Control('\n'));
            }
            (State::Title | State::Device, '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}') => {
                self.state = State::Ground
            }
            (State::Title | State::Device, '\u{1b}') => self.state = State::StringEscape,
            (State::Title | State::Device, _) => {}
            (State::StringEscape, '\\') => self.state = State::Ground,
            (_, '\u{1b}') => self.begin(State::Escape),
            (_, '\u{9b}') => self.begin(State::Csi),
            (_, '\u{90}') => self.begin(State::Device),
            (_, '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => self.begin(State::Title),
            (_, '\u{18}' | '\u{1a}') => self.state = State::Ground,
            // Control characters act also within a sequence, as they do on a terminal.
            (_, control) if is_control(control) => emit(Token::Control(control)),
            (State::Escape | State::StringEscape, character) => self.escape(character, emit),
            (State::Csi, character) => self.csi(character, emit),
            (State::Ground, character) => emit(Token::Text(character.encode_utf8(&mut [0; 4]))),
        }
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.marker = None;
        self.numbers.clear();
    }

    fn escape(&mut self, character: char, emit: &mut impl FnMut(Token<'_>)) {
        match character {
            '[' if self.marker.is_none() => self.begin(State::Csi),
            'P' if self.marker.is_none() => self.begin(State::Device),
            ']' | 'X' | '^' | '_' if self.marker.is_none() => self.begin(State::Title),
            ' '..='/' => {
                self.state = State::Escape;
                self.marker = Some(character);
            }
            _ => {
                emit(Token::Escape(self.marker, character));
                self.state = State::Ground;
            }
        }
    }

    fn csi(&mut self, character: char, emit: &mut impl FnMut(Token<'_>)) {
        match character {
            '0'..='9' => {
                let digit = u16::try_from(u32::from(character) - u32::from('0')).unwrap_or(0);
                if self.numbers.is_empty() {
                    self.numbers.push(0);
                }
                if let Some(number) = self.numbers.last_mut() {
                    *number = number.saturating_mul(10).saturating_add(digit);
                }
            }
            ';' | ':' => {
                if self.numbers.is_empty() {
                    self.numbers.push(0);
                }
                if self.numbers.len() <= PARAMETERS {
                    self.numbers.push(0);
                }
            }
            '<'..='?' | ' '..='/' => self.marker = Some(character),
            _ => {
                let known = self.numbers.get(..PARAMETERS).unwrap_or(&self.numbers);
                emit(Token::Csi(self.marker, known, character));
                self.state = State::Ground;
            }
        }
    }
}

/// C0, DEL and C1.
fn is_control(character: char) -> bool {
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

#[cfg(test)]
mod tests {
    use super::{Escapes, Token};

    /// The tokens as words, with text joined.
    fn check(pieces: &[&str], expected: &[&str]) {
        let mut words: Vec<String> = Vec::new();
        let mut escapes = Escapes::default();
        for piece in pieces {
            escapes.push(piece, |token| match token {
                Token::Text(text) => match words.last_mut() {
                    Some(last) if last.starts_with('"') => last.push_str(text),
                    _ => words.push(format!("\"{text}")),
                },
                other => words.push(format!("{other:?}")),
            });
        }
        assert_eq!(words, expected);
    }

    #[test]
    fn colours_and_moves_are_sequences() {
        check(
            &["a\u{1b}[1;31mb\u{1b}[K\u{1b}[?25l"],
            &["\"a", "Csi(None, [1, 31], 'm')", "\"b", "Csi(None, [], 'K')", "Csi(Some('?'), [25], 'l')"],
        );
        check(&["\u{1b}7\u{1b}(0"], &["Escape(None, '7')", "Escape(Some('('), '0')"]);
    }

    #[test]
    fn a_sequence_may_be_cut_anywhere() {
        let whole = "x\u{1b}[3;12Hy\u{1b}]8;;http://example.org\u{1b}\\link\u{1b}]8;;\u{7}z";
        let expected = ["\"x", "Csi(None, [3, 12], 'H')", "\"ylinkz"];
        for cut in 0..=whole.len() {
            check(&[&whole[..cut], &whole[cut..]], &expected);
        }
    }

    #[test]
    fn titles_and_device_strings_are_dropped() {
        check(&["\u{1b}]0;title\u{7}a\u{1b}Pq#0\u{1b}\\b\u{1b}_x\u{9c}c"], &["\"abc"]);
    }

    #[test]
    fn a_string_without_an_end_gives_way_to_the_next_sequence() {
        check(&["\u{1b}]0;title\u{1b}[31mred"], &["Csi(None, [31], 'm')", "\"red"]);
        check(&["\u{1b}]0;title\nnext"], &["Control('\\n')", "\"next"]);
    }

    #[test]
    fn huge_numbers_saturate() {
        check(&["\u{1b}[99999999999C"], &["Csi(None, [65535], 'C')"]);
        check(
            &[&format!("\u{1b}[{}m", "1;".repeat(100))],
            &["Csi(None, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 'm')"],
        );
    }
}
