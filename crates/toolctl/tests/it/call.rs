//! `call` and `preview`: arguments in, events and exit codes out.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Bench, Ran, awkward_argument};

const TEXT: &[(&str, &str)] = &[("a.txt", "one\r\nteh two\nthree")];
const EDIT: [&str; 6] = ["call", "filesystem", "edit_file", "path=a.txt", "old_str=teh", "new_str=the"];

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

/// Runs a call of the awkward provider; its complaints about the declaration are left out of stderr.
fn awkward(bench: &Bench, arguments: &[&str]) -> Ran {
    let provider = awkward_argument();
    let mut all = vec!["call", &provider];
    all.extend(arguments);
    let mut ran = bench.run(&all);
    ran.stderr = ran
        .stderr
        .lines()
        .filter(|line| !line.contains("no kind") && !line.contains("declared twice"))
        .map(|line| format!("{line}\n"))
        .collect();
    ran
}

#[track_caller]
fn check(ran: &Ran, stdout: &str, stderr: &str, code: i32) {
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), (stdout, stderr, code));
}

#[test]
fn a_data_source_runs_and_shows_its_result() {
    let bench = Bench::new(TEXT);
    let read = ["call", "filesystem", "read_file", "path=a.txt"];
    check(&bench.run(&read), "one\nteh two\nthree\n", "", 0);
    let ran = bench.run(&with(&read, &["offset=2", "limit=1", "--json"]));
    let [line] = &ran.json_lines()[..] else { panic!("{ran:?}") };
    assert_eq!((&line["event"], &line["payload"]["content"]), (&json!("result"), &json!("teh two\n")));
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
}

#[test]
fn a_resource_without_a_terminal_needs_yes() {
    let bench = Bench::new(TEXT);
    let error = "error: edit_file (risk moderate) needs approval, and there is nobody to ask: pass --yes to approve \
                 it beforehand; nothing was done\n";
    check(&bench.run(&EDIT), "", error, 4);
    let ran = bench.run(&with(&EDIT, &["--json"]));
    let line = ran.json();
    assert_eq!((&line["event"], &line["category"]), (&json!("error"), &json!("permission_denied")));
    assert_eq!((&line["details"]["code"], ran.code), (&json!("no_human"), 4));
    assert_eq!(bench.read("a.txt"), TEXT[0].1);
}

#[test]
fn an_approved_edit_changes_these_bytes_only() {
    let bench = Bench::new(TEXT);
    let ran = bench.run(&with(&EDIT, &["--yes"]));
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
    assert!(ran.stdout.contains("-teh two\n+the two\n"), "{}", ran.stdout);
    assert_eq!(bench.read("a.txt"), "one\r\nthe two\nthree");
}

#[test]
fn a_preview_changes_nothing_and_is_the_diff() {
    let bench = Bench::new(&[("a.txt", "one\nteh\n")]);
    let edit = ["preview", "filesystem", "edit_file", "path=a.txt", "old_str=teh", "new_str=the"];
    let painted = "edit $DIR/a.txt\n@@ -1,2 +1,2 @@\n one\n-teh\n+the\n";
    check(&bench.run(&edit), painted, "", 0);
    let ran = bench.run(&with(&edit, &["--json"]));
    let shown = ran.json();
    assert_eq!(shown["text"], json!(painted));
    let diff = &shown["preview"]["root"]["group"]["children"][1]["diff"];
    assert_eq!(diff["hunks"][0]["lines"][1], json!({"op": "DIFF_LINE_OP_REMOVE", "text": "teh"}));
    assert_eq!(bench.read("a.txt"), "one\nteh\n");
}

#[test]
fn a_tool_without_preview_shows_its_arguments() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let ran = bench.run(&["preview", &provider, "fine", "path=x"]);
    let painted = "fine has no preview; its arguments are\n{\n  \"path\": \"x\"\n}\n";
    assert_eq!((ran.stdout.as_str(), ran.code), (painted, 0));
}

#[test]
fn a_result_without_a_picture_is_pretty_json_and_a_picture_is_harmless() {
    let bench = Bench::new(&[]);
    check(&awkward(&bench, &["fine"]), "{\n  \"text\": \"fine\"\n}\n", "", 0);
    check(&awkward(&bench, &["picture"]), "a picture\\x1b[2J\n", "", 0);
}

#[test]
fn events_are_lines_of_json() {
    let bench = Bench::new(&[]);
    let expected = [
        r#"{"event":"progress","message":"half","fraction_complete":0.5}"#,
        r#"{"event":"output_chunk","stream":"stdout","data":"pri"}"#,
        r#"{"event":"output_chunk","stream":"stdout","data":"€\n"}"#,
        r#"{"event":"output_chunk","stream":"stderr","data_base64":"/w=="}"#,
        r#"{"event":"exit_status","exit_code":143,"signal":"SIGTERM"}"#,
        r#"{"event":"result","payload":{"text":"done"}}"#,
        "",
    ];
    check(&awkward(&bench, &["events", "--json"]), &expected.join("\n"), "", 0);
}

