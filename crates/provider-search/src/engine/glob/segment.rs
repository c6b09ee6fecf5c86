//! One segment of a pattern: what a single name may be.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

/// A part of a segment without alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Character(char),
    /// `?`
    One,
    /// `*`
    Many,
    /// A set of characters as it is written, with its brackets.
    Class(String),
}

/// How a segment reached a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Wild,
    /// The name is spelled out, or begins with a dot that is written there.
    Explicit,
}

/// What a single name may be.
#[derive(Debug, Clone)]
pub(super) struct Segment(Vec<(Form, Reach)>);

/// The forms that names are matched with, the cheap ones apart.
#[derive(Debug, Clone)]
enum Form {
    Literal(Vec<u8>),
    Anything,
    Around { before: Vec<u8>, after: Vec<u8> },
    General(GlobMatcher),
}

impl Segment {
    /// A segment of these alternatives; `raw` is how it is written as a whole.
    pub(super) fn new(alternatives: &[Vec<Token>], raw: Option<&str>) -> Result<Self, globset::Error> {
        let mut forms = Vec::with_capacity(alternatives.len() + 1);
        for tokens in alternatives {
            forms.push((Form::new(tokens)?, reach(tokens)));
        }
        // A name that is spelled exactly like the segment.
        forms.extend(raw.map(|raw| (Form::Literal(raw.as_bytes().to_vec()), Reach::Explicit)));
        // The first form that matches decides, and what is explicit counts.
        forms.sort_by_key(|(_, reach)| *reach == Reach::Wild);
        Ok(Self(forms))
    }

    pub(super) fn matches(&self, name: &[u8]) -> Option<Reach> {
        self.0.iter().find(|(form, _)| form.matches(name)).map(|(_, reach)| *reach)
    }
}

fn reach(tokens: &[Token]) -> Reach {
    let spelled_out = tokens.iter().all(|token| matches!(token, Token::Character(_)));
    match spelled_out || tokens.first() == Some(&Token::Character('.')) {
        true => Reach::Explicit,
        false => Reach::Wild,
    }
}

/// The text of tokens that are all characters.
pub(super) fn literal(tokens: &[Token]) -> Option<String> {
    tokens
        .iter()
        .map(|token| match token {
            Token::Character(character) => Some(*character),
            _ => None,
        })
        .collect()
}

impl Form {
    fn new(tokens: &[Token]) -> Result<Self, globset::Error> {
        if let Some(name) = literal(tokens) {
            return Ok(Self::Literal(name.into_bytes()));
        }
        let many = tokens.iter().position(|token| *token == Token::Many);
        if let Some(at) = many {
            let (before, mut after) = (&tokens[..at], &tokens[at..]);
            while let [Token::Many, rest @ ..] = after {
                after = rest;
            }
            match (literal(before), literal(after)) {
                (Some(before), Some(after)) if before.is_empty() && after.is_empty() => {
                    return Ok(Self::Anything);
                }
                (Some(before), Some(after)) => {
                    return Ok(Self::Around { before: before.into_bytes(), after: after.into_bytes() });
                }
                _ => {}
            }
        }
        let text: String = tokens.iter().map(Token::to_glob).collect();
        let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build()?;
        Ok(Self::General(glob.compile_matcher()))
    }

    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => literal == name,
            Self::Anything => true,
            Self::Around { before, after } => {
                name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
            }
            Self::General(matcher) => matcher.is_match(OsStr::from_bytes(name)),
        }
    }
}

impl Token {
    fn to_glob(&self) -> String {
        match self {
            Self::Character(character) if character.is_alphanumeric() => character.to_string(),
            Self::Character(character) => format!("\\{character}"),
            Self::One => "?".to_owned(),
            Self::Many => "*".to_owned(),
            Self::Class(class) => class.clone(),
        }
    }
}
