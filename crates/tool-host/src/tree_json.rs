//! A render tree as proto3 JSON: camelCase names, enums by name, default values left out.

use harness_proto::render::v1 as pb;
use pb::render_node::Node;
use serde_json::{Map, Value, json};

use crate::event::Object;
use crate::json::from_struct;

/// The tree as proto3 JSON.
pub fn tree_to_json(tree: &pb::RenderTree) -> Value {
    let mut out = Fields::default();
    out.message("root", tree.root.as_ref().map(node));
    out.done()
}

/// A message under construction. Implicit-presence fields with their default value are not written.
#[derive(Default)]
struct Fields(Object);

impl Fields {
    fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    fn number(&mut self, name: &str, value: i32) {
        if value != 0 {
            self.0.insert(name.to_owned(), value.into());
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.0.insert(name.to_owned(), true.into());
        }
    }

    fn list(&mut self, name: &str, values: Vec<Value>) {
        if !values.is_empty() {
            self.0.insert(name.to_owned(), values.into());
        }
    }

    fn message(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value);
        }
    }

    fn done(self) -> Value {
        Value::Object(self.0)
    }
}

fn nodes(nodes: &[pb::RenderNode]) -> Vec<Value> {
    nodes.iter().map(node).collect()
}

fn strings(values: &[String]) -> Vec<Value> {
    values.iter().map(|value| value.as_str().into()).collect()
}

fn node(wire: &pb::RenderNode) -> Value {
    let Some(kind) = &wire.node else { return json!({}) };
    let mut out = Fields::default();
    let name = match kind {
        Node::Text(text) => {
            out.text("content", &text.content);
            out.message("style", text.style.map(style));
            "text"
        }
        Node::CodeBlock(code) => {
            out.message("language", code.language.as_deref().map(Value::from));
            out.text("content", &code.content);
            "codeBlock"
        }
        Node::Diff(diff) => {
            out.list("hunks", diff.hunks.iter().map(hunk).collect());
            "diff"
        }
        Node::Table(table) => {
            out.list("headers", strings(&table.headers));
            out.list("rows", table.rows.iter().map(row).collect());
            "table"
        }
        Node::Link(link) => {
            out.text("text", &link.text);
            out.text("url", &link.url);
            "link"
        }
        Node::List(list) => {
            out.list("items", nodes(&list.items));
            out.flag("ordered", list.ordered);
            "list"
        }
        Node::Group(group) => {
            out.list("children", nodes(&group.children));
            "group"
        }
        Node::Collapsible(section) => {
            out.text("summary", &section.summary);
            out.list("children", nodes(&section.children));
            out.flag("collapsedByDefault", section.collapsed_by_default);
            "collapsible"
        }
        Node::SubSession(session) => {
            out.text("sessionId", &session.session_id);
            out.text("summary", &session.summary);
            "subSession"
        }
        Node::Action(action) => {
            out.text("id", &action.id);
            out.text("label", &action.label);
            out.text("toolName", &action.tool_name);
            out.message("args", action.args.clone().map(|args| Value::Object(from_struct(args))));
            out.text("provider", &action.provider);
            "action"
        }
    };
    Value::Object(Map::from_iter([(name.to_owned(), out.done())]))
}

/// An enum value by its name; one this version does not know stays a number.
fn style(number: i32) -> Value {
    pb::TextStyle::try_from(number).map_or_else(|_| number.into(), |style| style.as_str_name().into())
}

fn row(row: &pb::TableRow) -> Value {
    let mut out = Fields::default();
    out.list("cells", strings(&row.cells));
    out.done()
}

fn hunk(hunk: &pb::DiffHunk) -> Value {
    let mut out = Fields::default();
    out.number("oldStart", hunk.old_start);
    out.number("oldLines", hunk.old_lines);
    out.number("newStart", hunk.new_start);
    out.number("newLines", hunk.new_lines);
    out.list("lines", hunk.lines.iter().map(line).collect());
    out.done()
}

fn line(line: &pb::DiffLine) -> Value {
    let mut out = Fields::default();
    if line.op != 0 {
        let op = pb::DiffLineOp::try_from(line.op);
        out.message("op", Some(op.map_or_else(|_| line.op.into(), |op| op.as_str_name().into())));
    }
    out.text("text", &line.text);
    out.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Node, expected: Value) {
        let tree = pb::RenderTree { root: Some(pb::RenderNode { node: Some(kind) }) };
        assert_eq!(tree_to_json(&tree), json!({"root": expected}));
    }

    #[test]
    fn enums_are_names_and_unset_is_left_out() {
        let text = |style| Node::Text(pb::TextNode { content: "a".into(), style });
        check(text(Some(2)), json!({"text": {"content": "a", "style": "TEXT_STYLE_BOLD"}}));
        check(text(Some(0)), json!({"text": {"content": "a", "style": "TEXT_STYLE_UNSPECIFIED"}}));
        check(text(None), json!({"text": {"content": "a"}}));
        check(text(Some(99)), json!({"text": {"content": "a", "style": 99}}));
    }

    #[test]
    fn a_diff_keeps_its_numbers_and_empty_lines() {
        let line = |op: pb::DiffLineOp, text: &str| pb::DiffLine { op: op.into(), text: text.into() };
        let lines = vec![line(pb::DiffLineOp::Remove, "a"), line(pb::DiffLineOp::Add, "")];
        let hunk = pb::DiffHunk { old_start: 1, old_lines: 1, new_start: 1, new_lines: 1, lines };
        check(
            Node::Diff(pb::DiffNode { hunks: vec![hunk] }),
            json!({"diff": {"hunks": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": [
                {"op": "DIFF_LINE_OP_REMOVE", "text": "a"},
                {"op": "DIFF_LINE_OP_ADD"},
            ]}]}}),
        );
    }

    #[test]
    fn names_are_in_camel_case() {
        let section =
            pb::CollapsibleNode { summary: "s".into(), children: Vec::new(), collapsed_by_default: true };
        check(
            Node::Collapsible(section),
            json!({"collapsible": {"summary": "s", "collapsedByDefault": true}}),
        );
        let session = pb::SubSessionNode { session_id: "1".into(), summary: String::new() };
        check(Node::SubSession(session), json!({"subSession": {"sessionId": "1"}}));
    }
}
