//! With a person at a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Bench, awkward_argument};

/// The program with a terminal as its stdin and stderr; stdout is a pipe.
struct Terminal {
    child: Child,
    master: File,
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
        Self { child, seen: read_on(master.try_clone().unwrap()), master, screen: String::new() }
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
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.seen.recv_timeout(Duration::from_millis(200)) {
            self.screen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (self.screen.replace("\r\n", "\n"), stdout, code)
    }
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

#[test]
fn a_question_is_put_and_a_number_picks() {
    let bench = Bench::new(&[]);
    let provider = awkward_argument();
    let options = "options=[\"red\",{\"label\":\"blue\",\"description\":\"like the sky\"}]";
    let arguments = ["call", &provider, "ask", "question=Which?", options, "--json"];
    let mut terminal = Terminal::start(&bench, &arguments, PLAIN);
    terminal.expect("Which?\r\n  1. red\r\n  2. blue  like the sky\r\n> ");
    terminal.type_in("2\n");
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
