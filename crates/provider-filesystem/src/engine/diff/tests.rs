use super::*;

#[track_caller]
fn check(old: &str, new: &str, expected: &str) {
    let diff = Diff::between(old.as_bytes(), new.as_bytes());
    assert_eq!(diff.unified(Some("f"), Some("f"), usize::MAX), expected);
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|n| format!("{n}\n")).collect()
}

#[test]
fn nothing_changed_is_an_empty_diff() {
    check("a\n", "a\n", "");
}

#[test]
fn a_change_has_three_lines_of_context() {
    let old = numbers(1..=10).replace("10\n", "");
    let new = old.replace("5\n", "five\n");
    check(&old, &new, "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

#[test]
fn the_first_lines_have_the_right_numbers() {
    for line in 1..=8 {
        let old = numbers(1..=20);
        let new = old
            .lines()
            .map(|text| if text == line.to_string() { "new\n".into() } else { format!("{text}\n") });
        let diff = Diff::between(old.as_bytes(), new.collect::<String>().as_bytes());
        let start = (line - 3).max(1) as usize;
        assert_eq!((diff.hunks[0].old_start, diff.hunks[0].new_start), (start, start));
    }
}

#[test]
fn changes_six_lines_apart_share_a_hunk() {
    let old = numbers(1..=30);
    let near = old.replace("\n10\n", "\nten\n").replace("\n17\n", "\nseventeen\n");
    assert_eq!(Diff::between(old.as_bytes(), near.as_bytes()).hunks.len(), 1);
    let far = old.replace("\n10\n", "\nten\n").replace("\n18\n", "\neighteen\n");
    assert_eq!(Diff::between(old.as_bytes(), far.as_bytes()).hunks.len(), 2);
}

#[test]
fn a_missing_final_newline_is_marked() {
    let marker = "\\ No newline at end of file\n";
    check("a\nb", "a\nB", &format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n{marker}+B\n{marker}"));
    check("a", "a\n", &format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n{marker}+a\n"));
    let diff = Diff::between(b"a", b"a\n");
    assert_eq!(diff.final_newline, Some(FinalNewline::Added));
    assert_eq!(diff.remarks(), ["newline at the end of the file added"]);
}

#[test]
fn changed_line_endings_are_remarked() {
    let diff = Diff::between(b"a\r\nb\r\n", b"a\nb\n");
    assert_eq!(diff.remarks(), ["line endings changed: crlf to lf"]);
    assert_eq!(diff.line_counts(), (2, 2));
    check("a\r\n", "b\r\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+b\r\n");
}

#[test]
fn new_and_deleted_files_have_no_other_name() {
    let created = Diff::between(b"", b"a\n").unified(None, Some("my file"), usize::MAX);
    assert_eq!(created, "--- /dev/null\n+++ b/my file\t\n@@ -0,0 +1 @@\n+a\n");
    let deleted = Diff::between(b"a\n", b"").unified(Some("f"), None, usize::MAX);
    assert_eq!(deleted, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
}

#[test]
fn a_long_diff_is_cut_at_a_hunk_and_says_so() {
    let old = numbers(1..=1000);
    let new = old.lines().map(|n| if n.ends_with("50") { "x\n".to_owned() } else { format!("{n}\n") });
    let diff = Diff::between(old.as_bytes(), new.collect::<String>().as_bytes());
    let unified = diff.unified(Some("f"), Some("f"), 200);
    assert!(unified.ends_with("... diff cut at 200 bytes: 56 of 80 lines left out\n"), "{unified}");
    assert_eq!(unified.matches("@@ -").count(), 3);
}

#[test]
fn one_hunk_that_is_too_long_is_cut_at_a_line() {
    let unified = Diff::between(b"", numbers(1..=1000).as_bytes()).unified(None, Some("f"), 100);
    assert!(unified.len() < 200, "{unified}");
    assert!(unified.ends_with(" of 1000 lines left out\n"), "{unified}");
}

#[test]
fn bytes_that_are_not_text_are_shown_lossy() {
    let diff = Diff::between(b"caf\xe9\n", b"tea\n");
    assert_eq!(diff.hunks[0].lines[0].text, "caf\u{fffd}");
}

#[test]
fn what_is_cut_is_counted_in_lines_of_the_diff() {
    let (old, new) = ("a".repeat(500), "b".repeat(500) + "\n");
    let unified = Diff::between(old.as_bytes(), new.as_bytes()).unified(Some("f"), Some("f"), 100);
    assert!(unified.ends_with("+++ b/f\n... diff cut at 100 bytes: 2 of 2 lines left out\n"), "{unified}");
}
