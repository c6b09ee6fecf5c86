//! Paints render trees as text for a terminal or a pipe.
//!
//! Nothing a provider sends reaches the terminal raw: control characters and direction overrides are shown, not
//! obeyed. Colour only repeats what the text already says.

mod diff;
mod safe;
mod table;

use harness_proto::render::v1 as pb;
use pb::render_node::Node;

pub(crate) use safe::{cell, safe};
pub(crate) use table::{Table, clip};

/// How something is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether escape sequences may be used.
    pub(crate) colour: bool,
    /// Columns to stay within; `None` for a pipe, where nothing is wrapped.
    pub(crate) width: Option<usize>,
}

impl Look {
    /// No colour, no width: for pipes and JSON.
    pub(crate) const PLAIN: Self = Self { colour: false, width: None };

    /// The text in a style, if colour may be used. The text must be safe already.
    pub(crate) fn ink(self, ink: Ink, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("{}{text}\x1b[0m", ink.sequence())
        } else {
            text.to_owned()
        }
    }
}

/// The few styles there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Bold,
    Dim,
    Italic,
    Underline,
    Red,
    Green,
    Yellow,
    Cyan,
    RedReversed,
    GreenReversed,
}

impl Ink {
    fn sequence(self) -> &'static str {
        match self {
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Italic => "\x1b[3m",
            Self::Underline => "\x1b[4m",
            Self::Red => "\x1b[31m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Cyan => "\x1b[36m",
            Self::RedReversed => "\x1b[7;31m",
            Self::GreenReversed => "\x1b[7;32m",
        }
    }
}

