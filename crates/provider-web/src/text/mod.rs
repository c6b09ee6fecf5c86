//! Bodies as text: what kind of content it is, its characters, its words, and the part of them that is wanted.
//!
//! [`read`] is the way in. It does no input or output, takes time and memory that grow with the body and nothing else,
//! and never fails: what cannot be read is described.

pub mod charset;
pub mod html;
mod json;
mod magic;
pub mod paging;
mod xml;

use std::time::Duration;

use documents::pdf::{self, PdfText};
use documents::{contained, image};
use url::Url;

use self::charset::Own;

/// A body, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// Its bytes, without any content encoding.
    pub bytes: &'a [u8],
    /// The `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// Where it is from, after redirects: relative links start there.
    pub url: Option<&'a Url>,
}

/// The form in which a text is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Headings, lists, tables, code and links are marked.
    #[default]
    Markdown,
    /// Words only.
    Text,
    /// Characters as they came.
    Html,
}

/// What kind of content a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page.
    Html,
    /// One JSON value.
    Json,
    /// RSS or Atom.
    Feed,
    /// Other XML.
    Xml,
    /// Any other text.
    Text,
    /// A PDF document.
    Pdf,
    /// A picture.
    Image,
    /// Anything else.
    Binary,
}

/// A body as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What it is.
    pub kind: Kind,
    /// Its media type: the declared one, or the one that the bytes show.
    pub media_type: String,
    /// The encoding its characters were in, in lower case; `None` where it is no text.
    pub charset: Option<String>,
    /// What it calls itself.
    pub title: Option<String>,
    /// What it says, or what it is.
    pub text: String,
    /// What a reader should know beside it.
    pub notes: Vec<String>,
}

/// Of a longer text of a PDF document no further pages are read, in bytes.
const MOST_PDF_TEXT: usize = 16 << 20;
/// How long reading the pages of a PDF document may take.
const LONGEST: Duration = Duration::from_secs(20);

/// Reads a body.
pub fn read(body: Body<'_>, format: Format) -> Document {
    let declared = ContentType::parse(body.content_type.unwrap_or_default());
    if body.bytes.starts_with(b"%PDF-") {
        return read_pdf(body.bytes);
    }
    if let Some(image) = image::format(body.bytes) {
        return read_image(body.bytes, image);
    }
    if !declared.is_text() && !magic::looks_like_text(body.bytes)
        || magic::known(body.bytes).is_some_and(|_| has_nul(body.bytes))
    {
        return binary(body.bytes, &declared);
    }
    if declared.charset.is_none() && declared.essence != "text/html" && !magic::looks_like_text(body.bytes) {
        return binary(body.bytes, &declared);
    }
    read_text(body, &declared, format)
}

fn has_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes.get(..16 * 1024).unwrap_or(bytes)).is_some()
}

/// A `Content-Type`, taken apart.
#[derive(Debug, Default)]
struct ContentType {
    /// Type and subtype in lower case; empty where nothing is declared.
    essence: String,
    charset: Option<String>,
}

impl ContentType {
    fn parse(header: &str) -> Self {
        let mut parts = header.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']).trim();
            (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then(|| value.to_owned())
        });
        Self { essence, charset }
    }

    fn is_json(&self) -> bool {
        matches!(self.essence.as_str(), "application/json" | "text/json") || self.essence.ends_with("+json")
    }

    fn is_xml(&self) -> bool {
        matches!(self.essence.as_str(), "application/xml" | "text/xml") || self.essence.ends_with("+xml")
    }

    fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml")
    }

    fn is_text(&self) -> bool {
        const TEXTS: [&str; 7] = [
            "application/javascript",
            "application/ecmascript",
            "application/x-ndjson",
            "application/yaml",
            "application/toml",
            "application/sql",
            "application/x-sh",
        ];
        self.essence.starts_with("text/")
            || self.is_json()
            || self.is_xml()
            || self.charset.is_some()
            || TEXTS.contains(&self.essence.as_str())
    }

    /// Nothing is said, or what servers say of anything.
    fn says_nothing(&self) -> bool {
        matches!(
            self.essence.as_str(),
            "" | "application/octet-stream" | "text/plain" | "binary/octet-stream" | "*/*"
        )
    }
}

