//! White space that can be seen.

/// A line with its tabs as `→`, and as `·` those spaces that are easy to overlook: at its ends and in runs.
pub(super) fn visible(line: &str) -> String {
    let body = line.trim_matches(' ');
    let lead = line.len() - line.trim_start_matches(' ').len();
    let mut text = "·".repeat(lead);
    let mut chars = body.chars().peekable();
    let mut previous = None;
    while let Some(c) = chars.next() {
        let beside_blank = [previous, chars.peek().copied()].iter().any(|c| matches!(c, Some(' ' | '\t')));
        match c {
            ' ' if beside_blank => text.push('·'),
            ' ' => text.push(' '),
            other => push_visible(&mut text, other),
        }
        previous = Some(c);
    }
    text.push_str(&"·".repeat(line.len() - lead - body.len()));
    text
}

/// A piece of a line with every blank shown.
pub(super) fn all_visible(piece: &str) -> String {
    let mut text = String::new();
    for c in piece.chars() {
        if c == ' ' { text.push('·') } else { push_visible(&mut text, c) }
    }
    text
}

fn push_visible(text: &mut String, c: char) {
    match c {
        '\t' => text.push('→'),
        '\r' => text.push('␍'),
        '\u{a0}' => text.push('⍽'),
        hidden if hidden.is_control() || is_invisible(hidden) => {
            text.push_str(&format!("<{}>", code_point(hidden)))
        }
        other => text.push(other),
    }
}

/// Whether a character takes no room or looks like a plain space.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
        || (c.is_whitespace() && !c.is_ascii())
}

/// `U+00A0`
pub(super) fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}