/// The tree as text, every line ending with a newline. An empty tree says so.
pub(crate) fn paint(tree: &pb::RenderTree, look: Look) -> String {
    let mut painter = Painter { look, lines: Vec::new() };
    match &tree.root {
        Some(root) => painter.node(root, 0),
        None => painter.line(look.ink(Ink::Dim, "(nothing to show)")),
    }
    let mut text = painter.lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Deeper than any frontend would show; a tree beyond it is cut rather than overflowing the stack.
const DEEPEST: usize = 64;
const INDENT: usize = 2;

struct Painter {
    look: Look,
    lines: Vec<String>,
}

impl Painter {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn text(&mut self, ink: Option<Ink>, content: &str) {
        for line in content.strip_suffix('\n').unwrap_or(content).split('\n') {
            let line = safe(line.strip_suffix('\r').unwrap_or(line));
            self.line(ink.map_or_else(|| line.clone().into_owned(), |ink| self.look.ink(ink, &line)));
        }
    }

    fn node(&mut self, node: &pb::RenderNode, depth: usize) {
        if depth > DEEPEST {
            return self.line("…");
        }
        match &node.node {
            Some(Node::Text(text)) => self.text(style(text.style), &text.content),
            Some(Node::CodeBlock(code)) => self.text(None, &code.content),
            Some(Node::Diff(node)) => self.lines.extend(diff::lines(node, self.look)),
            Some(Node::Table(node)) => {
                let mut table = Table::new(&node.headers);
                node.rows.iter().for_each(|row| table.row(&row.cells));
                self.lines.extend(table.lines(self.look));
            }
            Some(Node::Link(link)) => self.link(link),
            Some(Node::List(list)) => self.list(list, depth),
            Some(Node::Group(group)) => group.children.iter().for_each(|child| self.node(child, depth + 1)),
            Some(Node::Collapsible(section)) => {
                self.text(Some(Ink::Bold), &format!("▾ {}", cell(&section.summary)));
                self.indented(INDENT, |inner| {
                    section.children.iter().for_each(|child| inner.node(child, depth + 1))
                });
            }
            Some(Node::SubSession(session)) => {
                let (id, summary) = (cell(&session.session_id), cell(&session.summary));
                self.line(format!("↳ {} {summary}", self.look.ink(Ink::Cyan, &format!("session {id}"))));
            }
            Some(Node::Action(action)) => self.action(action),
            None => self.line(self.look.ink(Ink::Dim, "(something newer than this program can show)")),
        }
    }

    fn link(&mut self, link: &pb::LinkNode) {
        let (text, url) = (cell(&link.text), cell(&link.url));
        let shown = self.look.ink(Ink::Underline, &url);
        self.line(if text.is_empty() || text == url { shown } else { format!("{text} <{shown}>") });
    }

    fn action(&mut self, action: &pb::ActionNode) {
        let tool = match action.provider.as_str() {
            "" => action.tool_name.clone(),
            provider => format!("{provider}.{}", action.tool_name),
        };
        let mut line = format!("[{}] → {}", cell(&action.label), cell(&tool));
        if let Some(args) = action.args.clone().filter(|args| !args.fields.is_empty()) {
            let args = tool_host::struct_to_json(args);
            line.push_str(&format!(" {}", cell(&serde_json::Value::Object(args).to_string())));
        }
        self.line(line);
    }

    fn list(&mut self, list: &pb::ListNode, depth: usize) {
        let digits = list.items.len().to_string().len();
        for (index, item) in list.items.iter().enumerate() {
            let mark = if list.ordered { format!("{:>digits$}. ", index + 1) } else { "- ".to_owned() };
            let first = self.lines.len();
            self.indented(mark.len(), |inner| inner.node(item, depth + 1));
            match self.lines.get_mut(first) {
                Some(line) => *line = format!("{mark}{}", line.get(mark.len()..).unwrap_or_default()),
                None => self.line(mark),
            }
        }
    }

    /// Paints with less width, then moves what was painted to the right.
    fn indented(&mut self, columns: usize, paint: impl FnOnce(&mut Self)) {
        let width = self.look.width.map(|width| width.saturating_sub(columns).max(20));
        let mut inner = Self { look: Look { width, ..self.look }, lines: Vec::new() };
        paint(&mut inner);
        let indent = " ".repeat(columns);
        self.lines.extend(inner.lines.into_iter().map(|line| format!("{indent}{line}")));
    }
}

fn style(number: Option<i32>) -> Option<Ink> {
    match pb::TextStyle::try_from(number?).ok()? {
        pb::TextStyle::Unspecified | pb::TextStyle::Normal => None,
        pb::TextStyle::Bold => Some(Ink::Bold),
        pb::TextStyle::Italic => Some(Ink::Italic),
        pb::TextStyle::Code => Some(Ink::Cyan),
        pb::TextStyle::Dim => Some(Ink::Dim),
        pb::TextStyle::Error => Some(Ink::Red),
        pb::TextStyle::Warning => Some(Ink::Yellow),
        pb::TextStyle::Success => Some(Ink::Green),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn node(node: Node) -> pb::RenderNode {
        pb::RenderNode { node: Some(node) }
    }

    fn text(content: &str, style: Option<pb::TextStyle>) -> pb::RenderNode {
        node(Node::Text(pb::TextNode { content: content.into(), style: style.map(Into::into) }))
    }

    #[track_caller]
    fn check(root: pb::RenderNode, expected: &str) {
        let tree = pb::RenderTree { root: Some(root) };
        assert_eq!(paint(&tree, Look::PLAIN), expected);
    }

    #[test]
    fn every_node_type_is_shown() {
        let children = vec![text("one\ntwo\n", None), text("three", Some(pb::TextStyle::Bold))];
        check(node(Node::Group(pb::GroupNode { children: children.clone() })), "one\ntwo\nthree\n");
        let list = |ordered| node(Node::List(pb::ListNode { items: children.clone(), ordered }));
        check(list(false), "- one\n  two\n- three\n");
        check(list(true), "1. one\n   two\n2. three\n");
        let section = pb::CollapsibleNode { summary: "More".into(), children, collapsed_by_default: true };
        check(node(Node::Collapsible(section)), "▾ More\n  one\n  two\n  three\n");
        let code =
            pb::CodeBlockNode { language: Some("rust".into()), content: "fn a() {\n\tb();\n}\n".into() };
        check(node(Node::CodeBlock(code)), "fn a() {\n\tb();\n}\n");
        let link = pb::LinkNode { text: "here".into(), url: "https://a.b".into() };
        check(node(Node::Link(link)), "here <https://a.b>\n");
        let session = pb::SubSessionNode { session_id: "s1".into(), summary: "looks".into() };
        check(node(Node::SubSession(session)), "↳ session s1 looks\n");
        let action = pb::ActionNode {
            label: "Retry".into(),
            tool_name: "run".into(),
            provider: "x".into(),
            ..pb::ActionNode::default()
        };
        check(node(Node::Action(action)), "[Retry] → x.run\n");
        check(pb::RenderNode { node: None }, "(something newer than this program can show)\n");
        assert_eq!(paint(&pb::RenderTree { root: None }, Look::PLAIN), "(nothing to show)\n");
    }

    #[test]
    fn a_list_inside_a_list_is_indented() {
        let inner =
            node(Node::List(pb::ListNode { items: vec![text("a", None), text("b", None)], ordered: false }));
        check(node(Node::List(pb::ListNode { items: vec![inner], ordered: true })), "1. - a\n   - b\n");
    }

    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        check(text("\x1b[2Jgone\u{9b}31m\u{202e}", None), "\\x1b[2Jgone\\x9b31m\\u{202e}\n");
        let link = pb::LinkNode { text: "a\nb".into(), url: "x\x07".into() };
        check(node(Node::Link(link)), "a\\nb <x\\x07>\n");
    }

    #[test]
    fn colour_only_wraps_the_text() {
        let tree = pb::RenderTree { root: Some(text("bad", Some(pb::TextStyle::Error))) };
        assert_eq!(paint(&tree, Look { colour: true, width: Some(80) }), "\x1b[31mbad\x1b[0m\n");
    }

    #[test]
    fn a_tree_of_absurd_depth_is_cut() {
        let deep = (0..10_000)
            .fold(text("end", None), |child, _| node(Node::Group(pb::GroupNode { children: vec![child] })));
        let tree = pb::RenderTree { root: Some(deep) };
        assert_eq!(paint(&tree, Look::PLAIN), "…\n");
        // Dropping it node by node would recurse as deep as the tree; the test is about painting.
        std::mem::forget(tree);
    }

    fn any_node() -> impl Strategy<Value = pb::RenderNode> {
        let text = || any::<String>();
        let leaf = prop_oneof![
            (text(), any::<Option<i32>>())
                .prop_map(|(content, style)| Node::Text(pb::TextNode { content, style })),
            text().prop_map(|content| Node::CodeBlock(pb::CodeBlockNode { language: None, content })),
            (text(), text()).prop_map(|(text, url)| Node::Link(pb::LinkNode { text, url })),
            (text(), text()).prop_map(|(id, label)| {
                Node::Action(pb::ActionNode { id, label, ..pb::ActionNode::default() })
            }),
            (vec(text(), 0..4), vec(vec(text(), 0..4), 0..4)).prop_map(|(headers, rows)| {
                let rows = rows.into_iter().map(|cells| pb::TableRow { cells }).collect();
                Node::Table(pb::TableNode { headers, rows })
            }),
            (any::<[i32; 4]>(), vec((0..5, text()), 0..6)).prop_map(|(numbers, lines)| {
                let lines = lines.into_iter().map(|(op, text)| pb::DiffLine { op, text }).collect();
                let [old_start, old_lines, new_start, new_lines] = numbers;
                let hunk = pb::DiffHunk { old_start, old_lines, new_start, new_lines, lines };
                Node::Diff(pb::DiffNode { hunks: vec![hunk] })
            }),
        ];
        leaf.prop_map(node).prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                (vec(inner.clone(), 0..4), any::<bool>())
                    .prop_map(|(items, ordered)| node(Node::List(pb::ListNode { items, ordered }))),
                (any::<String>(), vec(inner, 0..4)).prop_map(|(summary, children)| {
                    node(Node::Collapsible(pb::CollapsibleNode {
                        summary,
                        children,
                        collapsed_by_default: false,
                    }))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_a_terminal_obeys_gets_through(root in any_node(), width in proptest::option::of(1..200usize)) {
            let tree = pb::RenderTree { root: Some(root) };
            let text = paint(&tree, Look { colour: false, width });
            let obeyed = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
            prop_assert!(!text.contains(obeyed), "{text:?}");
            // In colour there are our own sequences, and nothing else.
            let coloured = paint(&tree, Look { colour: true, width });
            let ours = coloured.split("\x1b[").skip(1).all(|rest| {
                rest.split_once('m').is_some_and(|(style, _)| style.chars().all(|c| c.is_ascii_digit() || c == ';'))
            });
            prop_assert!(ours && !coloured.replace("\x1b[", "").contains(obeyed), "{coloured:?}");
        }
    }
}
