use proptest::prelude::*;

use super::*;
use crate::engine::diff::Diff;
use crate::engine::text::Text;

/// What the only file of a patch becomes, with what became of its hunks.
#[track_caller]
fn applied(file: &[u8], patch: &str) -> Applied {
    let patch = parse(patch).unwrap();
    assert_eq!(patch.files.len(), 1, "{patch:?}");
    apply(&Text::parse(file).unwrap(), &patch.files[0].hunks).unwrap()
}

#[track_caller]
fn check(file: &str, patch: &str, expected: &str) {
    let applied = applied(file.as_bytes(), patch);
    let statuses: Vec<_> = applied.reports.iter().map(|report| report.status).collect();
    assert!(statuses.iter().all(|status| *status == Status::Applied), "{:?}", applied.reports);
    assert_eq!(String::from_utf8(applied.bytes).unwrap(), expected);
}

/// The statuses and places of the hunks, where the file stays as it is.
#[track_caller]
fn check_not(file: &str, patch: &str, status: Status, places: &[(usize, usize)], said: &[&str]) {
    let applied = applied(file.as_bytes(), patch);
    assert_eq!(String::from_utf8(applied.bytes).unwrap(), file);
    let report = &applied.reports[0];
    let found: Vec<_> = report.places.iter().map(|place| (place.start_line, place.end_line)).collect();
    assert_eq!((report.status, found.as_slice()), (status, places), "{report:?}");
    let text = report.explained.as_ref().map_or("", |explained| explained.0.as_str());
    for part in said {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

fn update(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n")
}

fn unified(body: &str) -> String {
    format!("--- a/f\n+++ b/f\n{body}")
}

const TWICE: &str = "fn first() {\n    a();\n    b();\n}\n\nfn second() {\n    a();\n    b();\n}\n";

#[test]
fn a_hunk_goes_where_its_old_lines_stand() {
    check("a\nb\nc\n", &update("@@\n a\n-b\n+B\n c\n"), "a\nB\nc\n");
    check("a\nb\nc\n", &update(" a\n-b\n+B\n"), "a\nB\nc\n");
    check("a\nb\nc\n", &unified("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n");
    check("a\nb\nc\nd\ne\n", &update("@@\n-a\n@@\n-c\n@@\n e\n+f\n"), "b\nd\ne\nf\n");
    check("a\n\nb\n", &update("@@\n a\n\n-b\n+c\n"), "a\n\nc\n");
}

#[test]
fn line_numbers_are_hints_only() {
    check("x\ny\na\nb\n", &unified("@@ -900,2 +900,2 @@\n a\n-b\n+B\n"), "x\ny\na\nB\n");
    check("a\nb\na\nb\n", &unified("@@ -3,2 +3,2 @@\n a\n-b\n+B\n"), "a\nb\na\nB\n");
    check(
        "new\nz\na\nb\na\nb\n",
        &unified("@@ -1,1 +1,1 @@\n-z\n+Z\n@@ -4,2 +4,2 @@\n a\n-b\n+B\n"),
        "new\nZ\na\nb\na\nB\n",
    );
    check_not(
        "a\nb\na\nb\n",
        &unified("@@ -2,2 +2,2 @@\n a\n-b\n+B\n"),
        Status::Ambiguous,
        &[(1, 2), (3, 4)],
        &["2 places", "line 1:", "line 3:"],
    );
}

#[test]
fn ambiguous_lines_are_told_apart_by_what_stands_above() {
    let body = "     a();\n-    b();\n+    c();\n";
    check_not(TWICE, &update(&format!("@@\n{body}")), Status::Ambiguous, &[(2, 3), (7, 8)], &["2 places"]);
    let second = TWICE.replace("second() {\n    a();\n    b();", "second() {\n    a();\n    c();");
    check(TWICE, &update(&format!("@@ fn second\n{body}")), &second);
    let first = TWICE.replacen("b();", "c();", 1);
    check(TWICE, &update(&format!("@@ fn first() {{\n{body}")), &first);
    let nested = "class A\n  def f\n    x\nclass B\n  def f\n    x\n";
    check(
        nested,
        &update("@@ class B\n@@   def f\n-    x\n+    y\n"),
        "class A\n  def f\n    x\nclass B\n  def f\n    y\n",
    );
}

#[test]
fn a_place_outside_the_block_that_is_named_is_not_taken_for_it() {
    let changed = TWICE.replacen("b();", "other();", 1);
    let body = "     a();\n-    b();\n+    c();\n";
    // Only `second` still has the lines: there is no doubt about the place.
    check(&changed, &update(&format!("@@ fn first\n{body}")), &changed.replace("b();", "c();"));
    let thrice = format!("{changed}\nfn third() {{\n    a();\n    b();\n}}\n");
    check_not(&thrice, &update(&format!("@@ fn first\n{body}")), Status::Ambiguous, &[(7, 8), (12, 13)], &[]);
}

#[test]
fn an_insertion_needs_a_place() {
    check("a\nb\n", &update("@@ a\n+x\n"), "a\nx\nb\n");
    check("a\nb\n", &update("@@\n+x\n*** End of File\n"), "a\nb\nx\n");
    check("a", &update("@@\n+x\n*** End of File\n"), "a\nx");
    check("", &update("@@\n+x\n"), "x\n");
    check_not("a\nb\n", &update("@@ none\n+x\n"), Status::NotFound, &[], &["`none`", "@@"]);
    check_not("a\nb\n", &update("@@\n+x\n"), Status::NotFound, &[], &["only lines that come"]);
    check_not("a\nb\n", &unified("@@ -1,0 +2 @@\n+x\n"), Status::NotFound, &[], &["only lines that come"]);
    check_not("a\nb\na\n", &update("@@ a\n+x\n"), Status::Ambiguous, &[(1, 1), (3, 3)], &[]);
}

#[test]
fn line_endings_and_the_missing_last_newline_stay() {
    check("a\r\nb\r\nc\r\n", &update("@@\n a\n-b\n+B\n+D\n c\n"), "a\r\nB\r\nD\r\nc\r\n");
    check("a\nb", &update("@@\n-a\n+A\n"), "A\nb");
    check("a\nb", &update("@@\n a\n-b\n+B\n"), "a\nB");
    check("a\nb", &update("@@\n b\n+c\n"), "a\nb\nc");
    check("a\r\nb", &update("@@\n b\n+c\n"), "a\r\nb\r\nc");
    check("a\nb", &unified("@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n"), "a\nc\n");
    check("a\nb\n", &unified("@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n"), "a\nc");
    check("a\nb\n", &unified("@@ -1,2 +1 @@\n a\n-b\n"), "a\n");
    check("a\r\nb\n", &unified("@@ -1,2 +1,2 @@\n-a\r\n+A\r\n-b\n+B\n"), "A\r\nB\n");
    check("a\r\nb\r\n", &unified("@@ -1,2 +1,2 @@\r\n-a\r\n+A\r\n b\r\n"), "A\r\nb\r\n");
}

#[test]
fn what_is_there_already_is_said_and_not_done_twice() {
    let replaced = update("@@\n a\n-b\n+B\n c\n");
    check_not("a\nB\nc\n", &replaced, Status::AlreadyApplied, &[(1, 3)], &[]);
    let appended = update("@@\n b\n+c\n");
    check_not("a\nb\nc\n", &appended, Status::AlreadyApplied, &[(2, 3)], &[]);
    let inserted = update("@@ a\n+x\n");
    check_not("a\nx\nb\n", &inserted, Status::AlreadyApplied, &[(2, 2)], &[]);
    let tail = update("@@\n+x\n*** End of File\n");
    check_not("a\nx\n", &tail, Status::AlreadyApplied, &[(2, 2)], &[]);
}

#[test]
fn what_is_not_there_is_explained_with_what_is() {
    check_not(
        "\tif x {\n\t\treturn 1\n\t}\n",
        &update("@@\n     if x {\n-        return 1\n+        return 2\n"),
        Status::NotFound,
        &[],
        &["tab"],
    );
    check_not(
        "a\nb\nc\n",
        &update("@@\n-a\n+A\n*** End of File\n"),
        Status::NotFound,
        &[],
        &["not at the end"],
    );
    let applied = applied(b"a\nb\nc\n", &update("@@\n-c\n+C\n@@\n-a\n+A\n"));
    assert_eq!(applied.reports[1].status, Status::NotFound);
    assert!(applied.reports[1].explained.as_ref().unwrap().0.contains("in the order of the file"));
    assert_eq!(applied.bytes, b"a\nb\nC\n");
}

#[test]
fn replacement_signs_and_escapes_are_text() {
    check("X\n", &update("@@\n-X\n+$& $1 \\1 ${0} %s \\n\n"), "$& $1 \\1 ${0} %s \\n\n");
}

#[test]
fn only_what_changes_is_stored_anew_in_the_files_encoding() {
    let file = b"caf\xe9\r\nplain\r\n\x80 5\r\n";
    let applied = applied(file, &update("@@\n-plain\n+plain ü\n"));
    assert_eq!(applied.bytes, b"caf\xe9\r\nplain \xfc\r\n\x80 5\r\n");
}

#[test]
fn git_headers_say_what_becomes_of_a_file() {
    let files = |text: &str| parse(text).unwrap().files;
    let new = files(
        "diff --git a/x b/x\nnew file mode 100755\nindex 0000000..e69de29\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n",
    );
    assert_eq!((&new[0].operation, new[0].executable), (&Operation::Add, Some(true)));
    assert_eq!(added(&new[0].hunks), "a\n");
    let gone =
        files("diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
    assert_eq!((gone[0].path.as_str(), &gone[0].operation), ("x", &Operation::Delete));
    let moved =
        files("diff --git a/old b/new name\nsimilarity index 90%\nrename from old\nrename to new name\n");
    assert_eq!(moved[0].operation, Operation::Move("new name".to_owned()));
    let mode = files("diff --git a/my x b/my x\nold mode 100644\nnew mode 100755\n");
    assert_eq!((mode[0].path.as_str(), mode[0].executable), ("my x", Some(true)));
    let quoted = files("--- \"a/\\303\\244\\t\"\n+++ \"b/\\303\\244\\t\"\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(quoted[0].path, "ä\t");
    let times = files("--- f.orig\t2024-01-01 00:00:00\n+++ f\t2024-01-02 00:00:00\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!((times[0].path.as_str(), &times[0].operation), ("f", &Operation::Update));
    let mail = files(
        "From: someone\nSubject: [PATCH] x\n---\n f | 2 +-\n\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39\n",
    );
    assert_eq!(mail[0].hunks[0].lines.len(), 2);
}

#[test]
fn lines_that_look_like_headers_are_lines_as_long_as_they_are_counted() {
    let patch =
        parse("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n z\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n");
    let files = patch.unwrap().files;
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].hunks[0].lines[0].text, "-- x");
}

#[test]
fn wrong_counts_are_corrected_and_said() {
    let patch = parse(&unified("@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n")).unwrap();
    assert!(patch.notes[0].contains("counts 9 and 9 lines, but 3 and 3 follow"), "{:?}", patch.notes);
    check("a\nb\nc\n", &unified("@@ -1,1 +1,1 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n");
}

#[test]
fn an_envelope_has_all_four_operations() {
    let text = "```\n*** Begin Patch\n*** Add File: a/new\n+one\n+\n+two\n*** Delete File: gone\n*** Update File: old\n*** Move to: moved\n@@\n-x\n+y\n*** Update File: old2\n@@ -3,1 +3,1 @@\n-x\n+y\n*** End Patch\n```\n";
    let files = parse(text).unwrap().files;
    let operations: Vec<_> = files.iter().map(|file| file.operation.clone()).collect();
    let moved = Operation::Move("moved".to_owned());
    assert_eq!(operations, [Operation::Add, Operation::Delete, moved, Operation::Update]);
    assert_eq!(added(&files[0].hunks), "one\n\ntwo\n");
    assert_eq!(files[3].hunks[0].old_start, Some(3));
}

#[test]
fn two_updates_of_one_file_are_one() {
    let text =
        "*** Begin Patch\n*** Update File: f\n@@\n-a\n+A\n*** Update File: f\n@@\n-b\n+B\n*** End Patch";
    let files = parse(text).unwrap().files;
    assert_eq!((files.len(), files[0].hunks.len()), (1, 2));
}

#[test]
fn what_is_no_patch_says_what_one_is() {
    #[track_caller]
    fn check(text: &str, part: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    check("", "*** Begin Patch");
    check("just words", "*** Begin Patch");
    check("*** Begin Patch\n*** Update File: f\n@@\n-a\n", "cut off");
    check("*** Begin Patch\n*** End Patch\n", "no file");
    check("*** Update File: f\n@@\n-a\n", "*** Begin Patch");
    check("*** Begin Patch\n*** Update File: f\n*** End Patch", "no change follows");
    check("*** Begin Patch\n*** Update File: f\n@@\n a\n*** End Patch", "- or +");
    check("*** Begin Patch\n*** Update File: f\n@@\nwrong\n*** End Patch", "line 4");
    check("*** Begin Patch\n*** Add File: f\nwrong\n*** End Patch", "begins with +");
    check("*** Begin Patch\n*** Delete File: f\n-a\n*** End Patch", "nothing may follow");
    check("*** Begin Patch\n*** Add File:\n+a\n*** End Patch", "path is missing");
    check("@@ -1 +1 @@\n-a\n+b\n", "no file is named");
    check("--- a/f\n+++ b/f\n", "no change");
    check("--- a/f\n+++ b/f\n@@ nonsense\n-a\n", "@@ -line,count");
    check("diff --git a/f b/f\nGIT binary patch\n", "binary");
    check("diff --git a/f b/f\nnew file mode 120000\n", "regular files");
}

proptest! {
    #[test]
    fn the_diff_of_two_files_makes_one_of_the_other(
        old in prop::collection::vec("[ab]?(\r?)\n", 0..12),
        new in prop::collection::vec("[ab]?(\r?)\n", 0..12),
        bare in any::<(bool, bool)>(),
    ) {
        let file = |lines: &[String], bare: bool| {
            let text = lines.concat();
            if bare { text.trim_end_matches(['\r', '\n']).to_owned() } else { text }
        };
        let (old, new) = (file(&old, bare.0), file(&new, bare.1));
        let diff = Diff::between(old.as_bytes(), new.as_bytes()).unified(Some("f"), Some("f"), usize::MAX);
        if !diff.is_empty() && !old.is_empty() {
            let found = applied(old.as_bytes(), &diff);
            // Where all hunks apply, and are no change of endings alone, the new file is as the diff says.
            if found.reports.iter().all(|report| report.status == Status::Applied)
                && old.contains('\r') == old.contains("\r\n") && !old.contains('\r') && !new.contains('\r')
            {
                prop_assert_eq!(String::from_utf8(found.bytes).unwrap(), new);
            }
        }
    }

    #[test]
    fn no_text_is_too_strange_to_be_parsed(text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: a|Move to: b|End of File)|@@( -1,2 \\+1 @@)?|--- a/f|\\+\\+\\+ b/f|diff --git a/f b/f|[-+ \\\\]?[ab]?|\r?\n){0,30}") {
        if let Ok(patch) = parse(&text) {
            for file in patch.files {
                let _ = apply(&Text::of_str("a\nb\na\r\nb"), &file.hunks);
            }
        }
    }
}
