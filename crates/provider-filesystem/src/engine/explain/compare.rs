//! What exactly differs between the text of the file and the text that was given.

use std::fmt;

use super::MAX_SHOWN_LINES;
use super::loose::{loosened, plain};
use super::visible::{all_visible, code_point, visible};

/// A reason why a text does not occur, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Line numbers were copied along with the text.
    LineNumbers,
    /// One indents with tabs, the other with spaces.
    TabsAndSpaces {
        /// The first such line of the file.
        line: usize,
        /// Whether it is the file that has the tabs.
        tabs_in_file: bool,
    },
    /// A line is indented differently.
    Indentation {
        /// The first such line of the file.
        line: usize,
        /// Columns in the file.
        in_file: usize,
        /// Columns in the text that was given.
        given: usize,
    },
    /// A line of the file has blanks at its end that were not given.
    TrailingBlanks {
        /// The line of the file.
        line: usize,
        /// How many.
        count: usize,
        /// What they are: `space`, `tab` or `blank`.
        what: &'static str,
    },
    /// The text that was given has blanks at the end of a line that the file has not.
    ExtraTrailingBlanks {
        /// The line of the file.
        line: usize,
        /// How many.
        count: usize,
    },
    /// The file has a blank line that was not given.
    MissingBlankLine {
        /// The line of the file that is blank.
        line: usize,
    },
    /// The text that was given has a blank line that the file has not.
    ExtraBlankLine {
        /// The line of the file that follows it.
        line: usize,
    },
    /// Upper and lower case differ.
    Case {
        /// The first such line of the file.
        line: usize,
    },
    /// A character only looks like the one that was given.
    LookAlike {
        /// The first such line of the file.
        line: usize,
        /// The character in the file.
        in_file: char,
        /// The character that was given; `None` when there is none at the place.
        given: Option<char>,
    },
    /// The same characters are composed differently (`é` as one code point or as two).
    Composition {
        /// The first such line of the file.
        line: usize,
    },
    /// Letters differ in their accents.
    Accents {
        /// The first such line of the file.
        line: usize,
    },
    /// The text that was given writes line ends, tabs or quotes as escape sequences.
    Escapes,
    /// White space inside a line differs.
    Spacing {
        /// The first such line of the file.
        line: usize,
    },
    /// The lines are broken at other places.
    LineBreaks {
        /// The line of the file from which on they differ.
        line: usize,
    },
    /// The text begins and ends as given and differs in between.
    Middle {
        /// The first line of the file that differs.
        first: usize,
        /// The last.
        last: usize,
    },
    /// The text itself differs.
    Words {
        /// How many lines differ.
        lines: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineNumbers => f.write_str(
                "it looks like it includes read_file's line numbers: they are not part of the file",
            ),
            Self::TabsAndSpaces { line, tabs_in_file: true } => {
                write!(f, "line {line} is indented with tabs in the file, with spaces in old_str")
            }
            Self::TabsAndSpaces { line, tabs_in_file: false } => {
                write!(f, "line {line} is indented with spaces in the file, with tabs in old_str")
            }
            Self::Indentation { line, in_file, given } => {
                write!(
                    f,
                    "the indentation differs: line {line} has {in_file} blanks in the file, {given} in old_str"
                )
            }
            Self::TrailingBlanks { line, count, what } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(f, "line {line} has {count} trailing {what}{plural} in the file, old_str has not")
            }
            Self::ExtraTrailingBlanks { line, count } => {
                let plural = if *count == 1 { "" } else { "s" };
                write!(f, "old_str has {count} trailing blank{plural} where line {line} of the file has none")
            }
            Self::MissingBlankLine { line } => {
                write!(f, "line {line} of the file is blank, old_str lacks a blank line there")
            }
            Self::ExtraBlankLine { line } => {
                write!(f, "old_str has a blank line before line {line} that the file does not have")
            }
            Self::Case { line } => write!(f, "upper and lower case differ in line {line}"),
            Self::LookAlike { line, in_file, given: Some(given) } => write!(
                f,
                "line {line} has {} ({}) in the file where old_str has {} ({})",
                name(*in_file),
                code_point(*in_file),
                name(*given),
                code_point(*given)
            ),
            Self::LookAlike { line, in_file, given: None } => {
                write!(
                    f,
                    "line {line} has {} ({}) in the file that old_str lacks",
                    name(*in_file),
                    code_point(*in_file)
                )
            }
            Self::Composition { line } => {
                write!(f, "line {line} has accented letters composed of other code points than in old_str")
            }
            Self::Accents { line } => write!(f, "letters of line {line} have other accents in the file"),
            Self::Escapes => f.write_str(
                "old_str has a backslash and a letter (such as \\n) where the file has the character itself",
            ),
            Self::Spacing { line } => write!(f, "the white space inside line {line} differs"),
            Self::LineBreaks { line } => write!(f, "the lines are broken differently from line {line} on"),
            Self::Middle { first, last } => {
                write!(f, "it begins and ends as in the file, but lines {first} to {last} in between differ")
            }
            Self::Words { lines: 1 } => f.write_str("one line differs"),
            Self::Words { lines } => write!(f, "{lines} lines differ"),
        }
    }
}

