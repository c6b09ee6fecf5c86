use std::io::Cursor;

use sha2::Digest as _;

use super::*;

fn read(bytes: &[u8], request: &Request) -> Window {
    match read_window(&mut Cursor::new(bytes), bytes.len() as u64, request).unwrap() {
        Reading::Text(window) => window,
        Reading::Binary { .. } => panic!("taken for binary"),
    }
}

fn lines(offset: i64, limit: u64) -> Request {
    Request { offset, limit, ..Request::default() }
}

fn ten() -> Vec<u8> {
    (1..=10).map(|n| format!("line {n}\n")).collect::<String>().into_bytes()
}

/// Checks content, first and last line, and where to read on.
#[track_caller]
fn check(bytes: &[u8], request: &Request, content: &str, shown: Option<(u64, u64)>, next: Option<Next>) {
    let window = read(bytes, request);
    assert_eq!(window.content, content);
    assert_eq!(window.start_line.zip(window.end_line), shown);
    assert_eq!(window.next, next);
    assert_eq!(window.total_bytes, bytes.len() as u64);
    assert_eq!(window.truncated, next.is_some() || !window.cut_lines.is_empty());
}

#[test]
fn offsets_count_from_one_and_from_the_end() {
    let ten = ten();
    let whole = String::from_utf8(ten.clone()).unwrap();
    check(&ten, &lines(1, 2000), &whole, Some((1, 10)), None);
    check(&ten, &lines(0, 2000), &whole, Some((1, 10)), None);
    check(&ten, &lines(-3, 2000), "line 8\nline 9\nline 10\n", Some((8, 10)), None);
    check(&ten, &lines(-3, 1), "line 8\n", Some((8, 8)), Some(Next::Line(9)));
    check(&ten, &lines(-99, 1), "line 1\n", Some((1, 1)), Some(Next::Line(2)));
    check(&ten, &lines(4, 2), "line 4\nline 5\n", Some((4, 5)), Some(Next::Line(6)));
    check(&ten, &lines(10, 5), "line 10\n", Some((10, 10)), None);
}

#[test]
fn past_the_end_is_empty_with_the_totals() {
    for offset in [11, 1_000_000_000_000, i64::MAX] {
        check(&ten(), &lines(offset, 10), "", None, None);
        assert_eq!(read(&ten(), &lines(offset, 10)).total_lines, Some(10));
    }
    let request = Request { byte_offset: Some(u64::MAX), ..Request::default() };
    check(&ten(), &request, "", None, None);
}

#[test]
fn empty_files_have_no_lines() {
    for (bytes, total, bom) in [(&b""[..], 0, false), (b"\xEF\xBB\xBF", 0, true), (b"\n", 1, false)] {
        for offset in [1, -1, 2, -9] {
            let window = read(bytes, &lines(offset, 10));
            assert_eq!(
                (window.total_lines, window.bom, window.next),
                (Some(total), bom, None),
                "{bytes:?} {offset}"
            );
        }
    }
    check(b"\n", &Request::default(), "\n", Some((1, 1)), None);
    check(b"\xEF\xBB\xBFa", &Request::default(), "a", Some((1, 1)), None);
    check(b"\xEF\xBB\xBFa\nb", &lines(-2, 9), "a\nb", Some((1, 2)), None);
}

#[test]
fn lines_are_numbered_on_request() {
    let request = Request { line_numbers: true, ..lines(9, 2000) };
    check(&ten(), &request, "     9\tline 9\n    10\tline 10\n", Some((9, 10)), None);
}

#[test]
fn a_page_ends_on_a_whole_line() {
    let bytes: Vec<u8> = (1..=1403).flat_map(|n| format!("{n:078}\n").into_bytes()).collect();
    let window = read(&bytes, &Request::default());
    assert_eq!(
        (window.start_line, window.end_line, window.next),
        (Some(1), Some(622), Some(Next::Line(623)))
    );
    assert_eq!(window.content.len(), 622 * 79);
    assert_eq!(window.notices(), ["lines 1–622 of 1403; next: offset=623"]);
}

#[test]
fn a_long_line_is_cut_and_says_where_it_goes_on() {
    let bytes = format!("first\n{}\r\nlast\n", "ä".repeat(2500)).into_bytes();
    let window = read(&bytes, &Request::default());
    assert_eq!(window.content, format!("first\n{}\r\nlast\n", "ä".repeat(2000)));
    assert_eq!(window.cut_lines, [CutLine { line: Some(2), byte_offset: 4006, omitted: 1000 }]);
    assert_eq!((window.truncated, window.next), (true, None));
    let rest = Request { byte_offset: Some(4006), ..Request::default() };
    check(&bytes, &rest, &format!("{}\r\nlast\n", "ä".repeat(500)), Some((2, 3)), None);
    let rest = Request { offset: 2, byte_offset: Some(4000), ..Request::default() };
    check(&bytes, &rest, &format!("{}\r\nlast\n", "ä".repeat(500)), Some((2, 3)), None);
}

