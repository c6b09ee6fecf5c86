//! Symbolic links, and things that are no files.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use jail::{FileKind, PathError, Roots};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Fixture, SECRET, names};

#[test]
fn links_that_stay_inside_work() {
    let fixture = Fixture::new();
    fixture.write("dir/sub/real.txt", "content");
    fixture.link("dir/sub/real.txt", "to-file");
    fixture.link("dir", "to-dir");
    fixture.link(fixture.repo("dir/sub"), "absolute-to-dir");
    fixture.link(fixture.repo("dir/sub/real.txt"), "dir/absolute");
    fixture.link("../to-dir/../dir/sub/../absolute", "dir/winding");
    fixture.link("../../repo/dir", "dir/out-and-in");
    let check = |path: &str| {
        assert_eq!(fixture.read(path).unwrap(), "content", "{path}");
        let resolved = fixture.ask(path).unwrap().resolved().unwrap();
        assert_eq!(resolved.to_string(), "dir/sub/real.txt");
        assert_eq!(fixture.ask(path).unwrap().metadata().unwrap().kind, FileKind::File);
    };
    check("to-file");
    check("to-dir/sub/real.txt");
    check("absolute-to-dir/real.txt");
    check("dir/absolute");
    check("dir/winding");
    check("dir/out-and-in/sub/real.txt");
}

#[test]
fn dots_after_a_link_start_from_where_it_leads() {
    let fixture = Fixture::new();
    fixture.write("dir/sub/x", "");
    fixture.write("dir/a", "behind the link");
    fixture.write("a", "before the link");
    fixture.link("dir/sub", "link");
    assert_eq!(fixture.read("link/../a").unwrap(), "behind the link");
    assert_eq!(fixture.read("dir/../a").unwrap(), "before the link");
    fixture.link(fixture.outside(""), "away");
    assert_eq!(fixture.ask("away/../outside/secret.txt").unwrap_err().code(), Some("outside_root"));
}

#[test]
fn links_that_leave_are_refused_by_every_operation() {
    let fixture = Fixture::new();
    fixture.write("sub/x", "");
    fixture.link(fixture.outside("secret.txt"), "absolute");
    fixture.link("../outside/secret.txt", "relative");
    fixture.link("relative", "chained");
    fixture.link(fixture.outside(""), "dir");
    fixture.link(format!("/proc/self/root{}", fixture.outside("secret.txt").display()), "proc-root");
    fixture.link(format!("/proc/{}/root{}", std::process::id(), fixture.repo("sub/x").display()), "proc-in");
    for path in
        ["absolute", "relative", "chained", "dir/secret.txt", "sub/../dir/secret.txt", "proc-root", "proc-in"]
    {
        let refused = |what: &str, result: Result<String, PathError>| {
            let error = result.expect_err(what);
            assert_eq!(error.code(), Some("outside_root"), "{path} {what}: {error}");
        };
        let at = || fixture.ask(path);
        refused("read", at().and_then(|path| path.read()).map(|bytes| format!("{bytes:?}")));
        refused("metadata", at().and_then(|path| path.metadata()).map(|metadata| format!("{metadata:?}")));
        refused("list", at().and_then(|path| path.open_dir()).map(|directory| format!("{directory:?}")));
        refused("lock", at().and_then(|path| path.lock_for_write()).map(|lock| format!("{lock:?}")));
        refused("create", at().and_then(|path| path.create_dir_all()).map(|made| format!("{made:?}")));
        refused("resolved", at().and_then(|path| path.resolved()).map(|path| path.to_string()));
    }
    assert_eq!(fs::read_to_string(fixture.outside("secret.txt")).unwrap(), SECRET);
    assert_eq!(names(&fixture.outside("")), ["secret.txt"]);
}

#[test]
fn a_new_file_through_a_link_is_made_inside_or_not_at_all() {
    let fixture = Fixture::new();
    fixture.link(fixture.outside("new.txt"), "dangling");
    fixture.link(fixture.outside(""), "dir");
    fixture.link("inside.txt", "dangling-inside");
    for path in ["dangling", "dir/new.txt", "dir/x/y.txt"] {
        assert_eq!(fixture.replace(path, "x").unwrap_err().code(), Some("outside_root"), "{path}");
    }
    for path in ["dir/x", "dir/x/y"] {
        let error = fixture.ask(path).and_then(|path| path.create_dir_all()).unwrap_err();
        assert_eq!(error.code(), Some("outside_root"), "{path}");
        assert!(fixture.ask(path).and_then(|path| path.create_dir()).is_err());
    }
    assert_eq!(names(&fixture.outside("")), ["secret.txt"]);
    let replaced = fixture.replace("dangling-inside", "made").unwrap();
    assert!(replaced.created);
    assert_eq!(fs::read_to_string(fixture.repo("inside.txt")).unwrap(), "made");
    assert!(fixture.repo("dangling-inside").is_symlink());
}