fn name(c: char) -> String {
    match c {
        '\u{a0}' => "a no-break space".to_owned(),
        ' ' => "a space".to_owned(),
        '‘' | '’' | '“' | '”' => format!("the curly quote {c}"),
        '–' | '—' => format!("the long dash {c}"),
        invisible if super::visible::is_invisible(invisible) => "an invisible character".to_owned(),
        other => other.to_string(),
    }
}

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
                if loosened(&in_file) != loosened(&given) {
                    write!(f, "\n  change old_str so: {}", character_diff(&given, &in_file))?;
                }
                Ok(())
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

/// One line with what to take away as `[-…-]` and what to add as `{+…+}`.
fn character_diff(from: &str, to: &str) -> String {
    use similar::{ChangeTag, TextDiff};
    let diff = TextDiff::from_chars(from, to);
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
    text
}

fn visible_inside(run: &str) -> String {
    run.chars()
        .map(|c| if c == ' ' { " ".to_owned() } else { all_visible(c.encode_utf8(&mut [0; 4])) })
        .collect()
}

/// The outcome of a comparison.
pub(super) struct Compared {
    pub(super) reasons: Vec<Reason>,
    pub(super) differences: Vec<LineDifference>,
}

/// Compares a piece of the file that begins in `start_line` with the text that was given.
pub(super) fn compare(in_file: &str, given: &str, start_line: usize, is_loose_match: bool) -> Compared {
    let mut compared = Compared { reasons: Vec::new(), differences: Vec::new() };
    let file_lines: Vec<&str> = in_file.split('\n').collect();
    let given_lines: Vec<&str> = given.split('\n').collect();
    if is_loose_match {
        compared.walk_loose(&file_lines, &given_lines, start_line);
    } else {
        compared.walk_words(in_file, given, start_line);
    }
    compared
}

impl Compared {
    fn add(&mut self, reason: Reason) {
        let is_known = |known: &Reason| std::mem::discriminant(known) == std::mem::discriminant(&reason);
        // Trailing blanks and blank lines are named one by one, the rest by its first line.
        let most = match reason {
            Reason::TrailingBlanks { .. }
            | Reason::MissingBlankLine { .. }
            | Reason::ExtraBlankLine { .. } => MAX_SHOWN_LINES,
            _ => 1,
        };
        if self.reasons.iter().filter(|known| is_known(known)).count() < most {
            self.reasons.push(reason);
        }
    }

    fn show(&mut self, line: Option<usize>, in_file: Option<&str>, given: Option<&str>) {
        if self.differences.len() < MAX_SHOWN_LINES {
            self.differences.push(LineDifference {
                line,
                in_file: in_file.map(str::to_owned),
                given: given.map(str::to_owned),
            });
        }
    }

    /// Walks over two texts that differ in nothing but blanks, case and look-alikes.
    fn walk_loose(&mut self, file: &[&str], given: &[&str], start_line: usize) {
        let (mut at, mut given_at) = (0, 0);
        while let (Some(one), Some(two)) = (file.get(at), given.get(given_at)) {
            let line = start_line + at;
            if loosened(one) == loosened(two) {
                if one != two {
                    self.pair(line, one, two);
                    self.show(Some(line), Some(one), Some(two));
                }
                at += 1;
                given_at += 1;
            } else if one.trim().is_empty() {
                self.add(Reason::MissingBlankLine { line });
                at += 1;
            } else if two.trim().is_empty() {
                self.add(Reason::ExtraBlankLine { line });
                given_at += 1;
            } else {
                self.add(Reason::LineBreaks { line });
                self.show(Some(line), Some(one), Some(two));
                return;
            }
        }
        for (extra, _) in file.iter().enumerate().skip(at) {
            self.add(Reason::MissingBlankLine { line: start_line + extra });
        }
        for _ in given.iter().skip(given_at) {
            self.add(Reason::ExtraBlankLine { line: start_line + at });
        }
    }

    /// Names every way in which two lines that are loosely the same differ.
    fn pair(&mut self, line: usize, in_file: &str, given: &str) {
        let indent = |text: &'_ str| text.len() - text.trim_start_matches([' ', '\t']).len();
        let ((lead, body), (given_lead, given_body)) =
            (in_file.split_at(indent(in_file)), given.split_at(indent(given)));
        if lead != given_lead {
            self.add(match (lead.contains('\t'), given_lead.contains('\t')) {
                (true, false) if !given_lead.is_empty() => Reason::TabsAndSpaces { line, tabs_in_file: true },
                (false, true) if !lead.is_empty() => Reason::TabsAndSpaces { line, tabs_in_file: false },
                _ => Reason::Indentation { line, in_file: lead.len(), given: given_lead.len() },
            });
        }
        let core = |text: &'_ str| text.trim_end_matches([' ', '\t']).len();
        let ((body, trail), (given_body, given_trail)) =
            (body.split_at(core(body)), given_body.split_at(core(given_body)));
        if trail.len() > given_trail.len() {
            let what = match (trail.contains(' '), trail.contains('\t')) {
                (true, false) => "space",
                (false, true) => "tab",
                _ => "blank",
            };
            self.add(Reason::TrailingBlanks { line, count: trail.len() - given_trail.len(), what });
        } else if trail != given_trail {
            self.add(Reason::ExtraTrailingBlanks { line, count: given_trail.len() - trail.len() });
        }
        self.inside(line, body, given_body);
    }

