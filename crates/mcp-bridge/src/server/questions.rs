//! Questions to the person behind a client.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use questions::{Answer, Choice, Form, Kind, Question as Asking, Status};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tool_host::people::{Question, denied_by_user, no_human};
use tool_host::{Answerer, CallError, Category, Object};

/// The field that the answer to a single question is typed into.
const ANSWER: &str = "answer";

/// A question on its way to a person.
pub(super) struct Asked {
    /// Names the question where several could be meant.
    pub(super) key: String,
    pub(super) params: ElicitRequestParams,
    /// Where what the person said goes. It is closed once nobody waits for it any more.
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What the person said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Accept(Object),
    Decline,
    Cancel,
    /// The client could not put the question.
    Failed(String),
}

impl From<ElicitResult> for Reply {
    fn from(result: ElicitResult) -> Self {
        match result.action {
            ElicitationAction::Accept => Self::Accept(match result.content {
                Some(Value::Object(content)) => content,
                _ => Map::new(),
            }),
            ElicitationAction::Decline => Self::Decline,
            ElicitationAction::Cancel => Self::Cancel,
            // An action of a revision to come gives no answer either.
            _ => Self::Cancel,
        }
    }
}

/// Puts the questions of one call to the client that made it.
pub(super) struct ClientAnswers {
    /// `None` where the client cannot ask anybody.
    questions: Option<mpsc::Sender<Asked>>,
}

impl ClientAnswers {
    /// The answerer of a call, and what it is asked.
    pub(super) fn new(client_can_ask: bool) -> (Arc<Self>, mpsc::Receiver<Asked>) {
        let (sender, asked) = mpsc::channel(1);
        (Arc::new(Self { questions: client_can_ask.then_some(sender) }), asked)
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Object, CallError> {
        let Some(questions) = &self.questions else {
            return Err(no_human(format!(
                "no human can be asked in this client: {} needs one, and the client does not offer elicitation",
                question.tool.name
            )));
        };
        let own;
        let form = match &question.form {
            Some(form) => form,
            None => {
                own = foreign(question)?;
                &own
            }
        };
        let sheet = Sheet::new(form);
        let (reply, answer) = oneshot::channel();
        let key = match question.form {
            Some(_) => ANSWER.to_owned(),
            None => question.text_field().unwrap_or_else(|| ANSWER.to_owned()),
        };
        let asked = Asked { key, params: sheet.params(form, &question.provider.name)?, reply };
        let gone = || no_human("no human can be asked any more: the client is gone");
        questions.send(asked).await.map_err(|_| gone())?;
        let reply = match form.timeout {
            None => answer.await.map_err(|_| gone())?,
            Some(limit) => match timeout(limit, answer).await {
                Ok(reply) => reply.map_err(|_| gone())?,
                Err(_) => {
                    return Ok(fill(
                        question,
                        form,
                        &form.questions.iter().map(Answer::timed_out).collect::<Vec<_>>(),
                    ));
                }
            },
        };
        match reply {
            Reply::Accept(content) => Ok(fill(question, form, &sheet.read(form, &content)?)),
            Reply::Decline => Err(denied_by_user("declined: the person did not want to answer")),
            Reply::Cancel => {
                Err(denied_by_user("cancelled: the person dismissed the question without an answer"))
            }
            Reply::Failed(reason) => Err(no_human(format!("no human could be asked: {reason}"))),
        }
    }
}

impl Answerer for ClientAnswers {
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        Box::pin(self.ask(question))
    }
}

/// What a tool asks in its own way, as one question for a text.
fn foreign(question: &Question<'_>) -> Result<Form, CallError> {
    if question.text_field().is_none() {
        return Err(no_human(format!("{} wants an answer that no form can give", question.tool.name)));
    }
    let text = format!("{}: {:#}", question.tool.name, Value::Object(question.arguments.clone()));
    let one = Asking {
        id: "1".to_owned(),
        text: questions::clean(&text),
        kind: Kind::Text,
        options: Vec::new(),
        default: None,
    };
    Ok(Form { questions: vec![one], listed: false, timeout: None })
}

