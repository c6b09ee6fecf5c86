use super::*;
use crate::engine::edit::{EditError, Replacement, Select, plan};
use crate::engine::text::Text;

fn explain(file: &str, old_str: &str) -> Explanation {
    let text = Text::parse(file.as_bytes()).unwrap();
    match plan(&text, &Replacement { old_str, new_str: "\u{1}", select: Select::Unique }) {
        Err(EditError::NoMatch(explanation)) => *explanation,
        other => panic!("{old_str:?} is found in {file:?}: {other:?}"),
    }
}

/// Checks the reasons and the text that is offered, and that this text does match, once, at the lines named.
#[track_caller]
fn check(file: &str, old_str: &str, reasons: &[Reason], lines: (usize, usize), text: &str) {
    let explanation = explain(file, old_str);
    assert_eq!(explanation.reasons, reasons);
    let nearest = explanation.nearest.clone().unwrap();
    assert_eq!(((nearest.start_line, nearest.end_line), nearest.text.as_str()), (lines, text));
    let message = explanation.to_string();
    assert!(message.contains(text), "the message does not give the text: {message}");
    let matches = find(file, text).unwrap();
    assert!(
        matches.spans.iter().any(|span| LineIndex::new(file).line_of(span.start) == lines.0),
        "the offered text does not match at line {}",
        lines.0
    );
}

#[test]
fn tabs_given_as_spaces() {
    let file = "\tif x {\n\t\treturn 1\n\t}\n";
    let old = "    if x {\n        return 1\n    }\n";
    check(file, old, &[Reason::TabsAndSpaces { line: 1, tabs_in_file: true }], (1, 3), file);
    let message = explain(file, old).to_string();
    assert!(message.contains("file 1: →if x {\n  old_str: ····if x {"), "{message}");
}

#[test]
fn spaces_given_as_tabs() {
    check("    a\n", "\ta", &[Reason::TabsAndSpaces { line: 1, tabs_in_file: false }], (1, 1), "    a");
}

#[test]
fn trailing_blanks_in_the_file() {
    let reason = Reason::TrailingBlanks { line: 1, count: 2, what: "space" };
    check("foo()  \nbar()\n", "foo()\nbar()", std::slice::from_ref(&reason), (1, 2), "foo()  \nbar()");
    assert!(reason.to_string().contains("line 1 has 2 trailing spaces"));
}

#[test]
fn trailing_blanks_in_the_text_given() {
    check("a\nb\n", "a  \nb", &[Reason::ExtraTrailingBlanks { line: 1, count: 2 }], (1, 2), "a\nb");
}

#[test]
fn indentation_that_differs() {
    let reason = Reason::Indentation { line: 2, in_file: 4, given: 2 };
    check("def f():\n    return 1\n", "def f():\n  return 1", &[reason], (1, 2), "def f():\n    return 1");
}

#[test]
fn spacing_inside_a_line() {
    let file = "\ndef foo():\n    print(\"hello\")\n";
    let text = "def foo():\n    print(\"hello\")";
    check(file, "def  foo():\n    print(\"hello\")", &[Reason::Spacing { line: 2 }], (2, 3), text);
}

#[test]
fn blank_lines_missing_or_added() {
    check(
        "a = 1\n\nb = 2\n",
        "a = 1\nb = 2",
        &[Reason::MissingBlankLine { line: 2 }],
        (1, 3),
        "a = 1\n\nb = 2",
    );
    check("a = 1\nb = 2\n", "a = 1\n\nb = 2", &[Reason::ExtraBlankLine { line: 2 }], (1, 2), "a = 1\nb = 2");
}

#[test]
fn case_that_differs() {
    check("let Foo = 1;\n", "let foo = 1;", &[Reason::Case { line: 1 }], (1, 1), "let Foo = 1;");
}

