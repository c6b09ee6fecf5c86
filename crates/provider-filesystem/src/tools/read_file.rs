//! `read_file`: a window of a file, of any size, in bounded memory.

use std::io::Cursor;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use provider_core::jail::{JailPath, OpenFile};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::document::{self, Document};
use crate::engine::window::{Next, Reading, Request, Window, read_window};
use crate::entries::of_bytes;
use crate::media::{self, Described};
use crate::memory::Shown;
use crate::source::{Source, unreadable};

/// Lines answered when no limit is given.
const DEFAULT_LIMIT: u64 = 2_000;
/// Files up to this size, in bytes, are read on the serving thread.
const QUICK_SIZE: u64 = 64 << 10;

/// Reads a file: text in any encoding with line paging (2,000 lines or 48 KiB at a time, 2,000 characters a line),
/// notebooks as cells with their ids, PDF documents as the text of their pages, images described. What is left out is
/// always said, with the offset that continues exactly.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["file_path", "filename", "file"]))]
    path: String,
    /// First line to read, counted from 1; 0 means 1, and -n the last n lines.
    #[schemars(extend("x-aliases" = ["start_line", "line"]))]
    offset: Option<i64>,
    /// How many lines to read at most. Default 2000.
    #[schemars(range(min = 1, max = 1_000_000))]
    limit: Option<u64>,
    /// Bytes to skip from where offset begins; for reading on inside a line that is too long for one page. Of a
    /// notebook it reads the JSON itself.
    #[schemars(range(min = 0))]
    byte_offset: Option<u64>,
    /// Whether each line begins with its number and a tab.
    line_numbers: Option<bool>,
}

/// What kind of file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileContent {
    /// Text.
    Text,
    /// An image.
    Image,
    /// A PDF document.
    Pdf,
    /// A notebook.
    Notebook,
    /// Anything else.
    Binary,
}

/// A window of a file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The file read, relative to the working directory if beneath it, else absolute.
    path: String,
    /// What the bytes are, whatever the name says.
    kind: FileContent,
    /// The text, or for other kinds a description.
    content: String,
    /// The first line in content.
    start_line: Option<u64>,
    /// The last line in content.
    end_line: Option<u64>,
    /// Lines in the file.
    total_lines: Option<u64>,
    /// Bytes in the file.
    total_bytes: u64,
    /// Whether something after or inside the window was left out.
    truncated: bool,
    /// What continues exactly: an offset, or where byte_offset was given a byte_offset.
    next_offset: Option<u64>,
    /// Present and true when the file has no text.
    empty: Option<bool>,
    /// How the text is stored.
    encoding: Option<String>,
    /// Present and true when the file begins with a byte order mark, which content leaves out.
    bom: Option<bool>,
    /// The line endings: lf, crlf, mixed or none.
    eol: Option<String>,
    /// SHA-256 of the whole file in hex; give it as expected_sha256 to a change.
    sha256: Option<String>,
    /// Present and true when the file changed while it was read.
    changed_during_read: Option<bool>,
    /// The bytes of an image, where the provider is configured to give them.
    media: Option<MediaContent>,
}

/// The bytes of an image.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct MediaContent {
    /// The media type, from the bytes.
    mime_type: String,
    /// The bytes in Base64.
    data_base64: String,
}

pub(crate) struct ReadFile;

impl DataSource for ReadFile {
    const NAME: &'static str = "read_file";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let path = filesystem.locate(&args.path, cx.working_directory())?;
        path.note().into_iter().for_each(|note| cx.note(note));
        let open = path.open_read()?;
        if is_quick(&open) {
            return read(&filesystem, &path, open, &args, &cx);
        }
        let context = cx.clone();
        cx.blocking(move || read(&filesystem, &path, open, &args, &context)).await
    }

    fn render(output: &Output) -> Option<Node> {
        let language = output.path.rsplit_once('.').map(|(_, extension)| extension.to_owned());
        Some(Node::Code { language: language.unwrap_or_default(), content: output.content.clone() })
    }
}

