//! What became of a question, and how the model is told.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Form, Question};

/// What became of one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What the person chose, as labels of options.
    pub selected: Vec<String>,
    /// What the person typed.
    pub typed: Option<String>,
    /// Whether there is an answer.
    pub status: Status,
}

/// Whether there is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The person answered.
    Answered,
    /// The person went on without an answer.
    Skipped,
    /// The person did not want to answer.
    Declined,
    /// Nobody answered in time; the default, where there is one, stands for the answer.
    TimedOut,
}

impl Answer {
    /// An answer in words.
    pub fn typed(text: impl Into<String>) -> Self {
        Self { selected: Vec::new(), typed: Some(text.into()), status: Status::Answered }
    }

    /// Chosen options, and what was typed beside them.
    pub fn chosen(selected: Vec<String>, typed: Option<String>) -> Self {
        Self { selected, typed, status: Status::Answered }
    }

    /// No answer.
    pub fn none(status: Status) -> Self {
        Self { selected: Vec::new(), typed: None, status }
    }

    /// What is told of a question that nobody answered in time.
    pub fn timed_out(question: &Question) -> Self {
        Self { selected: Vec::new(), typed: question.default.clone(), status: Status::TimedOut }
    }

    /// The answer as one text: what was chosen, then what was typed.
    pub fn text(&self) -> String {
        let parts = self.selected.iter().chain(&self.typed);
        parts.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn note(&self, question: &Question, form: &Form) -> Option<String> {
        let what = match (self.status, &self.typed) {
            (Status::Answered, _) => return None,
            (Status::Skipped, _) => "skipped, no answer",
            (Status::Declined, _) => "the person declined to answer",
            (Status::TimedOut, Some(_)) => "timed out, default used",
            (Status::TimedOut, None) => "timed out, no answer",
        };
        Some(if form.listed { format!("{}: {what}", question.id) } else { what.to_owned() })
    }
}

impl Form {
    /// The result for these answers, one for each question in order: `answer` in words, `answers` one by one, and
    /// `notes` about those that are missing. A question without an answer counts as skipped.
    pub fn payload(&self, answers: &[Answer]) -> Map<String, Value> {
        let skipped = Answer::none(Status::Skipped);
        let pairs: Vec<(&Question, &Answer)> = self
            .questions
            .iter()
            .enumerate()
            .map(|(index, question)| (question, answers.get(index).unwrap_or(&skipped)))
            .collect();
        let one = |(question, answer): &(&Question, &Answer)| {
            let mut told = json!({"id": question.id, "answer": answer.text(), "status": answer.status});
            if question.kind.has_options() && !answer.selected.is_empty() {
                told["selected"] = json!(answer.selected);
            }
            told
        };
        let line = |(question, answer): &(&Question, &Answer)| format!("{}: {}", question.id, answer.text());
        let answer = match self.listed {
            true => pairs.iter().map(line).collect::<Vec<_>>().join("\n"),
            false => pairs.first().map(|(_, answer)| answer.text()).unwrap_or_default(),
        };
        let mut payload = Map::new();
        payload.insert("answer".to_owned(), Value::from(answer));
        payload.insert("answers".to_owned(), Value::Array(pairs.iter().map(one).collect()));
        let notes: Vec<String> =
            pairs.iter().filter_map(|(question, answer)| answer.note(question, self)).collect();
        if !notes.is_empty() {
            payload.insert("notes".to_owned(), json!(notes));
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(arguments: Value) -> Form {
        Form::parse(arguments.as_object().unwrap()).unwrap()
    }

    #[test]
    fn one_question_is_answered_in_words() {
        let form = form(json!({"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}));
        assert_eq!(
            Value::Object(form.payload(&[Answer::chosen(vec!["b".to_owned()], None)])),
            json!({"answer": "b", "answers": [{"id": "1", "answer": "b", "status": "answered", "selected": ["b"]}]})
        );
    }

    #[test]
    fn chosen_and_typed_are_both_kept() {
        let form = form(json!({"question": "Which?", "options": ["a", "b", "c"], "multi_select": true}));
        let answer = Answer::chosen(vec!["a".to_owned(), "c".to_owned()], Some("and d".to_owned()));
        assert_eq!(form.payload(&[answer])["answer"], "a, c, and d");
    }

    #[test]
    fn every_question_of_a_form_has_its_status() {
        let form = form(json!({"questions": [
            {"id": "db", "question": "Which database?"},
            {"id": "port", "question": "Which port?", "kind": "number", "default": "80"},
            {"id": "name", "question": "Which name?"},
        ]}));
        let answers = [Answer::typed("sqlite"), Answer::timed_out(&form.questions[1])];
        assert_eq!(
            Value::Object(form.payload(&answers)),
            json!({
                "answer": "db: sqlite\nport: 80\nname: ",
                "answers": [
                    {"id": "db", "answer": "sqlite", "status": "answered"},
                    {"id": "port", "answer": "80", "status": "timed_out"},
                    {"id": "name", "answer": "", "status": "skipped"},
                ],
                "notes": ["port: timed out, default used", "name: skipped, no answer"],
            })
        );
    }

    #[test]
    fn a_declined_question_has_no_invented_answer() {
        let form = form(json!({"question": "Really?", "kind": "yes_no", "default": "yes"}));
        let payload = form.payload(&[Answer::none(Status::Declined)]);
        assert_eq!(
            (&payload["answer"], &payload["notes"]),
            (&json!(""), &json!(["the person declined to answer"]))
        );
    }
}
