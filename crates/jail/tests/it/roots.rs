//! Which directories are roots, and which paths lie in one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use jail::{PathError, RootError, Roots};

use crate::support::Fixture;

fn open(configured: &[&str], base: &Path) -> Result<Roots, RootError> {
    let configured: Vec<String> = configured.iter().map(|text| (*text).to_owned()).collect();
    Roots::open_with_home(&configured, base, Some(&base.join("home")))
}

#[test]
fn roots_are_relative_absolute_dots_and_tildes() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path();
    fs::create_dir_all(base.join("home/work")).unwrap();
    fs::create_dir(base.join("sub")).unwrap();
    let absolute = base.join("sub");
    let check = |configured: &str, expected: &Path| {
        let roots = open(&[configured], base).unwrap();
        assert_eq!(roots.first().path(), expected, "{configured}");
    };
    check(".", base);
    check("sub", &absolute);
    check("./sub/", &absolute);
    check("sub/../sub", &absolute.canonicalize().unwrap());
    check(absolute.to_str().unwrap(), &absolute);
    check("~", &base.join("home"));
    check("~/work", &base.join("home/work"));
}

#[test]
fn a_root_that_cannot_be_used_is_named_by_position_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let check = |second: &str, reason: &str| {
        let error = open(&[".", second], folder.path()).unwrap_err();
        let expected = format!("allowed_roots[1] `{second}`: {reason}");
        assert_eq!(error.to_string(), expected);
    };
    check("missing", "there is no such directory");
    check("file", "it is not a directory");
    check("file/below", "it is not a directory");
    check("", "it is not a usable path");
    assert!(matches!(open(&[], folder.path()), Err(RootError::Empty)));
}

#[test]
fn a_root_that_is_a_symlink_works_under_both_names() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    fs::write(folder.path().join("real/a"), "content").unwrap();
    symlink("real", folder.path().join("link")).unwrap();
    let roots = open(&["link"], folder.path()).unwrap();
    for (path, working_directory) in [("a", "link"), ("a", "real"), ("real/a", ""), ("link/a", "")] {
        let (path, working_directory) = match working_directory {
            "" => (folder.path().join(path), folder.path().join("real")),
            directory => (Path::new(path).to_owned(), folder.path().join(directory)),
        };
        let resolved = roots.resolve(path.to_str().unwrap(), &working_directory).unwrap();
        assert_eq!(resolved.read().unwrap(), b"content");
        assert_eq!(resolved.to_string(), "a");
    }
}

#[test]
fn a_root_is_found_by_a_name_that_goes_through_a_link_outside() {
    let fixture = Fixture::new();
    fixture.write("sub/a", "content");
    symlink(fixture.folder(), fixture.outside("alias")).unwrap();
    let directory = fixture.outside("alias/repo/sub");
    let path = fixture.roots.resolve("a", &directory).unwrap();
    assert_eq!(path.read().unwrap(), b"content");
    assert_eq!(path.to_string(), "a");
    assert_eq!(path.absolute(), fixture.repo("sub/a"));
}

#[test]
fn paths_outside_are_refused_however_they_are_spelled() {
    let fixture = Fixture::new();
    fixture.write("sub/a", "content");
    fs::create_dir(fixture.folder().join("repo-evil")).unwrap();
    fs::write(fixture.folder().join("repo-evil/x"), "evil").unwrap();
    let secret = fixture.outside("secret.txt");
    let absolute = |path: &Path| path.to_str().unwrap().to_owned();
    let check = |path: &str| {
        let error = fixture.ask(path).unwrap_err();
        assert_eq!(error.code(), Some("outside_root"), "{path}: {error}");
        assert!(error.to_string().contains(fixture.repo("").to_str().unwrap().trim_end_matches('/')));
    };
    check("..");
    check("../outside/secret.txt");
    check("sub/../../outside/secret.txt");
    check("missing/../../outside/secret.txt");
    check(&absolute(&secret));
    check(&absolute(&fixture.folder().join("repo-evil/x")));
    check("../repo-evil/x");
    check("/");
    check("/etc/passwd");
    check(&format!("/proc/self/root{}", fixture.repo("sub/a").display()));
    check(&format!("/proc/self/root{}", secret.display()));
    check(&format!("/proc/{}/cwd", std::process::id()));
    check(&format!("file://{}", secret.display()));
    check(&format!("'{}'", secret.display()));
    check(&format!("@{}", secret.display()));
}

#[test]
fn dots_inside_the_root_are_taken_out() {
    let fixture = Fixture::new();
    fixture.write("sub/a", "content");
    let check = |path: &str| {
        let resolved = fixture.ask(path).unwrap();
        assert_eq!(resolved.to_string(), "sub/a");
        assert_eq!(resolved.read().unwrap(), b"content");
    };
    check("sub/a");
    check("./sub/./a");
    check("sub//a");
    check("sub/../sub/a");
    check("missing/../sub/a");
    check("../repo/sub/a");
    check(fixture.repo("sub/a").to_str().unwrap());
}

