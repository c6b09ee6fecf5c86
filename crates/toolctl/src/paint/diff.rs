//! Diffs: a plain unified diff for pipes, with line numbers and emphasised words on a colour terminal.

use harness_proto::render::v1 as pb;
use similar::{Algorithm, ChangeTag, TextDiff};

use super::{Ink, Look, safe};

/// The diff, line by line.
pub(super) fn lines(diff: &pb::DiffNode, look: Look) -> Vec<String> {
    if diff.hunks.is_empty() {
        return vec![look.ink(Ink::Dim, "(no difference)")];
    }
    let digits = diff.hunks.iter().map(last_number).max().unwrap_or(0).to_string().len();
    diff.hunks
        .iter()
        .flat_map(|hunk| if look.colour { coloured(hunk, digits, look) } else { plain(hunk) })
        .collect()
}

fn last_number(hunk: &pb::DiffHunk) -> i32 {
    let end = |start: i32, lines: i32| start.saturating_add(lines);
    end(hunk.old_start, hunk.old_lines).max(end(hunk.new_start, hunk.new_lines))
}

fn header(hunk: &pb::DiffHunk) -> String {
    let range =
        |start: i32, lines: i32| if lines == 1 { start.to_string() } else { format!("{start},{lines}") };
    let (old, new) = (range(hunk.old_start, hunk.old_lines), range(hunk.new_start, hunk.new_lines));
    format!("@@ -{old} +{new} @@")
}

fn plain(hunk: &pb::DiffHunk) -> Vec<String> {
    let line = |line: &pb::DiffLine| format!("{}{}", sign(line.op()), safe_line(&line.text));
    std::iter::once(header(hunk)).chain(hunk.lines.iter().map(line)).collect()
}

fn sign(op: pb::DiffLineOp) -> &'static str {
    match op {
        pb::DiffLineOp::Add => "+",
        pb::DiffLineOp::Remove => "-",
        pb::DiffLineOp::Context => " ",
        pb::DiffLineOp::Unspecified => "?",
    }
}

/// A line of a diff has no terminator, so whatever ends a line inside it is shown.
fn safe_line(text: &str) -> String {
    safe(text).replace('\n', "\\n")
}

fn coloured(hunk: &pb::DiffHunk, digits: usize, look: Look) -> Vec<String> {
    let mut numbers = Numbers { old: hunk.old_start, new: hunk.new_start, digits };
    let mut out = vec![look.ink(Ink::Cyan, &header(hunk))];
    let mut rest = hunk.lines.as_slice();
    while let Some(first) = rest.first() {
        let removed = run(rest, pb::DiffLineOp::Remove);
        let added = run(&rest[removed..], pb::DiffLineOp::Add);
        if removed + added == 0 {
            let gutter = look.ink(Ink::Dim, &numbers.gutter(first.op()));
            out.push(format!("{gutter} {}{}", sign(first.op()), safe_line(&first.text)));
            rest = &rest[1..];
            continue;
        }
        let (block, after) = rest.split_at(removed + added);
        out.extend(replacement(block, removed, &mut numbers, look));
        rest = after;
    }
    out
}

/// How many lines at the front have this operation.
fn run(lines: &[pb::DiffLine], op: pb::DiffLineOp) -> usize {
    lines.iter().take_while(|line| line.op() == op).count()
}

/// The line numbers beside a hunk.
struct Numbers {
    old: i32,
    new: i32,
    digits: usize,
}

impl Numbers {
    fn gutter(&mut self, op: pb::DiffLineOp) -> String {
        let digits = self.digits;
        let mut next = |shown: bool, number: fn(&mut Self) -> &mut i32| {
            if !shown {
                return " ".repeat(digits);
            }
            let number = number(self);
            let text = format!("{number:>digits$}");
            *number = number.saturating_add(1);
            text
        };
        let old = next(op != pb::DiffLineOp::Add, |numbers| &mut numbers.old);
        let new = next(op != pb::DiffLineOp::Remove, |numbers| &mut numbers.new);
        format!("{old} {new} │")
    }
}

/// Removed lines and the added ones that follow them. Where their counts agree they are taken for changed
/// lines, and the words that differ are emphasised.
fn replacement(block: &[pb::DiffLine], removed: usize, numbers: &mut Numbers, look: Look) -> Vec<String> {
    let (old, new) = block.split_at(removed);
    let pairs: Vec<Option<Emphasis>> = if old.len() == new.len() {
        old.iter().zip(new).map(|(old, new)| emphasis(&old.text, &new.text)).collect()
    } else {
        vec![None; old.len().max(new.len())]
    };
    let mut out = Vec::with_capacity(block.len());
    for (line, pair) in old.iter().zip(&pairs) {
        out.push(changed(line, pair.as_ref().map(|pair| &pair.old), numbers, look));
    }
    for (line, pair) in new.iter().zip(&pairs) {
        out.push(changed(line, pair.as_ref().map(|pair| &pair.new), numbers, look));
    }
    out
}

