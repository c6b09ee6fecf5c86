//! `session`: many calls over one pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Bench, awkward_argument};

/// A session that runs.
struct Session {
    child: std::process::Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut all = vec!["session"];
        all.extend(arguments);
        let mut child = bench.command(&all).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn send(&mut self, request: Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{request}").unwrap();
    }

    /// The next event; null at the end.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_default()
    }

    /// Ends the input; the events that still came, and the exit code.
    fn end(mut self) -> (Vec<Value>, Option<i32>) {
        self.stdin = None;
        let rest = std::iter::from_fn(|| Some(self.next()).filter(|event| !event.is_null())).collect();
        (rest, self.child.wait().unwrap().code())
    }
}

#[test]
fn calls_previews_and_bad_lines_are_answered_under_their_ids() {
    let bench = Bench::new(&[("a.txt", "teh\n")]);
    let mut session = Session::start(&bench, &["filesystem", "--yes"]);
    let edit = json!({"path": "a.txt", "old_str": "teh", "new_str": "the"});
    session.send(
        json!({"id": "p", "provider": "filesystem", "tool": "edit_file", "args": edit, "preview": true}),
    );
    let preview = session.next();
    assert_eq!((&preview["id"], &preview["event"]), (&json!("p"), &json!("preview")));
    assert!(
        preview["text"].as_str().unwrap().contains("-teh\n+the\n") && preview["preview"]["root"].is_object()
    );
    assert_eq!(bench.read("a.txt"), "teh\n");

    session.send(json!({"id": 2, "provider": "filesystem", "tool": "edit_file", "args": edit}));
    let result = session.next();
    assert_eq!((&result["id"], &result["event"]), (&json!(2), &json!("result")), "{result}");
    assert_eq!(bench.read("a.txt"), "the\n");

    session.send(json!({"id": "3", "provider": "nothing", "tool": "x"}));
    assert_eq!(session.next()["category"], "not_found");
    session.send(json!({"id": "4", "provider": "filesystem", "tool": "nothing"}));
    assert_eq!(session.next()["category"], "not_found");
    session.send(json!({"id": "5", "tool": "read_file", "args": {"path": "a.txt"}}));
    assert_eq!(session.next()["payload"]["content"], "the\n", "one provider needs no naming");
    session.send(json!("no request"));
    let bad = session.next();
    assert_eq!(
        (&bad["event"], &bad["category"], bad.get("id")),
        (&json!("error"), &json!("invalid_arguments"), None)
    );
    session.send(json!({"id": "6", "tool": "read_file", "agrs": {}}));
    let bad = session.next();
    assert_eq!((&bad["id"], &bad["category"]), (&json!("6"), &json!("invalid_arguments")));
    assert_eq!(session.end(), (Vec::new(), Some(0)));
}

#[test]
fn the_end_of_input_waits_for_what_runs() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let mut session = Session::start(&bench, &[&provider]);
    for id in ["1", "2"] {
        session
            .send(json!({"id": id, "provider": "awkward", "tool": "enter_shared", "args": {"wait_for": 2}}));
    }
    let (events, code) = session.end();
    let texts: Vec<_> = events.iter().map(|event| event["payload"]["text"].as_str().unwrap()).collect();
    assert_eq!((texts, code), (vec!["2", "2"], Some(0)), "they ran together");
}

#[test]
fn a_running_call_can_be_cancelled_and_its_id_used_again() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let mut session = Session::start(&bench, &[&provider, "--env", "AWKWARD_CONTROL=1"]);
    session.send(json!({"id": "1", "tool": "polite"}));
    assert_eq!(session.next(), json!({"id": "1", "event": "progress", "message": "waiting"}));
    session.send(json!({"id": "1", "tool": "fine"}));
    let refused = session.next();
    assert_eq!(
        (refused.get("id"), &refused["details"]["id"]),
        (None, &json!("1")),
        "the running call keeps its id"
    );
    session.send(json!({"cancel": "1"}));
    assert_eq!(session.next()["event"], "output_chunk");
    assert_eq!(
        session.next(),
        json!({"id": "1", "event": "partial_result", "payload": {"note": "half of it was done"}})
    );
    assert_eq!(session.next()["category"], "cancelled");
    session.send(json!({"cancel": "gone"}));
    assert_eq!(session.end(), (Vec::new(), Some(0)), "cancelling what does not run is no error");
}

