//! `read_file`: a window of a file, of any size, in bounded memory.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc as Shared;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provider_core::jail::{JailPath, OpenFile};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::cancellable::Cancellable;
use crate::config::Media as MediaPolicy;
use crate::engine::window::{Next, Reading, Request, Window, read_window};
use crate::memory::{LARGEST_CONTENT, Shown};

/// Lines answered when no limit is given.
const DEFAULT_LIMIT: u64 = 2_000;
/// Files up to this size, in bytes, are read on the serving thread.
const QUICK_SIZE: u64 = 64 << 10;
/// Larger images are described, never inlined. In bytes.
const LARGEST_INLINE: u64 = 5 << 20;

/// Reads a file: text with line paging (2,000 lines or 48 KiB at a time, 2,000 characters a line), images
/// described. What is left out is always said, with the offset that continues exactly.
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
    /// Bytes to skip from where offset begins; for reading on inside a line that is too long for one page.
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
    open.metadata().size <= QUICK_SIZE
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
    let reading = source.window(&request, cx).map_err(|error| unreadable(cx, path, &error))?;
    match reading {
        Reading::Text(window) => Ok(text(filesystem, path, window, source, cx)),
        Reading::Binary { total_bytes, sha256 } => {
            other(filesystem.media, path, source, total_bytes, sha256, cx)
        }
    }
}

/// An open file, with its content where it is small.
struct Source {
    file: File,
    size: u64,
    modified: std::time::SystemTime,
    real_path: std::path::PathBuf,
    content: Option<Shared<[u8]>>,
}

impl Source {
    fn of(open: OpenFile, cx: &Cx<Silent>) -> io::Result<Self> {
        let (size, modified) = (open.metadata().size, open.metadata().modified);
        let real_path = open.resolved().absolute();
        let mut source = Self { file: open.into_file(), size, modified, real_path, content: None };
        if size <= LARGEST_CONTENT as u64 {
            source.content = Some(source.head(size, cx)?.into());
        }
        Ok(source)
    }

    fn head(&mut self, bytes: u64, cx: &Cx<Silent>) -> io::Result<Vec<u8>> {
        // One byte more, so that the end is found without growing.
        let mut head = Vec::with_capacity(usize::try_from(bytes.min(self.size)).unwrap_or(0) + 1);
        self.file.seek(SeekFrom::Start(0))?;
        Cancellable::new(&mut self.file, cx).take(bytes).read_to_end(&mut head)?;
        Ok(head)
    }

    fn window(&mut self, request: &Request, cx: &Cx<Silent>) -> io::Result<Reading> {
        match &self.content {
            Some(content) => read_window(&mut Cursor::new(&**content), content.len() as u64, request),
            None => read_window(&mut Cancellable::new(&mut self.file, cx), self.size, request),
        }
    }

    /// Whether the file is no longer what it was when it was opened.
    fn changed(&self) -> bool {
        let grown = |size: u64| size != self.size;
        self.file
            .metadata()
            .is_ok_and(|now| grown(now.len()) || now.modified().is_ok_and(|time| time != self.modified))
    }
}

fn unreadable(cx: &Cx<Silent>, path: &JailPath, error: &io::Error) -> ToolError {
    Cancellable::<File, Silent>::error(cx, path, error)
}

fn text(filesystem: &Filesystem, path: &JailPath, window: Window, source: Source, cx: &Cx<Silent>) -> Output {
    window.notices().into_iter().for_each(|notice| cx.note(notice));
    let past_the_end = window.content.is_empty() && window.total_lines.is_some_and(|lines| lines > 0);
    if past_the_end {
        cx.note(format!("nothing is there: the file has {} lines", window.total_lines.unwrap_or(0)));
    }
    let changed = window.shrank || source.changed();
    if let (Some(sha256), false) = (&window.sha256, changed) {
        let cut = !window.cut_lines.is_empty();
        let lines = window.start_line.zip(window.end_line).filter(|_| !cut).map(|(first, last)| first..=last);
        let total_lines = window.total_lines.unwrap_or(0);
        let shown = Shown { sha256: sha256.clone(), content: source.content, lines, total_lines };
        filesystem.memory.shown(cx.session_id(), &source.real_path, shown);
    }
    Output {
        path: path.to_string(),
        kind: FileContent::Text,
        start_line: window.start_line,
        end_line: window.end_line,
        total_lines: window.total_lines,
        total_bytes: window.total_bytes,
        truncated: window.truncated,
        next_offset: window.next.map(|next| match next {
            Next::Line(line) => line,
            Next::Byte(byte) => byte,
        }),
        empty: (window.total_lines == Some(0)).then_some(true),
        encoding: Some(window.encoding.to_string()),
        bom: window.bom.then_some(true),
        eol: Some(window.eol.name().to_owned()),
        sha256: window.sha256,
        changed_during_read: changed.then_some(true),
        media: None,
        content: window.content,
    }
}

/// What is said of a file that is not text.
fn other(
    policy: MediaPolicy,
    path: &JailPath,
    mut source: Source,
    total_bytes: u64,
    sha256: Option<String>,
    cx: &Cx<Silent>,
) -> Result<Output, ToolError> {
    let head = source.head(total_bytes.min(1 << 20), cx).map_err(|error| unreadable(cx, path, &error))?;
    let (kind, content, mime_type) = describe(path, &head, total_bytes)?;
    let inline = policy == MediaPolicy::Inline && kind == FileContent::Image && total_bytes <= LARGEST_INLINE;
    let media = match mime_type.filter(|_| inline) {
        Some(mime_type) => {
            let bytes = source.head(total_bytes, cx).map_err(|error| unreadable(cx, path, &error))?;
            Some(MediaContent { mime_type: mime_type.to_owned(), data_base64: STANDARD.encode(bytes) })
        }
        None => None,
    };
    Ok(Output {
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
        sha256,
        changed_during_read: source.changed().then_some(true),
        media,
    })
}

/// The kind of a file by its first bytes, in words, and its media type where it is an image.
fn describe(
    path: &JailPath,
    head: &[u8],
    total_bytes: u64,
) -> Result<(FileContent, String, Option<&'static str>), ToolError> {
    if head.starts_with(b"%PDF-") {
        return Ok((FileContent::Pdf, format!("PDF document, {total_bytes} bytes"), None));
    }
    let Some((name, mime_type)) = image_type(head) else {
        let text = format!("binary file, {total_bytes} bytes; it cannot be shown or edited as text");
        return Ok((FileContent::Binary, text, None));
    };
    match imagesize::blob_size(head) {
        Ok(size) => {
            let text = format!("{name} image, {} × {} pixels, {total_bytes} bytes", size.width, size.height);
            Ok((FileContent::Image, text, Some(mime_type)))
        }
        Err(_) => {
            let text =
                format!("{path} begins like a {name} image but is cut off or broken ({total_bytes} bytes)");
            Err(ToolError::new(Code::Binary, text))
        }
    }
}

fn image_type(head: &[u8]) -> Option<(&'static str, &'static str)> {
    use imagesize::ImageType;
    match imagesize::image_type(head).ok()? {
        ImageType::Png => Some(("PNG", "image/png")),
        ImageType::Jpeg => Some(("JPEG", "image/jpeg")),
        ImageType::Gif => Some(("GIF", "image/gif")),
        ImageType::Webp => Some(("WebP", "image/webp")),
        ImageType::Bmp => Some(("BMP", "image/bmp")),
        ImageType::Tiff => Some(("TIFF", "image/tiff")),
        _ => None,
    }
}
