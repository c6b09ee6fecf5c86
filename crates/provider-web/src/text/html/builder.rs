//! From bytes to a tree: tags that were never closed, never opened or nested a hundred thousand deep make a tree of
//! bounded depth, in time that grows with the input and nothing else.
//!
//! The tokens are those of the HTML standard. The tree is simpler than the standard's: it knows which elements end
//! others, and it does not move elements about, which matters to a browser and not to a reader.

use std::convert::Infallible;

use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};

use super::tag::{TAGS, Tag};
use super::tree::{Data, Id, Name, Span, Tree};

/// Elements nested deeper are taken for parts of the deepest one.
pub(super) const DEEPEST: usize = 160;
/// From this depth on, a block ends what is open of the line before it: bold that is never ended, hundreds of times,
/// must not take the room of the elements that give a page its form.
const DEEP: usize = 64;
/// Further elements are left out, while their text is kept.
const MOST_NODES: usize = 4_000_000;
/// Longer values of attributes are left out.
const LONGEST_VALUE: usize = 16 * 1024;

/// A page and what was not kept of it.
pub(super) struct Built {
    pub(super) tree: Tree,
    /// Whether there were more elements than are kept.
    pub(super) is_cut: bool,
    /// Bytes of scripts that were not run.
    pub(super) script_bytes: usize,
}

/// Makes a tree of a page.
pub(super) fn build(html: &str) -> Built {
    let mut builder = Builder::new();
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: html5gum::Span<()>| {
        builder.handle(event);
        None::<Infallible>
    });
    emitter.naively_switch_states(true);
    // Reading from memory cannot fail.
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    Built { tree: builder.tree, is_cut: builder.is_cut, script_bytes: builder.script_bytes }
}

struct Builder {
    tree: Tree,
    open: Vec<(Tag, Id)>,
    /// How many elements of each tag are open, so that most questions need no search.
    count: [u32; TAGS],
    /// How many of each tag are open beyond [`DEEPEST`]; they are not in the tree, and their end tags end nothing.
    beyond: [u32; TAGS],
    /// The start tag that is being read, and where its attributes begin.
    starting: Option<(Tag, u32)>,
    /// Whether the attribute that is being read is kept.
    keeps_value: bool,
    /// The first line break of a `<pre>` is not a part of it.
    drops_line_break: bool,
    is_cut: bool,
    script_bytes: usize,
}

impl Builder {
    fn new() -> Self {
        Self {
            tree: Tree::new(),
            open: Vec::new(),
            count: [0; TAGS],
            beyond: [0; TAGS],
            starting: None,
            keeps_value: false,
            drops_line_break: false,
            is_cut: false,
            script_bytes: 0,
        }
    }

