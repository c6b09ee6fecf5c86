//! What must hold for every file, not only for the examples beside the modules.

use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::diff::{Diff, Op};
use super::edit::{Edit, EditError, Replacement, Select, plan};
use super::encoding::Encoding;
use super::find::find;
use super::text::{Ending, Text};
use super::window::{Limits, Next, Reading, Request, Window, read_window};

/// A text file: any endings, with or without a byte order mark and a final newline, some blank and some odd lines.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "[a-c ]{0,6}",
        "[a-z\t]{0,30}",
        Just(String::new()),
        "\\PC{0,20}",
        Just("x\r".to_owned())
    ];
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    let lines = prop::collection::vec((line, ending), 0..40);
    (any::<bool>(), lines, "[a-z]{0,3}").prop_map(|(bom, lines, rest)| {
        let mut file = if bom { "\u{feff}".to_owned() } else { String::new() };
        lines.iter().for_each(|(line, ending)| file.extend([line.as_str(), ending]));
        (file + &rest).into_bytes()
    })
}

/// A file and a span of its body.
fn file_and_span() -> impl Strategy<Value = (Vec<u8>, String)> {
    file().prop_filter("has a body", |file| !Text::parse(file).unwrap().body().is_empty()).prop_flat_map(
        |file| {
            let body = Text::parse(&file).unwrap().body().to_owned();
            let boundaries: Vec<usize> = body.char_indices().map(|(at, _)| at).chain([body.len()]).collect();
            let last = boundaries.len() - 1;
            (Just(file), 0..last, 1..=last.min(30)).prop_map(move |(file, from, len)| {
                let to = (from + len).min(last);
                (file, body[boundaries[from]..boundaries[to]].to_owned())
            })
        },
    )
}

fn new_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,5}", "([a-z$&]{0,5}(\n|\r\n)){0,4}[a-z]{0,2}"]
}

/// Whether `edit` is `file` with nothing but one occurrence of the old text replaced. An occurrence is whatever equals
/// the old text byte for byte or but for `\r\n`.
fn is_splice(file: &[u8], old_str: &str, edit: &Edit) -> bool {
    let plain = |text: &[u8]| String::from_utf8_lossy(text).replace("\r\n", "\n");
    let wanted = plain(old_str.as_bytes());
    let ends = |start: usize| start + 1..=(start + 2 * old_str.len()).min(file.len());
    let spans = (0..file.len()).flat_map(|start| ends(start).map(move |end| (start, end)));
    let is_occurrence =
        |start, end| &file[start..end] == old_str.as_bytes() || plain(&file[start..end]) == wanted;
    spans.filter(|&(start, end)| is_occurrence(start, end)).any(|(start, end)| {
        let (before, after) = (&file[..start], &file[end..]);
        let has_room = edit.bytes.len() >= before.len() + after.len();
        has_room && edit.bytes.starts_with(before) && edit.bytes.ends_with(after)
    })
}

