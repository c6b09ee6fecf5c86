//! Texts that fit where clients cut them.

/// Characters of a description or of instructions that every client keeps.
pub(crate) const MOST_CHARACTERS: usize = 2_000;

/// The text, cut to the limit of clients behind its last whole sentence or line, with a mark where something is missing.
pub(crate) fn fit(text: &str) -> String {
    const MARK: &str = " […]";
    let text = text.trim();
    if text.chars().count() <= MOST_CHARACTERS {
        return text.to_owned();
    }
    let end = text.char_indices().nth(MOST_CHARACTERS - MARK.len()).map_or(text.len(), |(end, _)| end);
    let head = &text[..end];
    let sentence = head.rfind(". ").map(|at| at + 1);
    let cut = sentence.max(head.rfind('\n')).filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}{MARK}", text[..cut].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_with_a_sentence_and_a_mark() {
        let text = "This is a sentence. ".repeat(200);
        let cut = fit(&text);
        assert!(cut.chars().count() <= MOST_CHARACTERS);
        assert!(cut.ends_with("This is a sentence. […]"), "{cut}");
        assert_eq!(fit(" short "), "short");
        assert_eq!(fit(&"ä".repeat(5_000)).chars().count(), MOST_CHARACTERS - 2);
    }
}
