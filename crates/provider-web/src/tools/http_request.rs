//! `http_request`: any request, after approval.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_guard::http::{HeaderMap, HeaderName, Method as HttpMethod};
use http_guard::{BodyEnd, CheckedUrl, Request, Stopped, is_credential};
use provider_core::Style;
use provider_core::prelude::*;

use super::UNTRUSTED;
use crate::error::{address, failed, refused, stopped_by};
use crate::fetch::told;
use crate::provider::Web;
use crate::text::{self, Body, Kind, paging};

/// The most characters of a body in a result.
const MOST_CHARS: u64 = 100_000;
/// The most bytes of a body that is no text.
const MOST_BYTES: usize = 64 * 1024;
/// How much of a body a preview shows.
const PREVIEWED_CHARS: u64 = 4_000;
/// What is kept of the time for answering.
const MARGIN: Duration = Duration::from_millis(1_500);

/// Sends one HTTP request with any method, headers and body, and answers what came back. For reading a page use web_fetch.
/// Addresses inside private networks are refused. Redirects are followed within the site; one that would carry the request
/// to another host is told in redirect_to. An error status is a result.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The method.
    method: Method,
    /// The address, beginning with http:// or https://.
    #[schemars(extend("x-aliases" = ["uri"]))]
    url: String,
    /// Headers by name. Host, Content-Length and other headers of the connection are set by the client.
    headers: Option<BTreeMap<String, String>>,
    /// The body, sent as UTF-8. Its Content-Type is given in headers; without one, application/json where it is JSON, else
    /// text/plain.
    #[schemars(extend("x-aliases" = ["data"]))]
    body: Option<String>,
    /// How long the request may take, in milliseconds; by default as configured.
    #[schemars(range(min = 1, max = 55_000), extend("x-aliases" = ["timeout"]))]
    timeout_ms: Option<u64>,
}

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    /// Reads.
    Get,
    /// Reads the headers only.
    Head,
    /// Sends something to be worked on.
    Post,
    /// Stores something at the address.
    Put,
    /// Changes a part of what is there.
    Patch,
    /// Removes what is there.
    Delete,
    /// Asks what can be done.
    Options,
}

/// What came back.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The HTTP status.
    status: u16,
    /// The headers by name in lower case; several of one name are joined, one a line.
    headers: BTreeMap<String, String>,
    /// The body as text, or a description of what is no text.
    body: String,
    /// Whether something of the body is left out.
    truncated: bool,
    /// The bytes of a body that is no text, in base64.
    body_base64: Option<String>,
    /// The address that it came from, where redirects were followed.
    final_url: Option<String>,
    /// Where it leads that was not followed.
    redirect_to: Option<String>,
    /// How long the server asks to wait before the next request, in milliseconds.
    retry_after_ms: Option<u64>,
}

pub(crate) struct HttpRequest;

impl Resource for HttpRequest {
    const NAME: &'static str = "http_request";
    const RISK: Risk = Risk::High;
    const IDEMPOTENT: bool = false;
    const CONCURRENCY: Concurrency = Concurrency::Keyed(&["url"]);
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Web;
    type Args = Args;
    type Output = Output;
    type Stream = Events;