/// Whether a file is read faster than another thread is woken for it: small, and on a local disk, which answers.
fn is_quick(open: &OpenFile) -> bool {
    const LOCAL: [u32; 7] = [
        0x0000_ef53, // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683e, // Btrfs
        0x0102_1994, // tmpfs
        0x794c_7630, // overlay
        0xf2f5_2010, // F2FS
        0x2fc1_2fc1, // ZFS
    ];
    let mut head = [0; 5];
    open.metadata().size <= QUICK_SIZE
        && open.file().read_at(&mut head, 0).is_ok()
        // Its parser is given time, and a thread of its own.
        && &head != b"%PDF-"
        && rustix::fs::fstatfs(open.file()).is_ok_and(|system| LOCAL.contains(&(system.f_type as u32)))
}

fn read(
    filesystem: &Filesystem,
    path: &JailPath,
    open: OpenFile,
    args: &Args,
    cx: &Cx<Silent>,
) -> Result<Output, ToolError> {
    let request = Request {
        offset: args.offset.unwrap_or(1),
        byte_offset: args.byte_offset,
        limit: args.limit.unwrap_or(DEFAULT_LIMIT),
        line_numbers: args.line_numbers.unwrap_or(false),
        ..Request::default()
    };
    let mut source = Source::of(open, cx).map_err(|error| unreadable(cx, path, &error))?;
    if let Some(document) = document::open(path, &mut source, &request, cx)? {
        return pages(filesystem, path, document, &request, source, cx);
    }
    let reading = source.window(&request, cx).map_err(|error| unreadable(cx, path, &error))?;
    match reading {
        Reading::Text(window) => Ok(text(filesystem, path, window, &request, source, cx)),
        Reading::Binary { total_bytes, sha256 } => {
            let described = media::describe(filesystem.media, path, &mut source, total_bytes, cx)?;
            Ok(other(path, described, source, total_bytes, sha256))
        }
    }
}

/// A window of what a document was made into.
fn pages(
    filesystem: &Filesystem,
    path: &JailPath,
    document: Document,
    request: &Request,
    source: Source,
    cx: &Cx<Silent>,
) -> Result<Output, ToolError> {
    let Document { kind, text, is_whole, sha256, file_lines } = document;
    let reading = read_window(&mut Cursor::new(text.as_bytes()), text.len() as u64, request);
    let Ok(Reading::Text(mut window)) = reading else {
        // A text that is in memory is always readable, and it holds no NUL.
        return Err(ToolError::execution_failed(format!("{path} holds characters that no text has")));
    };
    if !is_whole {
        window.total_lines = None;
    }
    window.notices().into_iter().for_each(|notice| cx.note(notice));
    let changed = source.changed();
    if let (Some(hash), false) = (&sha256, changed) {
        let begins = request.byte_offset.unwrap_or(0) == 0 && window.start_line == Some(1);
        let is_seen = is_whole && begins && !window.truncated;
        let shown = Shown {
            sha256: hash.clone(),
            content: source.content.clone(),
            lines: is_seen.then_some(1..=file_lines),
            total_lines: file_lines,
            begins_at: None,
            ends_at: None,
            ends_inside: false,
        };
        filesystem.memory.shown(cx.session_id(), &source.real_path, shown);
    }
    Ok(Output {
        start_line: window.start_line,
        end_line: window.end_line,
        total_lines: window.total_lines,
        truncated: window.truncated,
        next_offset: window.next.map(position),
        empty: (is_whole && window.total_lines == Some(0)).then_some(true),
        sha256,
        changed_during_read: changed.then_some(true),
        ..Output::of(path, kind, window.content, source.size)
    })
}

fn position(next: Next) -> u64 {
    match next {
        Next::Line(line) => line,
        Next::Byte(byte) => byte,
    }
}

