//! `ask_user`: one question, or a form.

use provider_core::Style;
use provider_core::prelude::*;
use questions::Form;

use crate::User;

/// Asks the person one question, or several at once, and waits for the answer. Use it when only the person can decide;
/// do not ask what you can find out. Give `options` for a choice; the person can always answer in other words.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// What the person is asked. At most 4,000 characters.
    question: Option<String>,
    /// What can be chosen, at most 50. Leave out to ask for text.
    options: Option<Vec<Choice>>,
    /// Whether several options can be chosen.
    multi_select: Option<bool>,
    /// What kind of answer is wanted; by default a choice where there are options, else text.
    kind: Option<Kind>,
    /// The answer of a person who says nothing: a label of the options, yes or no, a number, or text.
    default: Option<String>,
    /// How long to wait for all answers, in milliseconds. Then the defaults stand for the answers.
    #[schemars(range(min = 1, max = 86_400_000))]
    timeout_ms: Option<u64>,
    /// Several questions, instead of `question`; at most 20.
    questions: Option<Vec<Question>>,
}

/// One of several questions.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Question {
    /// Names the answer in the result; each question has its own.
    id: Option<String>,
    /// What the person is asked. At most 4,000 characters.
    question: String,
    /// What can be chosen, at most 50. Leave out to ask for text.
    options: Option<Vec<Choice>>,
    /// Whether several options can be chosen.
    multi_select: Option<bool>,
    /// What kind of answer is wanted; by default a choice where there are options, else text.
    kind: Option<Kind>,
    /// The answer of a person who says nothing.
    default: Option<String>,
}

/// Something that can be chosen.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Choice {
    /// What is chosen, in at most 100 characters; each label once.
    label: String,
    /// What choosing it means, in at most 300 characters.
    description: Option<String>,
}

/// What kind of answer is wanted.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// One of the options.
    Choice,
    /// Any number of the options.
    MultiChoice,
    /// Words.
    Text,
    /// Yes or no.
    YesNo,
    /// A number.
    Number,
    /// A path.
    Path,
}

/// What the person said.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// The answer in words; of several questions one line each, `id: answer`. Empty where there is none.
    answer: String,
    /// Every answer with what became of its question.
    answers: Option<Vec<Answered>>,
}

/// What became of one question.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Answered {
    /// The question's id; `1` where there is one question.
    id: String,
    /// The answer in words, empty where there is none.
    answer: String,
    /// answered, skipped (no answer given), declined (the person does not want to answer), or timed_out (the default,
    /// where there is one, stands for the answer).
    status: Status,
    /// The labels that were chosen.
    selected: Option<Vec<String>>,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// The person answered.
    Answered,
    /// The person went on without an answer.
    Skipped,
    /// The person did not want to answer.
    Declined,
    /// Nobody answered in time.
    TimedOut,
}

pub(crate) struct AskUser;

impl Interactive for AskUser {
    const NAME: &'static str = "ask_user";
    type Provider = User;
    type Args = Args;
    type Output = Output;

    /// Reached only where no frontend answers, so nobody can.
    async fn invoke(_: Arc<User>, args: Args, _: Cx<Silent>) -> Result<Output, ToolError> {
        let arguments = serde_json::to_value(args).map_err(|error| ToolError::unknown(&error))?;
        Form::parse(arguments.as_object().unwrap_or(&serde_json::Map::new()))
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let message = "nobody is there to answer: this host has no frontend for questions. Decide with what you know and \
                       say what you assumed, or end your turn with the question";
        Err(ToolError::new(Code::NoHuman, message))
    }

    fn render(output: &Output) -> Option<Node> {
        let answers = output.answers.as_deref().unwrap_or_default();
        if answers.iter().all(|one| one.status == Status::Answered) && answers.len() <= 1 {
            return Some(Node::text(output.answer.clone()));
        }
        let line = |one: &Answered| match one.status {
            Status::Answered => Node::text(format!("{}: {}", one.id, one.answer)),
            Status::Skipped => Node::styled(format!("{}: skipped", one.id), Style::Dim),
            Status::Declined => Node::styled(format!("{}: declined", one.id), Style::Dim),
            Status::TimedOut if one.answer.is_empty() => {
                Node::styled(format!("{}: timed out", one.id), Style::Dim)
            }
            Status::TimedOut => {
                Node::styled(format!("{}: {} (timed out, default used)", one.id, one.answer), Style::Dim)
            }
        };
        Some(Node::Group(answers.iter().map(line).collect()))
    }
}