#[test]
fn a_resource_needs_yes_and_a_question_needs_answers() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let mut session = Session::start(&bench, &[&provider, "filesystem"]);
    session.send(json!({"id": "1", "provider": "awkward", "tool": "change"}));
    assert_eq!(session.next()["details"]["code"], "no_human");
    session.send(json!({"id": "2", "provider": "awkward", "tool": "ask", "args": {"question": "?"}}));
    assert_eq!(session.next()["details"]["code"], "no_human");
    session.send(json!({"id": "3", "tool": "fine"}));
    assert_eq!(session.next()["category"], "invalid_arguments", "two providers: which one must be said");
    assert_eq!(session.end(), (Vec::new(), Some(0)));
}

#[test]
fn requests_may_have_a_directory_of_their_own() {
    let bench = Bench::new(&[("f", "outer\n")]);
    std::fs::create_dir(bench.path().join("sub")).unwrap();
    std::fs::write(bench.path().join("sub/f"), "inner\n").unwrap();
    let mut session = Session::start(&bench, &["filesystem"]);
    let mut read = |request: Value| {
        session.send(request);
        session.next()["payload"]["content"].clone()
    };
    assert_eq!(read(json!({"id": "1", "tool": "read_file", "args": {"path": "f"}})), "outer\n");
    assert_eq!(read(json!({"id": "1", "tool": "read_file", "args": {"path": "f"}, "cwd": "sub"})), "inner\n");
}

#[test]
fn an_interrupt_cancels_what_runs() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let mut session = Session::start(&bench, &[&provider, "--env", "AWKWARD_CONTROL=1"]);
    session.send(json!({"id": "1", "tool": "polite"}));
    assert_eq!(session.next()["event"], "progress");
    kill_process(Pid::from_child(&session.child), Signal::INT).unwrap();
    let events: Vec<_> =
        std::iter::from_fn(|| Some(session.next()).filter(|event| !event.is_null())).collect();
    let last = events.last().unwrap();
    assert_eq!((&last["id"], &last["category"]), (&json!("1"), &json!("cancelled")), "{events:?}");
    assert_eq!(session.child.wait().unwrap().code(), Some(130), "although the input is still open");
}

#[test]
fn a_call_does_what_its_preview_showed_or_nothing() {
    let bench = Bench::new(&[("a.txt", "old\n")]);
    let mut session = Session::start(&bench, &["filesystem", "--yes"]);
    let write = |content: &str, preview: bool| {
        let args = json!({"path": "a.txt", "content": content});
        json!({"id": "w", "tool": "write_file", "args": args, "preview": preview})
    };
    let mut answer = |request: Value| {
        session.send(request);
        session.next()
    };
    assert_eq!(answer(write("new\n", true))["event"], "preview");
    std::fs::write(bench.path().join("a.txt"), "somebody else's\n").unwrap();
    let refused = answer(write("new\n", false));
    assert_eq!(refused["details"]["code"], "stale", "{refused}");
    assert_eq!(bench.read("a.txt"), "somebody else's\n");

    assert_eq!(answer(write("new\n", true))["event"], "preview");
    let refused = answer(write("something else\n", false));
    assert_eq!(refused["details"]["code"], "stale", "{refused}");

    assert_eq!(answer(write("new\n", true))["event"], "preview");
    assert_eq!(answer(write("new\n", false))["event"], "result");
    assert_eq!(bench.read("a.txt"), "new\n");
}