fn changed(line: &pb::DiffLine, words: Option<&Vec<Word>>, numbers: &mut Numbers, look: Look) -> String {
    let (ink, strong) = match line.op() {
        pb::DiffLineOp::Add => (Ink::Green, Ink::GreenReversed),
        _ => (Ink::Red, Ink::RedReversed),
    };
    let gutter = look.ink(Ink::Dim, &numbers.gutter(line.op()));
    let mut out = format!("{gutter} {}", look.ink(ink, sign(line.op())));
    match words {
        None => out.push_str(&look.ink(ink, &safe_line(&line.text))),
        Some(words) => {
            for (text, differs) in words {
                out.push_str(&look.ink(if *differs { strong } else { ink }, &safe_line(text)));
            }
        }
    }
    out
}

/// A piece of a line, and whether it differs from the other side.
type Word = (String, bool);

#[derive(Clone)]
struct Emphasis {
    old: Vec<Word>,
    new: Vec<Word>,
}

/// Longer lines are not compared word by word.
const LONGEST_COMPARED: usize = 2_000;
/// Lines that share less than this part of their letters are different lines, not a changed one.
const LEAST_IN_COMMON: f64 = 0.4;

fn emphasis(old: &str, new: &str) -> Option<Emphasis> {
    if old.len().max(new.len()) > LONGEST_COMPARED {
        return None;
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_unicode_words(old, new);
    let mut out = Emphasis { old: Vec::new(), new: Vec::new() };
    for change in diff.iter_all_changes() {
        let word = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                push(&mut out.old, word, false);
                push(&mut out.new, word, false);
            }
            ChangeTag::Delete => push(&mut out.old, word, true),
            ChangeTag::Insert => push(&mut out.new, word, true),
        }
    }
    let common = letters(out.old.iter().filter(|(_, differs)| !differs).map(|(text, _)| text.as_str()));
    let longest = letters([old]).max(letters([new]));
    (common as f64 >= LEAST_IN_COMMON * longest as f64).then_some(out)
}

fn letters<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().flat_map(str::chars).filter(|letter| !letter.is_whitespace()).count()
}

fn push(words: &mut Vec<Word>, word: &str, differs: bool) {
    match words.last_mut() {
        Some((text, same)) if *same == differs => text.push_str(word),
        _ => words.push((word.to_owned(), differs)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(start: i32, text: &[&str]) -> pb::DiffHunk {
        let line = |text: &&str| {
            let (sign, text) = text.split_at(1);
            let op = match sign {
                "+" => pb::DiffLineOp::Add,
                "-" => pb::DiffLineOp::Remove,
                _ => pb::DiffLineOp::Context,
            };
            pb::DiffLine { op: op.into(), text: text.to_owned() }
        };
        let lines: Vec<_> = text.iter().map(line).collect();
        let count = |skip: pb::DiffLineOp| lines.iter().filter(|line| line.op() != skip).count() as i32;
        pb::DiffHunk {
            old_start: start,
            old_lines: count(pb::DiffLineOp::Add),
            new_start: start,
            new_lines: count(pb::DiffLineOp::Remove),
            lines,
        }
    }

    #[track_caller]
    fn check(colour: bool, hunks: Vec<pb::DiffHunk>, expected: &[&str]) {
        // Short names for the sequences keep the expected text readable.
        let names = [
            ("\x1b[0m", "}"),
            ("\x1b[2m", "{dim "),
            ("\x1b[36m", "{cyan "),
            ("\x1b[31m", "{red "),
            ("\x1b[32m", "{green "),
            ("\x1b[7;31m", "{RED "),
            ("\x1b[7;32m", "{GREEN "),
        ];
        let look = Look { colour, width: Some(80) };
        let painted: Vec<String> = lines(&pb::DiffNode { hunks }, look)
            .into_iter()
            .map(|line| names.iter().fold(line, |line, (sequence, name)| line.replace(sequence, name)))
            .collect();
        assert_eq!(painted, expected);
    }

    #[test]
    fn plain_is_a_unified_diff() {
        let first = hunk(1, &[" a", "-b", "+c", "+d"]);
        let second = hunk(9, &["-x"]);
        check(
            false,
            vec![first, second],
            &["@@ -1,2 +1,3 @@", " a", "-b", "+c", "+d", "@@ -9 +9,0 @@", "-x"],
        );
    }

    #[test]
    fn a_terminal_gets_numbers_and_the_words_that_changed() {
        check(
            true,
            vec![hunk(9, &[" keep", "-let a = 1;", "+let a = 2;", " end"])],
            &[
                "{cyan @@ -9,3 +9,3 @@}",
                "{dim  9  9 │}  keep",
                "{dim 10    │} {red -}{red let a = }{RED 1}{red ;}",
                "{dim    10 │} {green +}{green let a = }{GREEN 2}{green ;}",
                "{dim 11 11 │}  end",
            ],
        );
    }

    #[test]
    fn unequal_or_unlike_lines_are_not_emphasised() {
        check(
            true,
            vec![hunk(1, &["-one two three", "+alpha beta gamma"])],
            &[
                "{cyan @@ -1 +1 @@}",
                "{dim 1   │} {red -}{red one two three}",
                "{dim   1 │} {green +}{green alpha beta gamma}",
            ],
        );
    }

    #[test]
    fn carriage_returns_and_escapes_in_a_diff_are_visible() {
        check(false, vec![hunk(1, &["-a\r", "+\x1b[31ma"])], &["@@ -1 +1 @@", "-a\\r", "+\\x1b[31ma"]);
    }
}
