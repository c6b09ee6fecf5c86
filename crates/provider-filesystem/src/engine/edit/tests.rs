use super::*;

fn edit(file: &[u8], old_str: &str, new_str: &str, select: Select) -> Result<Edit, EditError> {
    plan(&Text::parse(file).unwrap(), &Replacement { old_str, new_str, select })
}

/// Checks the bytes of a unique edit and the lines it reports.
#[track_caller]
fn check(file: &str, old_str: &str, new_str: &str, expected: &str, lines: (u64, u64)) {
    let edit = edit(file.as_bytes(), old_str, new_str, Select::Unique).unwrap();
    assert_eq!(String::from_utf8(edit.bytes).unwrap(), expected);
    let shown: Vec<_> = edit.replacements.iter().map(|range| (range.start_line, range.end_line)).collect();
    assert_eq!(shown, [lines]);
    assert_eq!(edit.changed, file != expected);
}

#[test]
fn one_line_edit_keeps_crlf() {
    check("const a = 1;\r\nconst b = 2;\r\n", "b = 2", "b = 3", "const a = 1;\r\nconst b = 3;\r\n", (2, 2));
}

#[test]
fn a_file_keeps_its_ending_whatever_the_arguments_use() {
    check("line one\r\nline two\r\n", "line one\r\nline two", "x\r\ny", "x\r\ny\r\n", (1, 2));
    check("line one\nline two\n", "line one\r\nline two", "x\r\ny", "x\ny\n", (1, 2));
    check("line one\r\nline two\r\n", "line one\nline two", "x\ny", "x\r\ny\r\n", (1, 2));
    check("line one\r\nline two\r\n", "line one\nline two", "x\r\ny", "x\r\ny\r\n", (1, 2));
}

#[test]
fn inserted_lines_take_the_ending_of_the_place() {
    check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n", (2, 3));
    check("a\r\nb", "b", "b\nc", "a\r\nb\r\nc", (2, 3));
    check("a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n", (2, 3));
    check("a\nb\r\nc\n", "c", "x\r\ny", "a\nb\r\nx\ny\n", (3, 4));
    check("one", "one", "x\r\ny\n", "x\r\ny\n", (1, 2));
}

#[test]
fn lines_that_stay_keep_their_own_ending_in_a_mixed_file() {
    check("a\r\nb\nc\n", "a\nb\nc\n", "b\nc\n", "b\nc\n", (1, 2));
    check("a\nb\r\nc\n", "a\nb\nc\n", "a\nnew\nb\nc\n", "a\nnew\nb\r\nc\n", (1, 4));
    check("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nX\nc\n", "a\r\nX\nc\r\n", (1, 3));
}

#[test]
fn no_carriage_return_is_doubled() {
    for new_str in ["x\r\ny", "x\ny", "\r\nx\r\n", "\nx", "x\r", "x\r\n\r\n"] {
        for old_str in ["b", "\nb", "b\n", "\r\nb", "b\r\n", "\nb\n", "a\nb"] {
            let edit = edit(b"a\r\nb\r\nc\r\n", old_str, new_str, Select::Unique).unwrap();
            let text = String::from_utf8(edit.bytes).unwrap();
            assert!(!text.contains("\r\r\n"), "{old_str:?} to {new_str:?} gives {text:?}");
            let bare = text.replace("\r\n", "");
            assert!(!bare.contains('\n'), "{old_str:?} to {new_str:?} mixes endings: {text:?}");
        }
    }
}

#[test]
fn a_lone_carriage_return_beside_new_text_becomes_part_of_its_ending() {
    check("x\r\na\rfoo\r\n", "foo", "\nbar", "x\r\na\r\nbar\r\n", (2, 3));
}

