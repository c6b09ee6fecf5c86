//! Names as callers write them, against names as they are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use jail::PathError;

use crate::support::Fixture;

/// Asks for a name and expects the content of another, with a note that names it.
fn check_found(fixture: &Fixture, asked: &str, real: &str) {
    let path = fixture.ask(asked).unwrap();
    assert_eq!(path.read().unwrap(), fs::read(fixture.repo(real)).unwrap(), "{asked}");
    assert_eq!(path.to_string(), real);
    let note = path.note().unwrap_or_else(|| panic!("{asked}: no note"));
    assert!(note.contains(asked) && note.contains(real), "{note}");
}

#[test]
fn other_spaces_and_unicode_forms_are_found() {
    let fixture = Fixture::new();
    fixture.write("Screenshot at 9.22.20\u{202f}PM.png", "a");
    fixture.write("no\u{a0}break/in\u{a0}dir.txt", "b");
    fixture.write("cafe\u{301}.txt", "c");
    fixture.write("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}.md", "d");
    check_found(&fixture, "Screenshot at 9.22.20 PM.png", "Screenshot at 9.22.20\u{202f}PM.png");
    check_found(&fixture, "no break/in dir.txt", "no\u{a0}break/in\u{a0}dir.txt");
    check_found(&fixture, "caf\u{e9}.txt", "cafe\u{301}.txt");
    check_found(&fixture, "\u{d55c}\u{ae00}.md", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}.md");
}

#[test]
fn the_exact_name_wins_without_a_note() {
    let fixture = Fixture::new();
    fixture.write("a b", "plain");
    fixture.write("a\u{a0}b", "no-break");
    fixture.write(r"x\ y", "backslash");
    fixture.write("x y", "space");
    fixture.write("@a", "at");
    fixture.write("a", "a");
    fixture.write("'q'", "quoted");
    fixture.write("q", "q");
    fixture.write(r"z\x41", "literal");
    fixture.write("zA", "decoded");
    for (name, content) in [
        ("a b", "plain"),
        ("a\u{a0}b", "no-break"),
        (r"x\ y", "backslash"),
        ("@a", "at"),
        ("'q'", "quoted"),
        (r"z\x41", "literal"),
    ] {
        assert_eq!(fixture.read(name).unwrap(), content);
        assert_eq!(fixture.ask(name).unwrap().note(), None);
    }
}

#[test]
fn two_look_alikes_are_both_listed() {
    let fixture = Fixture::new();
    fixture.write("dir/a\u{a0}b", "");
    fixture.write("dir/a\u{202f}b", "");
    let error = fixture.ask("dir/a b").unwrap_err();
    assert_eq!(error.code(), Some("ambiguous"));
    let text = error.to_string();
    assert!(text.contains(r"`dir/a\u{a0}b`") && text.contains(r"`dir/a\u{202f}b`"), "{text}");
}

#[test]
fn shell_and_url_forms_are_undone() {
    let fixture = Fixture::new();
    fixture.write("My Notes/a.md", "a");
    fixture.write("a b.md", "b");
    fixture.write("it's", "c");
    fixture.write("home/h.md", "d");
    let url = format!("file://{}", fixture.repo("a%20b.md").display());
    let quoted_url = format!("@\"{url}\"");
    for (asked, real) in [
        (r"My\ Notes/a.md", "My Notes/a.md"),
        ("'a b.md'", "a b.md"),
        ("\"a b.md\"", "a b.md"),
        ("`a b.md`", "a b.md"),
        ("@a b.md", "a b.md"),
        ("@'My Notes/a.md'", "My Notes/a.md"),
        (" a b.md\n", "a b.md"),
        (r"it\'s", "it's"),
        (r"'it'\''s'", "it's"),
        ("~/h.md", "home/h.md"),
        (url.as_str(), "a b.md"),
        (quoted_url.as_str(), "a b.md"),
    ] {
        check_found(&fixture, asked, real);
    }
}

#[test]
fn bytes_that_are_no_text_are_shown_and_taken_back() {
    let fixture = Fixture::new();
    let check = |name: &[u8], shown: &str| {
        fs::write(fixture.repo("").join(OsStr::from_bytes(name)), shown).unwrap();
        let directory = fixture.roots.working_directory(Path::new("")).unwrap();
        assert_eq!(directory.join(OsStr::from_bytes(name)).unwrap().to_string(), shown);
        assert_eq!(fixture.ask(shown).unwrap().file_name(), Some(OsStr::from_bytes(name)));
        assert_eq!(fixture.read(shown).unwrap(), shown);
    };
    check(b"caf\xe9.txt", r"caf\xe9.txt");
    check(b"\xff\xfe", r"\xff\xfe");
    check(b"a\\x41\xff", r"a\x5cx41\xff");
}

#[test]
fn a_new_name_is_taken_as_written_unless_it_cannot_be_meant_so() {
    let fixture = Fixture::new();
    fixture.write("My Notes/old.md", "");
    fixture.write("home/x", "");
    let url = format!("file://{}", fixture.repo("new%20file.md").display());
    let check = |asked: &str, expected: &str| {
        assert_eq!(fixture.ask(asked).unwrap().to_string(), expected);
        assert!(!fixture.repo(expected).exists());
    };
    check("@new.md", "@new.md");
    check("'new.md'", "'new.md'");
    check("deep/er/new.md", "deep/er/new.md");
    check(r"My\ Notes/new.md", "My Notes/new.md");
    check("~/new.md", "home/new.md");
    check(&url, "new file.md");
}

#[test]
fn join_takes_one_plain_name() {
    let fixture = Fixture::new();
    let root = fixture.roots.directory(0).unwrap();
    for name in ["", ".", "..", "a/b", "/a", "a\0b"] {
        assert!(matches!(root.join(name), Err(PathError::Invalid { .. })), "{name:?}");
    }
    let path = root.join("a").unwrap();
    assert_eq!(path.parent().unwrap(), root);
    assert_eq!(root.parent(), None);
    assert!(fixture.roots.directory(1).is_err());
}
