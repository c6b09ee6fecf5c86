//! Diffs as render trees and as the text of a result.

use provider_core::{DiffHunk, DiffLine, LineChange, Node, Style};

use crate::engine::diff::{Diff, Hunk, MAX_UNIFIED_BYTES, Op};

/// The note on an edit whose text was found with other line endings.
pub(crate) const MATCHED_BUT_FOR_ENDINGS: &str =
    "old_str matched but for its line endings; those of the file were kept";

/// What a change shows: the target, the diff, and what the lines alone would not tell.
pub(crate) fn change(headline: &str, diff: &Diff, notes: &[String]) -> Node {
    let mut nodes = vec![Node::styled(headline, Style::Bold)];
    if diff.is_empty() {
        nodes.push(Node::styled("no change", Style::Dim));
    } else {
        nodes.push(hunks(diff));
    }
    nodes.extend(diff.remarks().into_iter().map(|remark| Node::styled(remark, Style::Dim)));
    nodes.extend(notes.iter().map(|note| Node::styled(note, Style::Dim)));
    Node::Group(nodes)
}

/// The hunks alone.
pub(crate) fn hunks(diff: &Diff) -> Node {
    Node::Diff(diff.hunks.iter().map(hunk).collect())
}

/// One file of several that change together.
pub(crate) struct FileDiff {
    /// The name before, `None` if it is new.
    pub(crate) old: Option<String>,
    /// The name after, `None` if it is gone.
    pub(crate) new: Option<String>,
    pub(crate) diff: Diff,
    /// What there is to say besides the lines.
    pub(crate) remarks: Vec<String>,
}

impl FileDiff {
    fn headline(&self) -> String {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if old != new => format!("{old} → {new}"),
            (_, Some(name)) | (Some(name), None) => name.clone(),
            (None, None) => String::new(),
        }
    }

    fn node(&self) -> Node {
        let mut nodes = vec![Node::text(self.headline())];
        if !self.diff.is_empty() {
            nodes.push(hunks(&self.diff));
        }
        let remarks = self.diff.remarks().into_iter().chain(self.remarks.iter().cloned());
        nodes.extend(remarks.map(|remark| Node::styled(remark, Style::Dim)));
        Node::Group(nodes)
    }
}

/// What a change of several files shows: each with its path and its diff.
pub(crate) fn changes(headline: &str, files: &[FileDiff], notes: &[String]) -> Node {
    let mut nodes = vec![Node::styled(headline, Style::Bold)];
    nodes.extend(files.iter().map(FileDiff::node));
    nodes.extend(notes.iter().map(|note| Node::styled(note, Style::Dim)));
    Node::Group(nodes)
}

/// The diffs of several files as one text, cut with a note in it where it is long.
pub(crate) fn unified_all(files: &[FileDiff]) -> String {
    let mut text = String::new();
    for (index, file) in files.iter().enumerate() {
        let room = MAX_UNIFIED_BYTES.saturating_sub(text.len());
        if room < MAX_UNIFIED_BYTES / 16 && !file.diff.is_empty() {
            let left = files.len() - index;
            text.push_str(&format!("... diff cut at {MAX_UNIFIED_BYTES} bytes: {left} files left out\n"));
            break;
        }
        text.push_str(&file.diff.unified(file.old.as_deref(), file.new.as_deref(), room));
    }
    text
}

fn hunk(hunk: &Hunk) -> DiffHunk {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    DiffHunk {
        old_start: number(hunk.old_start),
        old_lines: number(hunk.old_lines),
        new_start: number(hunk.new_start),
        new_lines: number(hunk.new_lines),
        lines: hunk
            .lines
            .iter()
            .map(|line| DiffLine { change: line_change(line.op), text: line.text.clone() })
            .collect(),
    }
}

fn line_change(op: Op) -> LineChange {
    match op {
        Op::Context => LineChange::Context,
        Op::Insert => LineChange::Add,
        Op::Delete => LineChange::Remove,
    }
}

/// The diff as text, cut with a note in it where it is long.
pub(crate) fn unified(diff: &Diff, path: &str, created: bool) -> String {
    diff.unified((!created).then_some(path), Some(path), MAX_UNIFIED_BYTES)
}

