//! Directories: listing, making, renaming, removing.

use std::ffi::{OsStr, OsString};
use std::fs;

use jail::{FileKind, PathError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Fixture, mode, set_mode};

#[test]
fn entries_have_the_type_of_the_link_and_their_bytes_on_disk() {
    let fixture = Fixture::new();
    fixture.write("dir/file", "12345");
    fixture.write("dir/sub/x", "");
    fixture.write("dir/cafe\u{301}", "");
    fixture.link("/etc", "dir/link");
    mknodat(CWD, fixture.repo("dir/fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fixture.link("dir", "to-dir");
    let expected = [
        ("cafe\u{301}", FileKind::File),
        ("fifo", FileKind::Fifo),
        ("file", FileKind::File),
        ("link", FileKind::Symlink),
        ("sub", FileKind::Directory),
    ];
    for path in ["dir", "to-dir"] {
        let directory = fixture.ask(path).unwrap().open_dir().unwrap();
        let mut entries: Vec<_> = directory.entries().unwrap().map(Result::unwrap).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let actual: Vec<_> = entries.into_iter().map(|entry| (entry.name, entry.kind)).collect();
        assert_eq!(actual, expected.map(|(name, kind)| (OsString::from(name), kind)));
        assert_eq!(directory.symlink_metadata(OsStr::new("file")).unwrap().size, 5);
        assert_eq!(directory.path().to_string(), "dir");
    }
    let file = fixture.ask("dir/file").unwrap().open_dir().unwrap_err();
    assert!(matches!(file, PathError::NotDirectory { kind: FileKind::File, .. }), "{file}");
}

#[test]
fn metadata_is_what_the_system_says() {
    use std::os::unix::fs::MetadataExt;
    let fixture = Fixture::new();
    let path = fixture.write("file", "12345");
    set_mode(&path, 0o4751);
    let expected = fs::metadata(&path).unwrap();
    let actual = fixture.ask("file").unwrap().metadata().unwrap();
    assert_eq!((actual.kind, actual.size, actual.mode), (FileKind::File, 5, 0o4751));
    assert_eq!(actual.modified, expected.modified().unwrap());
    assert_eq!((actual.nlink, actual.ino, actual.dev), (1, expected.ino(), expected.dev()));
    assert_eq!((actual.uid, actual.gid), (expected.uid(), expected.gid()));
    assert_eq!(fixture.ask(".").unwrap().metadata().unwrap().kind, FileKind::Directory);
}

#[test]
fn directories_are_made_with_those_above_them() {
    let fixture = Fixture::new();
    fixture.write("file", "");
    fixture.write("real/x", "");
    fixture.link("real", "link");
    let made = fixture.ask("link/a/b").unwrap().create_dir_all().unwrap();
    let shown: Vec<_> = made.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["real/a", "real/a/b"]);
    assert!(fixture.ask("link/a/b").unwrap().create_dir_all().unwrap().is_empty());
    assert!(fixture.repo("real/a/b").is_dir());
    let blocked = fixture.ask("file/a").unwrap().create_dir_all().unwrap_err();
    assert!(matches!(blocked, PathError::NotADirectory { .. }), "{blocked}");
    assert_eq!(fixture.ask("real").unwrap().create_dir().unwrap_err().code(), Some("exists"));
    let orphan = fixture.ask("no/where").unwrap().create_dir().unwrap_err();
    assert!(matches!(orphan, PathError::NotFound { missing_parent: Some(_), .. }), "{orphan}");
    assert_eq!(fixture.names("real"), ["a", "x"]);
}

#[test]
fn rename_overwrites_only_when_told() {
    let fixture = Fixture::new();
    fixture.write("a", "a");
    fixture.write("b", "b");
    fixture.link("b", "link");
    let ask = |path: &str| fixture.ask(path).unwrap();
    assert_eq!(ask("a").rename(&ask("b"), false).unwrap_err().code(), Some("exists"));
    assert_eq!(fixture.read("b").unwrap(), "b");
    ask("link").rename(&ask("moved-link"), false).unwrap();
    assert!(fixture.repo("moved-link").is_symlink());
    ask("a").rename(&ask("b"), true).unwrap();
    assert_eq!(fixture.read("b").unwrap(), "a");
    assert_eq!(fixture.names(""), ["b", "moved-link"]);
}

#[test]
fn removing_takes_the_entry_and_never_a_root() {
    let fixture = Fixture::new();
    fixture.write("dir/a", "a");
    fixture.link("dir", "link");
    let ask = |path: &str| fixture.ask(path).unwrap();
    assert_eq!(ask("dir").remove_file().unwrap_err().code(), Some("is_directory"));
    assert!(matches!(ask("dir").remove_dir(), Err(PathError::Io { .. })));
    ask("link").remove_file().unwrap();
    ask("dir/a").remove_file().unwrap();
    ask("dir").remove_dir().unwrap();
    assert!(matches!(ask(".").remove_dir(), Err(PathError::Invalid { .. })));
    assert!(matches!(ask(".").rename(&ask("x"), true), Err(PathError::Invalid { .. })));
    assert!(fixture.names("").is_empty());
    assert_eq!(mode(&fixture.folder().join("repo")) & 0o700, 0o700);
}