#[test]
fn a_line_of_just_the_limit_is_whole() {
    for ending in ["", "\n", "\r\n"] {
        let text = format!("{}{ending}", "x".repeat(2000));
        check(text.as_bytes(), &Request::default(), &text, Some((1, 1)), None);
    }
}

/// Puts a file together again from its pages; returns it and how many there were.
fn rebuilt(text: &str, limits: Limits) -> (String, usize) {
    let mut request = Request { limits, ..Request::default() };
    let mut rebuilt = String::new();
    for pages in 1.. {
        let window = read(text.as_bytes(), &request);
        assert!(window.content.len() <= limits.max_bytes);
        rebuilt.push_str(&window.content);
        match window.next {
            Some(Next::Byte(byte)) => request.byte_offset = Some(byte),
            Some(Next::Line(line)) => request.offset = line as i64,
            None => return (rebuilt, pages),
        }
    }
    unreachable!()
}

#[test]
fn one_huge_line_is_paged_by_bytes_from_where_it_was_cut() {
    let text = format!("{{{}}}\n", "\"€\",".repeat(40_000));
    let (pages, count) = rebuilt(&text, Limits::default());
    assert!(pages == text, "the pages are not the file");
    assert_eq!(count, 6);
}

#[test]
fn byte_pages_end_between_characters() {
    let text = "aä€𝄞".repeat(200);
    for max_bytes in 16..32 {
        let limits = Limits { max_bytes, max_line_chars: 3, ..Limits::default() };
        assert_eq!(rebuilt(&text, limits).0, text);
    }
}

#[test]
fn endings_and_hash_are_those_of_the_whole_file() {
    let bytes = b"\xEF\xBB\xBFa\r\nb\n";
    let window = read(bytes, &lines(1, 1));
    assert_eq!((window.content.as_str(), window.eol, window.bom), ("a\r\n", Eol::Mixed, true));
    let sha256 = window.sha256.unwrap();
    assert_eq!(sha256, "afa22083a9a58d53055ffea359e8b6185c59e53674c69adb47cb0d0e895e36a5");
}

#[test]
fn characters_and_endings_split_between_chunks_are_whole() {
    for shift in 0..4 {
        let text = format!("{}{}\r\n{}", "x".repeat(CHUNK - 2 - shift), "€", "y".repeat(10));
        let window = read(text.as_bytes(), &lines(2, 10));
        assert_eq!((window.content.as_str(), window.eol), ("yyyyyyyyyy", Eol::Crlf));
        let request = Request { byte_offset: Some((CHUNK - 3 - shift) as u64), ..Request::default() };
        check(text.as_bytes(), &request, "x€\r\nyyyyyyyyyy", Some((1, 2)), None);
    }
}

#[test]
fn a_nul_or_what_is_no_text_anywhere_makes_the_file_binary() {
    let long = vec![b'a'; 3 * CHUNK];
    for bad in [&b"\0"[..], b"\xff\x01", b"\xe2\x82\x07", b"\x1f\xc3("] {
        let bytes = [&long, bad].concat();
        let reading = read_window(&mut Cursor::new(&bytes), bytes.len() as u64, &Request::default()).unwrap();
        let Reading::Binary { total_bytes, sha256: Some(_) } = reading else {
            panic!("{bad:?} taken for text")
        };
        assert_eq!(total_bytes, bytes.len() as u64);
    }
}

#[test]
fn beyond_the_limit_only_the_window_is_read() {
    let limits = Limits { max_full_read: 100, ..Limits::default() };
    let bytes: Vec<u8> = (1..=40_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    let window = read(&bytes, &Request { limits, ..lines(3, 1) });
    assert_eq!((window.content.as_str(), window.start_line), ("line 3\n", Some(3)));
    assert_eq!((window.total_lines, window.sha256, window.next), (None, None, Some(Next::Line(4))));

    let window = read(&bytes, &Request { limits, ..lines(-2, 1) });
    assert_eq!((window.content.as_str(), window.start_line), ("line 39999\n", None));
    assert_eq!(window.next, Some(Next::Byte(11)));
    let window = read(&bytes, &Request { limits, byte_offset: Some(11), ..lines(-2, 1) });
    assert_eq!((window.content.as_str(), window.next), ("line 40000\n", None));
}

#[test]
fn a_file_that_shrank_gives_what_is_there() {
    let reading = read_window(&mut Cursor::new(b"a\nb"), 100, &Request::default()).unwrap();
    let Reading::Text(window) = reading else { panic!("taken for binary") };
    assert_eq!((window.content.as_str(), window.shrank, window.total_bytes), ("a\nb", true, 3));
}

/// A file of one huge line that exists only while it is read, and how much of it was.
struct HugeLine {
    len: u64,
    at: u64,
    read: u64,
}

impl Read for HugeLine {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = usize::try_from(self.len - self.at).unwrap_or(usize::MAX).min(buffer.len());
        for (byte, at) in buffer.iter_mut().zip(self.at..).take(got) {
            *byte = b'a' + (at % 26) as u8;
        }
        self.at += got as u64;
        self.read += got as u64;
        Ok(got)
    }
}

