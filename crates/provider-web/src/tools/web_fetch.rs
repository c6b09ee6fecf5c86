//! `web_fetch`: a page as text that can be read, part by part.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provider_core::prelude::*;

use super::UNTRUSTED;
use crate::config::Media as MediaWanted;
use crate::error::address;
use crate::fetch::{Page, Wish};
use crate::provider::Web;
use crate::readings::Reading;
use crate::text::{self, Body, Document, Kind, paging};

/// How much of a text is answered when nothing is said.
const DEFAULT_CHARS: u64 = 40_000;
/// The largest image whose bytes are answered.
const LARGEST_IMAGE: usize = 4 * 1024 * 1024;
/// What is kept of the time for answering.
const MARGIN: Duration = Duration::from_millis(1_500);

/// Fetches one page of the web with GET and answers it as text: HTML as Markdown, PDF, JSON, feeds, any encoding. Long pages
/// come in parts; the next part begins at next_start. Addresses inside private networks are refused. A redirect to another
/// site is not followed but told in redirect_to. An error status such as 404 is a result, with the page that came with it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The address, beginning with http:// or https://.
    #[schemars(extend("x-aliases" = ["uri", "link", "address"]))]
    url: String,
    /// The form of the text; by default markdown.
    format: Option<Format>,
    /// How many characters to leave out at the start: next_start of the part before.
    #[schemars(extend("x-aliases" = ["offset", "start_index"]))]
    start: Option<u64>,
    /// The most characters to answer; by default 40,000.
    #[schemars(range(min = 1, max = 200_000), extend("x-aliases" = ["max_length", "limit"]))]
    max_chars: Option<u64>,
    /// Asks the server again, whatever is in the cache.
    fresh: Option<bool>,
}

/// The form of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// With headings, lists, tables, code and links.
    #[default]
    Markdown,
    /// Words only.
    Text,
    /// As it came.
    Html,
}

/// A page.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The address that was asked for.
    url: String,
    /// The address that it came from, after redirects.
    final_url: String,
    /// The HTTP status.
    status: u16,
    /// The media type that the server says, or that the bytes show.
    content_type: String,
    /// The encoding its characters were in; binary where it is no text.
    charset: String,
    /// What the page calls itself.
    title: Option<String>,
    /// The text, or a description of what is no text.
    content: String,
    /// How many characters come before this part.
    start: u64,
    /// Give it as start to read on.
    next_start: Option<u64>,
    /// How many characters the whole text has.
    total_chars: u64,
    /// Whether something is left out after this part.
    truncated: bool,
    /// The redirects that were followed.
    redirects: Vec<Followed>,
    /// Where the page leads that was not followed; fetch it if you want to go there.
    redirect_to: Option<String>,
    /// Whether it is from the cache.
    cached: bool,
    /// How long the server asks to wait before the next request, in milliseconds.
    retry_after_ms: Option<u64>,
    /// An image with its bytes, where the configuration has media = inline.
    media: Option<Media>,
}

/// A redirect that was followed.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Followed {
    /// The status that led on.
    status: u16,
    /// Where from.
    url: String,
}

/// An image.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Media {
    /// Its media type.
    mime_type: String,
    /// Its bytes in base64.
    data_base64: String,
}

pub(crate) struct WebFetch;