    fn handle(&mut self, event: CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.starting = Some((Tag::of(name), self.tree.attributes_end()));
                self.keeps_value = false;
            }
            CallbackEvent::AttributeName { name } => self.attribute(name),
            CallbackEvent::AttributeValue { value } => self.value(value),
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(Tag::of(name)),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
    }

    fn attribute(&mut self, name: &[u8]) {
        self.keeps_value = false;
        let (Some((_, start)), Some(name)) = (self.starting, Name::of(name)) else { return };
        // The first of several counts. There are few names, so that this search is short.
        if !self.tree.has_attribute_since(start, name) {
            self.tree.keep_attribute(name, Span::default());
            self.keeps_value = true;
        }
    }

    fn value(&mut self, value: &[u8]) {
        if self.keeps_value && value.len() <= LONGEST_VALUE {
            let span = self.tree.keep(&String::from_utf8_lossy(value));
            self.tree.set_last_value(span);
        }
        self.keeps_value = false;
    }

    fn current(&self) -> Id {
        self.open.last().map_or(Id::ROOT, |(_, id)| *id)
    }

    fn is_open(&self, tag: Tag) -> bool {
        self.count[tag.index()] > 0
    }

    fn text(&mut self, text: &str) {
        let text = match text.strip_prefix('\n') {
            Some(rest) if self.drops_line_break => rest,
            _ => text,
        };
        self.drops_line_break = false;
        match self.open.last() {
            Some((Tag::Script, _)) => self.script_bytes += text.len(),
            Some((tag, _)) if tag.is_raw() => {}
            _ if text.is_empty() => {}
            _ => self.tree.append_text(self.current(), text),
        }
    }

    fn start(&mut self, self_closing: bool) {
        let Some((tag, start)) = self.starting.take() else { return };
        self.drops_line_break = matches!(tag, Tag::Pre);
        if matches!(tag, Tag::Html | Tag::Head | Tag::Body | Tag::Frameset) {
            self.tree.forget_attributes_since(start);
            return;
        }
        self.end_implied(tag);
        if self.tree.len() >= MOST_NODES {
            self.is_cut = true;
            self.tree.forget_attributes_since(start);
            return;
        }
        if tag.is_block() && self.open.len() >= DEEP {
            while self.open.last().is_some_and(|(tag, _)| !tag.is_block() && !tag.is_boundary()) {
                self.pop();
            }
        }
        let attributes = Span { start, end: self.tree.attributes_end() };
        let is_foreign = self.is_open(Tag::Svg) || self.is_open(Tag::Math) || matches!(tag, Tag::Svg);
        let is_leaf = tag.is_void() || (self_closing && is_foreign);
        if !is_leaf && self.open.len() >= DEEPEST {
            self.beyond[tag.index()] += 1;
            self.tree.forget_attributes_since(start);
            return;
        }
        let id = self.tree.append(self.current(), Data::Element(tag, attributes));
        if !is_leaf {
            self.open.push((tag, id));
            self.count[tag.index()] += 1;
        }
    }

    /// Ends what the start of `tag` ends.
    fn end_implied(&mut self, tag: Tag) {
        use Tag::*;
        if tag.ends_paragraph() {
            self.leave_pictures();
            self.end_within(&[P], Tag::is_boundary);
        }
        match tag {
            Li => self.end_within(&[Li], |tag| tag.is_list() || tag.is_boundary()),
            Dt | Dd => self.end_within(&[Dt, Dd], |tag| tag == Dl || tag.is_boundary()),
            Option | Optgroup => self.end_within(&[Option], |tag| matches!(tag, Select | Datalist)),
            Td | Th => self.end_within(&[Td, Th], |tag| tag == Table),
            Tr => self.end_within(&[Tr], |tag| tag == Table),
            Thead | Tbody | Tfoot => {
                self.end_within(&[Thead, Tbody, Tfoot, Caption, Colgroup], |tag| tag == Table);
            }
            A => self.end_within(&[A], |tag| tag.is_block() || tag.is_boundary()),
            Rt | Rp => self.end_within(&[Rt, Rp], Tag::is_block),
            _ => {}
        }
        if tag.heading_level().is_some()
            && self.open.last().is_some_and(|(tag, _)| tag.heading_level().is_some())
        {
            self.pop();
        }
    }

    /// A block of text is no part of a drawing: whoever wrote it forgot to end the drawing.
    fn leave_pictures(&mut self) {
        if self.is_open(Tag::Svg) && !self.is_open(Tag::ForeignObject) && !self.is_open(Tag::Desc) {
            self.end_within(&[Tag::Svg], |tag| tag == Tag::Template);
        }
    }

    fn end(&mut self, tag: Tag) {
        if tag == Tag::Br {
            self.starting = Some((tag, self.tree.attributes_end()));
            return self.start(false);
        }
        if self.beyond[tag.index()] > 0 {
            self.beyond[tag.index()] -= 1;
            return;
        }
        let own_boundary = tag.is_boundary() || tag.is_table_part();
        match tag {
            // Names that are not told apart: only the innermost element can be meant.
            Tag::Other => {
                if self.open.last().is_some_and(|(tag, _)| *tag == Tag::Other) {
                    self.pop();
                }
            }
            _ if own_boundary => self.end_within(&[tag], |other| other == Tag::Table),
            _ if tag.is_block() => self.end_within(&[tag], Tag::is_boundary),
            _ => self.end_within(&[tag], |other| other.is_block() || other.is_boundary()),
        }
    }

    /// Ends the innermost open element that is one of `tags`, with all that is open inside it, if no element that is a
    /// boundary lies between.
    fn end_within(&mut self, tags: &[Tag], is_boundary: impl Fn(Tag) -> bool) {
        if !tags.iter().any(|tag| self.is_open(*tag)) {
            return;
        }
        for at in (0..self.open.len()).rev() {
            let (tag, _) = self.open[at];
            if tags.contains(&tag) {
                while self.open.len() > at {
                    self.pop();
                }
                return;
            }
            if is_boundary(tag) {
                return;
            }
        }
    }

    fn pop(&mut self) {
        if let Some((tag, _)) = self.open.pop() {
            self.count[tag.index()] -= 1;
            // What was opened deeper than is kept has been left too.
            self.beyond = [0; TAGS];
        }
    }
}
