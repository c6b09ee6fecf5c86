//! Questions to the person at the terminal.

use std::io::BufRead as _;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tool_host::people::{Decision, Preview, Proposal, Question, denied_by_user, no_human};
use tool_host::schema::Shape;
use tool_host::{Answerer, Approver, CallError, Object};

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
        let unanswered = || no_human(format!("nobody answered {}", question.tool.name));
        if let Some(Value::Array(questions)) = question.arguments.get("questions") {
            let mut answers = Vec::with_capacity(questions.len());
            for asked in questions.iter().filter_map(Value::as_object) {
                let answer = self.one(asked).await.ok_or_else(unanswered)?;
                let id =
                    asked.get("id").cloned().unwrap_or_else(|| Value::from((answers.len() + 1).to_string()));
                answers.push(json!({"id": id, "answer": answer, "status": "answered"}));
            }
            let texts: Vec<&str> = answers.iter().filter_map(|answer| answer["answer"].as_str()).collect();
            let answer = Value::from(texts.join("\n"));
            return Ok(Object::from_iter([
                ("answer".to_owned(), answer),
                ("answers".to_owned(), Value::Array(answers)),
            ]));
        }
        let answer = self.one(question.arguments).await.ok_or_else(unanswered)?;
        let field = answer_field(question).ok_or_else(|| {
            no_human(format!(
                "{} wants an answer that cannot be typed: pass --answers FILE",
                question.tool.name
            ))
        })?;
        Ok(Object::from_iter([(field, Value::from(answer))]))
    }

    /// Asks one question: numbers pick an option, anything else is the answer itself.
    async fn one(&self, asked: &Object) -> Option<String> {
        let look = self.shell.err();
        match asked.get("question").and_then(Value::as_str) {
            Some(text) => self.shell.note(&format!("{}\n", look.ink(Ink::Bold, &safe(text)))),
            None => self.shell.note(&arguments(asked)),
        }
        let options: Vec<&Value> =
            asked.get("options").and_then(Value::as_array).into_iter().flatten().collect();
        let label = |option: &Value| option.as_str().or_else(|| option["label"].as_str()).map(str::to_owned);
        let labels: Vec<String> = options.iter().filter_map(|option| label(option)).collect();
        for (index, (text, option)) in labels.iter().zip(&options).enumerate() {
            let about = option["description"].as_str().map_or_else(String::new, |text| format!("  {text}"));
            self.shell.note(&format!(
                "  {}. {}{}\n",
                index + 1,
                cell(text),
                look.ink(Ink::Dim, &cell(&about))
            ));
        }
        let default = asked.get("default").and_then(Value::as_str);
        let prompt = default.map_or_else(|| "> ".to_owned(), |default| format!("[{}] > ", cell(default)));
        let line = ask(&self.shell, &prompt).await?;
        let answer = match line.trim() {
            "" => default.unwrap_or_default().to_owned(),
            text => pick(text, &labels),
        };
        Some(answer)
    }
}

/// The options that numbers stand for, or the text itself.
fn pick(text: &str, labels: &[String]) -> String {
    let numbers: Option<Vec<usize>> =
        text.split([',', ' ']).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect();
    let picked = |numbers: Vec<usize>| -> Option<Vec<&str>> {
        numbers.into_iter().map(|number| labels.get(number.checked_sub(1)?).map(String::as_str)).collect()
    };
    match numbers.and_then(picked) {
        Some(picked) if !picked.is_empty() => picked.join(", "),
        _ => text.to_owned(),
    }
}

/// The field of the result that a typed text can fill: `answer`, else the only one that must be there.
fn answer_field(question: &Question<'_>) -> Option<String> {
    let output = &question.tool.output;
    let is_text = |name: &str| {
        output.property(name).is_some_and(|node| matches!(node.shape, Shape::String { .. } | Shape::Any))
    };
    if is_text("answer") {
        return Some("answer".to_owned());
    }
    match &output.shape {
        Shape::Object { required, .. } if required.len() == 1 && is_text(&required[0]) => {
            Some(required[0].clone())
        }
        Shape::Any => Some("answer".to_owned()),
        _ => None,
    }
}

impl Answerer for TerminalAnswers {
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        Box::pin(self.ask(question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_pick_options_and_text_is_itself() {
        let labels = ["red".to_owned(), "dark blue".to_owned()];
        let check = |typed: &str, expected: &str| assert_eq!(pick(typed, &labels), expected);
        check("2", "dark blue");
        check("1, 2", "red, dark blue");
        check("3", "3");
        check("0", "0");
        check("green", "green");
    }
}
