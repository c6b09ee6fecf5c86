//! Questions to a person.
//!
//! [`Form::parse`] reads what a model asked: one question, or several. Whoever has a person shows the form and
//! collects one [`Answer`] for each question; [`Form::payload`] is the result the model reads. Nothing here knows
//! how a question is shown, so a terminal, a protocol bridge and the provider that declares the tool share it.
//!
//! A form that exists can be shown: its texts have no control characters, its labels are short and differ, its
//! defaults are possible answers.

mod answer;
mod clean;
mod parse;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use answer::{Answer, Status};
pub use clean::clean;
pub use parse::FormError;

/// What a model wants to know from a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The questions, in order; at least one.
    pub questions: Vec<Question>,
    /// Whether they came as a list, so that answers are told apart by id.
    pub listed: bool,
    /// How long the person has for all of them.
    pub timeout: Option<Duration>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Names the answer; unique in the form.
    pub id: String,
    /// The question itself. May have several lines.
    pub text: String,
    /// What kind of answer is wanted.
    pub kind: Kind,
    /// What can be chosen; empty unless the kind is a choice.
    pub options: Vec<Choice>,
    /// The answer of those who say nothing.
    pub default: Option<String>,
}

/// What kind of answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One of the options, or something else in words.
    Choice,
    /// Any number of the options, and something else in words.
    MultiChoice,
    /// Words.
    Text,
    /// `yes` or `no`.
    YesNo,
    /// A number.
    Number,
    /// A path.
    Path,
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What is chosen, and what the answer says. One line, unique among the options.
    pub label: String,
    /// What choosing it means.
    pub description: Option<String>,
}

impl Kind {
    /// The names, as a model writes them.
    pub const NAMES: [&str; 6] = ["choice", "multi_choice", "text", "yes_no", "number", "path"];

    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "choice" => Self::Choice,
            "multi_choice" => Self::MultiChoice,
            "text" => Self::Text,
            "yes_no" => Self::YesNo,
            "number" => Self::Number,
            "path" => Self::Path,
            _ => return None,
        })
    }

    /// Whether answers are picked from a list.
    pub fn has_options(self) -> bool {
        matches!(self, Self::Choice | Self::MultiChoice)
    }

    /// The answer that a typed line is, in the form it is told.
    ///
    /// # Errors
    /// What is wanted instead, for the person who typed it.
    pub fn read(self, typed: &str) -> Result<String, &'static str> {
        let typed = typed.trim();
        match self {
            Self::YesNo => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok("yes".to_owned()),
                "n" | "no" | "false" => Ok("no".to_owned()),
                _ => Err("answer yes or no"),
            },
            Self::Number => match typed.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(typed.to_owned()),
                _ => Err("a number is wanted"),
            },
            Self::Choice | Self::MultiChoice | Self::Text | Self::Path => Ok(typed.to_owned()),
        }
    }
}