impl Output {
    /// A result that says nothing beyond what is there.
    fn of(path: &JailPath, kind: FileContent, content: String, total_bytes: u64) -> Self {
        Self {
            path: path.to_string(),
            kind,
            content,
            start_line: None,
            end_line: None,
            total_lines: None,
            total_bytes,
            truncated: false,
            next_offset: None,
            empty: None,
            encoding: None,
            bom: None,
            eol: None,
            sha256: None,
            changed_during_read: None,
            media: None,
        }
    }
}

/// Which lines a page of text shows, and how it begins and ends in them.
fn shown_of(window: &Window, request: &Request, sha256: String, content: Option<Arc<[u8]>>) -> Shown {
    let by_bytes = request.byte_offset.is_some_and(|skipped| skipped > 0);
    let pages_bytes = request.byte_offset.is_some();
    let cut = window.cut_lines.as_slice();
    // A line that is cut in the middle of a page hides something that no later page continues.
    let is_gapless = cut.iter().all(|cut| cut.line.is_some() && cut.line == window.end_line);
    let ends_at = match cut {
        [only] => Some(only.byte_offset),
        _ if pages_bytes && !request.line_numbers => {
            window.start_byte.map(|start| start + window.content.len() as u64)
        }
        _ => None,
    };
    Shown {
        sha256,
        content,
        lines: window
            .start_line
            .zip(window.end_line)
            .filter(|_| is_gapless)
            .map(|(first, last)| first..=last),
        total_lines: window.total_lines.unwrap_or(0),
        begins_at: window.start_byte.filter(|_| by_bytes),
        ends_at,
        ends_inside: !cut.is_empty()
            || (pages_bytes && window.next.is_some() && !window.content.ends_with('\n')),
    }
}

fn text(
    filesystem: &Filesystem,
    path: &JailPath,
    window: Window,
    request: &Request,
    source: Source,
    cx: &Cx<Silent>,
) -> Output {
    window.notices().into_iter().for_each(|notice| cx.note(notice));
    let past_the_end = window.content.is_empty() && window.total_lines.is_some_and(|lines| lines > 0);
    if past_the_end {
        let (lines, bytes) = (window.total_lines.unwrap_or(0), window.total_bytes);
        cx.note(match request.byte_offset {
            Some(_) => format!("nothing is there: the file has {}", of_bytes(bytes)),
            None if lines == 1 => "nothing is there: the file has 1 line".to_owned(),
            None => format!("nothing is there: the file has {lines} lines"),
        });
    }
    let changed = window.shrank || source.changed();
    if let (Some(sha256), false) = (&window.sha256, changed) {
        let shown = shown_of(&window, request, sha256.clone(), source.content);
        filesystem.memory.shown(cx.session_id(), &source.real_path, shown);
    }
    Output {
        start_line: window.start_line,
        end_line: window.end_line,
        total_lines: window.total_lines,
        truncated: window.truncated,
        next_offset: window.next.map(position),
        empty: (window.total_lines == Some(0)).then_some(true),
        encoding: Some(window.encoding.to_string()),
        bom: window.bom.then_some(true),
        eol: Some(window.eol.name().to_owned()),
        sha256: window.sha256,
        changed_during_read: changed.then_some(true),
        ..Output::of(path, FileContent::Text, window.content, window.total_bytes)
    }
}

/// What is said of a file that is not text.
fn other(
    path: &JailPath,
    described: Described,
    source: Source,
    total_bytes: u64,
    sha256: Option<String>,
) -> Output {
    let media = described.inline.map(|(mime_type, data_base64)| MediaContent { mime_type, data_base64 });
    let kind = if described.is_image { FileContent::Image } else { FileContent::Binary };
    Output {
        sha256,
        changed_during_read: source.changed().then_some(true),
        media,
        ..Output::of(path, kind, described.words, total_bytes)
    }
}