#[test]
fn characters_that_only_look_alike() {
    let reasons = ['“', '”'].map(|in_file| Reason::LookAlike { line: 1, in_file, given: Some('"') });
    check("say “hi”\n", "say \"hi\"", &reasons, (1, 1), "say “hi”");
    let reason = Reason::LookAlike { line: 2, in_file: '\u{a0}', given: Some(' ') };
    assert!(reason.to_string().contains("no-break space"));
    check("one\nx\u{a0}y z\n", "x y z", &[reason], (2, 2), "x\u{a0}y z");
    let reason = Reason::LookAlike { line: 1, in_file: '-', given: Some('–') };
    check("a - b\n", "a – b", &[reason], (1, 1), "a - b");
    let reasons = [('\u{a0}', ' '), ('“', '"'), ('”', '"')].map(|(in_file, given)| Reason::LookAlike {
        line: 1,
        in_file,
        given: Some(given),
    });
    check("x\u{a0}“y”\n", "x \"y\"", &reasons, (1, 1), "x\u{a0}“y”");
}

#[test]
fn accents_and_their_composition() {
    let (one, two) = ("caf\u{e9} x", "cafe\u{301} x");
    check("cafe\u{301} x\n", one, &[Reason::Composition { line: 1 }], (1, 1), two);
    check("caf\u{e9} x\n", two, &[Reason::Composition { line: 1 }], (1, 1), one);
    check("un café\n", "un cafe", &[Reason::Accents { line: 1 }], (1, 1), "un café");
}

#[test]
fn escape_sequences_given_for_characters() {
    check("a\n\tb\n", "a\\n\\tb", &[Reason::Escapes], (1, 2), "a\n\tb");
}

#[test]
fn line_numbers_copied_along() {
    let file = "x\n".repeat(11) + "foo()\nbar()\n";
    let old = "    12\tfoo()\n    13\tbar()";
    check(&file, old, &[Reason::LineNumbers], (12, 13), "foo()\nbar()");
    let explanation = explain(&file, old);
    assert_eq!(explanation.cleaned.as_deref(), Some("foo()\nbar()"));
    assert!(explanation.to_string().contains("looks like it includes read_file's line numbers"));
}

#[test]
fn numbers_that_do_not_count_up_are_text() {
    assert_eq!(explain("nothing\n", "1\ta\n1\tb").cleaned, None);
    assert_eq!(explain("nothing\n", "12: a\nb").cleaned, None);
}

#[test]
fn line_numbers_and_other_differences_are_both_named() {
    let reasons = [Reason::LineNumbers, Reason::TabsAndSpaces { line: 2, tabs_in_file: true }];
    check("a\n\tb\n", "     1\ta\n     2\t    b", &reasons, (1, 2), "a\n\tb");
}

#[test]
fn a_block_with_an_invented_middle_is_shown_as_it_is() {
    let block = "fn start() {\n  one();\n  two();\n  three();\n  four();\n  five();\n  six();\n} // start\n";
    let file = format!("// head\n{block}// tail\n");
    let old = "fn start() {\n  let a = b;\n  if c {\n    d(e);\n  }\n  f.g();\n  h\n} // start\n";
    check(&file, old, &[Reason::Middle { first: 3, last: 8 }], (2, 9), block);
    let message = explain(&file, old).to_string();
    assert!(message.contains("file 3: ··one();\n  old_str: ··let a = b;\n  file 4: ··two();"), "{message}");
}

#[test]
fn one_wrong_word_is_shown_by_character() {
    let file = "alpha();\nconst total = sum(prices);\nomega();\n";
    let old = "const total = sum(price);";
    check(file, old, &[Reason::Words { lines: 1 }], (2, 2), "const total = sum(prices);");
    let message = explain(file, old).to_string();
    assert!(message.contains("const total = sum(price{+s+});"), "{message}");
}

#[test]
fn crlf_files_are_explained_in_lf() {
    let reason = Reason::TabsAndSpaces { line: 1, tabs_in_file: true };
    check("\ta\r\n\tb\r\n", "  a\n  b", &[reason], (1, 2), "\ta\n\tb");
    check("a\r\nb\r\n", "A\r\nB\r", &[Reason::Case { line: 1 }, Reason::Spacing { line: 2 }], (1, 2), "a\nb");
}

#[test]
fn nothing_similar_is_said_so() {
    let explanation = explain("alpha\nbeta\n", "zzz qqq jjj www");
    assert_eq!((explanation.nearest.as_ref(), explanation.reasons.as_slice()), (None, &[][..]));
    assert!(explanation.to_string().contains("read the file again"));
    assert!(explain("", "a").to_string().contains("The file is empty"));
    assert_eq!(explain("a", " \n\t").nearest, None);
}

