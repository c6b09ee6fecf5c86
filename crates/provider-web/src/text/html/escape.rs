//! What would be taken for Markdown is escaped, and nothing else, so that prose stays as it is written.

/// Writes a word that stands inside a line.
pub(super) fn push_word(out: &mut String, word: &str, in_link: bool, in_cell: bool) {
    let bytes = word.as_bytes();
    let mut kept = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).copied();
        let needs_escape = match byte {
            b'*' | b'`' => true,
            b'_' => is_at_edge(bytes, at),
            b'<' => next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?')),
            b'\\' => next.is_some_and(|next| next.is_ascii_punctuation()),
            b'&' => begins_reference(&bytes[at + 1..]),
            b'[' | b']' => in_link,
            b'|' => in_cell,
            _ => false,
        };
        if needs_escape {
            out.push_str(&word[kept..at]);
            out.push('\\');
            kept = at;
        }
    }
    out.push_str(&word[kept..]);
}

/// Whether `_` is at an edge of a word, where it would begin or end emphasis.
fn is_at_edge(bytes: &[u8], at: usize) -> bool {
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'_')
    };
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    !(is_word(before) && is_word(bytes.get(at + 1)))
}

fn begins_reference(rest: &[u8]) -> bool {
    let name = rest.iter().take(32).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#').count();
    name > 0 && rest.get(name) == Some(&b';')
}

/// Writes the first word of a line, which could begin a block.
pub(super) fn push_first_word(out: &mut String, word: &str, in_link: bool, in_cell: bool) {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &word[digits..];
    if (1..=9).contains(&digits) && matches!(rest, "." | ")") {
        out.push_str(&word[..digits]);
        out.push('\\');
        out.push_str(rest);
        return;
    }
    let all = |c: char| word.chars().all(|other| other == c);
    let is_marker = matches!(word, "-" | "+") || word.starts_with('>');
    let is_rule = word.len() >= 3 && (all('-') || all('=') || all('~'));
    let is_heading = word.len() <= 6 && all('#');
    if is_marker || is_rule || is_heading || word.starts_with("~~~") {
        out.push('\\');
    }
    push_word(out, word, in_link, in_cell);
}

/// The marker around inline code: longer than any run of it inside.
pub(super) fn code_marker(code: &str, shortest: usize) -> String {
    let (mut longest, mut run) = (0, 0);
    for byte in code.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(shortest.max(if longest == 0 { 0 } else { longest + 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, inside: &str, first: &str) {
        let written = |push: fn(&mut String, &str, bool, bool)| {
            let mut out = String::new();
            push(&mut out, word, false, false);
            out
        };
        assert_eq!(
            (written(push_word).as_str(), written(push_first_word).as_str()),
            (inside, first),
            "{word}"
        );
    }

    #[test]
    fn only_what_would_be_markdown_is_escaped() {
        check("plain", "plain", "plain");
        check("snake_case_name", "snake_case_name", "snake_case_name");
        check("_emphasis_", "\\_emphasis\\_", "\\_emphasis\\_");
        check("2*3", "2\\*3", "2\\*3");
        check("a<b", "a\\<b", "a\\<b");
        check("<", "<", "<");
        check("&amp;", "\\&amp;", "\\&amp;");
        check("AT&T", "AT&T", "AT&T");
        check("C:\\temp", "C:\\temp", "C:\\temp");
    }

    #[test]
    fn what_begins_a_block_is_escaped_at_the_beginning_only() {
        check("#", "#", "\\#");
        check("#tag", "#tag", "#tag");
        check("1.", "1.", "1\\.");
        check("1.5", "1.5", "1.5");
        check("-", "-", "\\-");
        check("---", "---", "\\---");
        check(">", ">", "\\>");
        check("-flag", "-flag", "-flag");
    }

    #[test]
    fn code_is_marked_by_more_than_it_holds() {
        assert_eq!(code_marker("a", 1), "`");
        assert_eq!(code_marker("a`b", 1), "``");
        assert_eq!(code_marker("```\nx\n```", 3), "````");
    }
}