    fn inside(&mut self, line: usize, body: &str, given: &str) {
        let is_blank = |c: char| c.is_ascii_whitespace();
        let solid = |text: &str| text.chars().filter(|&c| !is_blank(c)).collect::<Vec<_>>();
        let (one, two) = (solid(body), solid(given));
        let look_alike = |c: char| plain(c) != c || super::visible::is_invisible(c);
        if let Some(odd) = one.iter().copied().find(|&c| look_alike(c) && !two.contains(&c)) {
            let given = counterpart(body, given, odd);
            self.add(Reason::LookAlike { line, in_file: odd, given });
        } else if let Some(odd) = two.iter().copied().find(|&c| look_alike(c) && !one.contains(&c)) {
            let in_file = counterpart(given, body, odd).unwrap_or(plain(odd));
            self.add(Reason::LookAlike { line, in_file, given: Some(odd) });
        }
        let seen = |chars: &[char]| chars.iter().filter(|&&c| !look_alike(c)).copied().collect::<String>();
        let (one, two) = (seen(&one), seen(&two));
        self.letters(line, &one, &two);
        if spaces_differ(body, given) {
            self.add(Reason::Spacing { line });
        }
    }

    /// Names how two lines differ that have the same letters but for case, accents and composition.
    fn letters(&mut self, line: usize, in_file: &str, given: &str) {
        use unicode_normalization::UnicodeNormalization as _;
        use unicode_normalization::char::is_combining_mark;
        if in_file == given {
            return;
        }
        let (one, two): (String, String) = (in_file.nfc().collect(), given.nfc().collect());
        if one == two {
            return self.add(Reason::Composition { line });
        }
        let (one, two) = (one.to_lowercase(), two.to_lowercase());
        if one == two {
            return self.add(Reason::Case { line });
        }
        let bare = |text: &str| text.nfd().filter(|&c| !is_combining_mark(c)).collect::<String>();
        if bare(&one) == bare(&two) {
            self.add(Reason::Accents { line });
        }
    }

    /// Compares two texts whose words differ, line by line.
    fn walk_words(&mut self, in_file: &str, given: &str, start_line: usize) {
        use imara_diff::{Algorithm, Diff, InternedInput};
        let file: Vec<&str> = in_file.lines().collect();
        let wanted: Vec<&str> = given.lines().collect();
        let mut input = InternedInput::default();
        input.update_before(file.iter().copied());
        input.update_after(wanted.iter().copied());
        let diff = Diff::compute(Algorithm::Histogram, &input);
        let mut differing = 0;
        let mut range: Option<(usize, usize)> = None;
        for hunk in diff.hunks() {
            let before = hunk.before.start as usize..hunk.before.end as usize;
            let after = hunk.after.start as usize..hunk.after.end as usize;
            differing += before.len().max(after.len());
            let last = before.end.max(before.start + 1) - 1;
            range = Some((range.map_or(before.start, |(first, _)| first), last));
            for step in 0..before.len().max(after.len()) {
                let at = Some(before.start + step).filter(|at| before.contains(at));
                let given_at = Some(after.start + step).filter(|at| after.contains(at));
                self.show(
                    at.map(|at| start_line + at),
                    at.and_then(|at| file.get(at)).copied(),
                    given_at.and_then(|at| wanted.get(at)).copied(),
                );
            }
        }
        match range {
            Some((first, last)) if first > 0 && last + 1 < file.len() => {
                self.add(Reason::Middle { first: start_line + first, last: start_line + last });
            }
            Some(_) => self.add(Reason::Words { lines: differing }),
            None => {}
        }
    }
}

/// The character of `other` that stands where `odd` stands in `text`, if it is one that looks like it.
fn counterpart(text: &str, other: &str, odd: char) -> Option<char> {
    let position = text.chars().position(|c| c == odd)?;
    let there = other.chars().nth(position)?;
    let alike = plain(there) == plain(odd) || (there.is_whitespace() && odd.is_whitespace());
    alike.then_some(there)
}

/// Whether the blanks between the words of two lines differ.
fn spaces_differ(one: &str, two: &str) -> bool {
    words_and_gaps(one) != words_and_gaps(two)
}

/// The words of a line, loosened, each with the blanks after it. A no-break space counts as a space: it is a
/// look-alike, not another width.
fn words_and_gaps(line: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for piece in line.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let gap = piece.get(word.len()..).unwrap_or_default();
        let gap = if gap == "\t" { gap } else { gap.chars().next().map_or("", |_| " ") };
        match parts.last_mut() {
            Some((_, blanks)) if word.is_empty() => blanks.push_str(gap),
            _ => parts.push((loosened(word), gap.to_owned())),
        }
    }
    parts
}