/// What a text is: by what is declared, and where that says nothing or is clearly wrong, by how it begins.
fn kind_of(text: &str, declared: &ContentType) -> Kind {
    let start = text.trim_start();
    let begins_with = |tag: &str| start.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag));
    let looks_like_json = start.starts_with(['{', '[']);
    match declared {
        _ if declared.is_json() => Kind::Json,
        _ if declared.is_html() && looks_like_json && json::is_json(text) => Kind::Json,
        _ if declared.is_html() && !begins_with("<?xml") => Kind::Html,
        // A page in XML says so in its first element; anything else that calls itself a page is one.
        _ if declared.is_html() => {
            if xml::feed(text).is_some() {
                Kind::Feed
            } else {
                Kind::Html
            }
        }
        _ if declared.is_xml() => Kind::Xml,
        // What is declared to be plain text is shown as such.
        _ if declared.essence == "text/plain" || !declared.says_nothing() => Kind::Text,
        _ if ["<!doctype html", "<html", "<head", "<body", "<title"].into_iter().any(begins_with) => {
            Kind::Html
        }
        _ if ["<?xml", "<rss", "<feed", "<rdf:rdf"].into_iter().any(begins_with) => Kind::Xml,
        _ if looks_like_json && json::is_json(text) => Kind::Json,
        _ => Kind::Text,
    }
}

fn read_text(body: Body<'_>, declared: &ContentType, format: Format) -> Document {
    let own = match declared {
        _ if declared.essence == "application/xhtml+xml" || declared.is_xml() => Own::Xml,
        _ if declared.is_html() || declared.essence.is_empty() => Own::Html,
        _ => Own::No,
    };
    let decoded = charset::decode(body.bytes, declared.charset.as_deref(), own);
    let kind = kind_of(&decoded.text, declared);
    let mut document = Document {
        kind,
        media_type: if declared.essence.is_empty() {
            media_type(kind).to_owned()
        } else {
            declared.essence.clone()
        },
        charset: Some(decoded.charset),
        title: None,
        text: String::new(),
        notes: decoded.notes,
    };
    if format == Format::Html {
        document.text = decoded.text;
        return document;
    }
    fill(&mut document, decoded.text, body.url, format == Format::Markdown);
    document
}

/// The media type of a body that came without one.
fn media_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Html => "text/html",
        Kind::Json => "application/json",
        Kind::Feed | Kind::Xml => "application/xml",
        Kind::Text => "text/plain",
        Kind::Pdf => "application/pdf",
        Kind::Image | Kind::Binary => "application/octet-stream",
    }
}

fn fill(document: &mut Document, text: String, url: Option<&Url>, is_markdown: bool) {
    match document.kind {
        Kind::Html => {
            let page = html::read(&text, url, is_markdown);
            document.title = page.title;
            document.text = page.text;
            document.notes.extend(page.notes);
        }
        Kind::Json if json::is_json(&text) => document.text = json::pretty(&text),
        Kind::Json => {
            document
                .notes
                .push("the body is declared to be JSON and is none; it is shown as it is".to_owned());
            document.text = text;
        }
        Kind::Xml | Kind::Feed => match xml::feed(&text) {
            Some(feed) => {
                document.kind = Kind::Feed;
                document.text = feed.text(url, is_markdown);
                document.title = feed.title;
            }
            None => document.text = xml::pretty(&text),
        },
        _ => document.text = text,
    }
}

fn read_image(bytes: &[u8], format: image::Format) -> Document {
    let name = format.name;
    let text = match image::size(bytes) {
        Ok((width, height)) => format!("{name} image, {width} × {height} pixels, {} bytes", bytes.len()),
        Err(_) => format!("{name} image, cut off or broken, {} bytes", bytes.len()),
    };
    described(Kind::Image, format.media_type, text)
}

fn binary(bytes: &[u8], declared: &ContentType) -> Document {
    let found = magic::known(bytes);
    let name = found.map_or("binary data", |(name, _)| name);
    let said = Some(declared.essence.as_str()).filter(|essence| !essence.is_empty());
    let media_type = said.or(found.map(|(_, media_type)| media_type)).unwrap_or("application/octet-stream");
    let text = format!("{name}, {} bytes ({media_type}); it cannot be shown as text", bytes.len());
    described(Kind::Binary, media_type, text)
}

fn described(kind: Kind, media_type: &str, text: String) -> Document {
    Document { kind, media_type: media_type.to_owned(), charset: None, title: None, text, notes: Vec::new() }
}

