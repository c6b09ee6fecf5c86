//! What exactly differs between the text of the file and the text that was given.

use std::collections::HashSet;

use super::MAX_SHOWN_LINES;
use super::difference::LineDifference;
use super::loose::{loosened, plain};
use super::reason::Reason;
use super::visible::is_invisible;

/// More reasons are not given.
const MAX_REASONS: usize = 10;

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
    /// Adds a reason: the first of its kind, or one of the first few of a kind that is named one by one.
    fn add(&mut self, reason: Reason) {
        let is_alike = |known: &Reason| match (known, &reason) {
            (
                Reason::LookAlike { in_file, given, .. },
                Reason::LookAlike { in_file: other, given: wanted, .. },
            ) => (in_file, given) == (other, wanted),
            _ => std::mem::discriminant(known) == std::mem::discriminant(&reason),
        };
        let most = match reason {
            Reason::TrailingBlanks { .. }
            | Reason::MissingBlankLine { .. }
            | Reason::ExtraBlankLine { .. } => MAX_SHOWN_LINES,
            _ => 1,
        };
        if self.reasons.len() < MAX_REASONS
            && self.reasons.iter().filter(|known| is_alike(known)).count() < most
        {
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

    /// Names how what stands between the blanks at the ends of two lines differs.
    fn inside(&mut self, line: usize, body: &str, given: &str) {
        for odd in only_in(body, given) {
            self.add(Reason::LookAlike { line, in_file: odd, given: counterpart(body, given, odd) });
        }
        for odd in only_in(given, body) {
            let in_file = counterpart(given, body, odd).unwrap_or(plain(odd));
            if !is_look_alike(in_file) {
                self.add(Reason::LookAlike { line, in_file, given: Some(odd) });
            }
        }
        let letters = |text: &str| -> String {
            text.chars().filter(|&c| !c.is_whitespace() && !is_invisible(c)).map(plain).collect()
        };
        self.letters(line, &letters(body), &letters(given));
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

/// Whether a character is easily taken for another.
fn is_look_alike(c: char) -> bool {
    plain(c) != c || is_invisible(c)
}

/// The look-alikes of `text` that `other` does not have, each once.
fn only_in(text: &str, other: &str) -> Vec<char> {
    let mut known: HashSet<char> = other.chars().filter(|&c| is_look_alike(c)).collect();
    text.chars().filter(|&c| is_look_alike(c) && known.insert(c)).collect()
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
