//! What kind of image bytes are, and how large it is.

use imagesize::ImageType;

/// A format of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// As people call it: `PNG`.
    pub name: &'static str,
    /// As programs call it: `image/png`.
    pub media_type: &'static str,
}

/// Something begins like an image and is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it begins like an image but is cut off or broken")]
pub struct BrokenImage;

/// The format whose signature `head` begins with.
#[must_use]
pub fn format(head: &[u8]) -> Option<Format> {
    let (name, media_type) = match imagesize::image_type(head).ok()? {
        ImageType::Png => ("PNG", "image/png"),
        ImageType::Jpeg => ("JPEG", "image/jpeg"),
        ImageType::Gif => ("GIF", "image/gif"),
        ImageType::Webp => ("WebP", "image/webp"),
        ImageType::Bmp => ("BMP", "image/bmp"),
        ImageType::Tiff => ("TIFF", "image/tiff"),
        _ => return None,
    };
    Some(Format { name, media_type })
}

/// Width and height in pixels, from the beginning of an image.
///
/// # Errors
/// [`BrokenImage`] when the beginning does not say it.
pub fn size(head: &[u8]) -> Result<(usize, usize), BrokenImage> {
    imagesize::blob_size(head).map(|size| (size.width, size.height)).map_err(|_| BrokenImage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_told_by_its_beginning() {
        let gif = b"GIF89a\x07\0\x05\0\0\0\0";
        assert_eq!(format(gif), Some(Format { name: "GIF", media_type: "image/gif" }));
        assert_eq!(size(gif), Ok((7, 5)));
        assert_eq!(size(b"\x89PNG\r\n\x1a\n"), Err(BrokenImage));
        assert_eq!(format(b"hello"), None);
        assert_eq!(format(b""), None);
    }
}
