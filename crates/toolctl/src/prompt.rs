//! Questions to the person at the terminal.

use std::io::BufRead as _;

use futures_util::future::BoxFuture;
use questions::{Answer, Form, Status};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tool_host::people::{Decision, Preview, Proposal, Question, denied_by_user, no_human};
use tool_host::{Answerer, Approver, CallError, Object};

use crate::dialog::{self, Unanswered};
use crate::paint::{Ink, cell, paint, safe};
use crate::shell::Shell;

/// A preview is cut to this many lines until somebody asks for all of it.
const SHOWN_LINES: usize = 60;

/// What the person types behind the question, without the line's end; `None` at the end of input.
///
/// The reading thread outlives a question that is withdrawn: a read from a terminal cannot be called off.
async fn ask(shell: &Shell, question: &str) -> Option<String> {
    shell.question(question);
    let (sender, line) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let line = matches!(read, Ok(1..)).then(|| line.trim_end_matches(['\n', '\r']).to_owned());
        // Nobody waits for the answer to a withdrawn question.
        let _ = sender.send(line);
    });
    let line = line.await.ok().flatten()?;
    shell.answered();
    Some(line)
}

/// Whether the person says yes.
pub(crate) async fn confirm(shell: &Shell, question: &str) -> bool {
    let answer = ask(shell, question).await.unwrap_or_default();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Asks before each call that changes something, with the preview.
pub(crate) struct TerminalApproval {
    shell: Shell,
}

impl TerminalApproval {
    pub(crate) fn new(shell: Shell) -> Self {
        Self { shell }
    }

    async fn ask(&self, proposal: &Proposal<'_>) -> Decision {
        let look = self.shell.err();
        let name = format!("{}.{}", cell(&proposal.provider.name), cell(&proposal.tool.name));
        let risk = format!("risk {}", proposal.tool.risk);
        self.shell.note(&format!("{} wants to change something ({risk})\n", look.ink(Ink::Bold, &name)));
        let picture = self.picture(proposal);
        let lines: Vec<&str> = picture.lines().collect();
        let hidden = lines.len().saturating_sub(SHOWN_LINES);
        for line in lines.iter().take(SHOWN_LINES) {
            self.shell.note(&format!("{line}\n"));
        }
        if hidden > 0 {
            self.shell.note(&look.ink(Ink::Dim, &format!("… {hidden} more lines; d shows all\n")));
        }
        loop {
            match ask(&self.shell, "Do it? [y/s/N/d] ")
                .await
                .map(|line| line.trim().to_ascii_lowercase())
                .as_deref()
            {
                Some("y" | "yes") => return Decision::once(Ok(())),
                Some("s" | "session") => return Decision::for_session(Ok(())),
                Some("d") => {
                    self.shell.note(&picture);
                    if matches!(proposal.preview, Preview::Tree(_)) {
                        self.shell.note(&arguments(proposal.arguments));
                    }
                }
                Some(_) => {
                    let denied = denied_by_user(format!("{name} was not allowed; nothing was done"));
                    return Decision::once(Err(denied));
                }
                None => {
                    let unanswered = format!("nobody answered whether {name} may run; nothing was done");
                    return Decision::once(Err(no_human(unanswered)));
                }
            }
        }
    }

    fn picture(&self, proposal: &Proposal<'_>) -> String {
        match &proposal.preview {
            Preview::Tree(tree) => paint(tree, self.shell.err()),
            Preview::Unsupported => arguments(proposal.arguments),
            Preview::Failed(error) => {
                let warning = self.shell.err().ink(Ink::Yellow, "no preview:");
                format!("{warning} {}\n{}", safe(&error.message), arguments(proposal.arguments))
            }
        }
    }
}

impl Approver for TerminalApproval {
    fn approve<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(self.ask(proposal))
    }
}

fn arguments(arguments: &Object) -> String {
    format!("{}\n", safe(&format!("{:#}", Value::Object(arguments.clone()))))
}

/// Puts interactive calls to the person.
pub(crate) struct TerminalAnswers {
    shell: Shell,
}

impl TerminalAnswers {
    pub(crate) fn new(shell: Shell) -> Self {
        Self { shell }
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Object, CallError> {
        let asks = format!("{}.{} asks", cell(&question.provider.name), cell(&question.tool.name));
        self.shell.note(&format!("{}\n", self.shell.err().ink(Ink::Dim, &asks)));
        match &question.form {
            Some(form) => self.fill(form, question).await,
            None => self.free(question).await,
        }
    }

    /// Puts the questions of a form one by one, until its time is up.
    async fn fill(&self, form: &Form, question: &Question<'_>) -> Result<Object, CallError> {
        let until = form.timeout.map(|timeout| Instant::now() + timeout);
        if let Some(timeout) = form.timeout {
            self.shell.note(&format!("within {timeout:?}; after that the defaults count\n"));
        }
        let mut answers = Vec::with_capacity(form.questions.len());
        for asked in &form.questions {
            let answer = match until {
                None => Some(dialog::ask(asked).await),
                Some(until) => timeout_at(until, dialog::ask(asked)).await.ok(),
            };
            answers.push(match answer {
                Some(answer) => told(answer, question)?,
                None => Answer::timed_out(asked),
            });
        }
        // What else the tool declares is its own; a tool that takes one text is given one.
        Ok(match question.text_field() {
            Some(field) if field != "answer" => {
                let text = form.payload(&answers).remove("answer").unwrap_or_default();
                Object::from_iter([(field, text)])
            }
            _ => form.payload(&answers),
        })
    }

    /// Shows what a foreign tool asks as it came, and takes one text.
    async fn free(&self, question: &Question<'_>) -> Result<Object, CallError> {
        let field = question.text_field().ok_or_else(|| {
            no_human(format!(
                "{} wants an answer that cannot be typed: pass --answers FILE",
                question.tool.name
            ))
        })?;
        self.shell.note(&arguments(question.arguments));
        let asked = questions::Question {
            id: "1".to_owned(),
            text: "Answer".to_owned(),
            kind: questions::Kind::Text,
            options: Vec::new(),
            default: None,
        };
        let answer = told(dialog::ask(&asked).await, question)?;
        match answer.status {
            Status::Answered => Ok(Object::from_iter([(field, Value::from(answer.text()))])),
            _ => Err(denied_by_user(format!("the person did not answer {}", question.tool.name))),
        }
    }
}

/// The answer, or the error of a call whose question was not put to its end.
fn told(answer: Result<Answer, Unanswered>, question: &Question<'_>) -> Result<Answer, CallError> {
    answer.map_err(|why| match why {
        Unanswered::Interrupted => tool_host::call::cancelled(),
        Unanswered::Failed(reason) => no_human(format!("cannot ask {}: {reason}", question.tool.name)),
    })
}

impl Answerer for TerminalAnswers {
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        Box::pin(self.ask(question))
    }
}
