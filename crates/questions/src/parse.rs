//! From what a model asked to a form that can be shown.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::clean::{clean, clean_line};
use crate::{Choice, Form, Kind, Question};

/// The most questions of one form.
const MOST_QUESTIONS: usize = 20;
/// The most options of one question.
const MOST_OPTIONS: usize = 50;
/// The longest question, in characters.
const LONGEST_QUESTION: usize = 4_000;
/// The longest label, in characters.
const LONGEST_LABEL: usize = 100;
/// The longest description of an option, in characters.
const LONGEST_DESCRIPTION: usize = 300;
/// The longest time to answer, in milliseconds: a day.
const LONGEST_TIMEOUT: f64 = 86_400_000.0;

/// What keeps arguments from being a form. The message names every field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct FormError(pub Vec<String>);

type Object = Map<String, Value>;

/// What was found wrong so far.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn say(&mut self, field: &str, what: impl AsRef<str>) {
        self.0.push(format!("{field}: {}", what.as_ref()));
    }
}

impl Form {
    /// Reads the arguments of `ask_user`: `question` with `options`, `multi_select`, `kind` and `default`, or a list
    /// of such `questions` each with an `id`; and `timeout_ms`. Null counts as absent, an option may be its label.
    ///
    /// # Errors
    /// Every field that is wrong, with what is wanted.
    pub fn parse(arguments: &Object) -> Result<Self, FormError> {
        let mut wrong = Wrong::default();
        let list =
            given(arguments, "questions").map(|questions| from_text(questions).unwrap_or(questions.clone()));
        let questions = match (given(arguments, "question"), &list) {
            (Some(_), Some(Value::Array(list))) if !list.is_empty() => {
                wrong.say("questions", "give either question or questions, not both");
                Vec::new()
            }
            (_, Some(Value::Array(list))) if !list.is_empty() => listed(list, &mut wrong),
            (None, Some(Value::Array(_))) => {
                wrong.say("questions", "is empty; ask at least one question");
                Vec::new()
            }
            (None, Some(_)) => {
                wrong.say("questions", "wanted a list of questions, each {\"id\": …, \"question\": …}");
                Vec::new()
            }
            (Some(_), _) => question(arguments, "1".to_owned(), "", &mut wrong).into_iter().collect(),
            (None, None) => {
                wrong.say("question", "is missing; say what the person is asked");
                Vec::new()
            }
        };
        let timeout = timeout(arguments, &mut wrong);
        let listed = matches!(&list, Some(Value::Array(list)) if !list.is_empty());
        match wrong.0.is_empty() {
            true => Ok(Self { questions, listed, timeout }),
            false => Err(FormError(wrong.0)),
        }
    }
}

/// A value that is there and not null.
fn given<'a>(object: &'a Object, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

/// The list that a text holds as JSON.
fn from_text(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    serde_json::from_str::<Value>(text).ok().filter(Value::is_array)
}

fn timeout(arguments: &Object, wrong: &mut Wrong) -> Option<Duration> {
    let value = given(arguments, "timeout_ms")?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    match number {
        Some(number) if (1.0..=LONGEST_TIMEOUT).contains(&number) && number.fract() == 0.0 => {
            Some(Duration::from_secs_f64(number / 1000.0))
        }
        _ => {
            wrong.say(
                "timeout_ms",
                format!("wanted whole milliseconds from 1 to {LONGEST_TIMEOUT}, got {value}"),
            );
            None
        }
    }
}

fn listed(list: &[Value], wrong: &mut Wrong) -> Vec<Question> {
    if list.len() > MOST_QUESTIONS {
        wrong.say("questions", format!("has {}, at most {MOST_QUESTIONS} are asked at once", list.len()));
        return Vec::new();
    }
    let mut questions: Vec<Question> = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let field = format!("questions[{index}].");
        let Some(item) = item.as_object() else {
            wrong.say(&format!("questions[{index}]"), "wanted {\"id\": …, \"question\": …}");
            continue;
        };
        let id = match given(item, "id") {
            Some(Value::String(id)) => clean_line(id),
            Some(other) => clean_line(&other.to_string()),
            None => (index + 1).to_string(),
        };
        if id.is_empty() || id.chars().count() > LONGEST_LABEL {
            wrong.say(&format!("{field}id"), format!("wanted 1 to {LONGEST_LABEL} characters"));
        }
        if questions.iter().any(|other| other.id == id) {
            wrong.say(
                &format!("{field}id"),
                format!("`{id}` is used twice; answers are told apart by their id"),
            );
        }
        questions.extend(question(item, id, &field, wrong));
    }
    questions
}

fn question(item: &Object, id: String, prefix: &str, wrong: &mut Wrong) -> Option<Question> {
    let before = wrong.0.len();
    let text = text(item, &format!("{prefix}question"), wrong);
    let options = options(item, prefix, wrong);
    let kind = kind(item, options.is_some(), prefix, wrong);
    let options = options.unwrap_or_default();
    let default = default(item, kind, &options, prefix, wrong);
    (wrong.0.len() == before).then_some(Question { id, text, kind, options, default })
}

