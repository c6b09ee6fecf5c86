//! Patches: a unified diff, with or without git's headers, or the Begin/End Patch envelope.
//!
//! [`parse`] knows only the text of the patch; what it answers says nothing about any file. [`apply`] holds the hunks
//! of one file against its text and answers what the file becomes and what became of each hunk. A hunk applies where
//! its old lines stand, all of them and exactly, line endings aside. Line numbers only choose between such places, and
//! only when they are right; several places are an error that names them all.

mod apply;
mod envelope;
mod parse;
mod unified;

pub(crate) use apply::added;
pub use apply::{Applied, Explained, HunkReport, Place, Status, apply};
pub use parse::{ParseError, parse};

/// A patch as it was written. Nothing is known yet about the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedPatch {
    /// What is to happen to each file, in the order of the patch. At least one.
    pub files: Vec<FilePatch>,
    /// What was repaired in reading it, one sentence each.
    pub notes: Vec<String>,
}

/// What is to happen to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The path as it is written, without `a/` or `b/`.
    pub path: String,
    /// What happens to it.
    pub operation: Operation,
    /// The changes inside, in the order of the patch.
    pub hunks: Vec<Hunk>,
    /// Whether the file becomes executable, or ceases to be.
    pub executable: Option<bool>,
}

/// What happens to a file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// It is created, with what the hunks insert.
    Add,
    /// It is removed. A unified diff says what was in it, in its hunks; the envelope does not.
    Delete,
    /// Its content changes.
    Update,
    /// Its content may change, and it gets this path.
    Move(String),
}

/// One change inside a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// The line of the patch that it begins in, from 1.
    pub patch_line: usize,
    /// The line of the old file that it claims to begin in, from 1; for an insertion alone the line before.
    pub old_start: Option<usize>,
    /// Lines that stand above it, the outermost first, as far as they are written after `@@`.
    pub anchors: Vec<String>,
    /// The lines.
    pub lines: Vec<HunkLine>,
    /// Whether it claims to end where the file does.
    pub at_end: bool,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLine {
    /// What happens to it.
    pub kind: LineKind,
    /// The line without its ending.
    pub text: String,
    /// Whether it ended in `\r\n` in the patch.
    pub carriage_return: bool,
    /// Whether it is the last line of a file without a final newline.
    pub no_newline: bool,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It stays.
    Context,
    /// It goes.
    Delete,
    /// It comes.
    Insert,
}

impl FilePatch {
    /// Whether it puts lines where none were, in line 0: so is a new file written as well as an empty one.
    pub(crate) fn fills_nothing(&self) -> bool {
        let fills = |hunk: &Hunk| hunk.old_start == Some(0) && hunk.before().next().is_none();
        matches!(self.hunks.as_slice(), [only] if fills(only))
    }
}

impl Hunk {
    /// The lines that must be in the file.
    pub(crate) fn before(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Insert)
    }

    /// The lines that will be in the file.
    pub(crate) fn after(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Delete)
    }

    /// Whether it changes anything.
    fn is_change(&self) -> bool {
        self.lines.iter().any(|line| line.kind != LineKind::Context)
    }
}

#[cfg(test)]
mod tests;
