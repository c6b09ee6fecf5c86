//! Text from a provider, made harmless for a terminal.

use std::borrow::Cow;

/// The text with everything a terminal would obey written out, except newlines and tabs.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    written_out(text, |letter| !matches!(letter, '\n' | '\t') && is_dangerous(letter))
}

/// Like [`safe`], for places that must stay on one line: newlines and tabs are written out too.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    written_out(text, is_dangerous)
}

fn written_out(text: &str, dangerous: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&dangerous) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if !dangerous(letter) => out.push(letter),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if u32::from(letter) < 0x100 => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
            letter => out.extend(letter.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Control characters, and the marks that make a line read in another order than it is written.
fn is_dangerous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}
