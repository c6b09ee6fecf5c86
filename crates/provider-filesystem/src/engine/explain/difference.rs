//! Two versions of a line, shown so that the difference can be seen.

use std::fmt;

use super::loose::loosened;
use super::visible::{all_visible, visible};

/// A line that differs, in the file and as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineDifference {
    /// Its number in the file; `None` when the file has no such line.
    pub line: Option<usize>,
    /// The line in the file, without its ending.
    pub in_file: Option<String>,
    /// The line that was given, without its ending.
    pub given: Option<String>,
}

/// Shows both lines with their white space visible and, where words differ, the characters that do.
impl fmt::Display for LineDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        match (&self.in_file, &self.given) {
            (Some(in_file), Some(given)) => {
                let (in_file, given) = clip_pair(in_file, given);
                write!(f, "  file {number}: {}\n  old_str: {}", visible(&in_file), visible(&given))?;
                let differs_in_words = loosened(&in_file) != loosened(&given);
                match character_diff(&given, &in_file).filter(|_| differs_in_words) {
                    Some(diff) => write!(f, "\n  change old_str so: {diff}"),
                    None => Ok(()),
                }
            }
            (Some(in_file), None) => {
                write!(f, "  file {number}: {} (not in old_str)", visible(&clip(in_file)))
            }
            (None, Some(given)) => write!(f, "  old_str: {} (not in the file)", visible(&clip(given))),
            (None, None) => Ok(()),
        }
    }
}

const MAX_SHOWN_CHARS: usize = 300;

fn clip(line: &str) -> String {
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Two long lines, from shortly before where they begin to differ.
fn clip_pair(one: &str, two: &str) -> (String, String) {
    const LEAD: usize = 40;
    if one.len().max(two.len()) <= MAX_SHOWN_CHARS {
        return (one.to_owned(), two.to_owned());
    }
    let same = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
    let skip = same.saturating_sub(LEAD);
    let from = |line: &str| {
        let rest: String = line.chars().skip(skip).collect();
        let lead = if skip > 0 { "…" } else { "" };
        format!("{lead}{}", clip(&rest))
    };
    (from(one), from(two))
}

/// One line with what to take away as `[-…-]` and what to add as `{+…+}`; `None` for lines that have too little in
/// common for that to be of use.
fn character_diff(from: &str, to: &str) -> Option<String> {
    use similar::{ChangeTag, TextDiff};
    const LEAST_RATIO: f32 = 0.6;
    let diff = TextDiff::from_chars(from, to);
    if diff.ratio() < LEAST_RATIO {
        return None;
    }
    let mut text = String::new();
    let mut changes = diff.iter_all_changes().peekable();
    while let Some(change) = changes.next() {
        let tag = change.tag();
        let mut run = change.value().to_owned();
        while let Some(next) = changes.next_if(|next| next.tag() == tag) {
            run.push_str(next.value());
        }
        match tag {
            ChangeTag::Equal => text.push_str(&visible_inside(&run)),
            ChangeTag::Delete => text.push_str(&format!("[-{}-]", all_visible(&run))),
            ChangeTag::Insert => text.push_str(&format!("{{+{}+}}", all_visible(&run))),
        }
    }
    Some(text)
}

fn visible_inside(run: &str) -> String {
    run.chars()
        .map(|c| if c == ' ' { " ".to_owned() } else { all_visible(c.encode_utf8(&mut [0; 4])) })
        .collect()
}
