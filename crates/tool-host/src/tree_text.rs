//! Render trees as plain text, for readers that have no screen: no colour, no frames, nothing folded away.

use harness_proto::render::v1 as pb;
use pb::render_node::Node;

/// The tree as text that ends without a line break; empty where there is nothing to read.
pub fn tree_to_text(tree: &pb::RenderTree) -> String {
    let mut text = String::new();
    if let Some(root) = &tree.root {
        write(root, &mut text);
    }
    text.truncate(text.trim_end().len());
    text
}

fn write(node: &pb::RenderNode, out: &mut String) {
    match &node.node {
        None | Some(Node::Action(_)) => {}
        Some(Node::Text(text)) => line(&text.content, out),
        Some(Node::CodeBlock(code)) => line(&code.content, out),
        Some(Node::Diff(diff)) => diff.hunks.iter().for_each(|hunk| write_hunk(hunk, out)),
        Some(Node::Table(table)) => {
            line(&table.headers.join(" | "), out);
            table.rows.iter().for_each(|row| line(&row.cells.join(" | "), out));
        }
        Some(Node::Link(link)) if link.text.is_empty() || link.text == link.url => line(&link.url, out),
        Some(Node::Link(link)) => line(&format!("[{}]({})", link.text, link.url), out),
        Some(Node::List(list)) => list.items.iter().enumerate().for_each(|(index, item)| {
            let mark = if list.ordered { format!("{}. ", index + 1) } else { "- ".to_owned() };
            write_item(&mark, item, out);
        }),
        Some(Node::Group(group)) => group.children.iter().for_each(|child| write(child, out)),
        Some(Node::Collapsible(section)) => {
            line(&section.summary, out);
            section.children.iter().for_each(|child| write(child, out));
        }
        Some(Node::SubSession(session)) => {
            line(&format!("session {}: {}", session.session_id, session.summary), out);
        }
    }
}

fn line(text: &str, out: &mut String) {
    out.push_str(text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
}

fn write_hunk(hunk: &pb::DiffHunk, out: &mut String) {
    line(
        &format!("@@ -{},{} +{},{} @@", hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines),
        out,
    );
    for changed in &hunk.lines {
        let sign = match changed.op() {
            pb::DiffLineOp::Add => '+',
            pb::DiffLineOp::Remove => '-',
            pb::DiffLineOp::Context | pb::DiffLineOp::Unspecified => ' ',
        };
        line(&format!("{sign}{}", changed.text), out);
    }
}

/// The item behind its mark, further lines below the first.
fn write_item(mark: &str, item: &pb::RenderNode, out: &mut String) {
    let mut text = String::new();
    write(item, &mut text);
    for (index, row) in text.lines().enumerate() {
        let margin = if index == 0 { mark.to_owned() } else { " ".repeat(mark.len()) };
        line(&format!("{margin}{row}"), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node: Node) -> pb::RenderNode {
        pb::RenderNode { node: Some(node) }
    }

    fn text(content: &str) -> pb::RenderNode {
        node(Node::Text(pb::TextNode { content: content.to_owned(), style: None }))
    }

    #[track_caller]
    fn check(root: pb::RenderNode, expected: &str) {
        assert_eq!(tree_to_text(&pb::RenderTree { root: Some(root) }), expected);
    }

    #[test]
    fn a_diff_reads_as_a_unified_one() {
        let row = |op: pb::DiffLineOp, text: &str| pb::DiffLine { op: op.into(), text: text.to_owned() };
        let lines = vec![
            row(pb::DiffLineOp::Context, "a"),
            row(pb::DiffLineOp::Remove, "b"),
            row(pb::DiffLineOp::Add, "B"),
        ];
        let hunk = pb::DiffHunk { old_start: 1, old_lines: 2, new_start: 1, new_lines: 2, lines };
        check(node(Node::Diff(pb::DiffNode { hunks: vec![hunk] })), "@@ -1,2 +1,2 @@\n a\n-b\n+B");
    }

    #[test]
    fn nothing_is_folded_and_lists_keep_their_shape() {
        let items = vec![text("one\nmore"), text("two")];
        let list = node(Node::List(pb::ListNode { items, ordered: true }));
        let section = pb::CollapsibleNode {
            summary: "files".to_owned(),
            children: vec![list],
            collapsed_by_default: true,
        };
        check(node(Node::Collapsible(section)), "files\n1. one\n   more\n2. two");
    }

    #[test]
    fn a_table_has_one_line_a_row() {
        let row = |cells: [&str; 2]| pb::TableRow { cells: cells.map(str::to_owned).to_vec() };
        let headers = ["path", "bytes"].map(str::to_owned).to_vec();
        check(
            node(Node::Table(pb::TableNode { headers, rows: vec![row(["a", "1"]), row(["b", "2"])] })),
            "path | bytes\na | 1\nb | 2",
        );
    }
}
