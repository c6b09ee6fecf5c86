//! What is said of files that are not text: images by their first bytes, everything else as binary.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use documents::image::{self, Format};
use provider_core::jail::JailPath;
use provider_core::prelude::*;

use crate::config::Media;
use crate::source::{Source, unreadable};

/// Larger images are described, never inlined. In bytes.
const LARGEST_INLINE: u64 = 5 << 20;
/// The beginning of a file in which its type and size are looked for. In bytes.
const HEAD: u64 = 1 << 20;

/// A file in words.
pub(crate) struct Described {
    pub(crate) is_image: bool,
    pub(crate) words: String,
    /// The media type, and the bytes in Base64, of an image that is to be given.
    pub(crate) inline: Option<(String, String)>,
}

/// Describes a file that is not text.
///
/// # Errors
/// One that begins like an image and is broken.
pub(crate) fn describe(
    policy: Media,
    path: &JailPath,
    source: &mut Source,
    total_bytes: u64,
    cx: &Cx<Silent>,
) -> Result<Described, ToolError> {
    let head = source.head(total_bytes.min(HEAD), cx).map_err(|error| unreadable(cx, path, &error))?;
    let Some(Format { name, media_type }) = image::format(&head) else {
        let words = format!("binary file, {total_bytes} bytes; it cannot be shown or edited as text");
        return Ok(Described { is_image: false, words, inline: None });
    };
    let (width, height) = image::size(&head).map_err(|_| {
        let text =
            format!("{path} begins like a {name} image but is cut off or broken ({total_bytes} bytes)");
        ToolError::new(Code::Binary, text)
    })?;
    let words = format!("{name} image, {width} × {height} pixels, {total_bytes} bytes");
    let mut described = Described { is_image: true, words, inline: None };
    if policy == Media::Inline {
        if total_bytes <= LARGEST_INLINE {
            let bytes = source.head(total_bytes, cx).map_err(|error| unreadable(cx, path, &error))?;
            described.inline = Some((media_type.to_owned(), STANDARD.encode(bytes)));
        } else {
            cx.note(format!(
                "the image is described only: more than {LARGEST_INLINE} bytes are not given inline"
            ));
        }
    }
    Ok(described)
}