#[test]
fn an_edit_of_nothing_but_endings_is_literal() {
    check("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n", (1, 2));
    check("a\nb\n", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n", (1, 2));
}

#[test]
fn no_final_newline_is_added() {
    check("a\nb", "a", "A", "A\nb", (1, 1));
    check("a\nb", "b", "B", "a\nB", (2, 2));
    check("a\nb", "b", "B\n", "a\nB\n", (2, 2));
    check("a\nb\n", "b\n", "B", "a\nB", (2, 2));
}

#[test]
fn a_byte_order_mark_stays() {
    check("\u{feff}a\r\nb", "a", "A", "\u{feff}A\r\nb", (1, 1));
}

#[test]
fn new_text_is_literal() {
    check(
        "price = X\ntail\n",
        "X",
        "$& $' $$ $1 \\1 ${0} %s",
        "price = $& $' $$ $1 \\1 ${0} %s\ntail\n",
        (1, 1),
    );
    check("here\n", "here", "print(\"Hello\\nworld\")", "print(\"Hello\\nworld\")\n", (1, 1));
}

#[test]
fn brackets_are_not_completed_or_merged() {
    let file = "f(() => {\n  a()\n})\n";
    check(file, "f(() => {\n  a()\n", "f(() => {\n  b()\n})", "f(() => {\n  b()\n})})\n", (1, 3));
}

#[test]
fn other_characters_of_the_line_and_the_file_stay() {
    check("“a” ‘b’ word\nnext\n", "word", "term", "“a” ‘b’ term\nnext\n", (1, 1));
    check("oﬃce caf\u{65}\u{301}  \nx\u{a0}y\n", "x\u{a0}y", "z", "oﬃce caf\u{65}\u{301}  \nz\n", (2, 2));
}

#[test]
fn deleting_reports_a_line_of_the_new_file() {
    check("a\nb\n", "b\n", "", "a\n", (1, 1));
    check("a\nb\nc\n", "b\n", "", "a\nc\n", (2, 2));
    check("a", "a", "", "", (1, 1));
}

#[test]
fn an_edit_without_effect_changes_nothing() {
    check("a\nb\n", "a", "a", "a\nb\n", (1, 1));
    check("a\r\nb\r\n", "a\nb", "a\nb", "a\r\nb\r\n", (1, 2));
    check("a a\n", "a", "a", "a a\n", (1, 1));
}

#[test]
fn all_occurrences_are_replaced_on_request() {
    let edit = edit(b"aaa\nb\naa\n", "aa", "x\ny", Select::All).unwrap();
    assert_eq!(edit.bytes, b"x\nya\nb\nx\ny\n");
    let shown: Vec<_> = edit.replacements.iter().map(|range| (range.start_line, range.end_line)).collect();
    assert_eq!(shown, [(1, 2), (4, 5)]);
}

#[test]
fn an_expected_count_replaces_that_many_or_none() {
    assert_eq!(edit(b"a\na\n", "a", "b", Select::Count(2)).unwrap().bytes, b"b\nb\n");
    let error = edit(b"a\n-\na\n", "a", "b", Select::Count(3)).unwrap_err();
    assert_eq!(error, EditError::CountMismatch { expected: 3, found: 2, lines: vec![1, 3] });
    assert_eq!(error.code(), "count_mismatch");
}

#[test]
fn near_line_takes_the_nearest_and_refuses_a_tie() {
    let file = b"a\n-\n-\na\n-\na\n";
    assert_eq!(edit(file, "a", "b", Select::Near(3)).unwrap().bytes, b"a\n-\n-\nb\n-\na\n");
    assert_eq!(edit(file, "a", "b", Select::Near(99)).unwrap().bytes, b"a\n-\n-\na\n-\nb\n");
    let EditError::Ambiguous(tie) = edit(file, "a", "b", Select::Near(5)).unwrap_err() else {
        panic!("no tie")
    };
    assert_eq!((tie.total, tie.lines, tie.tied_near), (2, vec![4, 6], Some(5)));
}

#[test]
fn a_block_that_covers_the_line_is_nearest() {
    let file = b"a\nb\nc\n-\na\nb\nc\n";
    assert_eq!(edit(file, "a\nb\nc", "x", Select::Near(3)).unwrap().bytes, b"x\n-\na\nb\nc\n");
}

#[test]
fn several_occurrences_are_ambiguous() {
    let error = edit(b"a\nb\na\n", "a", "x", Select::Unique).unwrap_err();
    assert_eq!(error.code(), "ambiguous");
    let error = edit(b"aaa\n", "aa", "x", Select::Unique).unwrap_err();
    assert_eq!(error.code(), "ambiguous", "overlapping occurrences are two places");
}

#[test]
fn nothing_to_look_for_is_an_error() {
    let error = edit(b"a", "", "x", Select::Unique).unwrap_err();
    assert_eq!(error.code(), "invalid_arguments");
    assert_eq!(edit(b"a", "b", "x", Select::All).unwrap_err().code(), "no_match");
}

#[test]
fn selections_that_conflict_are_refused() {
    assert_eq!(Select::from_arguments(false, None, None), Ok(Select::Unique));
    assert_eq!(Select::from_arguments(true, None, None), Ok(Select::All));
    assert_eq!(Select::from_arguments(true, Some(2), None), Ok(Select::Count(2)));
    assert_eq!(Select::from_arguments(false, Some(1), Some(4)), Ok(Select::Near(4)));
    assert_eq!(Select::from_arguments(true, None, Some(4)), Err(ConflictingSelection));
    assert_eq!(Select::from_arguments(false, Some(2), Some(4)), Err(ConflictingSelection));
}

/// Checks the bytes of a unique edit of a file in some encoding.
#[track_caller]
fn check_bytes(file: &[u8], old_str: &str, new_str: &str, expected: &[u8]) {
    let edit = edit(file, old_str, new_str, Select::Unique).unwrap();
    assert_eq!(edit.bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn bytes_elsewhere_in_a_latin_1_file_stay() {
    check_bytes(b"caf\xe9 = 1\nx = 2\n", "x = 2", "x = 3", b"caf\xe9 = 1\nx = 3\n");
    check_bytes(b"caf\xe9 = 1\nx = 2\n", "caf\u{e9} = 1", "th\u{e9} = 1", b"th\xe9 = 1\nx = 2\n");
}

#[test]
fn new_text_is_stored_in_the_encoding_of_the_file() {
    let body = "コメント: これは日本語の文章です。\nprint(1)\n";
    let (file, _, _) = encoding_rs::SHIFT_JIS.encode(body);
    let expected = [file.strip_suffix(b"1)\n".as_slice()).unwrap(), b"\x95\x5c)\n"].concat();
    check_bytes(&file, "print(1)", "print(表)", &expected);
    let error = edit(&file, "print(1)", "print(📝)", Select::Unique).unwrap_err();
    assert_eq!(error.code(), "unencodable");
    assert!(error.to_string().contains("shift_jis, which has no character '📝' (U+1F4DD)"), "{error}");
}

#[test]
fn utf16_stays_utf16() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let marked = |text: &str| [b"\xff\xfe".as_slice(), &utf16(text)].concat();
    check_bytes(&marked("hello\r\nworld\r\n"), "world", "wörld\n📝", &marked("hello\r\nwörld\r\n📝\r\n"));
    check_bytes(&utf16("// a\n"), "a", "b", &utf16("// b\n"));
    check_bytes(&marked("a\r\nb\r\n"), "a\nb", "c\nd", &marked("c\r\nd\r\n"));
}

#[test]
fn ascii_takes_every_character() {
    check_bytes(b"abc\n", "b", "é📝", "aé📝c\n".as_bytes());
}

#[test]
fn damaged_bytes_stay_and_are_not_written_as_something_else() {
    let file = "größe ä ö\nbad \u{0} here\nend\n".replace('\u{0}', "X").into_bytes();
    let at = file.iter().position(|&byte| byte == b'X').unwrap();
    let mut file = file;
    file[at] = 0xe9;
    let mut expected = file.clone();
    let last = expected.len() - 2;
    expected[last] = b't';
    check_bytes(&file, "end", "ent", &expected);
    let error = edit(&file, "bad \u{fffd} here", "good \u{fffd} here", Select::Unique).unwrap_err();
    assert!(error.to_string().contains("U+FFFD"), "{error}");
    let gone = edit(&file, "bad \u{fffd} here", "good", Select::Unique).unwrap();
    assert!(std::str::from_utf8(&gone.bytes).is_ok());
}

#[test]
fn a_stateful_encoding_is_not_edited() {
    let (file, _, _) = encoding_rs::ISO_2022_JP.encode("これは表です。\nprint(1)\n");
    let error = edit(&file, "print(1)", "print(2)", Select::Unique).unwrap_err();
    assert_eq!(error.code(), "unencodable");
    assert!(error.to_string().contains("iso-2022-jp"), "{error}");
}
