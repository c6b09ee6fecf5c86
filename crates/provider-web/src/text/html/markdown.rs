//! A page as Markdown, or as plain text: one walk over the tree, which is no deeper than [`DEEPEST`].
//!
//! [`DEEPEST`]: super::builder::DEEPEST

use super::content::Content;
use super::escape::code_marker;
use super::inline::Inline;
use super::lines::Gap;
use super::links::Base;
use super::tag::Tag;
use super::tree::{Id, Name, Tree};
use super::{code, table};

/// A page that is being written.
pub(super) struct Writer<'a> {
    pub(super) tree: &'a Tree,
    pub(super) content: &'a Content,
    base: &'a Base,
    /// What is in each element, as far as that decides how it is written.
    forms: &'a Forms,
    pub(super) is_markdown: bool,
    pub(super) inline: Inline,
    in_heading: bool,
    /// Whether the last block was a term, which is defined together with the next.
    after_term: bool,
}

/// What is in each element, as far as that decides how it is written.
pub(super) struct Forms {
    has_blocks: Vec<bool>,
    has_structure: Vec<bool>,
}

impl Forms {
    pub(super) fn of(tree: &Tree, content: &Content) -> Self {
        let mut forms = Self { has_blocks: vec![false; tree.len()], has_structure: vec![false; tree.len()] };
        for id in tree.inner_ids().rev() {
            let Some(tag) = tree.tag(id) else { continue };
            if content.is_left_out(id) {
                continue;
            }
            let parent = tree.parent(id).index();
            forms.has_blocks[parent] |= tag.is_block() || forms.has_blocks[id.index()];
            forms.has_structure[parent] |= needs_lines(tag) || forms.has_structure[id.index()];
        }
        forms
    }

    /// Whether there are blocks in an element.
    pub(super) fn has_blocks(&self, id: Id) -> bool {
        self.has_blocks.get(id.index()).copied().unwrap_or_default()
    }

    /// Whether there is something in an element that cannot be written on one line.
    pub(super) fn has_structure(&self, id: Id) -> bool {
        self.has_structure.get(id.index()).copied().unwrap_or_default()
    }
}

fn needs_lines(tag: Tag) -> bool {
    tag.heading_level().is_some()
        || matches!(tag, Tag::Table | Tag::Pre | Tag::Blockquote | Tag::Dl | Tag::Hr | Tag::Xmp)
}

impl<'a> Writer<'a> {
    /// A writer of at most about `limit` bytes.
    pub(super) fn new(
        tree: &'a Tree,
        content: &'a Content,
        forms: &'a Forms,
        base: &'a Base,
        is_markdown: bool,
        limit: usize,
    ) -> Self {
        let inline = Inline::new(limit, is_markdown);
        Self { tree, content, base, forms, is_markdown, inline, in_heading: false, after_term: false }
    }

    /// Writes what is in an element.
    pub(super) fn children(&mut self, id: Id) {
        let tree = self.tree;
        for child in tree.children(id) {
            if self.inline.lines.is_full() {
                return;
            }
            self.node(child);
        }
    }

    fn node(&mut self, id: Id) {
        match self.tree.tag(id) {
            None => self.inline.text(self.tree.own_text(id).unwrap_or_default()),
            Some(_) if self.content.is_left_out(id) => {}
            Some(tag) => self.element(id, tag),
        }
    }

    fn element(&mut self, id: Id, tag: Tag) {
        match tag {
            Tag::Br => self.inline.line_break(),
            Tag::Img => self.image(id),
            Tag::Input => self.checkbox(id),
            Tag::Iframe | Tag::Frame | Tag::Video | Tag::Audio | Tag::Embed => self.embedded(id),
            Tag::A => self.link(id),
            Tag::Math => self.formula(id),
            Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt if !self.forms.has_blocks(id) => self.inline_code(id),
            _ if tag.is_block() => self.block(id, tag),
            _ => self.emphasis(id, tag),
        }
    }

