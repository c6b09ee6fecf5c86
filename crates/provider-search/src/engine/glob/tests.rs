//! What patterns match, held against globset, and what is said of those that are none.

use globset::GlobBuilder;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(pattern: &str, expected: &[&str]) {
    let paths = [
        "a",
        "b",
        "x",
        "ab",
        "a/b",
        "a/x.rs",
        "a/b/x.rs",
        "x.rs",
        ".a",
        ".a/x.rs",
        "a/.b",
        "a/b/.c/x.rs",
        "[id]",
        "i",
    ];
    let pattern = Pattern::new(pattern).unwrap();
    assert_eq!(pattern.prefix(), "");
    let found: Vec<_> = paths.into_iter().filter(|path| pattern.matches(path.as_bytes(), false)).collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn check_error(pattern: &str, position: usize, words: &str) {
    let error = Pattern::new(pattern).unwrap_err();
    assert_eq!(error.position, position, "{error}");
    assert!(error.reason.contains(words), "{error}");
}

#[test]
fn a_star_stops_at_a_slash_and_two_do_not() {
    check("*", &["a", "b", "x", "ab", "x.rs", ".a", "[id]", "i"]);
    check("*.rs", &["x.rs"]);
    check("**/*.rs", &["a/x.rs", "a/b/x.rs", "x.rs", ".a/x.rs", "a/b/.c/x.rs"]);
    check("**/x.rs", &["a/x.rs", "a/b/x.rs", "x.rs", ".a/x.rs", "a/b/.c/x.rs"]);
    check("**/b/**", &["a/b/x.rs", "a/b/.c/x.rs"]);
    check("?", &["a", "b", "x", "i"]);
}

#[test]
fn braces_and_sets_stand_for_alternatives() {
    check("{a,b}/**", &["a/b", "a/x.rs", "a/b/x.rs", "a/.b", "a/b/.c/x.rs"]);
    check("{a/b,.a}/x.{rs,toml}", &["a/b/x.rs", ".a/x.rs"]);
    check("{,a}b", &["b", "ab"]);
    check("{a,{b,x}}", &["a", "b", "x"]);
    check("a[!b]", &[]);
    check("[!b]", &["a", "x", "i"]);
    check("[a-b]", &["a", "b"]);
    check("[[:alpha:]]", &["a", "b", "x", "i"]);
    check("[]x]", &["x"]);
    check("{**/x.rs,i}", &["a/x.rs", "a/b/x.rs", "x.rs", ".a/x.rs", "a/b/.c/x.rs", "i"]);
}

#[test]
fn a_name_spelled_like_the_segment_matches_it() {
    check("[id]", &["[id]", "i"]);
    check("\\[id\\]", &["[id]"]);
    let pattern = Pattern::new("app/{a,b}/[id]/*.tsx").unwrap();
    assert_eq!(pattern.prefix(), "app");
    for (path, expected) in
        [("a/[id]/x.tsx", true), ("b/d/x.tsx", true), ("{a,b}/i/x.tsx", true), ("c/i/x.tsx", false)]
    {
        assert_eq!(pattern.matches(path.as_bytes(), false), expected, "{path}");
    }
}

#[test]
fn literal_beginnings_are_split_off() {
    for (pattern, prefix) in [
        ("src/*.rs", "src"),
        ("./src/./a/**", "src/a"),
        ("src/main.rs", "src"),
        ("/abs/x/*.rs", "/abs/x"),
        ("../x/*", "../x"),
        ("~/x/*", "~/x"),
        ("{src/a,src/b}/x/*", "src"),
        ("app/\\[id\\]/x*", "app/[id]"),
        ("**/x", ""),
        ("x", ""),
        ("a//b/*", "a/b"),
    ] {
        assert_eq!(Pattern::new(pattern).unwrap().prefix(), prefix, "{pattern}");
    }
}

#[test]
fn a_slash_at_the_end_asks_for_directories() {
    for pattern in ["**/", "a/", "*/", "{a,b}/"] {
        let pattern = Pattern::new(pattern).unwrap();
        assert!(pattern.matches(b"a", true) && !pattern.matches(b"a", false));
    }
}

#[test]
fn bad_patterns_are_told_with_position_and_reason() {
    check_error("", 1, "empty");
    check_error("!x", 1, "excludes nothing");
    check_error("src/[ab", 5, "not closed");
    check_error("é{a,b", 2, "not closed");
    check_error("a}", 2, "closes no");
    check_error("x/[z-a]", 4, "backwards");
    check_error("a\\", 2, "next character");
    check_error("[a/b]", 3, "cannot hold");
    check_error("*/../x", 1, "`..`");
    check_error("/", 1, "directory itself");
    check_error(&"{a,b}".repeat(11), 1, "too many");
    check_error(&"{a/,b/}".repeat(11), 1, "too many");
    check_error(&"{".repeat(40), 17, "nested");
}

#[test]
fn a_misread_double_star_is_explained() {
    let pattern = Pattern::new("src/**.rs").unwrap();
    assert_eq!(pattern.notes().len(), 1);
    assert!(pattern.notes()[0].contains("**/*.rs"), "{:?}", pattern.notes());
    assert!(Pattern::new("src/**/*.rs").unwrap().notes().is_empty());
}

#[test]
fn what_is_spelled_out_or_dotted_is_explicit() {
    for (pattern, name, explicit) in [
        (".env*", ".env.local", true),
        ("*env*", ".env.local", false),
        ("target", "target", true),
        ("target*", "target", false),
        ("{.a,b}*", ".ab", true),
        ("{.a,b}*", "b", false),
        ("[.]a", ".a", false),
    ] {
        let pattern = Pattern::new(pattern).unwrap();
        let strides = pattern.stride(pattern.start(), name.as_bytes());
        assert_eq!(strides.explicit.hit.is_some(), explicit, "{name}");
        assert_eq!(strides.wild.hit.is_some(), !explicit, "{name}");
    }
}

/// Patterns out of few pieces, so that they often match.
fn pattern() -> impl Strategy<Value = String> {
    const PIECES: &[&str] =
        &["a", "b", ".", "/", "*", "**", "?", "[ab]", "[!a]", "{a,b}", "{a/b,**/b}", "{,b}", "/**/", "\\*"];
    proptest::collection::vec(proptest::sample::select(PIECES), 1..7).prop_map(|pieces| pieces.concat())
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[ab.*]{1,3}", 1..5).prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn paths_match_as_globset_says(pattern in pattern(), path in path()) {
        // globset takes `**` after a brace for a segment of its own, whatever is before the brace.
        let glued = pattern.match_indices("{a/b,**").any(|(at, _)| at > 0 && !pattern[..at].ends_with('/'));
        // Here a slash at the end asks for directories, and repeated ones and dots are taken together.
        let odd = pattern.contains("//") || pattern.ends_with('/') || pattern.starts_with('/')
            || pattern.split('/').any(|segment| segment.starts_with("..") || segment == ".")
            || path.split('/').any(|name| name == "." || name == "..");
        prop_assume!(!odd && !glued);
        let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).empty_alternates(true).build();
        let theirs = glob.map(|glob| glob.compile_matcher());
        let ours = Pattern::new(&pattern);
        let (Ok(theirs), Ok(ours)) = (theirs, ours) else { return Ok(()) };
        let relative = match ours.prefix() {
            "" => Some(path.as_str()),
            prefix => path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')),
        };
        let matched = relative.is_some_and(|path| ours.matches(path.as_bytes(), false));
        let spelled = path.split('/').any(|name| pattern.split('/').any(|segment| segment == name && name.contains('*')));
        if matched != theirs.is_match(&path) && !spelled {
            prop_assert!(false, "{} {} {}", pattern, path, matched);
        }
    }
}
