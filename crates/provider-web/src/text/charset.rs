//! From bytes to characters: a byte order mark, what the server says, what the page says, what the bytes are.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Where a page says its charset; the standard looks at 1 KB, and pages are late with it.
const HEAD: usize = 4 * 1024;
/// Bytes that are looked at to tell which encoding they are in.
const SAMPLE: usize = 256 * 1024;

/// A body's characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The encoding's name, in lower case: `utf-8`, `shift_jis`.
    pub charset: String,
    /// The characters.
    pub text: String,
    /// What a reader should know beside them.
    pub notes: Vec<String>,
}

/// How a body may name its own encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// By `<meta>`, as HTML does.
    Html,
    /// By its first line, as XML does.
    Xml,
    /// Not at all.
    No,
}

/// Decodes a body whose server names its encoding `label`, if it does.
pub fn decode(bytes: &[u8], label: Option<&str>, own: Own) -> Decoded {
    let mut notes = Vec::new();
    let (encoding, skipped) = choose(bytes, label, own, &mut notes);
    let body = bytes.get(skipped..).unwrap_or_default();
    let (text, had_errors) = encoding.decode_without_bom_handling(body);
    if had_errors {
        let damaged = text.matches('\u{fffd}').count();
        notes.push(format!("{damaged} places that are no {} are shown as U+FFFD", encoding.name()));
    }
    Decoded { charset: encoding.name().to_ascii_lowercase(), text: text.into_owned(), notes }
}

/// The encoding, and how many bytes its mark takes.
fn choose(
    bytes: &[u8],
    label: Option<&str>,
    own: Own,
    notes: &mut Vec<String>,
) -> (&'static Encoding, usize) {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return (encoding, length);
    }
    let mut is_unknown = false;
    if let Some(label) = label.map(str::trim).filter(|label| !label.is_empty()) {
        match Encoding::for_label_no_replacement(label.as_bytes()) {
            Some(encoding) => return (encoding, 0),
            None => is_unknown = true,
        }
    }
    let own = match own {
        Own::Html => in_meta(bytes),
        Own::Xml => in_declaration(bytes),
        Own::No => None,
    };
    let chosen = match own.map(Encoding::for_label_no_replacement) {
        Some(Some(encoding)) => Some(encoding),
        Some(None) => {
            is_unknown = true;
            None
        }
        None => None,
    };
    let chosen = chosen.unwrap_or_else(|| by_content(bytes, is_unknown));
    if is_unknown {
        let label = label.or_else(|| own.and_then(|own| std::str::from_utf8(own).ok())).unwrap_or_default();
        notes.push(format!(
            "the charset {:?} is unknown; the text was read as {}",
            label.chars().take(40).collect::<String>(),
            chosen.name()
        ));
    }
    (chosen, 0)
}

/// What the bytes themselves are: UTF-8 where they can be; else what they look like if a label was there that nobody
/// knows, and what the web takes everything for if there was none.
fn by_content(bytes: &[u8], is_unknown: bool) -> &'static Encoding {
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // A body that breaks off may end inside a character.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    };
    if is_utf8 {
        return UTF_8;
    }
    if !is_unknown {
        return WINDOWS_1252;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes.get(..SAMPLE).unwrap_or(bytes), bytes.len() <= SAMPLE);
    detector.guess(None, Utf8Detection::Allow)
}

/// The encoding that a `<meta>` names near the beginning.
fn in_meta(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.get(..HEAD).unwrap_or(bytes);
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix(b"!--") {
            rest = memchr::memmem::find(comment, b"-->").map_or(&[][..], |end| &comment[end + 3..]);
        } else if rest.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
            && rest.get(4).is_some_and(|next| next.is_ascii_whitespace() || *next == b'/')
        {
            let tag = memchr::memchr(b'>', rest).map_or(rest, |end| &rest[..end]);
            if let Some(label) = in_attributes(&tag[4..]) {
                return Some(not_utf16(label));
            }
        }
    }
    None
}

/// The value of `charset` in the attributes of a `<meta>`, or in the `content` of one that stands for a header.
fn in_attributes(mut rest: &[u8]) -> Option<&[u8]> {
    let (mut charset, mut content, mut is_header) = (None, None, false);
    while let Some((name, value, after)) = attribute(rest) {
        rest = after;
        match name.to_ascii_lowercase().as_slice() {
            b"charset" => charset = Some(value),
            b"content" => content = Some(value),
            b"http-equiv" => is_header |= value.eq_ignore_ascii_case(b"content-type"),
            _ => {}
        }
    }
    charset.or_else(|| charset_in(content.filter(|_| is_header)?)).filter(|label| !label.is_empty())
}

/// The first attribute: its name, its value, what follows.
fn attribute(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let skips = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
    let bytes = &bytes[bytes.iter().position(|byte| !skips(byte))?..];
    let end = bytes.iter().position(|byte| skips(byte) || *byte == b'=').unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at(end.max(1).min(bytes.len()));
    let Some(rest) = rest.trim_ascii_start().strip_prefix(b"=") else { return Some((name, &[], rest)) };
    let rest = rest.trim_ascii_start();
    if let Some(quote) = rest.first().filter(|byte| matches!(byte, b'"' | b'\'')) {
        let value = &rest[1..];
        let end = memchr::memchr(*quote, value).unwrap_or(value.len());
        return Some((name, value[..end].trim_ascii(), value.get(end + 1..).unwrap_or_default()));
    }
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    Some((name, &rest[..end], &rest[end..]))
}