#[test]
fn a_piece_of_a_huge_line_is_found_in_it() {
    let file = format!(
        "{{{}\"needle\":\"haystack value 17\",{}}}",
        "\"k\":1,".repeat(20_000),
        "\"z\":2,".repeat(20_000)
    );
    let explanation = explain(&file, "\"needle\":\"haystack walue 17\",");
    let nearest = explanation.nearest.clone().unwrap();
    assert!(nearest.text.contains("haystack value 17"), "{}", nearest.text);
    assert!(explanation.to_string().len() < 2000);
}

#[test]
fn hostile_input_stays_linear() {
    // Each of these would take minutes if any step compared every line with every other.
    let same = "aaaa aaaa aaaa aaaa\n".repeat(20_000);
    explain(&same, &("aaaa aaaa aaaa aaaa\n".repeat(20_000) + "b"));
    explain(&"“".repeat(100_000), &"\"".repeat(100_000));
    explain(&"a".repeat(400_000), &("a".repeat(200_000) + "b"));
    explain(&same, &("aaaa aaaa\taaaa aaaa\n".repeat(500) + "bbbbbbb"));
    let numbered: String = (0..20_000).map(|n| format!("let value_{n} = compute({n});\n")).collect();
    let reversed: String = (0..20_000).rev().map(|n| format!("let value_{n} = compute({n});\n")).collect();
    explain(&numbered, &reversed);
}

fn ambiguity(file: &str, old_str: &str) -> Ambiguity {
    let text = Text::parse(file.as_bytes()).unwrap();
    match plan(&text, &Replacement { old_str, new_str: "\u{1}", select: Select::Unique }) {
        Err(EditError::Ambiguous(ambiguity)) => *ambiguity,
        other => panic!("not ambiguous: {other:?}"),
    }
}

#[test]
fn every_candidate_has_a_line_a_context_and_a_unique_anchor() {
    let file = "fn a() {\n  return 1\n}\nfn b() {\n  return 1\n}\n";
    let found = ambiguity(file, "return 1");
    assert_eq!((found.total, found.lines.as_slice()), (2, &[2, 5][..]));
    let anchors: Vec<_> = found.candidates.iter().map(|candidate| candidate.anchor.as_deref()).collect();
    assert_eq!(anchors, [Some("fn a() {\n  return 1"), Some("fn b() {\n  return 1")]);
    assert_eq!(found.candidates[1].context, "fn b() {\n  return 1\n}\n");
    let message = found.to_string();
    assert!(message.contains("in lines 2, 5") && message.contains("near_line"), "{message}");
}

#[test]
fn a_line_that_is_unique_as_a_whole_is_its_own_anchor() {
    let found = ambiguity("x = 1\r\ny = 1\r\n", "= 1");
    assert_eq!(found.candidates[0].anchor.as_deref(), Some("x = 1"));
}

#[test]
fn many_occurrences_give_a_bounded_message() {
    let found = ambiguity(&"same line\n".repeat(20_000), "same");
    assert_eq!((found.total, found.lines.len(), found.candidates.len()), (20_000, 100, 10));
    assert!(found.to_string().len() < 4096);
}

#[test]
fn a_block_with_another_occurrence_in_it_is_no_anchor() {
    let found = ambiguity("x = 1\nx = 1\n\nx = 1\nlast\n", "x = 1");
    let anchors: Vec<_> = found.candidates.iter().map(|candidate| candidate.anchor.as_deref()).collect();
    assert_eq!(anchors, [None, None, Some("x = 1\nlast")]);
}

#[test]
fn a_final_newline_that_the_file_lacks_is_the_reason() {
    check("a\nb", "b\n", &[Reason::FinalNewline], (2, 2), "b");
    check("x\r\na\r\nb", "a\nb\n", &[Reason::FinalNewline], (2, 3), "a\nb");
}

#[test]
fn of_two_blocks_the_one_with_the_same_in_each_line_is_nearest() {
    let file = "///     ```\npub trait Context<T, E>: context::Sealed {\n    /// Wraps the error value with more.\n    fn context();\n";
    let explanation = explain(file, "pub trait Context<T, E>: Sealed {\n  fn context");
    assert_eq!(explanation.nearest.unwrap().start_line, 2);
}
