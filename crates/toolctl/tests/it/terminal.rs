//! With a person at a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::support::{Bench, awkward_argument};

/// The program with a terminal as its stdin and stderr; stdout is a pipe.
struct Terminal {
    child: Child,
    master: File,
    /// The end that the program has, and how it was set at the start.
    tty: File,
    settings: String,
    seen: mpsc::Receiver<Vec<u8>>,
    screen: String,
}

impl Terminal {
    fn start(bench: &Bench, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = bench.command(arguments);
        command.stdin(Stdio::from(open())).stderr(Stdio::from(open())).env("COLUMNS", "80");
        let child = command.envs(env.iter().copied()).spawn().unwrap();
        drop(command);
        let master = File::from(master);
        let tty = open();
        let settings = settings(&tty);
        Self {
            child,
            seen: read_on(master.try_clone().unwrap()),
            master,
            tty,
            settings,
            screen: String::new(),
        }
    }

    /// Waits until the screen shows this.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        while !self.screen.contains(text) {
            match self.seen.recv_timeout(Duration::from_secs(20)) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{error}: {text:?} is not in {:?}", self.screen),
            }
        }
    }

    fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Everything on the screen, stdout, and the exit code.
    fn end(mut self) -> (String, String, Option<i32>) {
        drop(self.tty);
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.seen.recv_timeout(Duration::from_millis(200)) {
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (self.screen.replace("\r\n", "\n"), stdout, code)
    }
}

/// How a terminal is set.
fn settings(tty: &File) -> String {
    let settings = rustix::termios::tcgetattr(tty).unwrap();
    format!("{:?} {:?} {:?}", settings.input_modes, settings.output_modes, settings.local_modes)
}

/// A terminal's other end reports an error, not an end, once nobody holds it.
fn read_on(mut master: File) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

const EDIT: [&str; 6] = ["call", "filesystem", "edit_file", "path=a.txt", "old_str=teh", "new_str=the"];
const PLAIN: &[(&str, &str)] = &[("NO_COLOR", "1")];

#[test]
fn an_edit_is_shown_asked_for_and_applied() {
    let bench = Bench::new(&[("a.txt", "one\nteh\n")]);
    let mut terminal = Terminal::start(&bench, &EDIT, PLAIN);
    terminal.expect("Do it? [y/s/N/d] ");
    assert_eq!(bench.read("a.txt"), "one\nteh\n");
    terminal.type_in("y\n");
    let (screen, stdout, code) = terminal.end();
    let expected = "filesystem.edit_file wants to change something (risk moderate)\nedit $DIR/a.txt\n@@ -1,2 +1,2 \
                    @@\n one\n-teh\n+the\nDo it? [y/s/N/d] y\n";
    assert_eq!(bench.named(screen.as_bytes()), expected);
    assert!(stdout.contains("-teh\n+the\n") && !stdout.contains('\x1b'), "{stdout:?}");
    assert_eq!((code, bench.read("a.txt").as_str()), (Some(0), "one\nthe\n"));
}

#[test]
fn anything_but_yes_denies() {
    for answer in ["\n", "n\n", "yess\n", "\x04"] {
        let bench = Bench::new(&[("a.txt", "teh\n")]);
        let mut terminal = Terminal::start(&bench, &EDIT, PLAIN);
        terminal.expect("Do it? [y/s/N/d] ");
        terminal.type_in(answer);
        let (screen, stdout, code) = terminal.end();
        assert_eq!((code, stdout.as_str(), bench.read("a.txt").as_str()), (Some(4), "", "teh\n"), "{screen}");
        assert!(screen.contains("nothing was done"), "{screen}");
    }
}

#[test]
fn an_interrupt_at_the_question_denies_it() {
    let bench = Bench::new(&[("a.txt", "teh\n")]);
    let mut terminal = Terminal::start(&bench, &EDIT, PLAIN);
    terminal.expect("Do it? [y/s/N/d] ");
    terminal.interrupt();
    let (screen, _, code) = terminal.end();
    assert_eq!((code, bench.read("a.txt").as_str()), (Some(130), "teh\n"), "{screen}");
}