proptest! {
    #[test]
    fn an_edit_changes_only_its_span((file, old_str) in file_and_span(), new_str in new_text(), near in 1u64..60) {
        let text = Text::parse(&file).unwrap();
        let replacement = Replacement { old_str: &old_str, new_str: &new_str, select: Select::Near(near) };
        if let Ok(edit) = plan(&text, &replacement) {
            prop_assert!(is_splice(&file, &old_str, &edit), "{:?}", edit);
            prop_assert_eq!(edit.changed, edit.bytes != file);
            let after = Text::parse(&edit.bytes).unwrap();
            prop_assert_eq!(after.has_bom(), text.has_bom());
        }
    }

    #[test]
    fn an_exact_edit_is_the_obvious_one((file, old_str) in file_and_span(), new_str in "[a-z]{0,5}") {
        let body = String::from_utf8(file.clone()).unwrap();
        let touches_half_an_ending = old_str.starts_with('\n') || old_str.ends_with('\r');
        let replacement = Replacement { old_str: &old_str, new_str: &new_str, select: Select::Unique };
        if let (Ok(edit), false) = (plan(&Text::parse(&file).unwrap(), &replacement), touches_half_an_ending) {
            prop_assert_eq!(String::from_utf8(edit.bytes).unwrap(), body.replacen(&old_str, &new_str, 1));
        }
    }

    #[test]
    fn an_edit_undone_gives_the_file_back((file, old_str) in file_and_span()) {
        let there = Replacement { old_str: &old_str, new_str: "\u{e000}", select: Select::Unique };
        let touches_half_an_ending = old_str.starts_with('\n') || old_str.ends_with('\r');
        let is_plain = !old_str.contains('\n') && !touches_half_an_ending;
        if let (Ok(edit), true) = (plan(&Text::parse(&file).unwrap(), &there), is_plain) {
            let back = Replacement { old_str: "\u{e000}", new_str: &old_str, select: Select::Unique };
            let undone = plan(&Text::parse(&edit.bytes).unwrap(), &back).unwrap();
            prop_assert_eq!(undone.bytes, file);
        }
    }

    #[test]
    fn no_edit_doubles_a_carriage_return((file, old_str) in file_and_span(), new_str in new_text()) {
        let doubled = |bytes: &[u8]| bytes.windows(3).filter(|window| *window == b"\r\r\n").count();
        let replacement = Replacement { old_str: &old_str, new_str: &new_str, select: Select::All };
        if let Ok(edit) = plan(&Text::parse(&file).unwrap(), &replacement) {
            prop_assert!(doubled(&edit.bytes) <= doubled(&file), "{:?}", edit);
        }
    }

    #[test]
    fn reported_lines_hold_the_new_text((file, old_str) in file_and_span()) {
        let replacement = Replacement { old_str: &old_str, new_str: "@one\n@two", select: Select::All };
        if let Ok(edit) = plan(&Text::parse(&file).unwrap(), &replacement) {
            let after = String::from_utf8(edit.bytes.clone()).unwrap();
            let lines: Vec<&str> = after.split_inclusive('\n').collect();
            for range in &edit.replacements {
                prop_assert!(lines[range.start_line as usize - 1].contains("@one"));
                prop_assert!(lines[range.end_line as usize - 1].contains("@two"));
            }
        }
    }

    #[test]
    fn the_text_that_is_offered_does_occur((file, old_str) in file_and_span(), change in 0..6, at in any::<u16>()) {
        let chars: Vec<char> = old_str.chars().collect();
        let (before, after) = chars.split_at(usize::from(at) % (chars.len() + 1));
        let (before, after) = (before.iter().collect::<String>(), after.iter().collect::<String>());
        let changed = match change {
            0 => format!("{before}  {after}"),
            1 => format!("{before}\n{after}"),
            2 => format!("{before}zz{after}"),
            3 => old_str.replace(' ', "\t"),
            4 => old_str.to_uppercase(),
            _ => old_str.lines().zip(1..).map(|(line, number)| format!("{number:>6}\t{line}\n")).collect(),
        };
        let text = Text::parse(&file).unwrap();
        let replacement = Replacement { old_str: &changed, new_str: "", select: Select::Unique };
        if let Err(EditError::NoMatch(explanation)) = plan(&text, &replacement) {
            prop_assert!(explanation.to_string().len() < 16 * 1024);
            if let Some(nearest) = explanation.nearest {
                let body = text.body();
                let index = text.lines();
                let is_at = |offset: usize| index.line_of(offset) == nearest.start_line;
                let found = find(body, &nearest.text);
                // Of occurrences that overlap only some are listed.
                let is_there = found.is_some_and(|found| found.spans.iter().any(|span| is_at(span.start)))
                    || (0..body.len()).any(|at| is_at(at) && body.as_bytes()[at..].starts_with(nearest.text.as_bytes()));
                prop_assert!(is_there, "{:?} is offered for {:?} in {:?}", nearest, changed, text.body());
            }
        }
    }

    #[test]
    fn pages_rebuild_the_file(file in file(), limit in 1u64..9, max_bytes in 40usize..200, bytes in any::<bool>()) {
        let limits = Limits { max_bytes, ..Limits::default() };
        let byte_offset = bytes.then_some(0);
        let mut request = Request { limit, limits, byte_offset, ..Request::default() };
        let mut rebuilt = String::new();
        let mut next_line = 1;
        loop {
            let window = page(&file, &request);
            prop_assert!(window.content.len() <= max_bytes);
            prop_assert!(window.start_line.is_none_or(|line| line == next_line || bytes));
            next_line = window.end_line.unwrap_or(0) + 1;
            rebuilt.push_str(&window.content);
            // No line of these files is longer than the least page but for characters of several bytes.
            if !window.cut_lines.is_empty() {
                return Ok(());
            }
            match window.next {
                Some(Next::Line(line)) => request.offset = line as i64,
                Some(Next::Byte(byte)) => request.byte_offset = Some(byte),
                None => break,
            }
        }
        let text = Text::parse(&file).unwrap();
        prop_assert_eq!(rebuilt, text.body());
    }

    #[test]
    fn windows_agree_with_the_whole_text(file in file(), offset in -50i64..50, limit in 1u64..50) {
        let text = Text::parse(&file).unwrap();
        let lines: Vec<&str> = text.body().split_inclusive('\n').collect();
        let window = page(&file, &Request { offset, limit, ..Request::default() });
        let first = match offset {
            ..0 => lines.len().saturating_sub(offset.unsigned_abs() as usize),
            0 => 0,
            line => line as usize - 1,
        };
        let shown: String = lines.iter().skip(first).take(limit as usize).copied().collect();
        prop_assert_eq!(window.content, shown);
        prop_assert_eq!(window.total_lines, Some(lines.len() as u64));
        prop_assert_eq!((window.eol, window.bom), (text.eol(), text.has_bom()));
    }

    #[test]
    fn diffs_apply(old in file(), new in file()) {
        let diff = Diff::between(&old, &new);
        prop_assert_eq!(diff.is_empty(), old == new);
        prop_assert_eq!(apply(&old, &diff), new);
    }

    #[test]
    fn diffs_of_small_changes_in_large_files_apply(
        old in file(), at in 0usize..4000, cut in 0usize..5, new in "[a-z\n]{0,20}",
    ) {
        let body: String = (0..2000).map(|n| format!("line {}\n", n % 50)).collect();
        let old = [body.as_bytes(), &old, body.as_bytes()].concat();
        let at = body.len() / 2 + at;
        let changed = [&old[..at], new.as_bytes(), &old[at + cut..]].concat();
        let diff = Diff::between(&old, &changed);
        prop_assert_eq!(apply(&old, &diff), changed);
    }
}

