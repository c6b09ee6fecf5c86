//! A window of a text, in characters: the next window begins where this one ends, whatever the characters are.

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The part.
    pub content: String,
    /// How many characters come before it.
    pub start: u64,
    /// Where the next part begins, in characters, if there is one.
    pub next_start: Option<u64>,
    /// How many characters the whole text has.
    pub total_chars: u64,
}

/// At most `max_chars` characters of `text`, from `start` on.
pub fn window(text: &str, start: u64, max_chars: u64) -> Window {
    let total_chars = count(text);
    let begin = byte_of(text, start);
    let rest = text.get(begin..).unwrap_or_default();
    let content = rest.get(..byte_of(rest, max_chars)).unwrap_or_default();
    let end = start.saturating_add(count(content));
    let next_start = (end < total_chars).then_some(end);
    Window { content: content.to_owned(), start, next_start, total_chars }
}

fn count(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

/// Where the character with this number begins, or the end of the text.
fn byte_of(text: &str, character: u64) -> usize {
    let character = usize::try_from(character).unwrap_or(usize::MAX);
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_put_together_are_the_text() {
        let text: String = ["€", "a", "𝄞", "é", "e\u{301}", "\n"].into_iter().cycle().take(4_000).collect();
        for size in [1, 3, 7, 1_001, 100_000] {
            let (mut whole, mut start) = (String::new(), 0);
            loop {
                let window = window(&text, start, size);
                assert!(window.content.chars().count() as u64 <= size);
                assert_eq!(window.total_chars, text.chars().count() as u64);
                whole.push_str(&window.content);
                match window.next_start {
                    Some(next) => start = next,
                    None => break,
                }
            }
            assert!(whole == text, "in pages of {size}");
        }
    }

    #[test]
    fn a_start_behind_the_end_is_an_empty_last_page() {
        let expected = Window { content: String::new(), start: 9, next_start: None, total_chars: 3 };
        assert_eq!(window("€€€", 9, 5), expected);
        assert_eq!(window("", 0, 5).next_start, None);
        assert_eq!(window("€€€", 0, u64::MAX).content, "€€€");
    }
}
