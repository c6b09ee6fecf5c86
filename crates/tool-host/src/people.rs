//! The people behind a host: who approves, and who answers.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use harness_proto::render::v1::RenderTree;
use questions::Form;
use serde_json::Value;

use crate::catalogue::{Identity, Tool};
use crate::event::{CallError, Category, Object};
use crate::schema::Shape;

/// A call that changes something, before it is made.
#[derive(Debug)]
pub struct Proposal<'a> {
    /// Whose tool it is.
    pub provider: &'a Identity,
    /// The tool.
    pub tool: &'a Tool,
    /// The arguments.
    pub arguments: &'a Object,
    /// What the call would do.
    pub preview: Preview,
}

/// What is known of what a call would do.
#[derive(Debug)]
pub enum Preview {
    /// The provider's picture of it.
    Tree(RenderTree),
    /// The tool has no previews.
    Unsupported,
    /// The provider says that the call would fail.
    Failed(CallError),
}

/// Decides whether calls that change something are made. Asked about one call at a time.
pub trait Approver: Send + Sync {
    /// Whether the decision depends on the preview. Otherwise none is asked for.
    fn wants_preview(&self) -> bool {
        true
    }

    /// Decides. Dropping the future withdraws the question.
    fn approve<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Decision>;
}

/// What became of a question whether a call may be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether it is made, else what it ends with.
    pub verdict: Result<(), CallError>,
    /// Which calls it is about.
    pub scope: Scope,
}

/// How far a decision reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This call.
    Once,
    /// Every call of this provider's tool in the call's session.
    Session,
}

impl Decision {
    /// A decision about one call.
    pub fn once(verdict: Result<(), CallError>) -> Self {
        Self { verdict, scope: Scope::Once }
    }

    /// A decision that holds until the session ends.
    pub fn for_session(verdict: Result<(), CallError>) -> Self {
        Self { verdict, scope: Scope::Session }
    }
}

/// Approves everything.
#[derive(Clone, Copy, Debug)]
pub struct ApproveAll;

impl Approver for ApproveAll {
    fn wants_preview(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, _: &'a Proposal<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async { Decision::once(Ok(())) })
    }
}

/// Denies everything, because nobody is there to ask. `hint` says how to approve beforehand.
#[derive(Clone, Copy, Debug)]
pub struct DenyAll {
    /// For example `pass --yes`.
    pub hint: &'static str,
}

impl Approver for DenyAll {
    fn wants_preview(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Decision> {
        let (tool, risk) = (&proposal.tool.name, proposal.tool.risk);
        let message = format!(
            "{tool} (risk {risk}) needs approval, and there is nobody to ask: {}; nothing was done",
            self.hint
        );
        Box::pin(async move { Decision::once(Err(no_human(message))) })
    }
}

/// A question to a person.
#[derive(Debug)]
pub struct Question<'a> {
    /// Whose tool asks.
    pub provider: &'a Identity,
    /// The tool; its output schema says what an answer is.
    pub tool: &'a Tool,
    /// The arguments: the question itself.
    pub arguments: &'a Object,
    /// The question as a form that can be shown, where the tool asks in the form of `ask_user`. What its
    /// [`Form::payload`] makes of answers is the result.
    pub form: Option<Form>,
}

impl<'a> Question<'a> {
    /// # Errors
    /// `invalid_arguments` when `ask_user` is called with what cannot be shown.
    pub(crate) fn new(
        provider: &'a Identity,
        tool: &'a Tool,
        arguments: &'a Object,
    ) -> Result<Self, CallError> {
        let form = match Form::parse(arguments) {
            Ok(form) => Some(form),
            Err(error) if tool.name == ASK_USER => {
                return Err(CallError::new(Category::InvalidArguments, error.to_string()));
            }
            // A tool of somebody else, which asks in its own way.
            Err(_) => None,
        };
        Ok(Self { provider, tool, arguments, form })
    }

    /// The field of the result that a typed text can fill: `answer`, else the only one that must be there.
    pub fn text_field(&self) -> Option<String> {
        let output = &self.tool.output;
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
}

/// The catalog's own tool that asks.
const ASK_USER: &str = "ask_user";

/// Answers interactive calls. Asked one question at a time.
pub trait Answerer: Send + Sync {
    /// Answers. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// What the call ends with when there is no answer.
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>>;
}

/// Has no answers, because nobody is there. `hint` says how to answer beforehand.
#[derive(Clone, Copy, Debug)]
pub struct NoAnswers {
    /// For example `pass --answers FILE`.
    pub hint: &'static str,
}

impl Answerer for NoAnswers {
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        let message =
            format!("{} asks a person, and nobody is there to answer: {}", question.tool.name, self.hint);
        Box::pin(async move { Err(no_human(message)) })
    }
}

/// Answers written down beforehand.
#[derive(Debug)]
pub struct PreparedAnswers(Mutex<Prepared>);

#[derive(Debug)]
enum Prepared {
    /// One answer to every question.
    Always(Object),
    /// Answers in order.
    Once(VecDeque<Object>),
}

impl PreparedAnswers {
    /// Answers from JSON: one object that answers every question, or a list of objects used in order.
    pub fn from_json(value: Value) -> Option<Self> {
        let object = |value| match value {
            Value::Object(object) => Some(object),
            _ => None,
        };
        let prepared = match value {
            Value::Object(answer) => Prepared::Always(answer),
            Value::Array(answers) => Prepared::Once(answers.into_iter().map(object).collect::<Option<_>>()?),
            _ => return None,
        };
        Some(Self(Mutex::new(prepared)))
    }

    fn next(&self) -> Option<Object> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Prepared::Always(answer) => Some(answer.clone()),
            Prepared::Once(answers) => answers.pop_front(),
        }
    }
}

impl Answerer for PreparedAnswers {
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Object, CallError>> {
        let missing = || {
            no_human(format!("{} asks a person, and the prepared answers are used up", question.tool.name))
        };
        Box::pin(async move { self.next().ok_or_else(missing) })
    }
}

/// The error of a call that needs a person where there is none.
pub fn no_human(message: impl Into<String>) -> CallError {
    CallError::new(Category::PermissionDenied, message).with("code", "no_human")
}

/// The error of a call that the operator's policy refuses.
pub fn denied_by_policy(message: impl Into<String>) -> CallError {
    CallError::new(Category::PermissionDenied, message).with("code", "denied_by_policy")
}

/// The error of a call that a person did not allow.
pub fn denied_by_user(message: impl Into<String>) -> CallError {
    CallError::new(Category::PermissionDenied, message).with("code", "denied_by_user")
}