/// What follows `charset=`.
fn charset_in(value: &[u8]) -> Option<&[u8]> {
    let lower = value.to_ascii_lowercase();
    let at = memchr::memmem::find(&lower, b"charset")? + b"charset".len();
    let rest = value[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'"' | b'\'');
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    Some(&rest[..rest.iter().position(ends).unwrap_or(rest.len())])
}

/// A page that says in ASCII that it is UTF-16 is wrong about it.
fn not_utf16(label: &[u8]) -> &[u8] {
    match Encoding::for_label(label) {
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => b"utf-8",
        _ => label,
    }
}

/// The encoding in `<?xml … encoding="…"?>`.
fn in_declaration(bytes: &[u8]) -> Option<&[u8]> {
    let head = bytes.get(..HEAD).unwrap_or(bytes).trim_ascii_start().strip_prefix(b"<?xml")?;
    let head = &head[..memchr::memmem::find(head, b"?>")?];
    let rest = &head[memchr::memmem::find(head, b"encoding")? + b"encoding".len()..];
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quote = *rest.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let rest = &rest[1..];
    Some(not_utf16(&rest[..memchr::memchr(quote, rest)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], label: Option<&str>, own: Own, charset: &str, text: &str) -> Vec<String> {
        let decoded = decode(bytes, label, own);
        assert_eq!((decoded.charset.as_str(), decoded.text.as_str()), (charset, text));
        decoded.notes
    }

    fn encoded(label: &str, text: &str) -> Vec<u8> {
        Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
    }

    #[test]
    fn the_server_says_it() {
        for (label, charset, text) in [
            ("gbk", "gbk", "中文测试"),
            ("GB2312", "gbk", "中文"),
            ("gb18030", "gb18030", "中文"),
            ("Shift_JIS", "shift_jis", "日本語テキスト"),
            ("ISO-8859-1", "windows-1252", "café “quoted”"),
            ("windows-1251", "windows-1251", "Привет, мир"),
            ("utf8", "utf-8", "naïve"),
            ("  EUC-KR ", "euc-kr", "한국어"),
        ] {
            let notes = check(&encoded(label.trim(), text), Some(label), Own::No, charset, text);
            assert_eq!(notes, Vec::<String>::new(), "{label}");
        }
        // The older names mean the newer standard, which has all characters.
        for label in ["gb2312", "GBK", "gb_2312-80"] {
            check(&encoded("gb18030", "中文 👍"), Some(label), Own::No, "gbk", "中文 👍");
        }
    }

    #[test]
    fn an_unknown_label_is_told_and_the_text_is_recognised() {
        let text = "Съешь же ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.";
        let notes = check(&encoded("windows-1251", text), Some("x-unknown-9"), Own::No, "windows-1251", text);
        assert_eq!(notes, ["the charset \"x-unknown-9\" is unknown; the text was read as windows-1251"]);
        // A label that the standard forbids is none either.
        let notes = check("é".as_bytes(), Some("hz-gb-2312"), Own::No, "utf-8", "é");
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn a_mark_comes_first() {
        let utf16: Vec<u8> = "\u{feff}Größe".encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&utf16, Some("iso-8859-1"), Own::Html, "utf-16le", "Größe");
        let utf16: Vec<u8> = "\u{feff}Größe".encode_utf16().flat_map(u16::to_be_bytes).collect();
        check(&utf16, None, Own::No, "utf-16be", "Größe");
        check("\u{feff}é".as_bytes(), Some("shift_jis"), Own::No, "utf-8", "é");
    }

    #[test]
    fn a_page_says_it_itself() {
        let pages = [
            "<meta charset=shift_jis><p>日本語",
            "<META CharSet = 'Shift_JIS' /><p>日本語",
            "<!-- <meta charset=utf-8> --><head><meta name=x content=y><meta charset=\"shift_jis\">日本語",
            "<meta http-equiv=Content-Type content='text/html; charset=shift_jis'>日本語",
            "<meta content=\"text/html;charset=Shift_JIS\" http-equiv=\"content-type\">日本語",
        ];
        for page in pages {
            check(&encoded("shift_jis", page), None, Own::Html, "shift_jis", page);
        }
        // The server's word counts more.
        let page = "<meta charset=shift_jis>é";
        check(page.as_bytes(), Some("utf-8"), Own::Html, "utf-8", page);
        // It is not looked for elsewhere.
        check(page.as_bytes(), None, Own::No, "utf-8", page);
        let late = format!("{}<meta charset=shift_jis>日本語", " ".repeat(3_000));
        check(&encoded("shift_jis", &late), None, Own::Html, "shift_jis", &late);
        let xml = "<?xml version='1.0' encoding='windows-1251'?><a>Привет</a>";
        check(&encoded("windows-1251", xml), None, Own::Xml, "windows-1251", xml);
        // A page in ASCII is not UTF-16, whatever it says.
        let page = "<meta charset=utf-16>é";
        check(page.as_bytes(), None, Own::Html, "utf-8", page);
    }

    #[test]
    fn nothing_says_it() {
        check("naïve".as_bytes(), None, Own::Html, "utf-8", "naïve");
        check(b"caf\xe9 \x93x\x94", None, Own::Html, "windows-1252", "café “x”");
        check(b"", None, Own::Html, "utf-8", "");
        // A body that breaks off inside a character is still UTF-8.
        let notes = check(b"abc\xe2\x82", None, Own::No, "utf-8", "abc\u{fffd}");
        assert_eq!(notes, ["1 places that are no UTF-8 are shown as U+FFFD"]);
    }

    #[test]
    fn damaged_attributes_end() {
        for page in [
            "<meta charset",
            "<meta charset=",
            "<meta ==",
            "<meta charset='x",
            "<meta content=x http-equiv",
            "<meta /",
        ] {
            decode(page.as_bytes(), None, Own::Html);
        }
    }
}