proptest! {
    // Each case runs a process.
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn unified_diffs_of_any_files_apply_with_patch(old in file(), new in file()) {
        let folder = tempfile::tempdir().unwrap();
        let unified = Diff::between(&old, &new).unified(Some("file"), Some("file"), usize::MAX);
        if old != new && !new.is_empty() && let Some(patched) = patched(&old, &unified, folder.path()) {
            prop_assert_eq!(patched, new);
        }
    }
}

fn page(file: &[u8], request: &Request) -> Window {
    match read_window(&mut Cursor::new(file), file.len() as u64, request).unwrap() {
        Reading::Text(window) => window,
        Reading::Binary { .. } => panic!("text taken for binary"),
    }
}

/// Applies a diff by its hunks, checking every line it says is there.
fn apply(old: &[u8], diff: &Diff) -> Vec<u8> {
    let lines: Vec<&[u8]> = old.split_inclusive(|&byte| byte == b'\n').collect();
    let mut new = Vec::new();
    let mut new_lines = 0;
    let mut at = 0;
    for hunk in &diff.hunks {
        let start = if hunk.old_lines == 0 { hunk.old_start } else { hunk.old_start - 1 };
        new_lines += start - at;
        new.extend(lines[at..start].concat());
        at = start;
        assert_eq!(if hunk.new_lines == 0 { hunk.new_start } else { hunk.new_start - 1 }, new_lines);
        let from = (at, new_lines);
        for line in &hunk.lines {
            let bytes = format!("{}{}", line.text, line.ending.as_str()).into_bytes();
            if line.op != Op::Insert {
                assert_eq!(bytes, lines[at], "the diff names a line that is not there");
                at += 1;
            }
            if line.op != Op::Delete {
                new.extend(&bytes);
                new_lines += 1;
            }
        }
        assert_eq!((at - from.0, new_lines - from.1), (hunk.old_lines, hunk.new_lines));
    }
    new.extend(lines[at..].concat());
    new
}

/// Applies a unified diff with `patch`, which must be there where tests run unattended.
fn patched(old: &[u8], unified: &str, folder: &Path) -> Option<Vec<u8>> {
    let (file, patch) = (folder.join("file"), folder.join("diff"));
    std::fs::write(&file, old).unwrap();
    std::fs::write(&patch, unified).unwrap();
    let output = Command::new("patch").args(["--binary", "-s", "-i"]).arg(&patch).arg(&file).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "patch is needed: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{}\n{unified}", String::from_utf8_lossy(&output.stdout));
    Some(std::fs::read(&file).unwrap())
}