impl DataSource for WebFetch {
    const NAME: &'static str = "web_fetch";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Web;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(provider: Arc<Web>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let url = address("url", &args.url)?;
        let (format, start) = (args.format.unwrap_or_default().into(), args.start.unwrap_or(0));
        let is_fresh = args.fresh.unwrap_or(false);
        let held = provider.readings.get(url.as_str(), format).filter(|_| start > 0 && !is_fresh);
        let is_held = held.is_some();
        let reading = match held {
            // What is held was let in by the same policy.
            Some(held) => held,
            None => {
                let total = cx.remaining().map(|left| left.saturating_sub(MARGIN));
                let mut limits = provider.limits;
                limits.total = total.map_or(limits.total, |total| total.min(limits.total));
                let wish = Wish { accept: accepted(format), is_fresh, is_continued: start > 0, limits };
                let page = provider.page(&url, wish).await?;
                let reading = Arc::new(cx.blocking(move || Ok(read(page, format))).await?);
                provider.readings.put(url.as_str(), format, reading.clone());
                reading
            }
        };
        let window = paging::window(&reading.document.text, start, args.max_chars.unwrap_or(DEFAULT_CHARS));
        notes(&reading, &window, is_held).into_iter().for_each(|note| cx.note(note));
        Ok(answer(url.as_str(), &reading, window, is_held, provider.media))
    }

    fn render(output: &Output) -> Option<Node> {
        let title = output.title.clone().unwrap_or_else(|| output.final_url.clone());
        let facts =
            format!("{} · {} · {} characters", output.status, output.content_type, output.total_chars);
        Some(Node::Group(vec![
            Node::Link { text: title, url: output.final_url.clone() },
            Node::styled(facts, provider_core::Style::Dim),
            Node::Code { language: "markdown".to_owned(), content: output.content.clone() },
        ]))
    }
}

impl From<Format> for text::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Markdown => Self::Markdown,
            Format::Text => Self::Text,
            Format::Html => Self::Html,
        }
    }
}

/// What servers are told is wanted. Some have their pages as Markdown, too.
fn accepted(format: text::Format) -> &'static str {
    match format {
        text::Format::Html => "text/html, application/xhtml+xml, */*;q=0.5",
        text::Format::Markdown | text::Format::Text => {
            "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
        }
    }
}

fn read(mut page: Page, format: text::Format) -> Reading {
    let body = Body {
        bytes: &page.body,
        content_type: page.content_type.as_deref(),
        url: Some(page.final_url.as_url()),
    };
    let document = text::read(body, format);
    // Only an image is answered with its bytes; whoever reads on in anything else needs its text alone.
    if document.kind != Kind::Image {
        page.body = Vec::new();
    }
    Reading { page, document }
}

fn notes(reading: &Reading, window: &paging::Window, is_held: bool) -> Vec<String> {
    let (page, document) = (&reading.page, &reading.document);
    let mut notes = vec![UNTRUSTED.to_owned()];
    notes.extend(page.notes.iter().chain(&document.notes).cloned());
    if let Some(to) = &page.redirect_to {
        notes.push(format!(
            "the page leads to another site or to what is no page ({}), which was not followed; fetch redirect_to if you \
             want to go there",
            http_guard::redact_text(to)
        ));
    }
    match page.cached {
        Some(age) if !is_held => {
            notes.push(format!("from the cache, {} s old; fresh: true asks the server again", age.as_secs()));
        }
        _ => {}
    }
    if let Some(next) = window.next_start {
        notes.push(format!(
            "characters {} to {next} of {}; start: {next} reads on",
            window.start, window.total_chars
        ));
    } else if window.start > window.total_chars {
        notes.push(format!("start is beyond the end: the text has {} characters", window.total_chars));
    }
    notes
}

fn answer(url: &str, reading: &Reading, window: paging::Window, is_held: bool, media: MediaWanted) -> Output {
    let Reading { page, document } = reading;
    Output {
        url: url.to_owned(),
        final_url: page.final_url.as_str().to_owned(),
        status: page.status,
        content_type: page.content_type.clone().unwrap_or_else(|| document.media_type.clone()),
        charset: document.charset.clone().unwrap_or_else(|| "binary".to_owned()),
        title: document.title.clone(),
        truncated: page.is_cut || window.next_start.is_some(),
        content: window.content,
        start: window.start,
        next_start: window.next_start,
        total_chars: window.total_chars,
        redirects: page
            .redirects
            .iter()
            .map(|(status, url)| Followed { status: *status, url: url.clone() })
            .collect(),
        redirect_to: page.redirect_to.clone(),
        cached: is_held || page.cached.is_some(),
        retry_after_ms: page.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        media: (media == MediaWanted::Inline).then(|| image(document, page)).flatten(),
    }
}

fn image(document: &Document, page: &Page) -> Option<Media> {
    let fits = document.kind == Kind::Image && !page.is_cut && page.body.len() <= LARGEST_IMAGE;
    fits.then(|| Media { mime_type: document.media_type.clone(), data_base64: STANDARD.encode(&page.body) })
}