fn text(item: &Object, field: &str, wrong: &mut Wrong) -> String {
    let text = match given(item, "question") {
        Some(Value::String(text)) => clean(text),
        Some(_) => {
            wrong.say(field, "wanted text");
            return String::new();
        }
        None => String::new(),
    };
    match text.chars().count() {
        0 => wrong.say(field, "is missing; say what the person is asked"),
        long if long > LONGEST_QUESTION => {
            wrong.say(
                field,
                format!("has {long} characters, at most {LONGEST_QUESTION} are shown; shorten it"),
            );
        }
        _ => {}
    }
    text
}

fn kind(item: &Object, has_options: bool, prefix: &str, wrong: &mut Wrong) -> Kind {
    let field = format!("{prefix}kind");
    let many = match given(item, "multi_select") {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(Value::String(text)) if text == "true" || text == "false" => text == "true",
        Some(_) => {
            wrong.say(&format!("{prefix}multi_select"), "wanted true or false");
            false
        }
    };
    let named = match given(item, "kind") {
        None => None,
        Some(value) => {
            let kind = value.as_str().and_then(Kind::parse);
            if kind.is_none() {
                wrong.say(&field, format!("wanted one of {}, got {value}", Kind::NAMES.join(", ")));
                return Kind::Text;
            }
            kind
        }
    };
    let kind = match (named, has_options, many) {
        (None | Some(Kind::Choice), true, true) => Kind::MultiChoice,
        (None, true, false) => Kind::Choice,
        (None, false, _) => Kind::Text,
        (Some(kind), _, _) => kind,
    };
    if kind.has_options() && !has_options {
        wrong.say(&format!("{prefix}options"), "is missing; a choice needs options");
    }
    if !kind.has_options() && has_options {
        wrong.say(&field, "this kind has no options; leave options out, or kind");
    }
    kind
}

fn options(item: &Object, prefix: &str, wrong: &mut Wrong) -> Option<Vec<Choice>> {
    let value = given(item, "options")?;
    let field = format!("{prefix}options");
    let parsed = from_text(value);
    let Some(list) = parsed.as_ref().unwrap_or(value).as_array() else {
        wrong.say(&field, "wanted a list of {\"label\": …, \"description\": …}");
        return Some(Vec::new());
    };
    if list.is_empty() {
        wrong.say(&field, "is empty; leave it out to ask for text");
    }
    if list.len() > MOST_OPTIONS {
        wrong.say(&field, format!("has {}, at most {MOST_OPTIONS} are shown", list.len()));
        return Some(Vec::new());
    }
    let mut choices: Vec<Choice> = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        if let Some(choice) = option(item, &format!("{field}[{index}]"), wrong) {
            if choices.iter().any(|other| other.label == choice.label) {
                wrong.say(&format!("{field}[{index}].label"), format!("`{}` is there twice", choice.label));
            }
            choices.push(choice);
        }
    }
    Some(choices)
}

fn option(item: &Value, field: &str, wrong: &mut Wrong) -> Option<Choice> {
    let (label, description) = match item {
        Value::String(label) => (Some(label.as_str()), None),
        Value::Object(option) => (
            given(option, "label").and_then(Value::as_str),
            given(option, "description").and_then(Value::as_str).map(clean_line),
        ),
        _ => (None, None),
    };
    let label = clean_line(label.unwrap_or_default());
    match label.chars().count() {
        0 => {
            wrong.say(&format!("{field}.label"), "is missing; say what is chosen");
            return None;
        }
        long if long > LONGEST_LABEL => {
            let what = format!(
                "has {long} characters, at most {LONGEST_LABEL} are shown; put the rest into description or question"
            );
            wrong.say(&format!("{field}.label"), what);
        }
        _ => {}
    }
    let description = description.filter(|text| !text.is_empty());
    let long = description.as_ref().map_or(0, |text| text.chars().count());
    if long > LONGEST_DESCRIPTION {
        let what = format!("has {long} characters, at most {LONGEST_DESCRIPTION} are shown; shorten it");
        wrong.say(&format!("{field}.description"), what);
    }
    Some(Choice { label, description })
}

