//! What bytes are that are no text, by how they begin.

/// What a body begins like.
struct Signature {
    /// Bytes before the signature.
    offset: usize,
    bytes: &'static [u8],
    name: &'static str,
    media_type: &'static str,
}

const fn at(offset: usize, bytes: &'static [u8], name: &'static str, media_type: &'static str) -> Signature {
    Signature { offset, bytes, name, media_type }
}

const SIGNATURES: &[Signature] = &[
    at(0, b"PK\x03\x04", "ZIP archive", "application/zip"),
    at(0, b"PK\x05\x06", "empty ZIP archive", "application/zip"),
    at(0, b"\x1f\x8b", "gzip data", "application/gzip"),
    at(0, b"BZh", "bzip2 data", "application/x-bzip2"),
    at(0, b"\xfd7zXZ\0", "xz data", "application/x-xz"),
    at(0, b"\x28\xb5\x2f\xfd", "Zstandard data", "application/zstd"),
    at(0, b"7z\xbc\xaf\x27\x1c", "7z archive", "application/x-7z-compressed"),
    at(0, b"Rar!\x1a\x07", "RAR archive", "application/vnd.rar"),
    at(257, b"ustar", "tar archive", "application/x-tar"),
    at(0, b"!<arch>\n", "ar archive or Debian package", "application/x-archive"),
    at(0, b"\x7fELF", "ELF program", "application/x-elf"),
    at(0, b"MZ", "Windows program", "application/vnd.microsoft.portable-executable"),
    at(0, b"\xcf\xfa\xed\xfe", "Mach-O program", "application/x-mach-binary"),
    at(0, b"\0asm", "WebAssembly module", "application/wasm"),
    at(0, b"\xca\xfe\xba\xbe", "Java class or universal program", "application/java-vm"),
    at(0, b"SQLite format 3\0", "SQLite database", "application/vnd.sqlite3"),
    at(0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office document", "application/x-ole-storage"),
    at(0, b"wOF2", "WOFF2 font", "font/woff2"),
    at(0, b"wOFF", "WOFF font", "font/woff"),
    at(0, b"OTTO", "OpenType font", "font/otf"),
    at(0, b"\0\x01\0\0\0", "TrueType font", "font/ttf"),
    at(0, b"ID3", "MP3 audio", "audio/mpeg"),
    at(0, b"OggS", "Ogg media", "application/ogg"),
    at(0, b"fLaC", "FLAC audio", "audio/flac"),
    at(8, b"WAVE", "WAV audio", "audio/wav"),
    at(8, b"AVI ", "AVI video", "video/x-msvideo"),
    at(4, b"ftyp", "MP4 media", "video/mp4"),
    at(0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video", "video/webm"),
    at(0, b"\0\0\x01\0", "icon", "image/x-icon"),
];

/// The name and media type of what `bytes` begin like.
pub(super) fn known(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let is_it = |signature: &&Signature| {
        bytes.get(signature.offset..).is_some_and(|rest| rest.starts_with(signature.bytes))
    };
    SIGNATURES.iter().find(is_it).map(|signature| (signature.name, signature.media_type))
}

/// Bytes that are looked at to tell text from everything else.
const SAMPLE: usize = 16 * 1024;

/// Whether bytes without a charset can be text.
pub(super) fn looks_like_text(bytes: &[u8]) -> bool {
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    if encoding_rs::Encoding::for_bom(sample).is_some() {
        return true;
    }
    let is_odd = |byte: &&u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    memchr::memchr(0, sample).is_none() && sample.iter().filter(is_odd).count() * 64 <= sample.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart_by_how_they_begin() {
        assert_eq!(known(b"PK\x03\x04rest"), Some(("ZIP archive", "application/zip")));
        assert_eq!(known(b"RIFF\0\0\0\0WAVEfmt ").map(|found| found.1), Some("audio/wav"));
        assert_eq!(known(b"hello"), None);
        assert_eq!(known(b""), None);
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(known(&tar).map(|found| found.0), Some("tar archive"));
    }

    #[test]
    fn text_has_no_odd_bytes() {
        assert!(looks_like_text("naïve\ttext\r\n\x1b[1mbold".as_bytes()));
        assert!(looks_like_text(b"caf\xe9"));
        assert!(!looks_like_text(b"a\0b"));
        assert!(!looks_like_text(&[1, 2, 3, 4]));
        assert!(looks_like_text(b"\xff\xfea\0"));
        assert!(looks_like_text(b""));
    }
}