#[test]
fn a_link_into_another_root_works() {
    let folder = tempfile::tempdir().unwrap();
    for root in ["one", "two"] {
        fs::create_dir(folder.path().join(root)).unwrap();
    }
    fs::write(folder.path().join("two/a"), "second").unwrap();
    symlink(folder.path().join("two"), folder.path().join("one/absolute")).unwrap();
    symlink("../two/a", folder.path().join("one/relative")).unwrap();
    let roots = Roots::open(&["one".to_owned(), "two".to_owned()], folder.path()).unwrap();
    for path in ["absolute/a", "relative"] {
        let path = roots.resolve(path, Path::new("")).unwrap();
        assert_eq!(path.read().unwrap(), b"second");
        path.lock_for_write().unwrap().replace(b"second").unwrap();
        assert_eq!(path.resolved().unwrap().root().path(), folder.path().join("two"));
    }
}

#[test]
fn a_link_that_reaches_the_root_by_another_name_works() {
    let fixture = Fixture::new();
    fixture.write("a", "content");
    symlink(fixture.folder(), fixture.outside("alias")).unwrap();
    fixture.link(fixture.outside("alias/repo/a"), "around");
    assert_eq!(fixture.read("around").unwrap(), "content");
}

#[test]
fn loops_are_reported_as_loops() {
    let fixture = Fixture::new();
    fixture.link("b", "a");
    fixture.link("a", "b");
    fixture.link("self/x", "self");
    for path in ["a", "b/c", "self"] {
        let error = fixture.read(path).unwrap_err();
        assert!(matches!(error, PathError::LinkLoop { .. }), "{path}: {error}");
        assert!(matches!(fixture.replace(path, "x"), Err(PathError::LinkLoop { .. })));
    }
}

#[test]
fn a_link_itself_can_be_looked_at_wherever_it_leads() {
    let fixture = Fixture::new();
    fixture.link("/etc/passwd", "away");
    fixture.link("nowhere", "dangling");
    let away = fixture.ask("away").unwrap();
    assert_eq!(away.symlink_metadata().unwrap().kind, FileKind::Symlink);
    assert_eq!(away.read_link().unwrap(), Path::new("/etc/passwd"));
    let dangling = fixture.ask("dangling").unwrap();
    assert!(dangling.exists().unwrap());
    assert!(matches!(dangling.read(), Err(PathError::NotFound { .. })));
    away.remove_file().unwrap();
    assert_eq!(fixture.names(""), ["dangling"]);
}

#[test]
fn magic_links_are_refused_even_below_a_root_that_has_them() {
    let roots = Roots::open(&["/proc".to_owned(), "/etc".to_owned()], Path::new("/")).unwrap();
    for path in [
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/proc/self/exe",
        "/proc/thread-self/root/etc/passwd",
    ] {
        let refused = roots.resolve(path, Path::new("")).and_then(|path| path.read());
        assert_eq!(refused.unwrap_err().code(), Some("outside_root"), "{path}");
    }
    // `/proc/self` is an ordinary link.
    assert!(roots.resolve("/proc/self/status", Path::new("")).unwrap().read().is_ok());
}

#[test]
fn special_files_are_refused_by_type_and_without_waiting() {
    let fixture = Fixture::new();
    let fifo = fixture.repo("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let _listener = UnixListener::bind(fixture.repo("socket")).unwrap();
    fixture.link("fifo", "to-fifo");
    for (path, kind) in [("fifo", FileKind::Fifo), ("socket", FileKind::Socket), ("to-fifo", FileKind::Fifo)]
    {
        let is_refused = |error: PathError| {
            assert_eq!(error.code(), Some("special_file"));
            assert!(
                matches!(error, PathError::SpecialFile { kind: actual, .. } if actual == kind),
                "{error}"
            );
        };
        is_refused(fixture.read(path).unwrap_err());
        is_refused(fixture.replace(path, "x").unwrap_err());
    }
    // A device, where there is one that anybody may open.
    let dev = Roots::open(&["/dev".to_owned()], Path::new("/")).unwrap();
    let error = dev.resolve("null", Path::new("")).unwrap().read().unwrap_err();
    assert!(matches!(error, PathError::SpecialFile { kind: FileKind::CharDevice, .. }), "{error}");
}

#[test]
fn a_directory_and_a_missing_file_each_have_their_own_error() {
    let fixture = Fixture::new();
    fixture.write("dir/notes.txt", "");
    let directory = fixture.read("dir").unwrap_err();
    assert_eq!(directory.code(), Some("is_directory"));
    assert!(directory.to_string().contains("list_directory"), "{directory}");
    assert_eq!(fixture.replace("dir", "x").unwrap_err().code(), Some("is_directory"));
    assert_eq!(fixture.replace(".", "x").unwrap_err().code(), Some("is_directory"));
    let through_file = fixture.read("dir/notes.txt/x").unwrap_err();
    assert!(matches!(through_file, PathError::NotADirectory { .. }), "{through_file}");

    let check = |path: &str, expected: &str| {
        assert_eq!(fixture.read(path).unwrap_err().to_string(), expected);
    };
    check("dir/note.txt", "`dir/note.txt` does not exist; nearest names there: `dir/notes.txt`");
    check("dir/zzzzzzzzz", "`dir/zzzzzzzzz` does not exist");
    check(
        "di/notes.txt",
        "`di/notes.txt` does not exist (its directory `di` does not exist either); nearest names there: `dir`",
    );
}