/// The result that the answers are. What else a foreign tool declares is its own; one that takes a text is given one.
fn fill(question: &Question<'_>, form: &Form, answers: &[Answer]) -> Object {
    let mut payload = form.payload(answers);
    match question.text_field() {
        Some(field) if field != ANSWER => {
            let text = payload.remove(ANSWER).unwrap_or_default();
            Object::from_iter([(field, text)])
        }
        _ => payload,
    }
}

/// A form as clients show one: texts, choices and switches only, because some can do no more.
struct Sheet {
    fields: Vec<Field>,
}

/// How one question is asked for.
enum Field {
    /// One text, from a closed set where there are options.
    Text(String),
    /// A switch for each option.
    Switches(Vec<(String, String)>),
}

impl Sheet {
    fn new(form: &Form) -> Self {
        let field = |(index, asked): (usize, &Asking)| {
            let name = if form.listed { asked.id.clone() } else { ANSWER.to_owned() };
            match asked.kind {
                Kind::MultiChoice => {
                    let switch = |(number, choice): (usize, &Choice)| {
                        (
                            format!(
                                "{}_{}",
                                if form.listed { format!("q{}", index + 1) } else { name.clone() },
                                number + 1
                            ),
                            choice.label.clone(),
                        )
                    };
                    Field::Switches(asked.options.iter().enumerate().map(switch).collect())
                }
                _ => Field::Text(name),
            }
        };
        Self { fields: form.questions.iter().enumerate().map(field).collect() }
    }

    fn params(&self, form: &Form, asker: &str) -> Result<ElicitRequestParams, CallError> {
        let mut properties = Map::new();
        for (field, asked) in self.fields.iter().zip(&form.questions) {
            match field {
                Field::Text(name) => {
                    properties.insert(name.clone(), text_property(asked));
                }
                Field::Switches(switches) => {
                    for (name, label) in switches {
                        let property = json!({"type": "boolean", "title": label, "default": false});
                        properties.insert(name.clone(), property);
                    }
                }
            }
        }
        let required: Vec<&str> = match self.fields.as_slice() {
            [Field::Text(name)] => vec![name],
            _ => Vec::new(),
        };
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), json!(required));
        let requested_schema = ElicitationSchema::from_json_schema(schema).map_err(|error| {
            CallError::new(Category::Unknown, format!("the question of {asker} makes no form: {error}"))
        })?;
        Ok(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message(form),
            requested_schema,
        })
    }

    /// The answers in what a client sent.
    fn read(&self, form: &Form, content: &Object) -> Result<Vec<Answer>, CallError> {
        self.fields.iter().zip(&form.questions).map(|(field, asked)| field.read(asked, content)).collect()
    }
}

impl Field {
    fn read(&self, asked: &Asking, content: &Object) -> Result<Answer, CallError> {
        let name = match self {
            Self::Switches(switches) => {
                let on = |(name, _): &&(String, String)| content.get(name) == Some(&Value::Bool(true));
                let chosen = switches.iter().filter(on).map(|(_, label)| label.clone()).collect();
                return Ok(Answer::chosen(chosen, None));
            }
            Self::Text(name) => name,
        };
        let typed = match content.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Bool(yes)) => Some(if *yes { "yes" } else { "no" }.to_owned()),
            Some(other) => Some(other.to_string()),
        };
        let Some(typed) = typed.or_else(|| asked.default.clone()) else {
            return Ok(Answer::none(Status::Skipped));
        };
        if asked.options.iter().any(|option| option.label == typed) {
            return Ok(Answer::chosen(vec![typed], None));
        }
        asked.kind.read(&typed).map(Answer::typed).map_err(|wanted| {
            let message =
                format!("the person answered {typed:?} to {:?}, but {wanted}; ask again", asked.text);
            CallError::new(Category::ExecutionFailed, message)
        })
    }
}