#[test]
fn unified_diffs_apply_with_patch() {
    let folder = tempfile::tempdir().unwrap();
    let twenty: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let cases = [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("a\nb", "A\nb"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
        ("a\r\nb\r\n", "a\nb\r\n"),
        (&twenty, &twenty.replace("5\n", "")),
        (&twenty, &twenty.replace("\n4\n", "\nfour\n").replace("\n16\n", "\n16\nnew\n")),
        ("", "new\n"),
        ("x\n", "x\nx\n"),
    ];
    for (old, new) in cases {
        let unified =
            Diff::between(old.as_bytes(), new.as_bytes()).unified(Some("file"), Some("file"), usize::MAX);
        if let Some(patched) = patched(old.as_bytes(), &unified, folder.path()) {
            assert_eq!(String::from_utf8(patched).unwrap(), new, "{unified}");
        }
    }
}

#[test]
fn a_line_without_ending_is_the_last() {
    let diff = Diff::between(b"a\nb", b"a\nc");
    let open: Vec<_> = diff.hunks[0].lines.iter().filter(|line| line.ending == Ending::None).collect();
    assert_eq!(open.len(), 2);
}

/// An encoding, and characters that it has.
fn encoding() -> impl Strategy<Value = (Encoding, &'static str)> {
    let legacy = |label: &str| Encoding::from_label(label).unwrap();
    prop_oneof![
        Just((Encoding::Utf16Le, "aé表\u{1f4dd}")),
        Just((Encoding::Utf16Be, "aé表\u{1f4dd}")),
        Just((Encoding::Utf32Le, "aé表\u{1f4dd}")),
        Just((Encoding::Utf32Be, "aé表\u{1f4dd}")),
        Just((legacy("windows-1252"), "aé€ß")),
        Just((legacy("windows-1251"), "aжЯ№")),
        Just((legacy("shift_jis"), "a表ｱ語")),
        Just((legacy("euc-jp"), "a表ｱ語")),
        Just((legacy("gb18030"), "a中é\u{1f4dd}")),
        Just((legacy("gbk"), "a中文")),
        Just((legacy("big5"), "a中文字")),
        Just((legacy("euc-kr"), "a한글")),
    ]
}

/// A text of these characters and of line endings.
fn text_of(characters: &'static str) -> impl Strategy<Value = String> {
    let characters: Vec<String> = characters.chars().map(String::from).collect();
    let piece = prop_oneof![
        8 => prop::sample::select(characters),
        1 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
    ];
    prop::collection::vec(piece, 1..200).prop_map(|pieces| pieces.concat())
}

fn stored_file() -> impl Strategy<Value = (Encoding, bool, String, String, String)> {
    encoding().prop_flat_map(|(encoding, characters)| {
        (Just(encoding), any::<bool>(), text_of(characters), text_of(characters), text_of(characters))
    })
}

proptest! {
    #[test]
    fn an_edit_in_any_encoding_changes_only_its_span(
        (encoding, bom, before, middle, after) in stored_file(),
        new_str in text_of("ab"),
    ) {
        // Marks that occur nowhere else make the place unique.
        let old_str = format!("<{middle}>");
        let body = format!("{before}{old_str}{after}");
        let mark = if bom { encoding.bom() } else { b"" };
        let file = [mark, &encoding.encode(&body).unwrap()].concat();
        let text = Text::parse_as(&file, encoding);
        prop_assert_eq!(text.body(), &body);

        let replacement = Replacement { old_str: &old_str, new_str: &new_str, select: Select::Unique };
        let edit = plan(&text, &replacement).unwrap();
        let in_characters = plan(&Text::of_str(&body), &replacement).unwrap();
        let expected = String::from_utf8(in_characters.bytes).unwrap();
        prop_assert_eq!(&edit.bytes, &[mark, &encoding.encode(&expected).unwrap()].concat());
        prop_assert_eq!(edit.replacements, in_characters.replacements);

        let (head, tail) = (encoding.encode(&before).unwrap(), encoding.encode(&after).unwrap());
        prop_assert!(edit.bytes.starts_with(&[mark, &head].concat()) && edit.bytes.ends_with(&tail));
    }

    #[test]
    fn bytes_that_are_no_text_survive_every_edit(
        before in prop::collection::vec(any::<u8>().prop_filter("text", |&byte| byte >= 0x20 && byte != 0x7f), 0..60),
        after in prop::collection::vec(any::<u8>().prop_filter("text", |&byte| byte >= 0x20 && byte != 0x7f), 0..60),
    ) {
        let file = [before.as_slice(), b"\n<here>\n", &after].concat();
        // A byte order mark makes it another text.
        prop_assume!(!file.starts_with(b"\xff\xfe") && !file.starts_with(b"\xfe\xff"));
        let text = Text::parse(&file).unwrap();
        let replacement = Replacement { old_str: "<here>", new_str: "<there>", select: Select::Near(2) };
        let edit = plan(&text, &replacement).unwrap();
        let expected = [before.as_slice(), b"\n<there>\n", &after].concat();
        if !before.windows(6).chain(after.windows(6)).any(|window| window == b"<here>") {
            prop_assert_eq!(edit.bytes, expected);
        }
    }

    #[test]
    fn what_a_survey_takes_for_text_comes_back_byte_for_byte(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(text) = Text::parse(&bytes) {
            let same = text.splice::<&str>(&[]);
            prop_assert!(same == Ok(bytes.clone()) || text.encoding().is_stateful());
            if !text.is_damaged() && !text.encoding().is_stateful() {
                for at in text.body().char_indices().map(|(at, _)| at) {
                    let place = text.original_span(at..at).unwrap_or(0..0).start;
                    prop_assert!(place <= bytes.len());
                }
            }
        }
    }
}
