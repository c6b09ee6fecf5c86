//! Documents that are read as the text they stand for: notebooks as cells, PDF as pages.

use std::time::Duration;

use documents::pdf::{self, PdfText};
use documents::{Broken, contained};
use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::engine::notebook::{Notebook, show};
use crate::engine::text::{Text, count_lines};
use crate::engine::window::Request;
use crate::source::{Source, unreadable};
use crate::staleness::sha256;
use crate::tools::read_file::FileContent;

/// Larger documents are not taken apart. In bytes.
const LARGEST: u64 = 64 << 20;
/// How long reading the pages of a document may take.
const LONGEST: Duration = Duration::from_secs(20);

/// A document as text.
pub(crate) struct Document {
    pub(crate) kind: FileContent,
    pub(crate) text: String,
    /// Whether that is all of it, not only as much as was asked for.
    pub(crate) is_whole: bool,
    /// SHA-256 of the file.
    pub(crate) sha256: Option<String>,
    /// How many lines the file itself has.
    pub(crate) file_lines: u64,
}

/// Opens a file as a document, if it is one.
///
/// # Errors
/// The file cannot be read, or the call was given up.
pub(crate) fn open(
    path: &JailPath,
    source: &mut Source,
    request: &Request,
    cx: &Cx<Silent>,
) -> Result<Option<Document>, ToolError> {
    let head = source.head(source.size.min(5), cx).map_err(|error| unreadable(cx, path, &error))?;
    if head == b"%PDF-" {
        return pdf(path, source, request, cx).map(Some);
    }
    let is_named_so = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".ipynb"));
    if !is_named_so || request.byte_offset.is_some() || source.size > LARGEST {
        return Ok(None);
    }
    let bytes = source.head(source.size, cx).map_err(|error| unreadable(cx, path, &error))?;
    let Ok(text) = Text::parse(&bytes) else { return Ok(None) };
    Ok(Notebook::parse(text.body()).map(|notebook| Document {
        kind: FileContent::Notebook,
        text: without_nul(show(&notebook)),
        is_whole: true,
        sha256: Some(sha256(&bytes)),
        file_lines: text.line_count(),
    }))
}

fn pdf(
    path: &JailPath,
    source: &mut Source,
    request: &Request,
    cx: &Cx<Silent>,
) -> Result<Document, ToolError> {
    let size = source.size;
    let unread = |reason: &dyn std::fmt::Display, sha256| Document {
        kind: FileContent::Pdf,
        text: format!("PDF document, {size} bytes; its text cannot be read: {reason}\n"),
        is_whole: true,
        sha256,
        file_lines: 1,
    };
    if size > LARGEST {
        return Ok(unread(&format_args!("it is larger than {LARGEST} bytes"), None));
    }
    let bytes = source.head(size, cx).map_err(|error| unreadable(cx, path, &error))?;
    let hash = Some(sha256(&bytes));
    let mut more = wants_more(request);
    let read = contained(
        LONGEST,
        || cx.check_cancelled().is_err(),
        move |stop| pdf::read(&bytes, |text| !stop.is_asked_for() && more(text)),
    );
    match read {
        Err(Broken::GivenUp) => Err(ToolError::cancelled()),
        Err(broken) => Ok(unread(&broken, hash)),
        Ok(Err(error)) => Ok(unread(&error, hash)),
        Ok(Ok(PdfText { text, read, pages })) => {
            if read < pages {
                cx.note(format!("{read} of {pages} pages were read so far; reading on reads more"));
            }
            let text = without_nul(text);
            Ok(Document {
                kind: FileContent::Pdf,
                text,
                is_whole: read == pages,
                sha256: hash,
                file_lines: 1,
            })
        }
    }
}

/// Whether a text that grows does not yet have all lines of a window, and one more to tell that it goes on.
fn wants_more(request: &Request) -> impl FnMut(&str) -> bool + use<> {
    let last = match request.offset {
        ..0 => u64::MAX,
        offset => offset.unsigned_abs().saturating_add(request.limit),
    };
    let skips_bytes = request.byte_offset.is_some();
    let (mut seen, mut lines) = (0, 0);
    move |text| {
        lines += count_lines(text.as_bytes().get(seen..).unwrap_or_default());
        seen = text.len();
        skips_bytes || lines <= last
    }
}

/// Text in which what no text has is shown as U+FFFD.
fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}