    fn emphasis(&mut self, id: Id, tag: Tag) {
        let (before, after) = match tag {
            Tag::B | Tag::Strong => ("**", "**"),
            Tag::I | Tag::Em | Tag::Var | Tag::Cite => ("*", "*"),
            Tag::Del | Tag::S | Tag::Strike => ("~~", "~~"),
            Tag::Sup => ("<sup>", "</sup>"),
            Tag::Sub => ("<sub>", "</sub>"),
            Tag::Q => return self.quoted(id),
            Tag::Rt => return self.annotation(id),
            _ => return self.children(id),
        };
        // Markers cannot reach over blocks, and headings are emphasis enough.
        if self.forms.has_blocks(id) || (self.in_heading && before == "**") {
            return self.children(id);
        }
        let opened = self.inline.open(before);
        self.children(id);
        self.inline.close(opened, after);
    }

    fn quoted(&mut self, id: Id) {
        self.inline.text("“");
        self.children(id);
        self.inline.end_word("”");
    }

    /// How a word is read, after the word.
    fn annotation(&mut self, id: Id) {
        self.inline.text("(");
        self.children(id);
        self.inline.end_word(")");
    }

    fn block(&mut self, id: Id, tag: Tag) {
        let after_term = std::mem::take(&mut self.after_term);
        match tag {
            Tag::Pre | Tag::Xmp | Tag::Plaintext => self.code_block(id),
            Tag::Ul | Tag::Ol | Tag::Menu | Tag::Dir => self.list(id, tag),
            Tag::Li => self.item(id, "- ".to_owned()),
            Tag::Dt => {
                self.separated(id, if after_term { Gap::Line } else { Gap::Blank }, Gap::Line);
                self.after_term = true;
            }
            Tag::Dd => self.definition(id),
            Tag::Blockquote => self.quotation(id),
            Tag::Table => table::write(self, id),
            Tag::Hr => self.rule(),
            Tag::Summary => self.strong_line(id),
            Tag::Td | Tag::Th | Tag::Tr => self.separated(id, Gap::Line, Gap::Line),
            Tag::P if self.is_alone(id) => self.separated(id, Gap::Line, Gap::Line),
            // Lines of nothing but their own: an address is written in them.
            Tag::Div | Tag::Address if !self.forms.has_blocks(id) && self.is_line_of(id) => {
                self.separated(id, Gap::Line, Gap::Line);
            }
            _ => match tag.heading_level() {
                Some(level) => self.heading(id, level),
                None => self.separated(id, Gap::Blank, Gap::Blank),
            },
        }
    }

    /// Whether an element is all there is of an item, which then needs no empty lines around it.
    fn is_alone(&self, id: Id) -> bool {
        let parent = self.tree.parent(id);
        let is_blank = |other: Id| self.tree.own_text(other).is_some_and(|text| text.trim().is_empty());
        matches!(self.tree.tag(parent), Some(Tag::Li | Tag::Dd))
            && self.tree.children(parent).all(|other| other == id || is_blank(other))
    }

    /// Whether an element is one of several short lines rather than a paragraph.
    fn is_line_of(&self, id: Id) -> bool {
        self.tree.tag(self.tree.parent(id)) == Some(Tag::Address)
    }

    fn separated(&mut self, id: Id, before: Gap, after: Gap) {
        self.inline.separate(before);
        self.children(id);
        self.inline.separate(after);
    }

    pub(super) fn heading(&mut self, id: Id, level: usize) {
        if self.inline.one_line {
            return self.separated(id, Gap::Blank, Gap::Blank);
        }
        // A heading that holds other blocks, as cards in links do, is no line.
        self.inline.separate(Gap::Blank);
        let is_level = self.is_markdown && self.inline.lines.enter(format!("{} ", "#".repeat(level)), "", 0);
        (self.inline.one_line, self.in_heading) = (true, true);
        self.children(id);
        (self.inline.one_line, self.in_heading) = (false, false);
        self.inline.end_line();
        if is_level {
            self.inline.lines.leave();
        }
        self.inline.separate(Gap::Blank);
    }

