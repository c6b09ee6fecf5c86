//! What of a page is worth reading: what nobody sees is left out, what stands around the content is left out where the
//! content can do without, and where that would leave too little, everything visible is kept.

use super::tag::Tag;
use super::tree::{Id, Name, Tree};

/// Pages with less text than this, in characters, keep everything that is visible.
const LITTLE: u32 = 250;

/// What is shown of a page.
pub(super) struct Content {
    /// The element that is shown.
    pub(super) root: Id,
    /// What is left out, by node; with a node all that is in it.
    left_out: Vec<bool>,
    /// Characters of visible text that are not shown.
    pub(super) skipped_characters: u32,
    /// Characters that are shown.
    pub(super) shown_characters: u32,
}

impl Content {
    /// Whether a node is left out, with all that is in it.
    pub(super) fn is_left_out(&self, id: Id) -> bool {
        self.left_out.get(id.index()).copied().unwrap_or_default()
    }

    /// Decides what to show.
    pub(super) fn of(tree: &Tree) -> Self {
        let hidden = hidden(tree);
        let visible = Amounts::of(tree, &hidden);
        let around = around(tree, &hidden, &visible);
        let content = Amounts::of(tree, &around);
        let all = visible.of_node(Id::ROOT);
        if content.of_node(Id::ROOT) < LITTLE.min(all / 4 + 1) {
            return Self { root: Id::ROOT, left_out: hidden, skipped_characters: 0, shown_characters: all };
        }
        let root = main_element(tree, &content);
        let shown_characters = content.of_node(root);
        let skipped_characters = all.saturating_sub(shown_characters);
        Self { root, left_out: around, skipped_characters, shown_characters }
    }
}

/// How many characters are in the subtree of each node, without those left out: all, and those of links.
struct Amounts {
    text: Vec<u32>,
    links: Vec<u32>,
}

impl Amounts {
    fn of(tree: &Tree, left_out: &[bool]) -> Self {
        let mut amounts = Self { text: vec![0; tree.len()], links: vec![0; tree.len()] };
        for id in tree.ids().rev() {
            if left_out[id.index()] {
                (amounts.text[id.index()], amounts.links[id.index()]) = (0, 0);
                continue;
            }
            if let Some(text) = tree.own_text(id) {
                amounts.text[id.index()] = visible_characters(text);
            }
            if tree.tag(id) == Some(Tag::A) {
                amounts.links[id.index()] = amounts.text[id.index()];
            }
            let (text, links) = (amounts.text[id.index()], amounts.links[id.index()]);
            let parent = tree.parent(id).index();
            if id != Id::ROOT {
                amounts.text[parent] = amounts.text[parent].saturating_add(text);
                amounts.links[parent] = amounts.links[parent].saturating_add(links);
            }
        }
        amounts
    }

    fn of_node(&self, id: Id) -> u32 {
        self.text.get(id.index()).copied().unwrap_or_default()
    }

    /// Whether most of the text is links.
    fn is_mostly_links(&self, id: Id) -> bool {
        let links = self.links.get(id.index()).copied().unwrap_or_default();
        u64::from(links) * 2 > u64::from(self.of_node(id))
    }
}