fn text_property(asked: &Asking) -> Value {
    let mut property = json!({"type": "string", "title": asked.text.lines().next().unwrap_or_default()});
    match asked.kind {
        Kind::Choice => property["enum"] = asked.options.iter().map(|option| option.label.as_str()).collect(),
        Kind::YesNo => property["enum"] = json!(["yes", "no"]),
        Kind::Number => property["description"] = "a number".into(),
        Kind::Path => property["description"] = "a path".into(),
        Kind::Text | Kind::MultiChoice => {}
    }
    if let Some(default) = &asked.default {
        property["default"] = default.as_str().into();
    }
    property
}

/// The questions, with what the options mean.
fn message(form: &Form) -> String {
    let one = |asked: &Asking| {
        let meanings = asked.options.iter().filter_map(|option| {
            option.description.as_ref().map(|meaning| format!("\n- {}: {meaning}", option.label))
        });
        format!("{}{}", asked.text, meanings.collect::<String>())
    };
    form.questions.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(arguments: Value) -> Form {
        Form::parse(arguments.as_object().unwrap()).unwrap()
    }

    /// The form that a client shows, and what the answers in `content` are.
    #[track_caller]
    fn check(arguments: Value, shown: Value, content: Value, answer: &str) {
        let form = form(arguments);
        let sheet = Sheet::new(&form);
        let params = serde_json::to_value(sheet.params(&form, "user").unwrap()).unwrap();
        assert_eq!(params["requestedSchema"]["properties"], shown);
        let answers = sheet.read(&form, content.as_object().unwrap()).unwrap();
        assert_eq!(form.payload(&answers)["answer"], answer);
    }

    #[test]
    fn a_text_is_a_string_and_a_choice_a_closed_one() {
        check(
            json!({"question": "Name?"}),
            json!({"answer": {"type": "string", "title": "Name?"}}),
            json!({"answer": "Ada"}),
            "Ada",
        );
        check(
            json!({"question": "Which?", "options": ["a", "b"]}),
            json!({"answer": {"type": "string", "title": "Which?", "enum": ["a", "b"]}}),
            json!({"answer": "b"}),
            "b",
        );
        check(
            json!({"question": "Sure?", "kind": "yes_no"}),
            json!({"answer": {"type": "string", "title": "Sure?", "enum": ["yes", "no"]}}),
            json!({"answer": "yes"}),
            "yes",
        );
    }

    #[test]
    fn several_choices_are_switches() {
        check(
            json!({"question": "Which?", "options": ["a", "b"], "multi_select": true}),
            json!({
                "answer_1": {"type": "boolean", "title": "a", "default": false},
                "answer_2": {"type": "boolean", "title": "b", "default": false},
            }),
            json!({"answer_1": true, "answer_2": true}),
            "a, b",
        );
    }

    #[test]
    fn a_list_of_questions_is_one_form() {
        check(
            json!({"questions": [{"id": "name", "question": "Name?"}, {"id": "age", "question": "Age?", "kind": "number"}]}),
            json!({
                "name": {"type": "string", "title": "Name?"},
                "age": {"type": "string", "title": "Age?", "description": "a number"},
            }),
            json!({"name": "Ada", "age": "36"}),
            "name: Ada\nage: 36",
        );
    }

    #[test]
    fn an_answer_of_the_wrong_kind_is_told() {
        let form = form(json!({"question": "Age?", "kind": "number"}));
        let content = json!({"answer": "old"});
        let error = Sheet::new(&form).read(&form, content.as_object().unwrap()).unwrap_err();
        assert!(error.message.contains("a number is wanted"), "{}", error.message);
    }

    #[test]
    fn the_message_tells_what_options_mean() {
        let form = form(
            json!({"question": "Which?", "options": [{"label": "a", "description": "first"}, {"label": "b"}]}),
        );
        assert_eq!(message(&form), "Which?\n- a: first");
    }
}
