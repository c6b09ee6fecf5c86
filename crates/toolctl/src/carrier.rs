//! Texts for agents, as each of them takes them.

use serde_json::json;

use crate::cli::{Carrier, SessionKind};

/// Where the block of a Markdown file begins and ends.
const BEGIN: &str = "<!-- toolctl rules: begin; what is between these marks is written anew -->";
const END: &str = "<!-- toolctl rules: end -->";
/// What a text must not have, lest it be taken for a mark.
const MARK: &str = "<!-- toolctl rules:";
const NO_MARK: &str = "<!-- toolctl rules;";

/// Codex reads so much of a project's AGENTS.md files, in bytes.
const AGENTS_MD_LIMIT: usize = 32 * 1024;

impl Carrier {
    /// The longest text that it carries whole, in bytes.
    pub(crate) fn limit(self) -> Option<usize> {
        match self {
            Self::AgentsMd => Some(AGENTS_MD_LIMIT),
            Self::Codex | Self::Claude | Self::Opencode | Self::Acp | Self::Json => None,
        }
    }

    /// The text as it carries it; an empty text is nothing at all.
    pub(crate) fn wrap(self, text: &str, session: SessionKind) -> String {
        match self {
            Self::Acp if session == SessionKind::Loaded => String::new(),
            _ if text.is_empty() && self != Self::AgentsMd => String::new(),
            Self::Acp => format!("{}\n", json!({"type": "text", "text": text})),
            Self::AgentsMd => block(text),
            Self::Codex | Self::Claude | Self::Opencode | Self::Json => text.to_owned(),
        }
    }
}

/// The block of a Markdown file that holds the text; nothing for no text.
fn block(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("{BEGIN}\n{}{END}\n", text.replace(MARK, NO_MARK)),
    }
}

/// A Markdown file with the text in its block, which is put at the end where there is none, and taken out for no text.
/// Outside of its marks the file stays as it is.
///
/// # Errors
/// The marks of the file do not fit together.
pub(crate) fn into_markdown(file: &str, text: &str) -> Result<String, &'static str> {
    let block = block(text);
    let (begins, ends) = (file.matches(BEGIN).count(), file.matches(END).count());
    match (begins, ends) {
        (0, 0) if block.is_empty() => Ok(file.to_owned()),
        (0, 0) => {
            let gap = match file {
                "" => "",
                file if file.ends_with("\n\n") => "",
                file if file.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            Ok(format!("{file}{gap}{block}"))
        }
        (1, 1) => {
            let (before, rest) = file.split_once(BEGIN).ok_or("the marks are not there")?;
            let (_, after) = rest.split_once(END).ok_or("its end mark stands before its begin mark")?;
            let after = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n')).unwrap_or(after);
            Ok(format!("{before}{block}{after}"))
        }
        _ => Err("it has the marks of a block more than once, or only one of them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file with the text in it; put in a second time it is the same.
    #[track_caller]
    fn check(file: &str, text: &str, expected: &str) {
        let once = into_markdown(file, text).unwrap();
        assert_eq!(once, expected.replace("BEGIN", BEGIN).replace("END", END));
        assert_eq!(into_markdown(&once, text).unwrap(), once);
    }

    #[test]
    fn a_block_is_put_at_the_end_and_found_again() {
        check("", "## a\n\nA\n", "BEGIN\n## a\n\nA\nEND\n");
        check("# Mine", "x\n", "# Mine\n\nBEGIN\nx\nEND\n");
        check("# Mine\n", "x\n", "# Mine\n\nBEGIN\nx\nEND\n");
    }

    #[test]
    fn what_is_outside_of_the_marks_stays_byte_for_byte() {
        let file = format!("# Mine\r\n\r\n{BEGIN}\r\nold\r\n{END}\r\nAfter\r\n\t");
        check(&file, "new\n", "# Mine\r\n\r\nBEGIN\nnew\nEND\nAfter\r\n\t");
        check(&file, "", "# Mine\r\n\r\nAfter\r\n\t");
    }

    #[test]
    fn a_text_cannot_end_its_block() {
        let text = format!("a\n{END}\nb\n");
        let file = into_markdown("", &text).unwrap();
        assert_eq!(into_markdown(&file, "c\n").unwrap(), format!("{BEGIN}\nc\n{END}\n"));
    }

    #[test]
    fn marks_that_do_not_fit_are_refused() {
        assert!(into_markdown(BEGIN, "x\n").is_err());
        assert!(into_markdown(&format!("{END}\n{BEGIN}\n"), "x\n").is_err());
        assert!(into_markdown(&format!("{BEGIN}{END}{BEGIN}{END}"), "x\n").is_err());
    }

    #[test]
    fn acp_is_one_block_in_a_new_session_and_nothing_in_a_loaded_one() {
        let wrapped = Carrier::Acp.wrap("a\n", SessionKind::New);
        assert_eq!(wrapped, "{\"text\":\"a\\n\",\"type\":\"text\"}\n");
        assert_eq!(Carrier::Acp.wrap("a\n", SessionKind::Loaded), "");
        assert_eq!(Carrier::Opencode.wrap("a\n", SessionKind::Loaded), "a\n");
        assert_eq!(Carrier::Acp.wrap("", SessionKind::New), "");
    }
}
