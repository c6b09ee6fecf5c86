use std::time::{Duration, Instant};

use super::*;

fn far_off() -> Stop {
    Stop::at(Instant::now() + Duration::from_secs(600))
}

/// Where the pattern matches in the text, if it can be read.
#[track_caller]
fn check(pattern: &str, options: Options, text: &str, expected: &[&str]) -> Pattern {
    let pattern = Pattern::new(pattern, options).unwrap();
    let mut found = Vec::new();
    let each = |found: &mut Vec<String>, at: Match| {
        found.push(text[at.start()..at.end()].to_owned());
        true
    };
    match &pattern.engine {
        Engine::Linear(matcher) => matcher.find_iter(text.as_bytes(), |at| each(&mut found, at)).unwrap(),
        Engine::Backtracking(engine) => {
            let stop = far_off();
            engine.until(&stop).find_iter(text.as_bytes(), |at| each(&mut found, at)).unwrap();
        }
    }
    assert_eq!(found, expected);
    pattern
}

const PLAIN: Options = Options { fixed_strings: false, case: Case::Smart, word: false, multiline: false };

#[test]
fn case_is_smart_unless_asked_otherwise() {
    check("foo", PLAIN, "foo Foo FOO", &["foo", "Foo", "FOO"]);
    check("Foo", PLAIN, "foo Foo FOO", &["Foo"]);
    check(r"foo\S", PLAIN, "FOO1", &["FOO1"]);
    check("foo", Options { case: Case::Sensitive, ..PLAIN }, "foo Foo", &["foo"]);
    check("FOO", Options { case: Case::Insensitive, ..PLAIN }, "foo Foo", &["foo", "Foo"]);
    check("foo(?!x)", PLAIN, "foo FOO foox", &["foo", "FOO"]);
    check("Foo(?!x)", PLAIN, "foo Foo", &["Foo"]);
}

#[test]
fn fixed_strings_and_words() {
    let fixed = Options { fixed_strings: true, ..PLAIN };
    check("a.b(", fixed, "a.b( axb(", &["a.b("]);
    check("[", fixed, "[", &["["]);
    let word = Options { word: true, ..PLAIN };
    check("foo", word, "foo foobar foo", &["foo", "foo"]);
    check("foo(?!x)", word, "foo foobar", &["foo"]);
}

#[test]
fn look_around_and_back_references_work() {
    assert!(!check("foo(?!bar)", PLAIN, "foobar foobaz", &["foo"]).notes.is_empty());
    check("(?<!#)foobar", PLAIN, "#foobar xfoobar", &["foobar"]);
    check(r"(a)\1", PLAIN, "a aa", &["aa"]);
    check("(?<=é)x", PLAIN, "éx x", &["x"]);
    check("(?>a+)b", PLAIN, "aab", &["aab"]);
}

#[test]
fn a_pattern_that_backtracks_for_ever_is_given_up() {
    let pattern = Pattern::new(r"(x+x+)+(?=y)\1", PLAIN).unwrap();
    let Engine::Backtracking(engine) = &pattern.engine else { panic!() };
    assert_eq!(engine.until(&far_off()).find("x".repeat(64).as_bytes()).unwrap(), None);
    assert_eq!(pattern.given_up(), 1);
}

#[test]
fn multiline_is_taken_from_the_pattern() {
    let multiline = |pattern: &str| Pattern::new(pattern, PLAIN).unwrap().multiline;
    for pattern in [r"a\nb", "a\nb", r"a[\n]b", r"a[\r\n]+b", r"(?s)a.*b", r"a[\s\S]*?b", r"(?=a)\nb"] {
        assert!(multiline(pattern), "{pattern:?}");
    }
    for pattern in [r"a\s+b", r#""[^"]*""#, "a.*b", r"\w+$", "(?!x)a.*", r"a\\nb"] {
        assert!(!multiline(pattern), "{pattern:?}");
    }
    let fixed = Options { fixed_strings: true, ..PLAIN };
    assert!(Pattern::new("a\nb", fixed).unwrap().multiline);
    assert!(!Pattern::new(r"a\nb", fixed).unwrap().multiline);
}

/// The message about a pattern that cannot be read has these parts.
#[track_caller]
fn check_error(pattern: &str, parts: &[&str]) {
    let message = Pattern::new(pattern, PLAIN).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}

#[test]
fn errors_say_where_and_what_to_do() {
    check_error("(", &["unclosed group", "character 1", "fixed_strings"]);
    check_error("foo(", &["unclosed group", "character 4", "fixed_strings"]);
    check_error("[z-a]", &["invalid character class range", "character 2", "z-a", "fixed_strings"]);
    check_error("*x", &["repetition operator missing expression", "character 1", "fixed_strings"]);
    check_error("héé[", &["unclosed character class", "character 4"]);
    check_error("interface{}", &["character", "fixed_strings"]);
    check_error("(?=a", &["character", "fixed_strings"]);
    check_error(r"\p{Nonsense}", &["character 1"]);
    check_error("(?:a{1000}){1000}{1000}", &["smaller"]);
}

#[test]
fn letters_beyond_ascii_are_noticed() {
    let beyond = |pattern: &str| Pattern::new(pattern, PLAIN).unwrap().beyond_ascii;
    assert!(beyond("café") && beyond("[éè]") && beyond("é(?!x)"));
    assert!(!beyond(r"\w+") && !beyond("cafe") && !beyond("[^x]"));
}
