//! Diffs as render trees and as the text of a result.

use provider_core::{DiffHunk, DiffLine, LineChange, Node, Style};

use crate::engine::diff::{Diff, Hunk, MAX_UNIFIED_BYTES, Op};

/// What a change shows: the target, the diff, and what the lines alone would not tell.
pub(crate) fn change(headline: &str, diff: &Diff, notes: &[String]) -> Node {
    let mut nodes = vec![Node::styled(headline, Style::Bold)];
    if diff.is_empty() {
        nodes.push(Node::styled("no change", Style::Dim));
    } else {
        nodes.push(Node::Diff(diff.hunks.iter().map(hunk).collect()));
    }
    nodes.extend(diff.remarks().into_iter().map(|remark| Node::styled(remark, Style::Dim)));
    nodes.extend(notes.iter().map(|note| Node::styled(note, Style::Dim)));
    Node::Group(nodes)
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
    let body = match parse(unified) {
        _ if unified.is_empty() => Node::styled("no change", Style::Dim),
        Some(hunks) => Node::Diff(hunks),
        None => Node::Code { language: "diff".to_owned(), content: unified.to_owned() },
    };
    Node::Group(vec![Node::styled(headline, Style::Bold), body])
}

fn parse(unified: &str) -> Option<Vec<DiffHunk>> {
    let mut hunks: Vec<DiffHunk> = Vec::new();
    for line in unified.split_terminator('\n').skip(2) {
        if let Some(header) = line.strip_prefix("@@ -") {
            hunks.push(parse_header(header)?);
            continue;
        }
        let lines = &mut hunks.last_mut()?.lines;
        let change = match line.as_bytes().first()? {
            b' ' => LineChange::Context,
            b'+' => LineChange::Add,
            b'-' => LineChange::Remove,
            b'\\' => continue,
            _ => return None,
        };
        lines.push(DiffLine { change, text: line[1..].trim_end_matches('\r').to_owned() });
    }
    Some(hunks)
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