#[test]
fn colour_marks_the_words_that_change() {
    let bench = Bench::new(&[("a.txt", "one teh three\n")]);
    let mut terminal = Terminal::start(&bench, &EDIT, &[("TERM", "xterm")]);
    terminal.expect("[y/s/N/d]");
    terminal.type_in("n\n");
    let (screen, _, _) = terminal.end();
    assert!(screen.contains("\x1b[31mone \x1b[0m\x1b[7;31mteh\x1b[0m\x1b[31m three\x1b[0m"), "{screen:?}");
    assert!(screen.contains("\x1b[2m1   │\x1b[0m"), "{screen:?}");
}

#[test]
fn a_long_preview_is_cut_until_asked_for() {
    let bench = Bench::new(&[]);
    let content: String = (1..=200).map(|line| format!("line {line}\n")).collect();
    let content = format!("content={content}");
    let mut terminal =
        Terminal::start(&bench, &["call", "filesystem", "write_file", "path=b", &content], PLAIN);
    terminal.expect("more lines; d shows all");
    terminal.expect("[y/s/N/d] ");
    assert!(!terminal.screen.contains("line 200"));
    terminal.type_in("d\n");
    terminal.expect("+line 200");
    terminal.type_in("n\n");
    assert_eq!(terminal.end().2, Some(4));
}

/// A question at a terminal, waited for until this is on the screen.
fn asked(bench: &Bench, arguments: &Value, shows: &str) -> Terminal {
    let arguments = ["call", "user", "ask_user", "--json", "--args", &arguments.to_string()];
    let mut terminal = Terminal::start(bench, &arguments, PLAIN);
    terminal.expect(shows);
    terminal
}

/// Types, and reads the payload that comes of it.
#[track_caller]
fn answered(mut terminal: Terminal, keys: &str) -> Value {
    terminal.type_in(keys);
    payload(terminal)
}