    async fn invoke(provider: Arc<Web>, args: Args, cx: Cx<Events>) -> Result<Output, ToolError> {
        let plan = Plan::of(&provider, args)?;
        provider.turn(&plan.url).await?;
        let mut limits = provider.limits;
        limits.total = plan.timeout.unwrap_or(limits.total);
        if let Some(left) = cx.remaining() {
            limits.total = limits.total.min(left.saturating_sub(MARGIN));
        }
        // From here on it may have arrived, whatever happens.
        cx.effects().record(format!("sent {} {}, or was about to", plan.method, plan.url.redacted()));
        let web = &provider;
        let request = plan.request()?.within(limits);
        let sent = web.guard.send_asking(request, |to| async move { web.turn(&to).await }).await;
        let response = sent.map_err(|stopped| match &stopped {
            Stopped::Failed(error) => plan.failed(error),
            Stopped::Declined { .. } => stopped_by(&stopped),
        })?;
        let retry_after = provider.rates.heard(&response.url.origin(), response.status, &response.headers);
        let final_url = (!response.redirects.is_empty()).then(|| response.url.clone());
        let (status, headers, redirect_to) = (response.status, response.headers, response.redirect_to);
        let body = response.body.collect().await;
        let is_cut = !matches!(body.end, BodyEnd::Complete);
        cx.note(UNTRUSTED);
        body.notes.iter().cloned().chain(told(&body.end, limits.max_body)).for_each(|note| cx.note(note));
        let content_type =
            headers.get("content-type").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let shown = cx.blocking(move || Ok(Shown::of(&body.bytes, content_type.as_deref()))).await?;
        shown.notes.iter().for_each(|note| cx.note(note));
        Ok(Output {
            status,
            headers: joined(&headers),
            truncated: is_cut || shown.is_cut,
            body: shown.text,
            body_base64: shown.base64,
            final_url: final_url.map(|url| url.as_str().to_owned()),
            redirect_to,
            retry_after_ms: retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    fn render(output: &Output) -> Option<Node> {
        let style = if output.status < 400 { Style::Success } else { Style::Error };
        let language =
            output.headers.get("content-type").filter(|kind| kind.contains("json")).map(|_| "json");
        Some(Node::Group(vec![
            Node::styled(format!("status {}", output.status), style),
            Node::Code { language: language.unwrap_or_default().to_owned(), content: output.body.clone() },
        ]))
    }
}

impl Preview for HttpRequest {
    async fn preview(provider: Arc<Web>, args: Args, _: &PreviewCx) -> Result<Node, ToolError> {
        Ok(Plan::of(&provider, args)?.shown())
    }
}

/// A request that may be sent: what the preview shows and the call sends.
struct Plan {
    method: HttpMethod,
    url: CheckedUrl,
    headers: Vec<(HeaderName, String)>,
    body: Option<String>,
    timeout: Option<Duration>,
}

impl Plan {
    fn of(web: &Web, args: Args) -> Result<Self, ToolError> {
        let url = address("url", &args.url)?;
        web.guard.policy().admit(&url).map_err(|refusal| refused(&refusal))?;
        let mut headers = Vec::new();
        for (name, value) in args.headers.unwrap_or_default() {
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                ToolError::invalid_arguments(format!("headers: {name:?} is no name of a header"))
            })?;
            headers.push((parsed, value));
        }
        let has_type = headers.iter().any(|(name, _)| name == "content-type");
        if let Some(body) = args.body.as_deref().filter(|_| !has_type) {
            headers.push((HeaderName::from_static("content-type"), guessed_type(body).to_owned()));
        }
        let timeout = args.timeout_ms.map(Duration::from_millis);
        let plan = Self { method: args.method.into(), url, headers, body: args.body, timeout };
        plan.request()?;
        Ok(plan)
    }

    fn request(&self) -> Result<Request, ToolError> {
        let request = Request::new(self.method.clone(), self.url.clone());
        let request = request.with_body(self.body.clone().unwrap_or_default());
        let with = self
            .headers
            .iter()
            .try_fold(request, |request, (name, value)| request.with_header(name.as_str(), value));
        with.map_err(|error| failed(&error))
    }

    /// A failure, with whether the request may have arrived.
    fn failed(&self, error: &http_guard::FetchError) -> ToolError {
        use http_guard::FetchError as Fetch;
        let told = failed(error);
        match error.root() {
            Fetch::Exchange { .. } | Fetch::TimedOut { .. } if !self.method.is_safe() => {
                let message = format!(
                    "{told}. Whether the {} arrived is not known; look before you repeat it",
                    self.method
                );
                match told.category() {
                    provider_core::Category::Timeout => ToolError::timeout(message),
                    _ => ToolError::execution_failed(message),
                }
            }
            _ => told,
        }
    }

    fn shown(&self) -> Node {
        let mut nodes = vec![Node::styled(format!("{} {}", self.method, self.url.redacted()), Style::Bold)];
        let header = |(name, value): &(HeaderName, String)| {
            let value = if is_credential(name) { "…" } else { value.as_str() };
            vec![name.to_string(), value.to_owned()]
        };
        if !self.headers.is_empty() {
            let headers = vec!["header".to_owned(), "value".to_owned()];
            nodes.push(Node::Table { headers, rows: self.headers.iter().map(header).collect() });
        }
        if let Some(body) = &self.body {
            let window = paging::window(body, 0, PREVIEWED_CHARS);
            let language = if is_json(body) { "json" } else { "" };
            nodes.push(Node::Code { language: language.to_owned(), content: window.content });
            let rest =
                window.next_start.map(|next| format!("… and {} more characters", window.total_chars - next));
            let size = format!("body of {} bytes", body.len());
            nodes.push(Node::styled(rest.map_or(size.clone(), |rest| format!("{rest}; {size}")), Style::Dim));
        }
        Node::Group(nodes)
    }
}

impl From<Method> for HttpMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Head => Self::HEAD,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
            Method::Options => Self::OPTIONS,
        }
    }
}

fn is_json(body: &str) -> bool {
    body.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok()
}

fn guessed_type(body: &str) -> &'static str {
    if is_json(body) { "application/json" } else { "text/plain; charset=utf-8" }
}

fn joined(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut all = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        all.entry(name.to_string())
            .and_modify(|known| {
                known.push('\n');
                known.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    all
}

/// A body as a result shows it: its characters as they came.
struct Shown {
    text: String,
    base64: Option<String>,
    is_cut: bool,
    notes: Vec<String>,
}

impl Shown {
    fn of(bytes: &[u8], content_type: Option<&str>) -> Self {
        let document = text::read(Body { bytes, content_type, url: None }, text::Format::Html);
        let is_text = !matches!(document.kind, Kind::Pdf | Kind::Image | Kind::Binary);
        let window = paging::window(&document.text, 0, MOST_CHARS);
        let mut notes = document.notes;
        if let Some(next) = window.next_start {
            notes.push(format!(
                "the body has {} characters and is cut after {next}; ask for less, or for a part, if the service can",
                window.total_chars
            ));
        }
        let fits = bytes.len() <= MOST_BYTES;
        if !is_text && !fits {
            notes.push(format!("the body is no text and too large to be answered: {} bytes", bytes.len()));
        }
        Self {
            text: window.content,
            base64: (!is_text && fits).then(|| STANDARD.encode(bytes)),
            is_cut: window.next_start.is_some() || (!is_text && !fits),
            notes,
        }
    }
}
