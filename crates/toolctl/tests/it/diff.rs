//! `diff`: what it reads, what it writes, how it exits. The rules are the engine's and tested there.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Bench, Ran, awkward_argument, has_ended, until, watches_for_interrupts};

/// What the filesystem provider declares, in a file.
fn written(bench: &Bench, name: &str, change: impl FnOnce(&mut Value)) {
    let mut document = bench.run(&["schema", "filesystem"]).json();
    change(&mut document);
    std::fs::write(bench.path().join(name), document.to_string()).unwrap();
}

/// Takes the first tool away, or adds a sentence to its description.
fn without_first_tool(document: &mut Value) {
    document["tools"].as_array_mut().unwrap().remove(0);
}

fn with_another_text(document: &mut Value) {
    document["tools"][0]["description"] = json!("Something else.");
}

fn head(ran: &Ran) -> (&str, i32) {
    (ran.stderr.as_str(), ran.code)
}

#[test]
fn a_provider_and_what_was_printed_of_it_are_the_same() {
    let bench = Bench::new(&[]);
    written(&bench, "old.json", |_| {});
    let ran = bench.run(&["diff", "old.json", "filesystem"]);
    assert_eq!(head(&ran), ("", 0));
    assert!(ran.stdout.ends_with("no changes\n"), "{}", ran.stdout);
    assert_eq!(bench.run(&["diff", "old.json", "filesystem", "--exact"]).code, 0);
}

#[test]
fn what_breaks_is_named_with_its_rule_and_exits_1() {
    let bench = Bench::new(&[]);
    written(&bench, "new.json", without_first_tool);
    let ran = bench.run(&["diff", "filesystem", "new.json"]);
    assert_eq!(head(&ran), ("", 1));
    let lines: Vec<_> = ran.stdout.lines().skip(1).collect();
    assert_eq!(
        lines,
        ["breaking    read_file: the tool is gone  (tool_removed)", "1 breaking, 0 compatible"]
    );
}

#[test]
fn compatible_changes_exit_0_unless_they_are_wanted_to_count() {
    let bench = Bench::new(&[]);
    written(&bench, "old", with_another_text);
    let ran = bench.run(&["diff", "old", "filesystem"]);
    assert_eq!(head(&ran), ("", 0));
    assert!(ran.stdout.contains("compatible  read_file: its description changed"), "{}", ran.stdout);
    assert_eq!(bench.run(&["diff", "old", "filesystem", "--exact"]).code, 1);
    let breaking = bench.run(&["diff", "old", "filesystem", "--breaking"]);
    assert!(breaking.stdout.ends_with("no changes that break\n"), "{}", breaking.stdout);
}

#[test]
fn json_has_every_change_with_rule_and_effect() {
    let bench = Bench::new(&[]);
    written(&bench, "new.json", without_first_tool);
    let document = bench.run(&["diff", "filesystem", "new.json", "--json"]).json();
    assert_eq!((&document["breaking"], &document["compatible"]), (&json!(1), &json!(0)));
    assert_eq!(document["old"]["name"], "filesystem");
    let expected = json!([{
        "effect": "breaking", "rule": "tool_removed", "subject": "read_file", "place": "", "message": "the tool is gone",
    }]);
    assert_eq!(document["changes"], expected);
}

#[test]
fn two_providers_in_any_language_are_compared() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["diff", "filesystem", &awkward_argument()]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("breaking    provider: its name was filesystem"), "{}", ran.stdout);
}

#[test]
fn stdin_is_read_as_a_document() {
    let bench = Bench::new(&[]);
    let document = bench.run(&["schema", "filesystem"]).stdout;
    let ran = bench.run_with_input(&["diff", "-", "filesystem"], &document);
    assert_eq!(head(&ran), ("", 0), "{}", ran.stdout);
}

#[test]
fn an_interrupt_does_not_wait_for_a_slow_pipe() {
    let bench = Bench::new(&[]);
    let child = bench.command(&["diff", "-", "filesystem"]).stdin(Stdio::piped()).spawn().unwrap();
    until("the program watches for SIGINT", || watches_for_interrupts(child.id()));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    // The pipe is open until here.
    until("the program ends", || has_ended(child.id()));
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn what_is_neither_document_nor_provider_is_refused() {
    let bench = Bench::new(&[("broken.json", "{}"), ("later", "{\"format_version\": \"2.0\"")]);
    let check = |old: &str, reason: &str| {
        let ran = bench.run(&["diff", old, "filesystem"]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    };
    check(
        "broken.json",
        "broken.json: this is not what `toolctl schema` prints: missing field `format_version`",
    );
    check("later", "not what `toolctl schema` prints");
    check("missing.json", "missing.json cannot be read: No such file");
    check("filesytem", "did you mean filesystem?");
}
