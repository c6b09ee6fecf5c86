//! Patterns that deny or protect, by whatever name a path is reached.

use std::fs;
use std::path::Path;

use jail::{PathError, RootError, Roots, Rules};

use crate::support::Fixture;

fn deny(patterns: &[&str]) -> Rules {
    Rules { deny: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(), protect: Vec::new() }
}

fn assert_denied(fixture: &Fixture, path: &str) {
    let denied = |result: Result<(), PathError>| {
        let error = result.expect_err(path);
        assert_eq!(error.code(), Some("denied"), "{path}: {error}");
    };
    denied(fixture.read(path).map(drop));
    denied(fixture.replace(path, "x").map(drop));
    denied(fixture.ask(path).and_then(|path| path.open_dir()).map(drop));
    denied(fixture.ask(path).and_then(|path| path.symlink_metadata()).map(drop));
}

#[test]
fn a_denied_directory_is_denied_in_every_spelling() {
    for pattern in ["~/.aws/", "~/.aws", "~/.aws/**", "home/.aws/", "**/.aws/**", ".aws"] {
        let fixture = Fixture::with_rules(&deny(&[pattern]));
        fixture.write("home/.aws/credentials", "key");
        fixture.write("home/x/file", "");
        fixture.link("home/.aws", "innocent");
        fixture.link("home/.aws/credentials", "innocent-file");
        fixture.link(fixture.repo("home/.aws"), "home/absolute");
        let absolute = fixture.repo("home/.aws/credentials");
        for path in [
            "home/.aws",
            "home/.aws/",
            "home/.aws/.",
            "home//.aws//credentials",
            "home/x/../.aws/credentials",
            "home/missing/../.aws/credentials",
            "innocent",
            "innocent/credentials",
            "innocent-file",
            "home/absolute/credentials",
            "~/.aws",
            "~/.aws/.",
            "~//.aws/credentials",
            "home/.aws/not-there",
            absolute.to_str().unwrap(),
        ] {
            // `open_dir` of the link as a link is allowed only where the link is not followed.
            if path.starts_with("innocent") || path.starts_with("home/absolute") {
                assert_eq!(fixture.read(path).unwrap_err().code(), Some("denied"), "{pattern} {path}");
                assert_eq!(
                    fixture.replace(path, "x").unwrap_err().code(),
                    Some("denied"),
                    "{pattern} {path}"
                );
            } else {
                assert_denied(&fixture, path);
            }
        }
        assert_eq!(fixture.read("home/x/file").unwrap(), "");
        assert_eq!(fs::read_to_string(absolute).unwrap(), "key");
    }
}

#[test]
fn a_name_without_a_slash_is_denied_in_every_directory() {
    let fixture = Fixture::with_rules(&deny(&["*.pem", "./only-here.txt"]));
    for path in ["a.pem", "deep/er/b.pem", "only-here.txt"] {
        fixture.write(path, "");
        assert_eq!(fixture.read(path).unwrap_err().code(), Some("denied"), "{path}");
    }
    for path in ["a.pem.txt", "deep/pem"] {
        fixture.write(path, "");
        assert!(fixture.read(path).is_ok(), "{path}");
    }
}

#[test]
fn a_denied_link_denies_what_is_reached_through_it() {
    let fixture = Fixture::with_rules(&deny(&["private"]));
    fixture.write("plain/a", "content");
    fixture.link("plain", "private");
    fixture.link("private/a", "detour");
    assert_eq!(fixture.read("private/a").unwrap_err().code(), Some("denied"));
    assert_eq!(fixture.read("detour").unwrap_err().code(), Some("denied"));
    assert_eq!(fixture.read("plain/a").unwrap(), "content");
}

#[test]
fn a_pattern_that_goes_through_a_link_denies_what_is_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("real/keys")).unwrap();
    fs::write(folder.path().join("real/keys/a"), "key").unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("alias")).unwrap();
    let roots = Roots::open(&["real".to_owned()], folder.path()).unwrap();
    let pattern = folder.path().join("alias/keys/*").to_str().unwrap().to_owned();
    let roots = roots.with_rules(&deny(&[&pattern])).unwrap();
    let error = roots.resolve("keys/a", Path::new("")).unwrap_err();
    assert!(matches!(&error, PathError::Denied { pattern: named, .. } if *named == pattern), "{error}");
}

#[test]
fn protected_paths_are_read_but_not_changed() {
    let fixture = Fixture::with_rules(&Rules { deny: Vec::new(), protect: vec!["**/.git/**".to_owned()] });
    fixture.write(".git/config", "[core]");
    fixture.write("sub/.git/HEAD", "ref");
    fixture.write("file", "");
    fixture.link(".git/config", "config-link");
    let protected = |result: Result<(), PathError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, PathError::Protected { .. }), "{error}");
        assert_eq!(error.code(), Some("denied"));
    };
    for path in [".git/config", "sub/.git/HEAD", "config-link"] {
        assert!(fixture.read(path).is_ok(), "{path}");
        protected(fixture.replace(path, "x").map(drop));
    }
    protected(fixture.replace(".git/hooks-new", "x").map(drop));
    protected(fixture.ask(".git/new/dir").unwrap().create_dir_all().map(drop));
    protected(fixture.ask("other/.git").unwrap().create_dir_all().map(drop));
    protected(fixture.ask(".git/config").unwrap().remove_file());
    protected(fixture.ask(".git").unwrap().rename(&fixture.ask("git").unwrap(), true));
    protected(fixture.ask("file").unwrap().rename(&fixture.ask(".git/config").unwrap(), true));
    assert_eq!(fixture.read(".git/config").unwrap(), "[core]");
    assert_eq!(fixture.names(""), [".git", "config-link", "file", "sub"]);
}

#[test]
fn renaming_a_directory_takes_nothing_out_of_reach_of_a_pattern() {
    let fixture = Fixture::with_rules(&Rules {
        deny: vec!["home/.aws/".to_owned()],
        protect: vec!["keep/this/file".to_owned(), "**/.git/**".to_owned()],
    });
    for path in ["home/.aws/credentials", "keep/this/file", "project/.git/config", "project/src/main.rs"] {
        fixture.write(path, "");
    }
    let rename = |from: &str, to: &str| fixture.ask(from).unwrap().rename(&fixture.ask(to).unwrap(), false);
    for from in ["home", "keep", "keep/this"] {
        assert_eq!(rename(from, "elsewhere").unwrap_err().code(), Some("denied"), "{from}");
    }
    // There it is as protected as here.
    rename("project", "renamed").unwrap();
    assert_eq!(fixture.names(""), ["home", "keep", "renamed"]);
}

#[test]
fn denied_names_are_not_given_away() {
    let fixture = Fixture::with_rules(&deny(&["secret-plan.txt", "caf*"]));
    fixture.write("secret-plan.txt", "");
    fixture.write("cafe\u{301}.txt", "");
    let error = fixture.read("secret-plam.txt").unwrap_err();
    assert_eq!(error.to_string(), "`secret-plam.txt` does not exist");
}

#[test]
fn a_pattern_that_is_no_glob_is_named_by_position() {
    let fixture = Fixture::new();
    let check = |rules: Rules, expected: &str| {
        let error = fixture.roots.with_rules(&rules).unwrap_err();
        assert!(matches!(error, RootError::Pattern { .. }));
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    check(deny(&["ok", "a[b"]), "deny[1] `a[b`: ");
    check(deny(&[""]), "deny[0] ``: the pattern is empty");
    check(Rules { deny: Vec::new(), protect: vec!["{a".to_owned()] }, "protect[0] `{a`: ");
}
