//! Trees that a frontend paints: previews, and stored results shown again.

use harness_proto::render::v1 as pb;
use pb::render_node::Node as Wire;

/// How a run of text looks. Without a style the frontend decides.
///
/// ```
/// use provider_core::{Node, Style};
///
/// let line = Node::Group(vec![Node::styled("deleted", Style::Warning), Node::styled(" 3 files", Style::Dim)]);
/// # assert!(matches!(line, Node::Group(_)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Emphasised.
    Bold,
    /// Slanted.
    Italic,
    /// Fixed width.
    Code,
    /// Less important than its surroundings.
    Dim,
    /// Something failed.
    Error,
    /// Something to look at.
    Warning,
    /// Something went well.
    Success,
}

/// What a line of a diff does.
///
/// ```
/// use provider_core::LineChange;
///
/// let sign = |change| match change {
///     LineChange::Context => ' ',
///     LineChange::Add => '+',
///     LineChange::Remove => '-',
/// };
/// assert_eq!(sign(LineChange::Add), '+');
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// In both versions.
    Context,
    /// Only in the new version.
    Add,
    /// Only in the old version.
    Remove,
}

/// One line of a hunk; the text has neither terminator nor leading sign.
///
/// ```
/// use provider_core::{DiffLine, LineChange};
///
/// let added = DiffLine { change: LineChange::Add, text: "remember the milk".to_owned() };
/// assert!(!added.text.ends_with('\n'), "the line's end is not part of it");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// What the line does.
    pub change: LineChange,
    /// The line.
    pub text: String,
}

/// One hunk, numbered as in a unified diff: lines from 1.
///
/// ```
/// use provider_core::{DiffHunk, DiffLine, LineChange, Node};
///
/// let line = |change, text: &str| DiffLine { change, text: text.to_owned() };
/// let lines = vec![line(LineChange::Remove, "teh cat"), line(LineChange::Add, "the cat")];
/// let hunk = DiffHunk { old_start: 7, old_lines: 1, new_start: 7, new_lines: 1, lines };
/// let shown = Node::Diff(vec![hunk]);
/// # assert!(matches!(shown, Node::Diff(_)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffHunk {
    /// First line in the old version.
    pub old_start: u32,
    /// Lines of the old version.
    pub old_lines: u32,
    /// First line in the new version.
    pub new_start: u32,
    /// Lines of the new version.
    pub new_lines: u32,
    /// The lines, in order.
    pub lines: Vec<DiffLine>,
}

/// One node of a render tree.
///
/// The wire also knows clickable actions. They name a provider by its local name, which a provider does not
/// know, so they cannot be built here.
///
/// ```
/// use provider_core::{Node, Style};
///
/// let tree = Node::Group(vec![
///     Node::styled("2 notes", Style::Bold),
///     Node::Table { headers: vec!["#".into(), "note".into()], rows: vec![vec!["1".into(), "milk".into()]] },
///     Node::Link { text: "the service".into(), url: "https://example.org".into() },
/// ]);
/// assert!(matches!(tree, Node::Group(nodes) if nodes.len() == 3));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A run of text.
    Text(String, Option<Style>),
    /// Code in a language (empty: unknown).
    Code {
        /// For example `rust`; empty when unknown.
        language: String,
        /// The code.
        content: String,
    },
    /// A change of one file.
    Diff(Vec<DiffHunk>),
    /// Rows under headers.
    Table {
        /// Column titles.
        headers: Vec<String>,
        /// Cells, row by row.
        rows: Vec<Vec<String>>,
    },
    /// A link.
    Link {
        /// What is shown.
        text: String,
        /// Where it leads.
        url: String,
    },
    /// A list.
    List {
        /// The items.
        items: Vec<Node>,
        /// Whether the items are numbered.
        ordered: bool,
    },
    /// Several nodes, one after another.
    Group(Vec<Node>),
    /// Nodes that can be folded away.
    Collapsible {
        /// What is shown when folded.
        summary: String,
        /// What is shown when open.
        children: Vec<Node>,
        /// Whether it starts folded.
        collapsed: bool,
    },
    /// A pointer to a child session.
    SubSession {
        /// The child's session id.
        session_id: String,
        /// One line about it.
        summary: String,
    },
}

impl Node {
    /// Text in the frontend's default style.
    pub fn text(content: impl Into<String>) -> Self {
        Self::Text(content.into(), None)
    }

    /// Text in a style.
    pub fn styled(content: impl Into<String>, style: Style) -> Self {
        Self::Text(content.into(), Some(style))
    }

    /// The tree with this node as its root, as the wire carries it.
    pub(crate) fn into_tree(self) -> pb::RenderTree {
        pb::RenderTree { root: Some(self.into_wire()) }
    }

    fn into_wire(self) -> pb::RenderNode {
        let all = |nodes: Vec<Self>| nodes.into_iter().map(Self::into_wire).collect();
        let node = match self {
            Self::Text(content, style) => {
                Wire::Text(pb::TextNode { content, style: style.map(|style| style_to_wire(style).into()) })
            }
            Self::Code { language, content } => Wire::CodeBlock(pb::CodeBlockNode {
                language: Some(language).filter(|name| !name.is_empty()),
                content,
            }),
            Self::Diff(hunks) => {
                Wire::Diff(pb::DiffNode { hunks: hunks.into_iter().map(hunk_to_wire).collect() })
            }
            Self::Table { headers, rows } => {
                let rows = rows.into_iter().map(|cells| pb::TableRow { cells }).collect();
                Wire::Table(pb::TableNode { headers, rows })
            }
            Self::Link { text, url } => Wire::Link(pb::LinkNode { text, url }),
            Self::List { items, ordered } => Wire::List(pb::ListNode { items: all(items), ordered }),
            Self::Group(children) => Wire::Group(pb::GroupNode { children: all(children) }),
            Self::Collapsible { summary, children, collapsed } => Wire::Collapsible(pb::CollapsibleNode {
                summary,
                children: all(children),
                collapsed_by_default: collapsed,
            }),
            Self::SubSession { session_id, summary } => {
                Wire::SubSession(pb::SubSessionNode { session_id, summary })
            }
        };
        pb::RenderNode { node: Some(node) }
    }
}

fn style_to_wire(style: Style) -> pb::TextStyle {
    match style {
        Style::Bold => pb::TextStyle::Bold,
        Style::Italic => pb::TextStyle::Italic,
        Style::Code => pb::TextStyle::Code,
        Style::Dim => pb::TextStyle::Dim,
        Style::Error => pb::TextStyle::Error,
        Style::Warning => pb::TextStyle::Warning,
        Style::Success => pb::TextStyle::Success,
    }
}

fn hunk_to_wire(hunk: DiffHunk) -> pb::DiffHunk {
    // Line numbers beyond 2^31 do not occur in files that anybody diffs; saturate rather than wrap.
    let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
    let line = |line: DiffLine| {
        let op = match line.change {
            LineChange::Context => pb::DiffLineOp::Context,
            LineChange::Add => pb::DiffLineOp::Add,
            LineChange::Remove => pb::DiffLineOp::Remove,
        };
        pb::DiffLine { op: op.into(), text: line.text }
    };
    pb::DiffHunk {
        old_start: number(hunk.old_start),
        old_lines: number(hunk.old_lines),
        new_start: number(hunk.new_start),
        new_lines: number(hunk.new_lines),
        lines: hunk.lines.into_iter().map(line).collect(),
    }
}
