//! HTML: what a page says, as Markdown or as plain text.
//!
//! Input is hostile until shown otherwise. Every step takes time and memory that grow with the input and nothing else:
//! [`builder`] bounds how deep the tree is, [`content`] needs a few passes over it, [`markdown`] one walk, and what is
//! written is bounded by a multiple of what came in.

mod builder;
mod code;
mod content;
mod escape;
#[cfg(any(test, feature = "testing"))]
pub mod hostile;
mod inline;
mod lines;
mod links;
mod markdown;
mod table;
mod tag;
#[cfg(test)]
mod tests;
mod tree;

use url::Url;

use self::content::Content;
use self::links::Base;
use self::markdown::{Forms, Writer};
use self::tag::Tag;
use self::tree::{Id, Name, Tree};

/// A page as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What the page calls itself.
    pub title: Option<String>,
    /// What it says.
    pub text: String,
    /// What a reader should know beside it.
    pub notes: Vec<String>,
}

/// Text may be this many times as long as the page it is of, for the sake of absolute links.
const MOST_GROWTH: usize = 4;
/// Pages with less text than this, in characters, and with scripts are likely made by the scripts.
const LITTLE_TEXT: u32 = 200;

/// The words of what may be HTML on one line, cut after `longest` characters.
pub(crate) fn words(text: &str, longest: usize) -> String {
    let read = if text.contains(['<', '&']) { read(text, None, false).text } else { text.to_owned() };
    let words = read.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(longest) {
        Some((at, _)) => format!("{} …", words[..at].trim_end()),
        None => words,
    }
}

/// Reads a page. Relative links start from `url`, or from what the page says.
pub fn read(html: &str, url: Option<&Url>, is_markdown: bool) -> Page {
    let built = builder::build(html);
    let tree = &built.tree;
    let content = Content::of(tree);
    let forms = Forms::of(tree, &content);
    let base = Base::of(url, base_of(tree));
    let limit = html.len().saturating_mul(MOST_GROWTH).saturating_add(64 << 10);
    let mut writer = Writer::new(tree, &content, &forms, &base, is_markdown, limit);
    let mut notes = Vec::new();
    if content.root != Id::ROOT
        && let Some(heading) = outer_heading(tree, &content)
    {
        writer.heading(heading, 1);
    }
    writer.children(content.root);
    writer.inline.end_line();
    if writer.inline.lines.is_full() || built.is_cut {
        notes.push("the page is so large or so nested that a part of it was left out".to_owned());
    }
    if content.skipped_characters > content.shown_characters / 2 {
        notes.push(format!(
            "this is the main part of the page; navigation and the like, {} characters, are left out: format html has \
             everything",
            content.skipped_characters
        ));
    }
    if content.shown_characters < LITTLE_TEXT && built.script_bytes + html.matches("<script").count() > 0 {
        notes.push("the page has hardly any text without running its scripts, which is not done".to_owned());
    }
    Page { title: title(tree), text: writer.inline.lines.finish(), notes }
}

/// What the page's `<base>` says.
fn base_of(tree: &Tree) -> Option<&str> {
    let base = tree.ids().find(|id| tree.tag(*id) == Some(Tag::Base))?;
    tree.attribute(base, Name::Href)
}

/// The heading of the page, where what is shown begins without one.
fn outer_heading(tree: &Tree, content: &Content) -> Option<Id> {
    let is_title = |id: Id| matches!(tree.tag(id), Some(Tag::H1 | Tag::H2));
    if tree.descendants(content.root, |id| content.is_left_out(id)).any(is_title) {
        return None;
    }
    tree.ids().find(|id| tree.tag(*id) == Some(Tag::H1))
}

fn title(tree: &Tree) -> Option<String> {
    let words = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(text).filter(|text| !text.is_empty())
    };
    let text_of = |id: Id| {
        let all: String =
            tree.descendants(id, |_| false).take(1_000).filter_map(|id| tree.own_text(id)).collect();
        words(&all)
    };
    let in_drawing = |id: Id| tree.tag(tree.parent(id)) == Some(Tag::Svg);
    let first = |wanted: Tag| tree.ids().find(|id| tree.tag(*id) == Some(wanted) && !in_drawing(*id));
    let said = first(Tag::Title).and_then(text_of);
    said.or_else(|| {
        let is_title = |id: &Id| tree.attribute(*id, Name::Property) == Some("og:title");
        let meta = tree.ids().filter(|id| tree.tag(*id) == Some(Tag::Meta)).find(is_title)?;
        words(tree.attribute(meta, Name::Content)?)
    })
    .or_else(|| first(Tag::H1).and_then(text_of))
}