#[test]
fn the_working_directory_is_a_root_by_default_and_must_lie_in_one() {
    let fixture = Fixture::new();
    fixture.write("sub/a", "content");
    let resolve = |path: &str, directory: &Path| fixture.roots.resolve(path, directory);
    let from_sub = resolve("a", &fixture.repo("sub")).unwrap();
    assert_eq!((from_sub.to_string().as_str(), from_sub.read().unwrap()), ("a", b"content".to_vec()));
    assert_eq!(resolve(".", &fixture.repo("sub")).unwrap().to_string(), ".");
    let above = resolve("..", &fixture.repo("sub")).unwrap();
    assert_eq!(above.to_string(), fixture.folder().join("repo").to_str().unwrap());
    assert_eq!(resolve("sub/a", Path::new("")).unwrap().to_string(), "sub/a");

    let absolute = fixture.repo("sub/a");
    for outside in
        [fixture.folder(), &fixture.outside(""), Path::new("/"), &fixture.folder().join("repo-evil")]
    {
        for path in ["repo/sub/a", absolute.to_str().unwrap()] {
            assert_eq!(resolve(path, outside).unwrap_err().code(), Some("outside_root"), "{outside:?}");
        }
    }
    assert!(matches!(resolve("a", Path::new("sub")), Err(PathError::Invalid { .. })));
}

#[test]
fn the_second_root_is_reached_by_absolute_paths_and_as_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    for root in ["one", "two"] {
        fs::create_dir(folder.path().join(root)).unwrap();
        fs::write(folder.path().join(root).join("name"), root).unwrap();
    }
    let roots = open(&["one", "two"], folder.path()).unwrap();
    let second = folder.path().join("two");
    let by_path = roots.resolve(second.join("name").to_str().unwrap(), Path::new("")).unwrap();
    assert_eq!(by_path.read().unwrap(), b"two");
    assert_eq!(by_path.to_string(), second.join("name").to_str().unwrap());
    assert_eq!(roots.resolve("name", &second).unwrap().read().unwrap(), b"two");
    assert_eq!(roots.resolve("../one/name", &second).unwrap().read().unwrap(), b"one");
    assert_eq!(roots.resolve("name", Path::new("")).unwrap().read().unwrap(), b"one");
}

#[test]
fn a_root_that_was_made_again_is_opened_anew() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    assert_eq!(fixture.read("a").unwrap(), "old");
    fs::rename(fixture.repo(""), fixture.folder().join("moved")).unwrap();
    assert!(matches!(fixture.ask("a"), Err(PathError::RootGone { .. })));
    fs::create_dir(fixture.repo("")).unwrap();
    fixture.write("a", "new");
    assert_eq!(fixture.read("a").unwrap(), "new");
    fs::remove_dir_all(fixture.repo("")).unwrap();
    fs::create_dir(fixture.repo("")).unwrap();
    fixture.replace("b", "made").unwrap();
    assert_eq!(fixture.names(""), ["b"]);
}

#[test]
fn a_root_that_became_a_link_or_a_file_is_refused() {
    let fixture = Fixture::new();
    let root = fixture.folder().join("repo");
    fs::remove_dir(&root).unwrap();
    symlink("outside", &root).unwrap();
    let error = fixture.read("secret.txt").unwrap_err();
    assert!(matches!(error, PathError::RootGone { .. }), "{error}");
    assert!(fixture.replace("new", "x").is_err());
    fs::remove_file(&root).unwrap();
    fs::write(&root, "").unwrap();
    assert!(matches!(fixture.read("secret.txt"), Err(PathError::RootGone { .. })));
    assert!(!fixture.outside("new").exists());
}

#[test]
fn names_with_spaces_quotes_and_dollars_are_ordinary() {
    let folder = tempfile::tempdir().unwrap();
    let name = r#"my proj's "$x" (1)"#;
    fs::create_dir(folder.path().join(name)).unwrap();
    let roots = open(&[name], folder.path()).unwrap();
    roots.resolve(r#"it's "a" $y"#, Path::new("")).unwrap().lock_for_write().unwrap().replace(b"x").unwrap();
    assert_eq!(fs::read(folder.path().join(name).join(r#"it's "a" $y"#)).unwrap(), b"x");
}

#[test]
fn what_is_no_path_is_an_argument_error() {
    let fixture = Fixture::new();
    let check = |path: &str, reason: &str| match fixture.ask(path) {
        Err(PathError::Invalid { reason: actual, .. }) => assert!(actual.contains(reason), "{actual}"),
        other => panic!("{path:?}: {other:?}"),
    };
    check("", "empty");
    check("a\0b", "NUL");
    check(&"x".repeat(5000), "5000 bytes");
    check(&"a/".repeat(300), "300 components");
    // Long, but possible.
    assert!(fixture.ask(&"a/".repeat(256)).is_ok());
    assert!(matches!(fixture.read(&"x".repeat(300)), Err(PathError::Io { .. })));
}