    fn strong_line(&mut self, id: Id) {
        self.inline.separate(Gap::Blank);
        let is_plain = self.forms.has_blocks(id);
        let opened = (!is_plain).then(|| self.inline.open("**"));
        self.children(id);
        if let Some(opened) = opened {
            self.inline.close(opened, "**");
        }
        self.inline.separate(Gap::Blank);
    }

    fn rule(&mut self) {
        self.inline.separate(Gap::Blank);
        if !self.inline.one_line && self.is_markdown && !self.inline.lines.as_str().is_empty() {
            self.inline.lines.push("---");
        }
        self.inline.separate(Gap::Blank);
    }

    fn quotation(&mut self, id: Id) {
        self.nested(id, Gap::Blank, Gap::Blank, "> ".to_owned(), "> ", 1);
    }

    fn definition(&mut self, id: Id) {
        let first = if self.is_markdown { ": " } else { "  " };
        self.nested(id, Gap::Line, Gap::Line, first.to_owned(), " ", 2);
    }

    fn nested(&mut self, id: Id, before: Gap, after: Gap, first: String, rest: &'static str, times: usize) {
        if self.inline.one_line {
            return self.separated(id, before, after);
        }
        self.inline.separate(before);
        let is_level = self.inline.lines.enter(first, rest, times);
        self.children(id);
        self.inline.end_line();
        if is_level {
            self.inline.lines.leave();
        }
        self.inline.separate(after);
    }

    fn list(&mut self, id: Id, tag: Tag) {
        let parent = self.tree.tag(self.tree.parent(id));
        let is_inner = parent == Some(Tag::Li) || parent.is_some_and(Tag::is_list);
        let gap = if is_inner { Gap::Line } else { Gap::Blank };
        self.inline.separate(gap);
        let tree = self.tree;
        let mut number =
            tree.attribute(id, Name::Start).and_then(|start| start.trim().parse().ok()).unwrap_or(1_i64);
        for child in tree.children(id) {
            if self.inline.lines.is_full() {
                return;
            }
            if tree.tag(child) == Some(Tag::Li) && !self.content.is_left_out(child) {
                let said = tree.attribute(child, Name::Value).and_then(|value| value.trim().parse().ok());
                number = said.unwrap_or(number);
                let marker = if tag == Tag::Ol { format!("{number}. ") } else { "- ".to_owned() };
                self.item(child, marker);
                number = number.saturating_add(1);
            } else {
                self.node(child);
            }
        }
        self.inline.separate(gap);
    }

    fn item(&mut self, id: Id, marker: String) {
        let width = marker.len();
        self.nested(id, Gap::Line, Gap::Line, marker, " ", width);
    }

    fn checkbox(&mut self, id: Id) {
        let is_checkbox =
            self.tree.attribute(id, Name::Type).is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox"));
        if is_checkbox && self.tree.tag(self.tree.parent(id)) == Some(Tag::Li) {
            let is_checked = self.tree.attribute(id, Name::Checked).is_some();
            self.inline.raw(if is_checked { "[x]" } else { "[ ]" });
            self.inline.text(" ");
        }
    }

