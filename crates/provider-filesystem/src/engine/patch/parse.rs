//! From the text of a patch to what it says.

use super::{FilePatch, HunkLine, LineKind, Operation, ParsedPatch, envelope, unified};

/// More files in one patch are refused.
const MOST_FILES: usize = 1_000;

/// Why a text is no patch. The message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Neither form begins anywhere.
    #[error(
        "this is no patch: begin with `*** Begin Patch`, or with `--- a/path` and `+++ b/path` of a unified diff"
    )]
    NoPatch,
    /// The envelope has no end, so a part of it may be missing.
    #[error("the patch is cut off: its last line must be `*** End Patch`; send the whole patch again")]
    NoEnd,
    /// There is nothing in it.
    #[error("the patch changes no file: nothing stands between its beginning and its end")]
    Empty,
    /// A line that cannot stand where it stands.
    #[error("line {line} of the patch, `{text}`: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What it says, shortened.
        text: String,
        /// What was expected.
        reason: &'static str,
    },
    /// More files than a patch may have.
    #[error("the patch changes more than {MOST_FILES} files; send it in parts")]
    TooMany,
}

impl ParseError {
    pub(super) fn at(line: &Line<'_>, reason: &'static str) -> Self {
        let mut text: String = line.text.chars().take(80).collect();
        if text.len() < line.text.len() {
            text.push('…');
        }
        Self::Line { line: line.number, text, reason }
    }
}

/// One line of the patch's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    /// Without its ending.
    pub(super) text: &'a str,
    pub(super) carriage_return: bool,
}

impl<'a> Line<'a> {
    /// The line as one of a hunk: what it does is its first character; without any it is an empty line that stays.
    pub(super) fn of_hunk(&self) -> Option<HunkLine> {
        let kind = match self.text.as_bytes().first() {
            None | Some(b' ') => LineKind::Context,
            Some(b'-') => LineKind::Delete,
            Some(b'+') => LineKind::Insert,
            Some(_) => return None,
        };
        let text = self.text.get(1..).unwrap_or_default().to_owned();
        Some(HunkLine { kind, text, carriage_return: self.carriage_return, no_newline: false })
    }
}

/// Reads a patch of either form.
///
/// # Errors
/// [`ParseError`], naming the line.
pub fn parse(text: &str) -> Result<ParsedPatch, ParseError> {
    let lines: Vec<Line<'_>> = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(index, line)| {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let (text, carriage_return) = match line.strip_suffix('\r') {
                Some(text) => (text, true),
                None => (line, false),
            };
            Line { number: index + 1, text, carriage_return }
        })
        .collect();
    let lines = without_fence(&lines);
    let begin = lines.iter().position(|line| line.text.trim() == envelope::BEGIN);
    let patch = match begin {
        Some(begin) => envelope::parse(lines.get(begin + 1..).unwrap_or_default())?,
        None => unified::parse(lines)?,
    };
    if patch.files.len() > MOST_FILES {
        return Err(ParseError::TooMany);
    }
    match patch.files.is_empty() {
        true => Err(ParseError::Empty),
        false => Ok(merged(patch)),
    }
}

/// The lines between the fences of Markdown, where the whole patch is in one.
fn without_fence<'l, 'a>(lines: &'l [Line<'a>]) -> &'l [Line<'a>] {
    let first = lines.iter().position(|line| !line.text.trim().is_empty());
    let last = lines.iter().rposition(|line| !line.text.trim().is_empty());
    match (first, last) {
        (Some(first), Some(last)) if first < last => {
            let fenced = lines[first].text.starts_with("```") && lines[last].text.trim_end() == "```";
            if fenced { &lines[first + 1..last] } else { lines }
        }
        _ => lines,
    }
}

/// Updates of one file that are written as several become one, where they stand next to each other in meaning.
fn merged(patch: ParsedPatch) -> ParsedPatch {
    let mut files: Vec<FilePatch> = Vec::with_capacity(patch.files.len());
    for file in patch.files {
        let known = files.iter_mut().find(|known| {
            known.path == file.path
                && known.operation == Operation::Update
                && file.operation == Operation::Update
        });
        match known {
            Some(known) => {
                known.hunks.extend(file.hunks);
                known.executable = file.executable.or(known.executable);
            }
            None => files.push(file),
        }
    }
    ParsedPatch { files, notes: patch.notes }
}
