//! `file_info`: what is at a path, without reading it to the model.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use provider_core::jail::{FileKind, JailPath, Metadata, escape_bytes};
use provider_core::prelude::*;

use crate::Filesystem;
use crate::cancellable::Cancellable;
use crate::engine::window::{Reading, Request, Window, read_window};

/// Tells what is at a path: type, size, mode, time of change, and for text files encoding, line endings, number
/// of lines and hash. A symbolic link is described itself, with its target.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The path, absolute or relative to the working directory.
    #[schemars(extend("x-aliases" = ["file_path", "filename", "file"]))]
    path: String,
}

/// What is at a path.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The path, relative to the working directory if beneath it, else absolute.
    path: String,
    /// file, directory, symlink, fifo, socket, char_device or block_device.
    r#type: String,
    /// Size in bytes.
    size: u64,
    /// Permission bits in octal, such as 0644.
    mode: String,
    /// When the content last changed, in milliseconds since 1970.
    modified: u64,
    /// How the text is stored; absent if it is not text.
    encoding: Option<String>,
    /// The line endings of the text: lf, crlf, mixed or none.
    eol: Option<String>,
    /// The number of lines of the text.
    lines: Option<u64>,
    /// SHA-256 of the file in hex.
    sha256: Option<String>,
    /// Where the symbolic link points.
    target: Option<String>,
}

pub(crate) struct FileInfo;

impl DataSource for FileInfo {
    const NAME: &'static str = "file_info";
    const CONCURRENCY: Concurrency = Concurrency::Shared;
    const TIMEOUT: Duration = Duration::from_secs(60);
    type Provider = Filesystem;
    type Args = Args;
    type Output = Output;
    type Stream = Silent;

    async fn invoke(filesystem: Arc<Filesystem>, args: Args, cx: Cx<Silent>) -> Result<Output, ToolError> {
        let path = filesystem.locate(&args.path, cx.working_directory())?;
        path.note().into_iter().for_each(|note| cx.note(note));
        let context = cx.clone();
        cx.blocking(move || inform(&path, &context)).await
    }
}

fn inform(path: &JailPath, cx: &Cx<Silent>) -> Result<Output, ToolError> {
    let metadata = path.symlink_metadata()?;
    let mut output = Output {
        path: path.to_string(),
        r#type: metadata.kind.name().to_owned(),
        size: metadata.size,
        mode: format!("{:04o}", metadata.mode & 0o7777),
        modified: modified_ms(&metadata),
        encoding: None,
        eol: None,
        lines: None,
        sha256: None,
        target: None,
    };
    match metadata.kind {
        FileKind::Symlink => output.target = Some(shown_target(&path.read_link()?)),
        FileKind::File => {
            let open = path.open_read()?;
            let size = open.metadata().size;
            let request = Request { limit: 1, ..Request::default() };
            let mut file = Cancellable::new(open.into_file(), cx);
            let reading = read_window(&mut file, size, &request);
            match reading.map_err(|error| Cancellable::<File, Silent>::error(cx, path, &error))? {
                Reading::Text(window) => output.describe(window),
                Reading::Binary { sha256, .. } => output.sha256 = sha256,
            }
        }
        _ => {}
    }
    Ok(output)
}

impl Output {
    fn describe(&mut self, window: Window) {
        self.encoding = Some(window.encoding.to_string());
        self.eol = Some(window.eol.name().to_owned());
        self.lines = window.total_lines;
        self.sha256 = window.sha256;
    }
}

/// A link's target as text.
pub(crate) fn shown_target(target: &Path) -> String {
    escape_bytes(target.as_os_str())
}

/// Milliseconds since 1970; 0 for earlier times.
pub(crate) fn modified_ms(metadata: &Metadata) -> u64 {
    let since = metadata.modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
