use encoding_rs as whatwg;

use super::super::text::Text;
use super::*;

#[track_caller]
fn check(bytes: &[u8], encoding: &str, bom: bool, body: &str) {
    let text = Text::parse(bytes).unwrap();
    assert_eq!((text.encoding().to_string().as_str(), text.has_bom(), text.body()), (encoding, bom, body));
}

fn in_units<const N: usize>(text: &str, mark: &[u8], unit: fn(u16) -> [u8; N]) -> Vec<u8> {
    mark.iter().copied().chain(text.encode_utf16().flat_map(unit)).collect()
}

#[test]
fn the_byte_order_mark_tells() {
    check(b"\xEF\xBB\xBFa\n", "utf-8", true, "a\n");
    check(b"\xff\xfeh\0i\0\r\0\n\0", "utf-16le", true, "hi\r\n");
    check(b"\xfe\xff\0h\0i\0\n", "utf-16be", true, "hi\n");
    check(b"\xff\xfe\0\0h\0\0\0\n\0\0\0", "utf-32le", true, "h\n");
    check(b"\0\0\xfe\xff\0\0\0h\0\x01\xf4\xdd", "utf-32be", true, "h\u{1f4dd}");
    check(b"\xff\xfe", "utf-16le", true, "");
}

#[test]
fn zeros_on_one_side_are_utf16() {
    check(&in_units("// a\n", b"", u16::to_le_bytes), "utf-16le", false, "// a\n");
    check(&in_units("// a\n", b"", u16::to_be_bytes), "utf-16be", false, "// a\n");
    let russian = "Широкая электрификация южных губерний даст мощный толчок подъёму\n".repeat(3);
    check(&in_units(&russian, b"", u16::to_le_bytes), "utf-16le", false, &russian);
}

#[test]
fn scattered_zeros_are_binary() {
    for bytes in
        [b"ab\0c".as_slice(), b"\0\0\0\x01\0\0", b"a\0b\0\0c", b"\x7fELF\x02\x01\x01\0\0\0", b"a\0\x01\0b\0"]
    {
        let binary = Text::parse(bytes).unwrap_err();
        assert_eq!(binary.reason, BinaryReason::Nul, "{bytes:?}");
    }
    assert_eq!(Text::parse(b"ab\0c").unwrap_err().offset, 2);
}

#[test]
fn control_characters_among_what_is_not_utf8_are_binary() {
    let binary = Text::parse(b"ab\xff\x01\x02").unwrap_err();
    assert_eq!(binary, Binary { offset: 2, reason: BinaryReason::NotText });
}

#[test]
fn valid_utf8_always_wins() {
    check("é".as_bytes(), "utf-8", false, "é");
    check("日本語".as_bytes(), "utf-8", false, "日本語");
    check(b"\x01\x02\x1b[0m", "utf-8", false, "\u{1}\u{2}\u{1b}[0m");
}

#[test]
fn encodings_of_old_are_told_by_their_characters() {
    check(b"caf\xe9 = 1\nx = 2\n", "windows-1252", false, "café = 1\nx = 2\n");
    let samples = [
        (whatwg::SHIFT_JIS, "コメント: これは日本語の表です。\nprint(1)\n"),
        (whatwg::EUC_JP, "コメント: これは日本語の表です。\nprint(1)\n"),
        (whatwg::GBK, "// 这是一个简体中文的注释，用来测试编码。\nint a = 1;\n"),
        (whatwg::BIG5, "// 這是一個繁體中文的註解，用來測試編碼。\nint a = 1;\n"),
        (whatwg::EUC_KR, "// 이것은 한국어로 쓴 주석입니다. 시험용입니다.\nint a = 1;\n"),
        (whatwg::WINDOWS_1251, "# Это комментарий на русском языке для проверки.\nx = 1\n"),
        (whatwg::ISO_2022_JP, "これは日本語の表です。\nprint(1)\n"),
    ];
    for (encoding, body) in samples {
        let (bytes, _, unmappable) = encoding.encode(body);
        assert!(!unmappable);
        check(&bytes, &encoding.name().to_ascii_lowercase(), false, body);
    }
}

