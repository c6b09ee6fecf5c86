//! One question on the terminal, in a process of its own.
//!
//! Reading keys from a terminal cannot be called off, and a question has to end when its time is up or its call is
//! cancelled. So the program starts itself for each question: a question that is withdrawn is a process that is
//! killed, and the terminal is put back as it was.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::process::{ExitCode, Stdio};

use inquire::validator::Validation;
use inquire::{Confirm, InquireError, MultiSelect, Select, Text};
use questions::{Answer, Choice, Kind, Question, Status};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

/// The argument that makes this program a question.
const ARGUMENT: &str = "__ask";
/// The variable that holds the question as JSON. A question's length is bounded, so it fits.
const VARIABLE: &str = "TOOLCTL_QUESTION";
/// What the process exits with when the person pressed Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Why there is neither an answer nor a refusal to give one.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The person interrupted the program.
    Interrupted,
    /// The question could not be put.
    Failed(String),
}

impl Unanswered {
    fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Puts the question. Dropping the future takes it off the screen.
pub(crate) async fn ask(question: &Question) -> Result<Answer, Unanswered> {
    let mut dialog = Dialog::start(question)?;
    let mut told = Vec::new();
    if let Some(mut stdout) = dialog.child.stdout.take() {
        stdout.read_to_end(&mut told).await.map_err(Unanswered::failed)?;
    }
    let status = dialog.child.wait().await.map_err(Unanswered::failed)?;
    dialog.ended = true;
    if status.code() == Some(i32::from(INTERRUPTED)) {
        return Err(Unanswered::Interrupted);
    }
    serde_json::from_slice(&told).map_err(|_| {
        dialog.ended = false;
        Unanswered::Failed(format!("the dialog ended with {status}"))
    })
}

/// The running question, and the terminal as it was before.
struct Dialog {
    child: Child,
    terminal: Option<Termios>,
    ended: bool,
}

impl Dialog {
    fn start(question: &Question) -> Result<Self, Unanswered> {
        let program = std::env::current_exe().map_err(Unanswered::failed)?;
        let asked = serde_json::to_string(question).map_err(Unanswered::failed)?;
        let terminal = tcgetattr(io::stdin()).ok();
        let child = Command::new(program)
            .arg(ARGUMENT)
            .env(VARIABLE, asked)
            .stdin(Stdio::inherit())
            .stderr(Stdio::inherit())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Unanswered::failed)?;
        Ok(Self { child, terminal, ended: false })
    }
}

impl Drop for Dialog {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // It may have ended meanwhile; the terminal is put back in either case.
        let _ = self.child.start_kill();
        if let Some(terminal) = &self.terminal {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, terminal);
        }
        // No more pasted text in brackets, the cursor visible, and what follows on a line of its own.
        let _ = io::stderr().write_all(b"\x1b[?2004l\x1b[?25h\n");
    }
}

/// Becomes a question if the program has started itself as one.
pub(crate) fn run_if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        [_, first] if first == ARGUMENT => Some(run()),
        _ => None,
    }
}

fn run() -> ExitCode {
    // The one who asks may be killed; then nobody waits for the answer.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let question = std::env::var(VARIABLE).ok().and_then(|json| serde_json::from_str::<Question>(&json).ok());
    let Some(question) = question else { return ExitCode::FAILURE };
    let answer = match show(&question) {
        Ok(answer) => answer,
        Err(InquireError::OperationCanceled) => Answer::none(Status::Declined),
        Err(InquireError::OperationInterrupted) => return INTERRUPTED.into(),
        Err(_) => return ExitCode::FAILURE,
    };
    let told = serde_json::to_string(&answer).unwrap_or_default();
    match io::stdout().write_all(told.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// An entry of a list.
enum Entry<'a> {
    Option(&'a Choice),
    /// An answer in words.
    Other,
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(Choice { label, description: Some(about) }) => write!(f, "{label} — {about}"),
            Self::Option(Choice { label, .. }) => f.write_str(label),
            Self::Other => f.write_str("Something else…"),
        }
    }
}