    fn code_block(&mut self, id: Id) {
        let left_out = |id| self.content.is_left_out(id);
        let code = code::block(self.tree, id, left_out);
        if code.is_empty() {
            return;
        }
        if self.inline.one_line {
            return self.code_in_line(&code.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        self.inline.separate(Gap::Blank);
        if self.is_markdown {
            let fence = code_marker(&code, 3);
            let language = code::language(self.tree, id).unwrap_or_default();
            self.inline.lines.push_lines(&format!("{fence}{language}"));
            self.inline.lines.push_lines(&code);
            self.inline.lines.push_lines(&fence);
        } else {
            self.inline.lines.push_lines(&code);
        }
        self.inline.separate(Gap::Blank);
    }

    fn inline_code(&mut self, id: Id) {
        let left_out = |id| self.content.is_left_out(id);
        let code = code::inline(self.tree, id, left_out);
        self.code_in_line(&code);
    }

    fn code_in_line(&mut self, code: &str) {
        if code.is_empty() {
            return;
        }
        if !self.is_markdown {
            return self.inline.raw(code);
        }
        let marker = code_marker(code, 1);
        let blank = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        let code = if self.inline.in_cell { code.replace('|', "\\|") } else { code.to_owned() };
        self.inline.raw(&format!("{marker}{blank}{code}{blank}{marker}"));
    }

    fn link(&mut self, id: Id) {
        let said = self.tree.attribute(id, Name::Href).unwrap_or_default();
        let is_local = said.trim_start().starts_with('#');
        let target =
            if self.is_markdown && !(is_local && self.in_heading) { self.base.resolve(said) } else { None };
        let Some(target) = target else { return self.children(id) };
        if self.forms.has_blocks(id) {
            let outer = self.inline.block_link.replace(target);
            self.children(id);
            self.inline.block_link = outer;
            return;
        }
        let opened = self.inline.open_link();
        self.children(id);
        self.inline.close_link(opened, &target);
    }

    fn image(&mut self, id: Id) {
        let text = |name| self.tree.attribute(id, name).unwrap_or_default();
        let alternative = text(Name::Alt).split_whitespace().collect::<Vec<_>>().join(" ");
        let is_dot = |name| matches!(text(name).trim(), "0" | "1");
        let is_decoration = alternative.is_empty() && self.tree.attribute(id, Name::Alt).is_some();
        if is_decoration || (is_dot(Name::Width) && is_dot(Name::Height)) {
            return;
        }
        if !self.is_markdown {
            return self.inline.text(&alternative);
        }
        let source = [Name::Src, Name::DataSrc].into_iter().find_map(|name| self.base.resolve(text(name)));
        let alternative = alternative.replace(['[', ']'], "");
        let alternative = if self.inline.in_cell { alternative.replace('|', "\\|") } else { alternative };
        match source {
            Some(source) => self.inline.raw(&format!("![{alternative}]({source})")),
            None if alternative.is_empty() => {}
            None => self.inline.raw(&format!("![{alternative}]()")),
        }
    }

    /// What plays or shows something else: where that is.
    fn embedded(&mut self, id: Id) {
        let source_of = |id| self.tree.attribute(id, Name::Src).and_then(|source| self.base.resolve(source));
        let source = source_of(id).or_else(|| self.tree.children(id).find_map(source_of));
        let is_dot =
            |name| self.tree.attribute(id, name).is_some_and(|size| matches!(size.trim(), "0" | "1"));
        let Some(source) = source else { return };
        if !self.is_markdown || (is_dot(Name::Width) && is_dot(Name::Height)) {
            return;
        }
        let what = match self.tree.tag(id) {
            Some(Tag::Video) => "video",
            Some(Tag::Audio) => "audio",
            _ => "embedded page",
        };
        self.inline.separate(Gap::Blank);
        self.inline.raw(&format!("[{what}]({source})"));
        self.inline.separate(Gap::Blank);
    }

    /// A formula: as TeX where the page has that, else as its characters.
    fn formula(&mut self, id: Id) {
        let is_tex = |id: &Id| {
            self.tree.tag(*id) == Some(Tag::Annotation)
                && self.tree.attribute(*id, Name::Encoding).is_some_and(|encoding| encoding.ends_with("tex"))
        };
        let tex = self.tree.descendants(id, |_| false).take(10_000).find(is_tex);
        match tex {
            Some(tex) => {
                let formula = code::inline(self.tree, tex, |_| false);
                self.inline.raw(&format!("${formula}$"));
            }
            None => self.children(id),
        }
    }

    /// Writes an element on one line of its own, and gives that line.
    pub(super) fn cell(&mut self, id: Id) -> String {
        let mut inline = Inline::new(self.inline.lines.room(), self.is_markdown);
        (inline.one_line, inline.in_cell) = (true, true);
        let outer = std::mem::replace(&mut self.inline, inline);
        self.children(id);
        self.inline.end_line();
        let written = std::mem::replace(&mut self.inline, outer).lines.finish();
        let text = written.trim();
        let mut text = text.strip_suffix("<br>").unwrap_or(text).to_owned();
        text.truncate(text.trim_end().len());
        text
    }

    pub(super) fn has_structure(&self, id: Id) -> bool {
        self.forms.has_structure(id)
    }
}
