//! Everything that is written to the terminal. No other module prints.
//!
//! stdout is data, stderr is for people. A reader of stdout that has gone away is no error: the rest is dropped.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tool_host::event::{Line, Pipe, Report};
use tool_host::notice::{Level, What};
use tool_host::{CallError, Event, Notice, Notices, Outcome};

use crate::exit::{Exit, Failure};
use crate::paint::{Ink, Look, safe};

/// When colour is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On terminals, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The program's two outputs. Clones share them.
#[derive(Clone)]
pub(crate) struct Shell(Arc<Inner>);

struct Inner {
    out: Look,
    err: Look,
    json: bool,
    err_is_terminal: bool,
    /// Whether a person can be asked: both ends of a conversation are a terminal.
    can_ask: bool,
    verbose: AtomicBool,
    reader_gone: AtomicBool,
    output_lost: AtomicBool,
    screen: Mutex<Screen>,
}

/// What stands on the terminal beyond whole lines.
#[derive(Default)]
struct Screen {
    /// A line about progress, which the next output replaces.
    status: bool,
    /// Output of a process that has not ended its line.
    open_line: Option<Pipe>,
    /// A question that has not been answered.
    question: bool,
}

impl Shell {
    pub(crate) fn new(color: ColorChoice, json: bool) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let err_is_terminal = err.is_terminal();
        Self(Arc::new(Inner {
            out: look(color, out.is_terminal(), &out),
            err: look(color, err_is_terminal, &err),
            json,
            err_is_terminal,
            can_ask: err_is_terminal && io::stdin().is_terminal(),
            verbose: AtomicBool::new(false),
            reader_gone: AtomicBool::new(false),
            output_lost: AtomicBool::new(false),
            screen: Mutex::default(),
        }))
    }

    /// How data on stdout looks.
    pub(crate) fn out(&self) -> Look {
        self.0.out
    }

    /// How text on stderr looks.
    pub(crate) fn err(&self) -> Look {
        self.0.err
    }

    /// Whether stdout carries JSON only.
    pub(crate) fn json(&self) -> bool {
        self.0.json
    }

    /// Whether there is somebody who can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.0.can_ask
    }

    /// Whether stderr is a terminal.
    pub(crate) fn is_watched(&self) -> bool {
        self.0.err_is_terminal
    }

    /// Shows everything providers log.
    pub(crate) fn be_verbose(&self) {
        self.0.verbose.store(true, Ordering::Relaxed);
    }

    /// Whether nobody reads stdout any more.
    pub(crate) fn reader_gone(&self) -> bool {
        self.0.reader_gone.load(Ordering::Relaxed)
    }

    /// Whether output could not be written, for another reason than that nobody reads it.
    pub(crate) fn output_lost(&self) -> bool {
        self.0.output_lost.load(Ordering::Relaxed)
    }

    /// Writes data to stdout as it is.
    pub(crate) fn data(&self, text: &str) {
        let mut screen = self.screen();
        self.clear(&mut screen);
        if self.reader_gone() {
            return;
        }
        let mut out = io::stdout().lock();
        let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) else { return };
        self.0.reader_gone.store(true, Ordering::Relaxed);
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.0.output_lost.store(true, Ordering::Relaxed);
            self.write_err(&format!("error: the output is lost: {error}\n"));
        }
    }

    /// Writes one line of JSON to stdout.
    pub(crate) fn json_line(&self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(line) => self.data(&format!("{line}\n")),
            Err(error) => self.note(&format!("cannot write JSON: {error}\n")),
        }
    }

    /// Writes a JSON document to stdout, for programs and for reading.
    pub(crate) fn json_document(&self, value: &serde_json::Value) {
        self.data(&format!("{value:#}\n"));
    }

    /// Writes text for people to stderr as it is.
    pub(crate) fn note(&self, text: &str) {
        let mut screen = self.screen();
        self.clear(&mut screen);
        self.write_err(text);
    }

    /// Puts a question; the answer is typed behind it.
    pub(crate) fn question(&self, text: &str) {
        self.note(&self.err().ink(Ink::Bold, text));
        self.screen().question = true;
    }

    /// The person has answered, and with that ended the line.
    pub(crate) fn answered(&self) {
        self.screen().question = false;
    }

    /// Tells of something that is not right but stops nothing.
    pub(crate) fn warning(&self, text: &str) {
        self.note(&format!("{} {}\n", self.err().ink(Ink::Yellow, "warning:"), safe(text)));
    }

    /// Tells why the command failed, as data with `--json` and for people otherwise.
    pub(crate) fn failure(&self, failure: &Failure) -> Exit {
        if self.json() {
            self.outcome_line(None, &Err(failure.error.clone()));
        } else {
            self.error(&failure.error);
        }
        for hint in &failure.hints {
            self.note(&format!("\n{} {}\n", self.err().ink(Ink::Cyan, "hint:"), safe(hint)));
        }
        failure.exit
    }

    /// Tells of an error, for people.
    pub(crate) fn error(&self, error: &CallError) {
        self.note(&format!("{} {}\n", self.err().ink(Ink::Red, "error:"), safe(&error.message)));
        if let Some(last_words) = error.details.get("stderr").and_then(serde_json::Value::as_str) {
            for line in last_words.lines() {
                self.note(&format!("  {}\n", self.err().ink(Ink::Dim, &safe(line))));
            }
        }
    }

    /// Writes an event as NDJSON.
    pub(crate) fn event_line(&self, id: Option<&serde_json::Value>, event: &Event) {
        self.json_line(&Line { id, report: Report::Event(event) });
    }

    /// Writes the end of a call as NDJSON.
    pub(crate) fn outcome_line(&self, id: Option<&serde_json::Value>, outcome: &Outcome) {
        self.json_line(&Line { id, report: Report::End(outcome.into()) });
    }

    /// Shows on a terminal how far the call is, until the next output.
    pub(crate) fn status(&self, text: &str) {
        if !self.is_watched() {
            return;
        }
        let mut screen = self.screen();
        self.clear(&mut screen);
        let line =
            crate::paint::clip(&crate::paint::cell(text), self.err().width.unwrap_or(80).saturating_sub(1));
        self.write_err(&self.err().ink(Ink::Dim, &line));
        screen.status = true;
    }

    /// Shows on a terminal what a process writes, as it comes, behind a gutter.
    pub(crate) fn live(&self, pipe: Pipe, bytes: &[u8]) {
        if !self.is_watched() || bytes.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
        let mut screen = self.screen();
        if screen.status || screen.open_line.is_some_and(|open| open != pipe) {
            self.clear(&mut screen);
        }
        let gutter = self.err().ink(if pipe == Pipe::Stderr { Ink::Yellow } else { Ink::Dim }, "│ ");
        let mut out = String::new();
        for line in text.split_inclusive('\n') {
            if screen.open_line.is_none() {
                out.push_str(&gutter);
            }
            out.push_str(&safe(line));
            screen.open_line = (!line.ends_with('\n')).then_some(pipe);
        }
        self.write_err(&out);
    }

    /// Shows what happens beside the calls: always what is wrong, the rest when asked.
    pub(crate) fn notices(&self) -> Notices {
        let shell = self.clone();
        Notices::to(move |notice| shell.notice(&notice))
    }

    fn notice(&self, notice: &Notice) {
        let verbose = self.0.verbose.load(Ordering::Relaxed);
        match &notice.what {
            What::Warning(text) => self.warning(&format!("{}: {text}", notice.provider)),
            What::Log(record) if verbose || record.level >= Level::Warn => {
                let mut line = format!("{} {}: {}", record.level, notice.provider, record.message);
                for (key, value) in &record.fields {
                    line.push_str(&format!(" {key}={value}"));
                }
                self.note(&format!("{}\n", self.err().ink(Ink::Dim, &safe(&line))));
            }
            What::Stderr(line) if verbose => {
                let line = format!("{}: {line}", notice.provider);
                self.note(&format!("{}\n", self.err().ink(Ink::Dim, &safe(&line))));
            }
            What::Log(_) | What::Stderr(_) => {}
        }
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.0.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the cursor where a new line begins.
    fn clear(&self, screen: &mut Screen) {
        if std::mem::take(&mut screen.status) {
            self.write_err("\r\x1b[K");
        }
        if screen.open_line.take().is_some() | std::mem::take(&mut screen.question) {
            self.write_err("\n");
        }
    }

    fn write_err(&self, text: &str) {
        // Nobody may be reading; then there is nobody to tell.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

fn look(color: ColorChoice, is_terminal: bool, stream: &impl std::os::fd::AsFd) -> Look {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    let colour = match color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => !set("NO_COLOR") && (forced || (is_terminal && !dumb)),
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    let width = columns.or_else(|| if is_terminal { measured().or(Some(80)) } else { None });
    Look { colour, width: width.filter(|width| *width > 0) }
}
