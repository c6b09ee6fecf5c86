//! XML: feeds as lists of what they offer, everything else with a line for each element.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use url::Url;

/// Deeper elements are not indented further.
const DEEPEST: usize = 16;
/// Longer summaries of an item are cut, in characters.
const LONGEST_SUMMARY: usize = 600;
/// Further items are only counted.
const MOST_ITEMS: usize = 1_000;

/// What a feed offers.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// What it calls itself.
    pub(super) title: Option<String>,
    items: Vec<Item>,
    total: usize,
}

#[derive(Debug, Default)]
struct Item {
    title: String,
    link: String,
    date: String,
    summary: String,
}

/// Reads RSS, RDF or Atom; `None` when it is none of them.
pub(super) fn feed(xml: &str) -> Option<Feed> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = false;
    let mut scan = Scan::default();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => scan.start(&start, false)?,
            Ok(Event::Empty(start)) => scan.start(&start, true)?,
            Ok(Event::End(_)) => scan.end(),
            Ok(Event::Text(text)) => scan.text.push_str(&String::from_utf8_lossy(&text)),
            Ok(Event::CData(text)) => scan.text.push_str(&String::from_utf8_lossy(&text)),
            Ok(Event::GeneralRef(name)) => scan.text.push_str(&reference(&String::from_utf8_lossy(&name))),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    scan.is_feed.then_some(scan.feed)
}

#[derive(Default)]
struct Scan {
    feed: Feed,
    is_feed: bool,
    /// The names of the open elements; deeper ones are counted only.
    open: Vec<String>,
    beyond: usize,
    text: String,
    item: Option<Item>,
}

impl Scan {
    /// `None` for a document that is no feed.
    fn start(&mut self, start: &BytesStart<'_>, is_empty: bool) -> Option<()> {
        let name = String::from_utf8_lossy(start.local_name().as_ref()).to_ascii_lowercase();
        if !self.is_feed {
            self.is_feed = matches!(name.as_str(), "rss" | "rdf" | "feed");
            if !self.is_feed {
                return None;
            }
        }
        if matches!(name.as_str(), "item" | "entry") && self.item.is_none() {
            self.item = Some(Item::default());
        }
        if name == "link" {
            self.link(start);
        }
        self.text.clear();
        if self.open.len() >= DEEPEST {
            self.beyond += usize::from(!is_empty);
        } else if !is_empty {
            self.open.push(name);
        }
        Some(())
    }

    /// Atom's links are attributes; the one to the page itself is what counts.
    fn link(&mut self, start: &BytesStart<'_>) {
        let attribute = |wanted: &str| {
            let mut attributes = start.attributes();
            let found = attributes
                .with_checks(false)
                .flatten()
                .find(|found| found.key.as_ref() == wanted.as_bytes())?;
            found.unescape_value().ok().map(std::borrow::Cow::into_owned)
        };
        let Some(item) = &mut self.item else { return };
        let is_page = attribute("rel").is_none_or(|relation| relation == "alternate");
        if let Some(target) = attribute("href").filter(|_| is_page || item.link.is_empty()) {
            item.link = target;
        }
    }

    fn end(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let Some(name) = self.open.pop() else { return };
        let text = std::mem::take(&mut self.text);
        let parent = self.open.last().map(String::as_str).unwrap_or_default();
        let Some(item) = &mut self.item else {
            if name == "title" && matches!(parent, "channel" | "feed") && self.feed.title.is_none() {
                self.feed.title = Some(words(&text)).filter(|title| !title.is_empty());
            }
            return;
        };
        match name.as_str() {
            "item" | "entry" => {
                self.feed.total += 1;
                let item = self.item.take().unwrap_or_default();
                if self.feed.items.len() < MOST_ITEMS {
                    self.feed.items.push(item);
                }
            }
            _ if !matches!(parent, "item" | "entry") => {}
            "title" => item.title = super::html::words(&text, usize::MAX),
            "link" if item.link.is_empty() => item.link = text.trim().to_owned(),
            "guid" | "id" if item.link.is_empty() && text.trim().starts_with("http") => {
                item.link = text.trim().to_owned()
            }
            "pubdate" | "date" | "published" | "updated" if item.date.is_empty() || name == "published" => {
                item.date = text.trim().to_owned();
            }
            "description" | "summary" | "content" | "encoded" if item.summary.is_empty() => {
                item.summary = super::html::words(&text, LONGEST_SUMMARY);
            }
            _ => {}
        }
    }
}

