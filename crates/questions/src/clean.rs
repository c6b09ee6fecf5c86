//! Text that a terminal can be trusted with.

use std::iter::Peekable;
use std::str::Chars;

/// The text without escape sequences, control characters and marks that reorder a line. Newlines and tabs stay; other
/// line ends become newlines; blanks around the whole are taken off.
pub fn clean(text: &str) -> String {
    let mut letters = text.chars().peekable();
    let mut cleaned = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => skip_sequence(&mut letters),
            '\u{9b}' => skip_parameters(&mut letters),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' | '\u{2028}' | '\u{2029}' => cleaned.push('\n'),
            '\n' | '\t' => cleaned.push(letter),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {}
            letter if letter.is_control() => {}
            letter => cleaned.push(letter),
        }
    }
    let cleaned = cleaned.trim();
    cleaned.to_owned()
}

/// The same on one line.
pub(crate) fn clean_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Skips what follows an escape character.
fn skip_sequence(letters: &mut Peekable<Chars<'_>>) {
    match letters.next() {
        Some('[') => skip_parameters(letters),
        // Strings for the terminal end at a bell or at ESC \.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(letter) = letters.next() {
                match letter {
                    '\x07' | '\u{9c}' => break,
                    '\x1b' if letters.peek() == Some(&'\\') => {
                        letters.next();
                        break;
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Skips to the letter that ends a control sequence.
fn skip_parameters(letters: &mut Peekable<Chars<'_>>) {
    while letters.next_if(|letter| matches!(letter, '\x20'..='\x3f')).is_some() {}
    letters.next_if(|letter| matches!(letter, '\x40'..='\x7e'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(clean(text), expected);
    }

    #[test]
    fn escape_sequences_and_control_characters_are_removed() {
        check("\x1b[31mred\x1b[0m", "red");
        check("\x1b]0;title\x07text \x1b]8;;http://x\x1b\\link", "text link");
        check("a\x00b\x08c\x7f\u{85}d\u{9b}2Je", "abcde");
        check("\x1b", "");
        check("\x1b[", "");
        check("\x1b]never ends", "");
        check("x\u{202e}gnp.exe", "xgnp.exe");
    }

    #[test]
    fn line_ends_become_newlines() {
        check(" one\r\ntwo\rthree\u{2028}four\n", "one\ntwo\nthree\nfour");
        assert_eq!(clean_line("a\r\n b\tc"), "a b c");
    }
}