#[test]
fn the_terminal_event_decides_the_exit_code() {
    let bench = Bench::new(&[]);
    check(&awkward(&bench, &["fail"]), "", "error: there is no such thing\n", 1);
    check(&awkward(&bench, &["crash"]), "", "error: the process of awkward exited with code 3\n", 3);
    check(
        &awkward(&bench, &["hang", "--timeout", "200ms", "--json"]),
        "{\"event\":\"error\",\"category\":\"timeout\",\"message\":\"hang did not finish within 200ms\",\"retryable\":true}\n",
        "",
        124,
    );
    assert_eq!(awkward(&bench, &["ask", "question=?"]).code, 4);
    assert_eq!(awkward(&bench, &["no_terminal", "--json"]).code, 1);
    let ran = bench.run(&["call", "filesystem", "read_file", "path=../x", "--json"]);
    assert_eq!((&ran.json()["details"]["code"], ran.code), (&json!("outside_root"), 1));
}

#[test]
fn answers_can_be_prepared() {
    let bench = Bench::new(&[("answers.json", r#"[{"answer":"blue"}]"#), ("bad.json", "\"blue\"")]);
    let ran = awkward(&bench, &["ask", "question=?", "--answers", "answers.json", "--json"]);
    check(&ran, "{\"event\":\"result\",\"payload\":{\"answer\":\"blue\"}}\n", "", 0);
    assert_eq!(awkward(&bench, &["ask", "question=?", "--answers", "bad.json"]).code, 2);
    assert_eq!(awkward(&bench, &["ask", "question=?", "--answers", "none.json"]).code, 2);
}

#[test]
fn arguments_come_as_json_as_files_and_as_text() {
    let bench =
        Bench::new(&[("args.json", r#"{"path":"b.txt","content":"from a file"}"#), ("text", "a=b\n")]);
    let write = |more: &[&str], input: &str| {
        let arguments = with(&["call", "filesystem", "write_file", "--yes"], more);
        let ran = bench.run_with_input(&arguments, input);
        assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
        bench.read("b.txt")
    };
    assert_eq!(write(&["--args", "@args.json"], ""), "from a file");
    assert_eq!(write(&["--args", "-"], r#"{"path":"b.txt","content":"from stdin"}"#), "from stdin");
    assert_eq!(write(&["--args", "@args.json", "content=over it"], ""), "over it");
    assert_eq!(write(&["path=b.txt", "content@=text"], ""), "a=b\n");
    assert_eq!(write(&["path=b.txt", "content:=\"json\\n\""], ""), "json\n");
}

#[test]
fn a_wrong_command_line_is_two() {
    let bench = Bench::new(TEXT);
    let usage = |arguments: &[&str], stderr: &str| check(&bench.run(arguments), "", stderr, 2);
    usage(
        &["call", "filesystem", "read_file", "path"],
        "error: \"path\" is not an assignment: write key=value, or key:=JSON\n",
    );
    usage(
        &["call", "filesystem", "read_file", "path=a.txt", "limit=few"],
        "error: limit: wanted a number, got \"few\"\n",
    );
    usage(
        &["call", "filesystem", "read_fiel"],
        "error: filesystem has no tool read_fiel; did you mean read_file?\n",
    );
    let ran = bench.run(&["call", "filesytem", "read_file"]);
    let error = "error: there is no provider filesytem in the catalog; did you mean filesystem?\n\nhint: the catalog has \
                 filesystem, ";
    assert!(ran.stderr.starts_with(error), "{ran:?}");
    assert!(ran.stderr.ends_with("; a program is given by its path, ./filesytem\n"), "{ran:?}");
    assert_eq!((ran.stdout.as_str(), ran.code), ("", 2));
    usage(
        &["call", "filesystem", "read_file", "--config", "raed_only=true"],
        "error: there is no configuration attribute raed_only; did you mean read_only?\n",
    );
    usage(&["call", "filesystem", "read_file", "--args", "[1]"], "error: --args: wanted a JSON object\n");
    let ran = bench.run(&["call", "filesystem", "--json"]);
    assert_eq!((&ran.json()["category"], ran.code), (&json!("invalid_arguments"), 2));
}

#[test]
fn a_provider_that_does_not_start_is_three() {
    let bench = Bench::new(&[]);
    let ran = bench.run(&["call", "/bin/true", "x", "--json"]);
    assert_eq!((&ran.json()["event"], ran.code), (&json!("error"), 3));
    assert_eq!(awkward(&bench, &["fine", "--config", "refuse=true"]).code, 3);
    let missing = bench.run(&["call", "./nothing", "x"]);
    assert!(missing.stderr.starts_with("error: ./nothing cannot be started"), "{missing:?}");
    assert_eq!(missing.code, 3);
}

#[test]
fn configuration_reaches_the_provider() {
    let bench = Bench::new(TEXT);
    let edit = with(&EDIT, &["--yes", "--json"]);
    let refused = |more: &[&str]| {
        let ran = bench.run(&with(&edit, more));
        assert_eq!((&ran.json()["category"], ran.code), (&json!("permission_denied"), 1), "{ran:?}");
    };
    refused(&["--config", "read_only=true"]);
    refused(&["--config-json", r#"{"read_only":true}"#]);
    refused(&["--config", "deny=*.txt"]);
    assert_eq!(bench.read("a.txt"), TEXT[0].1);
}

#[test]
fn the_first_root_is_the_working_directory_unless_told_otherwise() {
    let bench = Bench::new(&[]);
    for name in ["one", "two"] {
        std::fs::create_dir(bench.path().join(name)).unwrap();
        std::fs::write(bench.path().join(name).join("f"), name).unwrap();
    }
    let read = ["call", "filesystem", "read_file", "path=f", "--root", "one", "--root", "two"];
    assert_eq!(bench.run(&read).stdout, "one\n");
    assert_eq!(bench.run(&with(&read, &["--cwd", "two"])).stdout, "two\n");
}

#[test]
fn an_interrupt_prints_what_was_done_and_then_the_error() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let arguments = ["call", &provider, "polite", "--json", "--env", "AWKWARD_CONTROL=1"];
    let mut child = bench.command(&arguments).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let expected = [
        r#"{"event":"output_chunk","stream":"stdout","data":"cleaned up\n"}"#,
        r#"{"event":"partial_result","payload":{"note":"half of it was done"}}"#,
        r#"{"event":"error","category":"cancelled","message":"the call was cancelled","retryable":false}"#,
        "",
    ];
    assert_eq!(rest, expected.join("\n"));
    assert_eq!(bench.finish(child).code, 130);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new(TEXT);
    for arguments in
        [&["list"][..], &["schema", "filesystem"], &["call", "filesystem", "read_file", "path=a.txt"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = bench.command(arguments).stdout(Stdio::from(writer)).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((stderr.as_str(), output.status.code()), ("", Some(0)), "{arguments:?}");
    }
}

#[test]
fn a_call_is_given_up_when_nobody_reads_its_events() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let mut command = bench.command(&["call", &provider, "polite", "--json"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // Without that it would wait until its time limit of 30 seconds.
    let output = command.stdout(Stdio::from(writer)).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn nothing_but_json_is_on_stdout() {
    let bench = Bench::new(&[]);
    for tool in ["two_terminals", "chunk_after_terminal", "null_field", "crash", "callbacks"] {
        let ran = awkward(&bench, &[tool, "--json"]);
        let last = ran.json_lines().pop().unwrap();
        assert!(matches!(last["event"].as_str(), Some("result" | "error")), "{ran:?}");
        let terminals = ran.json_lines().iter().filter(|line| is_terminal(line)).count();
        assert_eq!(terminals, 1, "{ran:?}");
    }
}

fn is_terminal(line: &Value) -> bool {
    matches!(line["event"].as_str(), Some("result" | "error"))
}

/// The file of rules that `--policy` names, in a folder with one text.
fn ruled(rules: &Value) -> Bench {
    let bench = Bench::new(TEXT);
    std::fs::write(bench.path().join("policy.json"), rules.to_string()).unwrap();
    bench
}

#[test]
fn yes_answers_what_a_policy_asks_and_never_what_it_denies() {
    let rules = |action| json!([{"name": "no edits", "match": {"tool_name": "edit_file"}, "action": action}]);
    let policy = ["--policy", "policy.json"];
    let bench = ruled(&rules("deny"));
    let denied = "error: filesystem.edit_file is denied by the policy \"no edits\"; nothing was done\n";
    check(&bench.run(&with(&with(&EDIT, &["--yes"]), &policy)), "", denied, 4);
    assert_eq!(bench.read("a.txt"), TEXT[0].1);

    let bench = ruled(&rules("ask"));
    assert_eq!(bench.run(&with(&EDIT, &policy)).code, 4);
    assert_eq!(bench.run(&with(&with(&EDIT, &["--yes"]), &policy)).code, 0);

    let bench = ruled(&rules("allow"));
    assert_eq!(bench.run(&with(&EDIT, &policy)).code, 0);
}

#[test]
fn a_policy_that_ties_is_wrong_usage() {
    let bench = ruled(&json!([
        {"name": "a", "match": {"risk": "high"}, "action": "deny"},
        {"name": "b", "match": {"risk": "high"}, "action": "allow"},
    ]));
    let ran = bench.run(&["call", "filesystem", "read_file", "path=a.txt", "--policy", "policy.json"]);
    let error = "error: --policy: policy.json: \"a\" and \"b\" match the same calls and neither is more specific: remove \
                 one, or add a field to one\n";
    check(&ran, "", error, 2);
}
