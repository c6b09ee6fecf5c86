use std::io::Cursor;

use super::*;
use crate::engine::edit::{Replacement, Select, plan};
use crate::engine::text::Text;

fn found(file: &[u8], needle: &str) -> Located {
    locate(&mut Cursor::new(file), file.len() as u64, needle).unwrap()
}

/// The file that an edit of an excerpt makes, as a whole, with its hash.
fn edited(file: &[u8], old_str: &str, new_str: &str) -> (Vec<u8>, [u8; 32]) {
    let located = found(file, old_str);
    let Place::Once(excerpt) = &located.place else { panic!("{:?}", located.place) };
    let replacement = Replacement { old_str, new_str, select: Select::Unique };
    let edit = plan(&Text::of_str(&excerpt.text), &replacement).unwrap();
    let mut written = Vec::new();
    let copy = |source: &mut Cursor<&[u8]>, to: &mut Vec<u8>, count: u64| {
        source.seek(SeekFrom::Start(0))?;
        source.by_ref().take(count).read_to_end(to).map(drop)
    };
    let hash = located
        .write(&mut Cursor::new(file), file.len() as u64, excerpt, &edit.bytes, &mut written, copy)
        .unwrap();
    (written, hash)
}

/// Checks that an edit by excerpt is the edit of the whole file.
#[track_caller]
fn check(file: &[u8], old_str: &str, new_str: &str) {
    let whole =
        plan(&Text::parse(file).unwrap(), &Replacement { old_str, new_str, select: Select::Unique }).unwrap();
    let (written, hash) = edited(file, old_str, new_str);
    assert!(written == whole.bytes, "the edit of {old_str:?} differs");
    assert_eq!(hash, <[u8; 32]>::from(Sha256::digest(&written)));
    let located = found(file, old_str);
    assert_eq!(located.sha256, <[u8; 32]>::from(Sha256::digest(file)));
    assert_eq!(located.lines, Text::parse(file).unwrap().line_count());
    let Place::Once(excerpt) = located.place else { panic!("no place") };
    let line = excerpt.lines_before + whole_line(&excerpt, old_str);
    assert_eq!(line, whole.replacements[0].start_line);
}

fn whole_line(excerpt: &Excerpt, old_str: &str) -> u64 {
    let replacement = Replacement { old_str, new_str: "x", select: Select::Unique };
    plan(&Text::of_str(&excerpt.text), &replacement).unwrap().replacements[0].start_line
}

#[test]
fn an_edit_by_excerpt_is_the_edit_of_the_whole() {
    let lines: Vec<String> = (0..3_000).map(|n| format!("line {n} é\r\n")).collect();
    let file = lines.concat();
    for n in [0, 1, 77, 1_500, 2_998] {
        check(file.as_bytes(), &format!("line {n} é\r\nline {} é", n + 1), "new\ntext");
        check(file.as_bytes(), &format!("line {n} é\nline {} é\n", n + 1), "new\r\n");
    }
    check(file.as_bytes(), "line 2999 é\r\n", "end");
}

#[test]
fn an_occurrence_across_two_pieces_is_found_once() {
    for shift in 0..12 {
        let mut file = vec![b'a'; PIECE - shift];
        file.extend_from_slice("x\r\n€y\r\n".as_bytes());
        file.extend_from_slice(&vec![b'b'; PIECE]);
        check(&file, "x\r\n€y", "z");
        check(&file, "x\n€y\n", "z\n");
        check(&file, "\n€y", "");
        check(&file, "€", "e");
    }
}

#[test]
fn very_long_lines_are_cut_between_characters() {
    let mut file = "€".repeat(PIECE).into_bytes();
    file.extend_from_slice(b"needle");
    file.extend_from_slice("é".repeat(PIECE).as_bytes());
    check(&file, "needle", "thread");
}

#[test]
fn several_places_and_none_are_told() {
    let several = [b"ab\n".as_slice(), &vec![b'x'; 2 * PIECE], b"\nab"].concat();
    assert_eq!(found(&several, "ab").place, Place::Several([1, 3]));
    assert_eq!(found(b"aaa", "aa").place, Place::Several([1, 1]));
    assert_eq!(found(&several, "abc").place, Place::Nowhere);
    assert_eq!(found(b"a\r\nb\na\nb", "a\r\nb\r").place, Place::Nowhere);
    assert_eq!(found(b"ab\xff", "ab").place, Place::NotUtf8);
    assert_eq!(found(b"ab\0", "ab").place, Place::NotUtf8);
    assert_eq!(found(b"ab\xe2\x82", "ab").place, Place::NotUtf8);
}