fn show(question: &Question) -> Result<Answer, InquireError> {
    // A prompt has one line; those before it are written above.
    let (above, prompt) = question.text.rsplit_once('\n').unwrap_or(("", &question.text));
    if !above.is_empty() {
        let _ = writeln!(io::stderr(), "{above}");
    }
    match question.kind {
        Kind::Choice => one_of(question, prompt),
        Kind::MultiChoice => some_of(question, prompt),
        Kind::YesNo => yes_or_no(question, prompt),
        Kind::Text | Kind::Number | Kind::Path => {
            let typed = text(question.kind, prompt, question.default.as_deref())?;
            Ok(typed.map_or(Answer::none(Status::Skipped), Answer::typed))
        }
    }
}

fn one_of(question: &Question, prompt: &str) -> Result<Answer, InquireError> {
    let entries = question.options.iter().map(Entry::Option).chain([Entry::Other]).collect();
    let start = |label: &String| question.options.iter().position(|option| option.label == *label);
    let picked = Select::new(prompt, entries)
        .with_starting_cursor(question.default.as_ref().and_then(start).unwrap_or(0))
        .with_help_message("↑ ↓ to move, type to filter, Enter to choose, Esc to decline")
        .prompt()?;
    Ok(match picked {
        Entry::Option(option) => Answer::chosen(vec![option.label.clone()], None),
        Entry::Other => text(Kind::Text, "In your words:", None)?
            .map_or(Answer::none(Status::Skipped), |typed| Answer::chosen(Vec::new(), Some(typed))),
    })
}

fn some_of(question: &Question, prompt: &str) -> Result<Answer, InquireError> {
    let entries = question.options.iter().map(Entry::Option).chain([Entry::Other]).collect();
    let default = question.default.as_deref().unwrap_or_default();
    let is_default = |label: &str| default == label || default.split(',').any(|part| part.trim() == label);
    let marked: Vec<usize> = question
        .options
        .iter()
        .enumerate()
        .filter(|(_, option)| is_default(&option.label))
        .map(|(index, _)| index)
        .collect();
    let picked = MultiSelect::new(prompt, entries)
        .with_default(&marked)
        .with_help_message("↑ ↓ to move, Space to mark, Enter when done, Esc to decline")
        .prompt()?;
    let other = picked.iter().any(|entry| matches!(entry, Entry::Other));
    let typed = if other { text(Kind::Text, "And in your words:", None)? } else { None };
    let label = |entry: &Entry<'_>| match entry {
        Entry::Option(option) => Some(option.label.clone()),
        Entry::Other => None,
    };
    let selected: Vec<String> = picked.iter().filter_map(label).collect();
    Ok(match selected.is_empty() && typed.is_none() {
        true => Answer::none(Status::Skipped),
        false => Answer::chosen(selected, typed),
    })
}

fn yes_or_no(question: &Question, prompt: &str) -> Result<Answer, InquireError> {
    let mut confirm = Confirm::new(prompt).with_help_message("y or n, Esc to decline");
    confirm.default = question.default.as_ref().map(|default| default == "yes");
    let yes = confirm.prompt()?;
    Ok(Answer::typed(if yes { "yes" } else { "no" }))
}

/// What the person types; `None` for an empty line without a default.
fn text(kind: Kind, prompt: &str, default: Option<&str>) -> Result<Option<String>, InquireError> {
    let has_default = default.is_some();
    let readable = move |typed: &str| {
        Ok(match kind.read(typed) {
            Err(wanted) if has_default || !typed.trim().is_empty() => Validation::Invalid(wanted.into()),
            _ => Validation::Valid,
        })
    };
    let mut text = Text::new(prompt)
        .with_help_message("Enter when done, empty to skip, Esc to decline")
        .with_validator(readable);
    text.default = default;
    let typed = text.prompt()?;
    Ok(kind.read(&typed).ok().filter(|typed| !typed.is_empty()))
}