/// The default as an answer: a possible one, in the form it would be told.
fn default(item: &Object, kind: Kind, options: &[Choice], prefix: &str, wrong: &mut Wrong) -> Option<String> {
    let field = format!("{prefix}default");
    let typed = match given(item, "default")? {
        Value::String(text) => clean(text),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        _ => {
            wrong.say(&field, "wanted text");
            return None;
        }
    };
    let known = |label: &str| options.iter().any(|option| option.label == label);
    let possible = match kind {
        Kind::Choice => known(&typed),
        Kind::MultiChoice => known(&typed) || typed.split(',').all(|label| known(label.trim())),
        _ => true,
    };
    if !possible && !options.is_empty() {
        let labels: Vec<&str> = options.iter().map(|option| option.label.as_str()).collect();
        wrong.say(&field, format!("`{typed}` is none of the options: {}", labels.join(", ")));
        return None;
    }
    match kind.read(&typed) {
        Ok(answer) => Some(answer),
        Err(wanted) => {
            wrong.say(&field, format!("{wanted}, got `{typed}`"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(arguments: Value) -> Result<Form, FormError> {
        Form::parse(arguments.as_object().unwrap())
    }

    #[track_caller]
    fn check(arguments: Value, kind: Kind, labels: &[&str], default: Option<&str>) {
        let form = parse(arguments).unwrap();
        let [question] = &form.questions[..] else { panic!("{form:?}") };
        let got: Vec<&str> = question.options.iter().map(|option| option.label.as_str()).collect();
        assert_eq!((question.kind, got.as_slice(), question.default.as_deref()), (kind, labels, default));
    }

    #[track_caller]
    fn check_wrong(arguments: Value, expected: &[&str]) {
        assert_eq!(parse(arguments).unwrap_err().0, expected);
    }

    #[test]
    fn the_kind_follows_from_what_is_given() {
        check(json!({"question": "?"}), Kind::Text, &[], None);
        check(json!({"question": "?", "options": null, "kind": null}), Kind::Text, &[], None);
        check(json!({"question": "?", "options": ["a", {"label": "b"}]}), Kind::Choice, &["a", "b"], None);
        check(
            json!({"question": "?", "options": "[\"a\"]", "multi_select": "true"}),
            Kind::MultiChoice,
            &["a"],
            None,
        );
        check(
            json!({"question": "?", "kind": "choice", "options": ["a"], "multi_select": true}),
            Kind::MultiChoice,
            &["a"],
            None,
        );
        check(json!({"question": "?", "kind": "yes_no", "default": true}), Kind::YesNo, &[], Some("yes"));
        check(json!({"question": "?", "kind": "number", "default": 8}), Kind::Number, &[], Some("8"));
        check(
            json!({"question": "?", "options": ["a", "b"], "multi_select": true, "default": "a, b"}),
            Kind::MultiChoice,
            &["a", "b"],
            Some("a, b"),
        );
    }

    #[test]
    fn control_characters_never_reach_the_person() {
        let form = parse(json!({
            "question": "\x1b[2J\x1b[31mDelete\x07 all?\r\nReally",
            "options": [{"label": "\x1b]0;owned\x07Yes\nplease", "description": "a\x08b\u{202e}c"}],
        }))
        .unwrap();
        assert_eq!(form.questions[0].text, "Delete all?\nReally");
        assert_eq!(
            form.questions[0].options,
            [Choice { label: "Yes please".to_owned(), description: Some("abc".to_owned()) }]
        );
    }

    #[test]
    fn what_cannot_be_shown_is_refused_by_field() {
        check_wrong(json!({}), &["question: is missing; say what the person is asked"]);
        check_wrong(json!({"question": "\x1b[1m"}), &["question: is missing; say what the person is asked"]);
        check_wrong(
            json!({"question": "?", "options": []}),
            &["options: is empty; leave it out to ask for text"],
        );
        check_wrong(
            json!({"question": "?", "options": ["a", "\x1b[1ma", "x".repeat(10_000)]}),
            &[
                "options[1].label: `a` is there twice",
                "options[2].label: has 10000 characters, at most 100 are shown; put the rest into description or \
                 question",
            ],
        );
        check_wrong(
            json!({"question": "?", "options": ["a"], "default": "b", "timeout_ms": 0}),
            &[
                "default: `b` is none of the options: a",
                "timeout_ms: wanted whole milliseconds from 1 to 86400000, got 0",
            ],
        );
        check_wrong(
            json!({"question": "?", "kind": "choice"}),
            &["options: is missing; a choice needs options"],
        );
        check_wrong(
            json!({"question": "?", "kind": "number", "default": "many"}),
            &["default: a number is wanted, got `many`"],
        );
        check_wrong(
            json!({"question": "?", "kind": "yes_no", "options": ["a"]}),
            &["kind: this kind has no options; leave options out, or kind"],
        );
    }

    #[test]
    fn ids_of_a_form_differ() {
        check_wrong(
            json!({"questions": [{"id": "a", "question": "?"}, {"id": "a", "question": "?"}, {"id": "b"}]}),
            &[
                "questions[1].id: `a` is used twice; answers are told apart by their id",
                "questions[2].question: is missing; say what the person is asked",
            ],
        );
        check_wrong(
            json!({"question": "?", "questions": [{"question": "?"}]}),
            &["questions: give either question or questions, not both"],
        );
        let form =
            parse(json!({"questions": [{"question": "a"}, {"question": "b"}], "timeout_ms": 500})).unwrap();
        let ids: Vec<&str> = form.questions.iter().map(|question| question.id.as_str()).collect();
        assert_eq!((ids.as_slice(), form.timeout), (["1", "2"].as_slice(), Some(Duration::from_millis(500))));
    }
}
