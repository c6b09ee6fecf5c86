//! A page as a tree, in one vector: parents stand before their children, so that sums over subtrees and marks that are
//! inherited need one pass each, and nothing needs recursion.

use super::tag::Tag;

/// A node's place in [`Tree::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u32);

impl Id {
    /// The node that holds all others.
    pub(super) const ROOT: Self = Self(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Some bytes of [`Tree::text`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// What a node is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    /// An element, and which of [`Tree::attributes`] are its own.
    Element(Tag, Span),
    /// Characters.
    Text(Span),
}

/// One element or piece of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) parent: Id,
    /// The root, which is nobody's child, stands for "none".
    first_child: Id,
    last_child: Id,
    next: Id,
    pub(super) data: Data,
}

/// The attributes that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Alt,
    AriaHidden,
    Checked,
    Class,
    Colspan,
    Content,
    DataLang,
    DataSrc,
    Encoding,
    Height,
    Hidden,
    Href,
    Id,
    Label,
    Open,
    Property,
    Role,
    Rowspan,
    Src,
    Start,
    Style,
    Type,
    Value,
    Width,
}

impl Name {
    /// The attribute with this name in lower case, if it is one of those kept.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"alt" => Self::Alt,
            b"aria-hidden" => Self::AriaHidden,
            b"checked" => Self::Checked,
            b"class" => Self::Class,
            b"colspan" => Self::Colspan,
            b"content" => Self::Content,
            b"data-lang" | b"data-language" => Self::DataLang,
            b"data-src" | b"data-original" => Self::DataSrc,
            b"encoding" => Self::Encoding,
            b"height" => Self::Height,
            b"hidden" => Self::Hidden,
            b"href" => Self::Href,
            b"id" => Self::Id,
            b"label" => Self::Label,
            b"open" => Self::Open,
            b"name" | b"property" => Self::Property,
            b"role" => Self::Role,
            b"rowspan" => Self::Rowspan,
            b"src" => Self::Src,
            b"start" => Self::Start,
            b"style" => Self::Style,
            b"type" => Self::Type,
            b"value" => Self::Value,
            b"width" => Self::Width,
            _ => return None,
        })
    }
}

/// A page.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    attributes: Vec<(Name, Span)>,
    text: String,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node {
            parent: Id::ROOT,
            first_child: Id::ROOT,
            last_child: Id::ROOT,
            next: Id::ROOT,
            data: Data::Element(Tag::Html, Span::default()),
        };
        Self { nodes: vec![root], attributes: Vec::new(), text: String::new() }
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes, parents before children.
    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..self.position()).map(Id)
    }

    /// All nodes but the root.
    pub(super) fn inner_ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (1..self.position()).map(Id)
    }

    fn position(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn node(&self, id: Id) -> Node {
        self.nodes[id.index()]
    }

    pub(super) fn parent(&self, id: Id) -> Id {
        self.node(id).parent
    }

    /// The tag of an element; `None` for text.
    pub(super) fn tag(&self, id: Id) -> Option<Tag> {
        match self.node(id).data {
            Data::Element(tag, _) => Some(tag),
            Data::Text(_) => None,
        }
    }

    /// The children in their order.
    pub(super) fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let some = |id: Id| (id != Id::ROOT).then_some(id);
        std::iter::successors(some(self.node(id).first_child), move |&child| some(self.node(child).next))
    }

    /// The nodes of a subtree, parents before children, without those that `skips` says of.
    pub(super) fn descendants<'a>(
        &'a self,
        top: Id,
        skips: impl Fn(Id) -> bool + 'a,
    ) -> impl Iterator<Item = Id> + 'a {
        let mut next = Some(top);
        std::iter::from_fn(move || {
            let current = next?;
            let down = if skips(current) { Id::ROOT } else { self.node(current).first_child };
            next = if down != Id::ROOT { Some(down) } else { self.after(current, top) };
            Some(current)
        })
        .skip(1)
    }

    /// The node that follows `id` and what is in it, inside `top`.
    fn after(&self, mut id: Id, top: Id) -> Option<Id> {
        while id != top {
            let node = self.node(id);
            if node.next != Id::ROOT {
                return Some(node.next);
            }
            id = node.parent;
        }
        None
    }

    pub(super) fn text_of(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The text of a text node.
    pub(super) fn own_text(&self, id: Id) -> Option<&str> {
        match self.node(id).data {
            Data::Text(span) => Some(self.text_of(span)),
            Data::Element(..) => None,
        }
    }

    /// An attribute's value; empty for one without a value.
    pub(super) fn attribute(&self, id: Id, name: Name) -> Option<&str> {
        let Data::Element(_, own) = self.node(id).data else { return None };
        let own = self.attributes.get(own.start as usize..own.end as usize).unwrap_or_default();
        own.iter().find(|(known, _)| *known == name).map(|(_, value)| self.text_of(*value))
    }

    /// The names in the `class` attribute.
    pub(super) fn classes(&self, id: Id) -> impl Iterator<Item = &str> {
        self.attribute(id, Name::Class).unwrap_or_default().split_ascii_whitespace().take(MOST_CLASSES)
    }

    /// Keeps text; what is kept last can be made longer with the next piece.
    pub(super) fn keep(&mut self, text: &str) -> Span {
        let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let start = position(self.text.len());
        self.text.push_str(text);
        Span { start, end: position(self.text.len()) }
    }

    /// Where attributes that are added now begin.
    pub(super) fn attributes_end(&self) -> u32 {
        u32::try_from(self.attributes.len()).unwrap_or(u32::MAX)
    }

    /// Adds an attribute of the element that comes next.
    pub(super) fn keep_attribute(&mut self, name: Name, value: Span) {
        self.attributes.push((name, value));
    }

    /// Gives the attribute added last its value.
    pub(super) fn set_last_value(&mut self, value: Span) {
        if let Some((_, last)) = self.attributes.last_mut() {
            *last = value;
        }
    }

    /// Forgets the attributes added since `start`, with their values: their element is not kept, and the text on both
    /// sides of it is one.
    pub(super) fn forget_attributes_since(&mut self, start: u32) {
        let valued = self.attributes.iter().skip(start as usize).find(|(_, value)| value.end > value.start);
        if let Some((_, value)) = valued {
            self.text.truncate(value.start as usize);
        }
        self.attributes.truncate(start as usize);
    }

    /// Whether the element whose attributes began at `start` has this one.
    pub(super) fn has_attribute_since(&self, start: u32, name: Name) -> bool {
        self.attributes.iter().skip(start as usize).any(|(known, _)| *known == name)
    }

    /// Adds a node as the last child of `parent`.
    pub(super) fn append(&mut self, parent: Id, data: Data) -> Id {
        let id = Id(self.position());
        self.nodes.push(Node { parent, first_child: Id::ROOT, last_child: Id::ROOT, next: Id::ROOT, data });
        let above = &mut self.nodes[parent.index()];
        let last = std::mem::replace(&mut above.last_child, id);
        if last == Id::ROOT {
            above.first_child = id;
        } else {
            self.nodes[last.index()].next = id;
        }
        id
    }

    /// Adds text at the end of `parent`, to the text that is there already where it is the last that was kept.
    pub(super) fn append_text(&mut self, parent: Id, text: &str) {
        let span = self.keep(text);
        let last = self.nodes[parent.index()].last_child;
        if last != Id::ROOT
            && let Data::Text(before) = &mut self.nodes[last.index()].data
            && before.end == span.start
        {
            before.end = span.end;
            return;
        }
        self.append(parent, Data::Text(span));
    }
}

/// More names of one element are not looked at.
const MOST_CLASSES: usize = 32;
