//! Patterns with look-around and back-references, as text: what can be said of them without running them.

/// Whether a pattern that is no plain regular expression may be one with look-around or back-references.
pub(crate) fn is_likely(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!", "(?>", "\\k<", "(?P="].iter().any(|mark| pattern.contains(mark))
        || scan(pattern).any(|part| matches!(part, Part::Escape(escaped) if escaped.is_ascii_digit()))
}

/// Whether the pattern means to go over a line end.
pub(crate) fn crosses_lines(pattern: &str) -> bool {
    pattern.contains('\n')
        || pattern.contains("[\\s\\S]")
        || pattern.contains("(?s")
        || scan(pattern).any(|part| part == Part::Escape('n'))
}

/// Whether the pattern has an upper-case letter that stands for itself.
pub(crate) fn has_upper_case(pattern: &str) -> bool {
    scan(pattern).any(|part| matches!(part, Part::Plain(character) if character.is_uppercase()))
}

/// A regular expression without look-around and back-references that matches wherever `pattern` does, and elsewhere
/// too: assertions are left out, references are anything.
pub(crate) fn relaxed(pattern: &str) -> Option<String> {
    let mut relaxed = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut in_class = 0_usize;
    while let Some(next) = rest.chars().next() {
        let assertion = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|mark| rest.starts_with(mark));
        if in_class == 0 && assertion {
            rest = after_group(rest)?;
            relaxed.push_str("(?:)");
            continue;
        }
        if in_class == 0 && rest.starts_with("(?>") {
            relaxed.push_str("(?:");
            rest = &rest[3..];
            continue;
        }
        if next == '\\' {
            let escaped = rest.chars().nth(1)?;
            if in_class == 0 && escaped.is_ascii_digit() && escaped != '0' {
                relaxed.push_str("(?s:.*)");
                rest = rest[2..].trim_start_matches(|character: char| character.is_ascii_digit());
                continue;
            }
            if matches!(escaped, 'k' | 'g' | 'K' | 'G') {
                return None;
            }
            let length = 1 + escaped.len_utf8();
            relaxed.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match next {
            '[' => in_class += 1,
            ']' => in_class = in_class.saturating_sub(1),
            _ => {}
        }
        relaxed.push(next);
        rest = &rest[next.len_utf8()..];
    }
    Some(relaxed)
}

/// What follows the group that `text` begins with.
fn after_group(text: &str) -> Option<&str> {
    let (mut depth, mut in_class, mut escaped) = (0_usize, false, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[at + 1..]);
                }
            }
            _ => {}
        }
    }
    None
}

/// One character of a pattern, or one with a backslash before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Plain(char),
    Escape(char),
}

fn scan(pattern: &str) -> impl Iterator<Item = Part> {
    let mut characters = pattern.chars();
    std::iter::from_fn(move || match characters.next()? {
        '\\' => Some(characters.next().map_or(Part::Plain('\\'), Part::Escape)),
        other => Some(Part::Plain(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: &str) {
        assert_eq!(relaxed(pattern).as_deref(), Some(expected), "{pattern}");
    }

    #[test]
    fn assertions_are_left_out_and_references_are_anything() {
        check("foo(?!bar)", "foo(?:)");
        check("(?<!#)foobar", "(?:)foobar");
        check(r"(a)\1b", "(a)(?s:.*)b");
        check(r"(?=a(b|[)])c)\(x\)", r"(?:)\(x\)");
        check(r"[(?=x)]\\1", r"[(?=x)]\\1");
        check("(?>ab|a)c", "(?:ab|a)c");
        assert_eq!(relaxed(r"a\Kb"), None);
        assert_eq!(relaxed("(?=a"), None);
    }

    #[test]
    fn upper_case_counts_where_it_stands_for_itself() {
        assert!(has_upper_case("(?!x)Foo"));
        assert!(!has_upper_case(r"(?!x)foo\W\S"));
    }
}