fn read_pdf(bytes: &[u8]) -> Document {
    let size = bytes.len();
    let owned = bytes.to_vec();
    let begun = std::time::Instant::now();
    // Half the time is for the pages, so that what was read of a slow document is not lost.
    let work = move |stop: &documents::Stop| {
        pdf::read(&owned, |text| {
            text.len() < MOST_PDF_TEXT && !stop.is_asked_for() && begun.elapsed() < LONGEST / 2
        })
    };
    let unread = |reason: &dyn std::fmt::Display| {
        described(
            Kind::Pdf,
            "application/pdf",
            format!("PDF document, {size} bytes; its text cannot be read: {reason}"),
        )
    };
    match contained(LONGEST, || false, work) {
        Err(broken) => unread(&broken),
        Ok(Err(error)) => unread(&error),
        Ok(Ok(PdfText { text, read, pages })) => {
            let mut document = described(Kind::Pdf, "application/pdf", text.replace('\0', "\u{fffd}"));
            if read < pages {
                document.notes.push(format!(
                    "only {read} of {pages} pages were read; the others take too long or are too much text"
                ));
            }
            document
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: Option<&str>, kind: Kind, text: &str) -> Document {
        let document = read(Body { bytes, content_type, url: None }, Format::Markdown);
        assert_eq!((document.kind, document.text.as_str()), (kind, text), "{content_type:?}");
        document
    }

    #[test]
    fn what_is_declared_counts() {
        check(b"<h1>Hi</h1>", Some("text/html; charset=utf-8"), Kind::Html, "# Hi");
        check(b"<h1>Hi</h1>", Some("text/plain"), Kind::Text, "<h1>Hi</h1>");
        check(b"{\"a\":{\"b\":1}}", Some("application/ld+json"), Kind::Json, "{\n  \"a\": {\"b\": 1}\n}");
        check(b"<a>\n<b/></a>", Some("image/svg+xml"), Kind::Xml, "<a>\n<b/></a>");
        let page = check(b"# T\n", Some("TEXT/Markdown ; Charset=\"UTF-8\""), Kind::Text, "# T\n");
        assert_eq!((page.media_type.as_str(), page.charset.as_deref()), ("text/markdown", Some("utf-8")));
        let broken = check(b"{oops", Some("application/json"), Kind::Json, "{oops");
        assert_eq!(broken.notes, ["the body is declared to be JSON and is none; it is shown as it is"]);
    }

    #[test]
    fn bytes_count_where_nothing_is_declared_or_what_is_declared_is_wrong() {
        check(b" <!DOCTYPE html><p>x", None, Kind::Html, "x");
        check(b"{\"a\": 1}", Some("application/octet-stream"), Kind::Json, "{\"a\": 1}");
        check(b"{\"a\": 1}", Some("text/html"), Kind::Json, "{\"a\": 1}");
        check(b"just words", None, Kind::Text, "just words");
        check(b"", None, Kind::Text, "");
        let gif = b"GIF89a\x07\0\x05\0\0\0\0";
        let image = check(gif, Some("text/html"), Kind::Image, "GIF image, 7 × 5 pixels, 13 bytes");
        assert_eq!((image.media_type.as_str(), image.charset), ("image/gif", None));
        let zip = b"PK\x03\x04\x14\0\0\0";
        check(zip, None, Kind::Binary, "ZIP archive, 8 bytes (application/zip); it cannot be shown as text");
        check(
            zip,
            Some("text/plain"),
            Kind::Binary,
            "ZIP archive, 8 bytes (text/plain); it cannot be shown as text",
        );
        let odd = b"\x01\x02\0\x03";
        check(
            odd,
            Some("application/x-own"),
            Kind::Binary,
            "binary data, 4 bytes (application/x-own); it cannot be shown as text",
        );
    }

    #[test]
    fn a_broken_pdf_is_described() {
        let document = read(Body { bytes: b"%PDF-1.7\n\xff\0", content_type: None, url: None }, Format::Text);
        assert_eq!(document.kind, Kind::Pdf);
        assert!(
            document.text.starts_with("PDF document, 11 bytes; its text cannot be read: "),
            "{}",
            document.text
        );
    }

    #[test]
    fn html_as_it_is() {
        let page = "<!-- c --><p>Gr\u{fc}n".as_bytes();
        let document = read(Body { bytes: page, content_type: Some("text/html"), url: None }, Format::Html);
        assert_eq!(document.text, "<!-- c --><p>Grün");
    }
}