/// Characters that are no blanks. Continuation bytes are not counted.
fn visible_characters(text: &str) -> u32 {
    let count = text.bytes().filter(|byte| !byte.is_ascii_whitespace() && (*byte as i8) >= -0x40).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Marks nodes and all that is in them.
fn marked(tree: &Tree, mut is_marked: impl FnMut(Id) -> bool) -> Vec<bool> {
    let mut marks = vec![false; tree.len()];
    for id in tree.inner_ids() {
        marks[id.index()] = marks[tree.parent(id).index()] || is_marked(id);
    }
    marks
}

/// What a reader of the page would not see, or could only click.
fn hidden(tree: &Tree) -> Vec<bool> {
    marked(tree, |id| tree.tag(id).is_some_and(|tag| is_hidden(tree, id, tag)))
}

fn is_hidden(tree: &Tree, id: Id, tag: Tag) -> bool {
    use Tag::*;
    match tag {
        // What it holds is kept where it is the text of something else.
        Button => !is_label(tree, id),
        Dialog => tree.attribute(id, Name::Open).is_none(),
        Script | Style | Noscript | Template | Svg | Title | Select | Datalist | Textarea | Object
        | Canvas | Rp => true,
        _ => is_hidden_by_attributes(tree, id) || (tag == A && is_mark(tree, id)),
    }
}

/// Whether a button is all there is of a heading or a question, which unfolds what follows.
fn is_label(tree: &Tree, id: Id) -> bool {
    let parent = tree.parent(id);
    let is_heading = tree.tag(parent).is_some_and(|tag| {
        tag.heading_level().is_some() || matches!(tag, Tag::Summary | Tag::Dt | Tag::Legend | Tag::Caption)
    });
    let is_blank = |other: Id| tree.own_text(other).is_some_and(|text| text.trim().is_empty());
    is_heading && tree.children(parent).all(|other| other == id || is_blank(other))
}

fn is_hidden_by_attributes(tree: &Tree, id: Id) -> bool {
    let is = |name, wanted: &str| {
        tree.attribute(id, name).is_some_and(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    let is_hidden = tree
        .attribute(id, Name::Hidden)
        .is_some_and(|value| !value.trim().eq_ignore_ascii_case("until-found"));
    is_hidden
        || is(Name::AriaHidden, "true")
        || tree.attribute(id, Name::Style).is_some_and(hides)
        || tree.classes(id).any(|class| HIDDEN_CLASSES.contains(&class))
}

/// Names by which pages mark what is not shown, what only helps to navigate, and the numbers beside code.
const HIDDEN_CLASSES: [&str; 21] = [
    "sr-only",
    "visually-hidden",
    "visuallyhidden",
    "screen-reader-text",
    "skip-link",
    "skip-to-content",
    "headerlink",
    "header-anchor",
    "anchorjs-link",
    "mw-editsection",
    "noprint",
    "linenos",
    "linenodiv",
    "lineno",
    "line-numbers-rows",
    "gutter",
    "blob-num",
    "copybtn",
    "d-none",
    "hideme",
    "boring",
];

fn hides(style: &str) -> bool {
    let style: String = style
        .chars()
        .take(400)
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| c.to_ascii_lowercase())
        .collect();
    style.split(';').any(|rule| {
        let rule = rule.trim_end_matches("!important");
        matches!(rule, "display:none" | "visibility:hidden")
    })
}

/// A link to the very place where it stands, as documentation puts beside headings.
fn is_mark(tree: &Tree, id: Id) -> bool {
    let is_local = tree.attribute(id, Name::Href).is_some_and(|target| target.trim_start().starts_with('#'));
    if !is_local {
        return false;
    }
    let mut text = String::new();
    for child in tree.descendants(id, |_| false).take(64) {
        match tree.tag(child) {
            Some(Tag::Img) => return false,
            Some(_) => {}
            None => text.push_str(tree.own_text(child).unwrap_or_default().trim()),
        }
        if text.len() > 8 {
            return false;
        }
    }
    // A sign, not a word.
    text.chars().count() <= 2 && !text.chars().any(char::is_alphanumeric)
}

/// What is hidden, and what stands around the content.
fn around(tree: &Tree, hidden: &[bool], visible: &Amounts) -> Vec<bool> {
    let all = visible.of_node(Id::ROOT);
    let inside = marked(tree, |id| {
        matches!(tree.tag(id), Some(Tag::Main | Tag::Article | Tag::Section | Tag::Blockquote))
            || tree.attribute(id, Name::Role) == Some("main")
    });
    let mut marks = vec![false; tree.len()];
    for id in tree.inner_ids() {
        let index = id.index();
        marks[index] = marks[tree.parent(id).index()] || hidden[index];
        // Whatever it is called, most of a page is not what stands around it.
        if !marks[index] && visible.of_node(id).saturating_mul(2) <= all {
            let stands_around =
                |tag| stands_around(tree, id, tag, inside[index], visible.is_mostly_links(id));
            marks[index] = tree.tag(id).is_some_and(stands_around);
        }
    }
    marks
}

fn stands_around(tree: &Tree, id: Id, tag: Tag, is_inside: bool, is_links: bool) -> bool {
    let role = tree.attribute(id, Name::Role).unwrap_or_default();
    match tag {
        Tag::Nav | Tag::Search => return true,
        Tag::Aside => return is_links || !is_inside,
        Tag::Header | Tag::Footer => return !is_inside || is_links,
        _ => {}
    }
    let by_role = match role {
        "navigation" | "search" | "contentinfo" | "menu" | "menubar" | "toolbar" => true,
        "banner" | "complementary" => !is_inside,
        "dialog" | "alertdialog" => true,
        _ => false,
    };
    let is_named = |name: &str| AROUND.contains(&name);
    let is_block =
        matches!(tag, Tag::Div | Tag::Section | Tag::Ul | Tag::Ol | Tag::P | Tag::Form | Tag::Table);
    by_role
        || (is_block
            && (tree.classes(id).any(is_named) || tree.attribute(id, Name::Id).is_some_and(is_named)))
}

/// Names by which pages mark what stands around the content.
const AROUND: [&str; 27] = [
    "sidebar",
    "sphinxsidebar",
    "related",
    "breadcrumb",
    "breadcrumbs",
    "docnav",
    "navbar",
    "navigation",
    "navfooter",
    "navheader",
    "nav",
    "toc-sidebar",
    "site-header",
    "site-footer",
    "page-footer",
    "footer",
    "cookie-banner",
    "cookie-notice",
    "cookie-consent",
    "newsletter",
    "share-buttons",
    "social-share",
    "advertisement",
    "pagination",
    "nav-chapters",
    "menu-bar",
    "prev-next",
];

/// The element that holds the content: what the page itself says, else the smallest that has nearly all of it.
fn main_element(tree: &Tree, content: &Amounts) -> Id {
    let all = content.of_node(Id::ROOT);
    let largest = |is_candidate: &dyn Fn(Id) -> bool| {
        // Of two that hold the same, the outer one is met first.
        let mut best = None;
        for id in tree.inner_ids().filter(|id| is_candidate(*id)) {
            let amount = content.of_node(id);
            if best.is_none_or(|(_, most)| amount > most) {
                best = Some((id, amount));
            }
        }
        best
    };
    let is_main = |id: Id| {
        tree.tag(id) == Some(Tag::Main)
            || (tree.tag(id).is_some() && tree.attribute(id, Name::Role) == Some("main"))
    };
    if let Some((main, amount)) = largest(&is_main)
        && amount.saturating_mul(4) >= all.min(4 * LITTLE)
    {
        return main;
    }
    let is_article = |id: Id| {
        tree.tag(id) == Some(Tag::Article)
            || (tree.tag(id).is_some() && tree.attribute(id, Name::Role) == Some("article"))
    };
    match largest(&is_article) {
        Some((article, amount)) if amount.saturating_mul(2) >= all => article,
        _ => dense_element(tree, content).unwrap_or(Id::ROOT),
    }
}

/// The parts of all text in tenths that the densest element must have to be shown alone.
const ENOUGH: u64 = 6;

/// What a paragraph stands in. Code is often wrapped in elements of its own, which hold nothing else.
fn holder(tree: &Tree, content: &Amounts, id: Id) -> Id {
    let mut holder = tree.parent(id);
    while tree.tag(id) == Some(Tag::Pre)
        && holder != Id::ROOT
        && content.of_node(holder) == content.of_node(id)
    {
        holder = tree.parent(holder);
    }
    holder
}

/// The element whose paragraphs hold most of the text, where that is nearly all there is.
fn dense_element(tree: &Tree, content: &Amounts) -> Option<Id> {
    let mut score = vec![0_u32; tree.len()];
    for id in tree.inner_ids() {
        let is_paragraph = matches!(tree.tag(id), Some(Tag::P | Tag::Pre | Tag::Blockquote));
        let amount = content.of_node(id);
        if is_paragraph && amount >= 25 && !content.is_mostly_links(id) {
            let parent = holder(tree, content, id);
            let above = tree.parent(parent).index();
            score[parent.index()] = score[parent.index()].saturating_add(2 * amount.min(1_000));
            score[above] = score[above].saturating_add(amount.min(1_000));
        }
    }
    let (best, _) = tree.inner_ids().map(|id| (id, score[id.index()])).max_by_key(|(_, score)| *score)?;
    let has_enough = u64::from(content.of_node(best)) * 10 >= u64::from(content.of_node(Id::ROOT)) * ENOUGH;
    (score[best.index()] > 0 && has_enough && !content.is_mostly_links(best)).then_some(best)
}