#[test]
fn damaged_utf8_stays_utf8() {
    assert!(!Text::parse("größe\n".as_bytes()).unwrap().is_damaged());
    let bytes = [b"gr\xc3\xb6\xc3\x9fe\n".as_slice(), b"bad \xe9 here\n"].concat();
    check(&bytes, "utf-8", false, "größe\nbad \u{fffd} here\n");
    assert!(Text::parse(&bytes).unwrap().is_damaged());
}

#[test]
fn labels_are_understood() {
    for (label, name) in [
        ("UTF-8", "utf-8"),
        ("utf_8", "utf-8"),
        ("utf-16", "utf-16le"),
        ("UTF-16BE", "utf-16be"),
        ("utf-32", "utf-32le"),
        ("latin1", "windows-1252"),
        ("Shift_JIS", "shift_jis"),
        ("sjis", "shift_jis"),
        ("euc_kr", "euc-kr"),
        ("ascii", "utf-8"),
        ("gb18030", "gb18030"),
    ] {
        assert_eq!(Encoding::from_label(label).map(|encoding| encoding.to_string()).as_deref(), Some(name));
    }
    assert_eq!(Encoding::from_label("klingon"), None);
    assert_eq!(Encoding::from_label("replacement"), None);
}

#[test]
fn what_an_encoding_has_not_is_named() {
    let of = |label: &str| Encoding::from_label(label).unwrap();
    assert_eq!(of("shift_jis").encode("表").unwrap().as_ref(), b"\x95\x5c");
    assert_eq!(of("shift_jis").encode("a📝").unwrap_err().character, '📝');
    assert_eq!(of("windows-1252").encode("€é").unwrap().as_ref(), b"\x80\xe9");
    assert_eq!(
        of("windows-1252").encode("ж").unwrap_err().to_string(),
        "windows-1252 has no character 'ж' (U+0436)"
    );
    // It would be read back as a backslash.
    assert_eq!(of("shift_jis").encode("1¥").unwrap_err().character, '¥');
}

#[test]
fn a_stream_decodes_as_the_whole_does() {
    use std::io::Read as _;
    struct Crumbs<'a>(&'a [u8]);
    impl std::io::Read for Crumbs<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let (now, later) = self.0.split_at(self.0.len().min(1));
            self.0 = later;
            buffer[..now.len()].copy_from_slice(now);
            Ok(now.len())
        }
    }
    let body = "aé表\u{1f4dd}\r\n".repeat(50);
    for encoding in
        [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be, Encoding::Utf32Le, Encoding::Utf32Be]
    {
        let bytes = encoding.encode(&body).unwrap();
        let mut text = String::new();
        Transcoded::new(Crumbs(&bytes), encoding).read_to_string(&mut text).unwrap();
        assert_eq!(text, body, "{encoding}");
    }
}

#[test]
fn a_survey_in_crumbs_sees_what_one_in_a_piece_sees() {
    let bytes = [b"x".repeat(64 * 1024 - 1), "日本".repeat(40_000).into_bytes(), b"\xff".to_vec()].concat();
    let detected = Survey::of(bytes.as_slice()).unwrap().conclude().unwrap();
    assert_eq!(detected.encoding, Encoding::Utf8);
}

#[test]
fn positions_are_found_in_every_encoding() {
    let body = "aé表\u{1f4dd}b\r\n".repeat(2000);
    for encoding in [Encoding::Utf16Le, Encoding::Utf16Be, Encoding::Utf32Le, Encoding::Utf32Be] {
        let bytes = [encoding.bom(), &encoding.encode(&body).unwrap()].concat();
        let text = Text::parse(&bytes).unwrap();
        for (at, _) in body.char_indices().step_by(97).chain([(body.len(), ' ')]) {
            let expected = encoding.bom().len() + encoding.encode(&body[..at]).unwrap().len();
            assert_eq!(text.original_span(at..at), Some(expected..expected), "{encoding} at {at}");
        }
    }
}