impl Seek for HugeLine {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}

#[test]
fn a_window_deep_inside_a_huge_line_reads_only_itself() {
    let len = 8 << 30;
    let mut file = HugeLine { len, at: 0, read: 0 };
    let request = Request { byte_offset: Some(26 << 27), ..Request::default() };
    let Reading::Text(window) = read_window(&mut file, len, &request).unwrap() else { panic!("binary") };
    assert!(window.content.starts_with("abcdefgh"));
    assert_eq!((window.content.len(), window.next), (48 * 1024, Some(Next::Byte((26 << 27) + 48 * 1024))));
    assert_eq!((window.start_line, window.total_lines, window.total_bytes), (None, None, len));
    assert!(file.read <= CHUNK as u64, "{} bytes were read", file.read);
}

#[test]
fn a_huge_line_is_read_in_bounded_memory() {
    let len = 64 << 20;
    let mut file = HugeLine { len, at: 0, read: 0 };
    let Reading::Text(window) = read_window(&mut file, len, &Request::default()).unwrap() else {
        panic!("binary")
    };
    assert_eq!((window.content.len(), window.total_lines), (2000, Some(1)));
    assert!(window.content.capacity() < 3 * CHUNK);
    assert_eq!(window.next, Some(Next::Byte(2000)));
    assert_eq!(window.cut_lines[0].omitted, len - 2000);
}

#[test]
fn text_in_any_encoding_is_paged_as_text() {
    let body: String = (1..=5_000).map(|n| format!("строка {n}\r\n")).collect();
    let utf16: Vec<u8> = body.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let (windows, _, _) = encoding_rs::WINDOWS_1251.encode(&body);
    let marked = [b"\xfe\xff".as_slice(), &utf16].concat();
    for (bytes, encoding, bom) in [
        (marked.as_slice(), "utf-16be", true),
        (&utf16, "utf-16be", false),
        (&windows, "windows-1251", false),
    ] {
        check(bytes, &lines(4_999, 10), "строка 4999\r\nстрока 5000\r\n", Some((4_999, 5_000)), None);
        check(bytes, &lines(-1, 10), "строка 5000\r\n", Some((5_000, 5_000)), None);
        check(bytes, &lines(7, 1), "строка 7\r\n", Some((7, 7)), Some(Next::Line(8)));
        let window = read(bytes, &lines(1, 1));
        assert_eq!((window.encoding.to_string().as_str(), window.bom), (encoding, bom));
        assert_eq!((window.total_lines, window.eol), (Some(5_000), Eol::Crlf));
        assert_eq!(window.sha256.as_deref(), Some(scan::hex(&sha2::Sha256::digest(bytes)).as_str()));
    }
}

#[test]
fn a_long_line_in_utf16_is_read_on_inside_it() {
    let body = "表\u{1f4dd}é".repeat(2_000);
    let bytes: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = [b"\xff\xfe".as_slice(), &bytes].concat();
    let limits = Limits { max_bytes: 1_000, ..Limits::default() };
    let (mut rebuilt, mut at) = (String::new(), Some(0));
    while let Some(byte) = at {
        let window = read(&bytes, &Request { byte_offset: Some(byte), limits, ..Request::default() });
        rebuilt.push_str(&window.content);
        at = window.next.map(|next| match next {
            Next::Byte(byte) => byte,
            Next::Line(line) => panic!("line {line}"),
        });
    }
    assert_eq!(rebuilt, body);
}

#[test]
fn a_large_file_in_utf16_is_read_as_far_as_needed() {
    let limits = Limits { max_full_read: 100, ..Limits::default() };
    let body: String = (1..=40_000).map(|n| format!("line {n}\n")).collect();
    let bytes: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = [b"\xff\xfe".as_slice(), &bytes].concat();
    let window = read(&bytes, &Request { limits, ..lines(30_000, 1) });
    assert_eq!((window.content.as_str(), window.start_line), ("line 30000\n", Some(30_000)));
    assert_eq!((window.sha256, window.total_lines, window.next), (None, None, Some(Next::Line(30_001))));
}

#[test]
fn damage_is_shown_and_told() {
    let window = read(b"gr\xc3\xb6\xc3\x9fe\nbad \xe9 here\n", &lines(1, 10));
    assert_eq!(window.content, "größe\nbad \u{fffd} here\n");
    assert!(
        window.notices().iter().any(|notice| notice.contains("not valid utf-8")),
        "{:?}",
        window.notices()
    );
}