#[track_caller]
fn payload(terminal: Terminal) -> Value {
    let before = terminal.settings.clone();
    let tty = terminal.tty.try_clone().unwrap();
    let (screen, stdout, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(settings(&tty), before, "the terminal is as it was");
    let line: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(line["event"], "result");
    line["payload"].clone()
}

const DOWN: &str = "\x1b[B";
const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";

#[test]
fn a_choice_is_made_with_the_keys() {
    let bench = Bench::new(&[]);
    let colours =
        json!({"question": "Which?", "options": ["red", {"label": "blue", "description": "the sky"}]});
    let terminal = asked(&bench, &colours, "blue — the sky");
    assert_eq!(
        answered(terminal, &format!("{DOWN}{ENTER}")),
        json!({"answer": "blue", "answers": [{"id": "1", "answer": "blue", "status": "answered", "selected": ["blue"]}]})
    );
    let mut terminal = asked(&bench, &colours, "Something else");
    terminal.type_in(&format!("{DOWN}{DOWN}{ENTER}"));
    terminal.expect("In your words:");
    assert_eq!(answered(terminal, &format!("a dark green{ENTER}"))["answer"], "a dark green");
}

#[test]
fn several_are_marked_and_words_are_kept_beside_them() {
    let bench = Bench::new(&[]);
    let question = json!({"question": "Which?", "options": ["a", "b", "c"], "multi_select": true});
    let mut terminal = asked(&bench, &question, "Space to mark");
    terminal.type_in(&format!(" {DOWN}{DOWN} {DOWN} {ENTER}"));
    terminal.expect("And in your words:");
    let payload = answered(terminal, &format!("and d{ENTER}"));
    assert_eq!(
        (&payload["answer"], &payload["answers"][0]["selected"]),
        (&json!("a, c, and d"), &json!(["a", "c"]))
    );
}

#[test]
fn words_numbers_paths_and_yes_or_no_are_typed() {
    let bench = Bench::new(&[]);
    let ask = |kind: &str, shows: &str| asked(&bench, &json!({"question": "So?", "kind": kind}), shows);
    assert_eq!(answered(ask("text", "So?"), &format!("größe \u{4e2d}{ENTER}"))["answer"], "größe \u{4e2d}");
    assert_eq!(answered(ask("path", "So?"), &format!("/tmp/a b{ENTER}"))["answer"], "/tmp/a b");
    assert_eq!(answered(ask("yes_no", "So?"), &format!("y{ENTER}"))["answer"], "yes");
    let mut terminal = ask("number", "So?");
    terminal.type_in(&format!("many{ENTER}"));
    terminal.expect("a number is wanted");
    assert_eq!(answered(terminal, &format!("\x7f\x7f\x7f\x7f42{ENTER}"))["answer"], "42");
}

#[test]
fn every_question_of_a_form_is_put_and_told_by_its_id() {
    let bench = Bench::new(&[]);
    let form = json!({"questions": [
        {"id": "name", "question": "Which name?"},
        {"id": "port", "question": "Which port?", "kind": "number", "default": "80"},
        {"id": "tls", "question": "With TLS?", "kind": "yes_no"},
        {"id": "why", "question": "Why?"},
    ]});
    let mut terminal = asked(&bench, &form, "Which name?");
    for (keys, shows) in [("alpha\r", "Which port?"), ("\r", "With TLS?"), (ESCAPE, "Why?")] {
        terminal.type_in(keys);
        terminal.expect(shows);
    }
    let payload = answered(terminal, ENTER);
    assert_eq!(payload["answer"], "name: alpha\nport: 80\ntls: \nwhy: ");
    let statuses: Vec<&Value> =
        payload["answers"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["answered", "answered", "declined", "skipped"]);
    assert_eq!(payload["notes"], json!(["tls: the person declined to answer", "why: skipped, no answer"]));
}

#[test]
fn when_the_time_is_up_the_default_counts_and_the_question_is_gone() {
    let bench = Bench::new(&[]);
    let question = json!({"question": "Which?", "options": ["a", "b"], "default": "b", "timeout_ms": 300});
    let payload = payload(asked(&bench, &question, "Which?"));
    assert_eq!((&payload["answer"], &payload["answers"][0]["status"]), (&json!("b"), &json!("timed_out")));
    assert_eq!(payload["notes"], json!(["timed out, default used"]));
}

#[test]
fn an_interrupted_question_is_a_cancelled_call() {
    for typed in [true, false] {
        let bench = Bench::new(&[]);
        let mut terminal = asked(&bench, &json!({"question": "Which?", "options": ["a"]}), "Something else");
        let (before, tty) = (terminal.settings.clone(), terminal.tty.try_clone().unwrap());
        if typed {
            terminal.type_in("\x03")
        } else {
            terminal.interrupt()
        }
        let (screen, stdout, code) = terminal.end();
        assert_eq!(code, Some(130), "{screen}");
        assert!(stdout.contains("\"category\":\"cancelled\""), "{stdout}");
        assert_eq!(settings(&tty), before, "the terminal is as it was");
    }
}

#[test]
fn nothing_of_a_hostile_question_reaches_the_terminal_as_a_command() {
    let bench = Bench::new(&[]);
    let question =
        json!({"question": "\u{1b}]0;owned\u{7}Go on?", "options": ["\u{1b}[31myes\u{1b}[0m", "no"]});
    let mut terminal = asked(&bench, &question, "Something else");
    terminal.type_in(ENTER);
    let (screen, stdout, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("\x1b]0;") && !screen.contains("\x1b[31m"), "{screen:?}");
    assert!(stdout.contains("\"answer\":\"yes\""), "{stdout}");
}

#[test]
fn a_tool_that_asks_in_its_own_way_is_answered_in_words() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let arguments = ["call", &provider, "ask", "options={\"never\": 1}", "--json"];
    let mut terminal = Terminal::start(&bench, &arguments, PLAIN);
    terminal.expect("Answer");
    terminal.type_in("blue\r");
    let (_, stdout, code) = terminal.end();
    assert_eq!(
        (stdout.as_str(), code),
        ("{\"event\":\"result\",\"payload\":{\"answer\":\"blue\"}}\n", Some(0))
    );
}

#[test]
fn output_is_shown_as_it_comes_and_the_result_is_on_stdout() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let (screen, stdout, code) = Terminal::start(&bench, &["call", &provider, "events"], PLAIN).end();
    assert!(screen.contains("half 50 %\r\x1b[K│ pri€\n│ \u{fffd}\n"), "{screen:?}");
    assert_eq!((stdout.as_str(), code), ("{\n  \"text\": \"done\"\n}\n", Some(0)));
}