/// A stored result's unified diff as a render tree: a `Diff` node where it is whole, else the text as it is.
pub(crate) fn stored(headline: &str, unified: &str) -> Node {
    let mut nodes = vec![Node::styled(headline, Style::Bold)];
    nodes.extend(stored_body(unified, false));
    Node::Group(nodes)
}

/// The same for several files, each with its path.
pub(crate) fn stored_all(headline: &str, unified: &str) -> Node {
    let mut nodes = vec![Node::styled(headline, Style::Bold)];
    nodes.extend(stored_body(unified, true));
    Node::Group(nodes)
}

fn stored_body(unified: &str, named: bool) -> Vec<Node> {
    if unified.is_empty() {
        return vec![Node::styled("no change", Style::Dim)];
    }
    let Some(files) = parse(unified) else {
        return vec![Node::Code { language: "diff".to_owned(), content: unified.to_owned() }];
    };
    let node = |(name, hunks)| match named {
        true => Node::Group(vec![Node::text(name), Node::Diff(hunks)]),
        false => Node::Diff(hunks),
    };
    files.into_iter().map(node).collect()
}

/// The files of a unified diff that this program printed, with their names. How many lines a hunk has is believed, so
/// that a removed line that looks like a header is none.
fn parse(unified: &str) -> Option<Vec<(String, Vec<DiffHunk>)>> {
    let mut files: Vec<(String, Vec<DiffHunk>)> = Vec::new();
    let mut lines = unified.split_terminator('\n').peekable();
    let mut left = (0, 0);
    while let Some(line) = lines.next() {
        if line.starts_with('\\') {
            continue;
        }
        if left == (0, 0) {
            if let Some(old) = line.strip_prefix("--- ") {
                let new = lines.next()?.strip_prefix("+++ ")?;
                files.push((joined_name(old, new), Vec::new()));
                continue;
            }
            let hunk = parse_header(line.strip_prefix("@@ -")?)?;
            left = (hunk.old_lines, hunk.new_lines);
            files.last_mut()?.1.push(hunk);
            continue;
        }
        let change = match line.as_bytes().first()? {
            b' ' => LineChange::Context,
            b'+' => LineChange::Add,
            b'-' => LineChange::Remove,
            _ => return None,
        };
        let old = u32::from(change != LineChange::Add);
        let new = u32::from(change != LineChange::Remove);
        left = (left.0.checked_sub(old)?, left.1.checked_sub(new)?);
        let text = line[1..].trim_end_matches('\r').to_owned();
        files.last_mut()?.1.last_mut()?.lines.push(DiffLine { change, text });
    }
    (left == (0, 0)).then_some(files)
}

/// The name of a file in a diff, without what marks the two sides.
fn joined_name(old: &str, new: &str) -> String {
    let plain = |name: &str, prefix: &str| {
        let name = name.trim_end_matches('\t');
        (name != "/dev/null").then(|| name.strip_prefix(prefix).unwrap_or(name).to_owned())
    };
    match (plain(old, "a/"), plain(new, "b/")) {
        (Some(old), Some(new)) if old != new => format!("{old} → {new}"),
        (_, Some(name)) | (Some(name), None) => name,
        (None, None) => String::new(),
    }
}

fn parse_header(header: &str) -> Option<DiffHunk> {
    let (old, rest) = header.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(u32, u32)> {
        match text.split_once(',') {
            Some((start, lines)) => Some((start.parse().ok()?, lines.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (range(old)?, range(new)?);
    Some(DiffHunk { old_start, old_lines, new_start, new_lines, lines: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_diff_comes_back_as_the_same_hunks() {
        let diff = Diff::between(b"a\r\nb\r\nc", b"a\r\nB\r\nc\n");
        let Node::Group(nodes) = stored("f", &unified(&diff, "f", false)) else { panic!("no group") };
        let Node::Group(shown) = change("f", &diff, &[]) else { panic!("no group") };
        assert_eq!(nodes[1], shown[1]);
    }

    #[test]
    fn a_cut_diff_is_shown_as_it_is() {
        let cut = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n... diff cut at 10 bytes: 1 of 3 lines left out\n";
        let Node::Group(nodes) = stored("f", cut) else { panic!("no group") };
        assert!(matches!(&nodes[1], Node::Code { content, .. } if content == cut));
    }
}
