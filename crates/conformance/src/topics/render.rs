//! Pictures of results.

use harness_proto::render::v1 as pb;
use pb::render_node::Node;

use crate::requirement::requirements;

requirements! {
    RENDERS = "RENDER-01" May
        "It has pictures of its results",
        "a tree for a result it sent, as JSON under schema version 1";
    TREE = "RENDER-02" Must
        "A picture is a whole tree",
        "a root, and at every node one of the known kinds";
    VERSION = "RENDER-03" Must
        "An unknown version is refused",
        "a status for schema version 999 that is not UNIMPLEMENTED, UNKNOWN or UNAVAILABLE";
    GARBAGE = "RENDER-04" Must
        "What is no result of its own is refused",
        "a status for bytes that are no JSON, from a process that lives on";
}

/// What is wrong with a tree.
pub(crate) fn flaw(tree: Option<&pb::RenderTree>) -> Result<(), String> {
    let tree = tree.ok_or("no tree")?;
    let root = tree.root.as_ref().ok_or("no root")?;
    node_flaw(root)
}

fn node_flaw(node: &pb::RenderNode) -> Result<(), String> {
    match &node.node {
        None => Err("a node of no kind".to_owned()),
        Some(Node::Diff(diff)) => {
            let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
            match lines.filter(|line| line.op() == pb::DiffLineOp::Unspecified).count() {
                0 => Ok(()),
                count => Err(format!("{count} lines of a diff without an op")),
            }
        }
        Some(Node::List(list)) => list.items.iter().try_for_each(node_flaw),
        Some(Node::Group(group)) => group.children.iter().try_for_each(node_flaw),
        Some(Node::Collapsible(part)) => part.children.iter().try_for_each(node_flaw),
        Some(_) => Ok(()),
    }
}

/// Every text in a tree, in order.
pub(crate) fn texts(tree: &pb::RenderTree) -> String {
    let mut out = String::new();
    if let Some(root) = &tree.root {
        collect(root, &mut out);
    }
    out
}

fn collect(node: &pb::RenderNode, out: &mut String) {
    let mut add = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    match &node.node {
        Some(Node::Text(text)) => add(&text.content),
        Some(Node::CodeBlock(code)) => add(&code.content),
        Some(Node::Diff(diff)) => {
            diff.hunks.iter().flat_map(|hunk| &hunk.lines).for_each(|line| add(&line.text));
        }
        Some(Node::Table(table)) => {
            add(&table.headers.join("\t"));
            table.rows.iter().for_each(|row| add(&row.cells.join("\t")));
        }
        Some(Node::Link(link)) => {
            add(&link.text);
            add(&link.url);
        }
        Some(Node::List(list)) => list.items.iter().for_each(|item| collect(item, out)),
        Some(Node::Group(group)) => group.children.iter().for_each(|child| collect(child, out)),
        Some(Node::Collapsible(part)) => {
            add(&part.summary);
            part.children.iter().for_each(|child| collect(child, out));
        }
        Some(Node::SubSession(session)) => add(&session.summary),
        Some(Node::Action(action)) => add(&action.label),
        None => {}
    }
}