/// What a reference such as `amp` stands for.
fn reference(name: &str) -> String {
    match quick_xml::escape::unescape(&format!("&{name};")) {
        Ok(text) => text.into_owned(),
        Err(_) => format!("&{name};"),
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Feed {
    /// The feed as text.
    pub(super) fn text(&self, url: Option<&Url>, is_markdown: bool) -> String {
        let mut blocks = Vec::new();
        if let Some(title) = &self.title {
            blocks.push(if is_markdown { format!("# {title}") } else { title.clone() });
        }
        blocks.extend(self.items.iter().map(|item| item.text(url, is_markdown)));
        if self.total > self.items.len() {
            blocks.push(format!("[{} more items]", self.total - self.items.len()));
        }
        blocks.join("\n\n")
    }
}

impl Item {
    fn text(&self, url: Option<&Url>, is_markdown: bool) -> String {
        let title = if self.title.is_empty() { "untitled" } else { &self.title };
        let link = url.and_then(|url| url.join(&self.link).ok()).filter(|_| !self.link.is_empty());
        let link = link.map_or_else(|| self.link.clone(), String::from);
        let mut lines = vec![match (is_markdown, link.as_str()) {
            (true, "") => format!("## {title}"),
            (true, link) => format!("## [{}]({link})", title.replace(['[', ']'], "")),
            (false, "") => title.to_owned(),
            (false, link) => format!("{title}\n{link}"),
        }];
        lines.extend([&self.date, &self.summary].into_iter().filter(|line| !line.is_empty()).cloned());
        lines.join(if is_markdown { "\n\n" } else { "\n" })
    }
}

/// XML with a line for each element; as it is where it is not well formed or has such lines already.
pub(super) fn pretty(xml: &str) -> String {
    let lines = xml.lines().count().max(1);
    let has_lines = xml.len() / lines <= 200;
    if has_lines { xml.to_owned() } else { indented(xml).unwrap_or_else(|| xml.to_owned()) }
}

fn indented(xml: &str) -> Option<String> {
    let limit = xml.len().saturating_mul(4).saturating_add(64 << 10);
    let mut reader = Reader::from_str(xml);
    let mut out = String::with_capacity(xml.len() * 2);
    let (mut depth, mut before, mut after_text, mut after_start) = (0_usize, 0, false, false);
    loop {
        let event = reader.read_event().ok()?;
        let end = usize::try_from(reader.buffer_position()).ok()?;
        let piece = xml.get(before..end)?;
        before = end;
        let (is_end, is_text) = match &event {
            Event::Eof => return Some(out),
            Event::End(_) => (true, false),
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => (false, true),
            _ => (false, false),
        };
        depth -= usize::from(is_end).min(depth);
        if is_text && piece.trim().is_empty() {
            continue;
        }
        // What has text in it stays on the line of the text.
        let goes_on = is_text || after_text || (is_end && after_start);
        if !goes_on && !out.is_empty() {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
        }
        out.push_str(piece);
        after_start = matches!(event, Event::Start(_));
        after_text = is_text;
        depth += usize::from(after_start);
        if out.len() > limit {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSS: &str = "<?xml version='1.0'?><rss version='2.0'><channel><title>News &amp; notes</title><link>https://news.example/</link>\
        <item><title>First</title><link>/1</link><pubDate>Mon, 06 Sep 2021 00:01:00 GMT</pubDate>\
        <description>&lt;p&gt;Some &lt;b&gt;bold&lt;/b&gt; words.&lt;/p&gt;</description></item>\
        <item><title><![CDATA[Second <thing>]]></title><guid>https://news.example/2</guid><dc:date>2021-09-07</dc:date></item></channel></rss>";

    #[test]
    fn rss_is_a_list_of_items() {
        let url = Url::parse("https://news.example/feed.xml").unwrap();
        let feed = feed(RSS).unwrap();
        assert_eq!(feed.title.as_deref(), Some("News & notes"));
        assert_eq!(
            feed.text(Some(&url), true),
            "# News & notes\n\n## [First](https://news.example/1)\n\nMon, 06 Sep 2021 00:01:00 GMT\n\nSome bold words.\n\n\
             ## [Second](https://news.example/2)\n\n2021-09-07"
        );
    }

    #[test]
    fn atom_is_one_too() {
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>Log</title><link href='https://a.example/'/>\
            <entry><title type='html'>One &amp;lt;3</title><link rel='self' href='https://a.example/api/1'/>\
            <link rel='alternate' href='https://a.example/1'/><updated>2024-02-02</updated><published>2024-01-01</published>\
            <summary>Short.</summary><author><name>Nobody</name></author></entry></feed>";
        assert_eq!(
            feed(atom).unwrap().text(None, false),
            "Log\n\nOne <3\nhttps://a.example/1\n2024-01-01\nShort."
        );
        assert!(feed("<urlset><url><loc>x</loc></url></urlset>").is_none());
    }

    #[test]
    fn other_xml_has_lines() {
        let long = format!("<a><b x='1'>text &amp; more</b><c/><d><e></e></d>{}</a>", "<f>y</f>".repeat(60));
        let lines = pretty(&long);
        assert!(
            lines.starts_with(
                "<a>\n  <b x='1'>text &amp; more</b>\n  <c/>\n  <d>\n    <e></e>\n  </d>\n  <f>y</f>\n"
            ),
            "{lines}"
        );
        assert!(lines.ends_with("\n</a>"));
        // Broken or laid out already: as it is.
        assert_eq!(pretty("<a>\n<b>1</b></a>"), "<a>\n<b>1</b></a>");
        let broken = format!("<a>{}", "<b></c>".repeat(60));
        assert_eq!(pretty(&broken), broken);
    }

    #[test]
    fn hostile_xml_ends() {
        let deep = "<a>".repeat(200_000);
        assert_eq!(pretty(&deep), deep);
        assert!(feed(&format!("<rss>{deep}")).is_some());
        let bomb = "<!DOCTYPE r [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><rss><channel><title>&b;</title></channel></rss>";
        assert_eq!(feed(bomb).unwrap().title.as_deref(), Some("&b;"));
    }
}
