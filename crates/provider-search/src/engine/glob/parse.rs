//! Reading a pattern: text, then a tree with braces, then alternatives of segments.

use std::fmt;

use super::positions::MOST;
use super::segment::{self, Segment, Token};
use super::{Kind, Pattern, Step};

/// More alternatives than this are refused, so that braces cannot multiply without end.
const MOST_ALTERNATIVES: usize = 1_024;
/// Braces nested deeper than this are refused.
const DEEPEST: usize = 16;

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {position}: {reason}")]
pub struct PatternError {
    /// Where, counted in characters from 1.
    pub position: usize,
    /// What is wrong there, and what to write.
    pub reason: String,
}

/// A part of a pattern.
#[derive(Debug, Clone)]
enum Node {
    Token(Token),
    Separator,
    Braces(Vec<Vec<Node>>),
}

/// A node with the characters it was read from, as a range of indices.
type Spanned = (Node, std::ops::Range<usize>);

pub(super) fn parse(text: &str) -> Result<Pattern, PatternError> {
    let characters: Vec<char> = text.chars().collect();
    let error = |position, reason: &str| PatternError { position, reason: reason.to_owned() };
    match characters.as_slice() {
        [] => return Err(error(1, "the pattern is empty; `**` matches everything")),
        ['!', ..] => {
            let rest: String = characters[1..].iter().collect();
            let reason = format!(
                "`!` excludes nothing here: a pattern says what is wanted. For a name that begins with `!` write `\\!{rest}`"
            );
            return Err(PatternError { position: 1, reason });
        }
        _ => {}
    }
    if let Some(at) = characters.iter().position(|character| *character == '\0') {
        return Err(error(at + 1, "a NUL byte is in no name"));
    }
    let mut reader = Reader { characters: &characters, at: 0, depth: 0 };
    let nodes = reader.sequence()?;
    build(&characters, nodes)
}

struct Reader<'a> {
    characters: &'a [char],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn error(&self, index: usize, reason: impl fmt::Display) -> PatternError {
        PatternError { position: index + 1, reason: reason.to_string() }
    }

    /// Nodes up to the end or, inside braces, to the `,` or `}` that ends an alternative.
    fn sequence(&mut self) -> Result<Vec<Spanned>, PatternError> {
        let mut nodes = Vec::new();
        while let Some(next) = self.peek() {
            let start = self.at;
            let node = match next {
                ',' | '}' if self.depth > 0 => break,
                '}' => {
                    return Err(self.error(start, "`}` closes no `{`; for the character itself write `\\}`"));
                }
                '{' => self.braces()?,
                '[' => Node::Token(Token::Class(self.class()?)),
                _ => {
                    self.bump();
                    match next {
                        '/' => Node::Separator,
                        '*' => Node::Token(Token::Many),
                        '?' => Node::Token(Token::One),
                        '\\' => Node::Token(Token::Character(self.bump().ok_or_else(|| {
                            self.error(start, "`\\` takes the next character as it is, and there is none")
                        })?)),
                        other => Node::Token(Token::Character(other)),
                    }
                }
            };
            nodes.push((node, start..self.at));
        }
        Ok(nodes)
    }

    fn braces(&mut self) -> Result<Node, PatternError> {
        let start = self.at;
        let unclosed = "`{` is not closed; for the character itself write `\\{`";
        self.bump();
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error(start, format!("braces are nested more than {DEEPEST} deep")));
        }
        let mut alternatives = Vec::new();
        loop {
            alternatives.push(self.sequence()?.into_iter().map(|(node, _)| node).collect());
            match self.bump() {
                Some(',') => {}
                Some('}') => break,
                _ => return Err(self.error(start, unclosed)),
            }
        }
        self.depth -= 1;
        Ok(Node::Braces(alternatives))
    }

    /// A set of characters, checked, as it is written.
    fn class(&mut self) -> Result<String, PatternError> {
        let start = self.at;
        self.bump();
        if matches!(self.peek(), Some('!' | '^')) {
            self.bump();
        }
        let first = self.at;
        loop {
            let at = self.at;
            match self.bump() {
                None => {
                    return Err(self.error(start, "`[` is not closed; for the character itself write `\\[`"));
                }
                Some(']') if at > first => break,
                Some('[') if self.peek() == Some(':') => self.named_class(),
                Some('/') => return Err(self.error(at, "a set of characters cannot hold `/`")),
                Some(low) => self.check_range(at, low)?,
            }
        }
        Ok(self.characters[start..self.at].iter().collect())
    }

    /// Skips `[:name:]`, if that is what stands here.
    fn named_class(&mut self) {
        let rest = &self.characters[self.at + 1..];
        let length = rest.iter().take_while(|character| character.is_ascii_lowercase()).count();
        if length > 0 && rest[length..].starts_with(&[':', ']']) {
            self.at += length + 3;
        }
    }

    fn check_range(&mut self, at: usize, low: char) -> Result<(), PatternError> {
        let ['-', high, ..] = self.characters[self.at..] else { return Ok(()) };
        if high == ']' {
            return Ok(());
        }
        self.at += 2;
        if high < low {
            let reason = format!("the range `{low}-{high}` runs backwards; write `{high}-{low}`");
            return Err(self.error(at, reason));
        }
        Ok(())
    }
}

/// Segments of one alternative, each with how it is written.
#[derive(Debug, Clone, Default)]
struct Route {
    segments: Vec<Vec<Node>>,
    absolute: bool,
    directory: bool,
}

fn build(characters: &[char], nodes: Vec<Spanned>) -> Result<Pattern, PatternError> {
    let too_many = || PatternError {
        position: 1,
        reason: "the braces stand for too many alternatives; ask with several patterns".to_owned(),
    };
    let notes = notes(characters, &nodes);
    let raw = raw_segments(characters, &nodes);
    let plain = nodes.into_iter().map(|(node, _)| node).collect();
    let routes = spread(plain).ok_or_else(too_many)?;
    let mut routes: Vec<Route> = routes.into_iter().map(route).collect();
    let prefix = take_prefix(&mut routes);
    let mut pattern = Pattern { prefix, notes, ..Pattern::empty() };
    let taken = raw.len().saturating_sub(routes.first().map_or(0, |route| route.segments.len()));
    for route in &routes {
        // With separators inside braces the segments of an alternative are not written anywhere as they are.
        let written = (routes.len() == 1).then_some(&raw[taken..]);
        let steps = steps(route, written).ok_or_else(too_many)??;
        if steps.is_empty() {
            continue;
        }
        if pattern.steps.len() + steps.len() > MOST {
            return Err(too_many());
        }
        pattern.push(steps);
    }
    if pattern.steps.is_empty() {
        let reason = "this names a directory itself and nothing in it; add `/*` or `/**`".to_owned();
        return Err(PatternError { position: 1, reason });
    }
    Ok(pattern)
}

/// The segments of the whole pattern as they are written; those inside braces are not looked into.
fn raw_segments(characters: &[char], nodes: &[Spanned]) -> Vec<String> {
    let segments = nodes.split(|(node, _)| matches!(node, Node::Separator));
    let texts = segments.map(|segment| match segment {
        [] => String::new(),
        [first, ..] => {
            let end = segment.last().map_or(first.1.end, |last| last.1.end);
            characters[first.1.start..end].iter().collect()
        }
    });
    let mut raw: Vec<String> = texts.filter(|text| !text.is_empty() && text != ".").collect();
    raw.dedup_by(|next, last| next == "**" && last == "**");
    raw
}

/// Every alternative of braces that concern more than one name. `None` if there are too many.
fn spread(nodes: Vec<Node>) -> Option<Vec<Vec<Node>>> {
    let mut all: Vec<Vec<Node>> = vec![Vec::new()];
    for node in nodes {
        match node {
            Node::Braces(alternatives) if alternatives.iter().any(|nodes| crosses(nodes)) => {
                let mut inner = Vec::new();
                for alternative in alternatives {
                    inner.extend(spread(alternative)?);
                }
                all = product(&all, &inner)?;
            }
            other => all.iter_mut().for_each(|nodes| nodes.push(other.clone())),
        }
    }
    Some(all)
}

fn product<T: Clone>(left: &[Vec<T>], right: &[Vec<T>]) -> Option<Vec<Vec<T>>> {
    if left.len() * right.len() > MOST_ALTERNATIVES {
        return None;
    }
    let both = left.iter().flat_map(|left| right.iter().map(move |right| [&left[..], &right[..]].concat()));
    Some(both.collect())
}

/// Whether nodes are about more than a part of one name: a separator, or `**`.
fn crosses(nodes: &[Node]) -> bool {
    is_recursive(nodes)
        || nodes.iter().any(|node| match node {
            Node::Separator => true,
            Node::Braces(alternatives) => alternatives.iter().any(|nodes| crosses(nodes)),
            Node::Token(_) => false,
        })
}

fn is_recursive(nodes: &[Node]) -> bool {
    matches!(nodes, [Node::Token(Token::Many), Node::Token(Token::Many)])
}

fn route(nodes: Vec<Node>) -> Route {
    let is_separator = |node: &Node| matches!(node, Node::Separator);
    let absolute = nodes.first().is_some_and(is_separator);
    let directory = nodes.last().is_some_and(is_separator);
    let mut segments: Vec<Vec<Node>> = Vec::new();
    for segment in nodes.split(is_separator) {
        let repeated = is_recursive(segment) && segments.last().is_some_and(|last| is_recursive(last));
        if !segment.is_empty() && literal(segment).as_deref() != Some(".") && !repeated {
            segments.push(segment.to_vec());
        }
    }
    Route { segments, absolute, directory }
}

fn literal(nodes: &[Node]) -> Option<String> {
    let tokens: Option<Vec<Token>> = nodes
        .iter()
        .map(|node| match node {
            Node::Token(token) => Some(token.clone()),
            _ => None,
        })
        .collect();
    segment::literal(&tokens?)
}

/// Takes the names that all alternatives begin with, and that are no match yet, off them.
fn take_prefix(routes: &mut [Route]) -> String {
    let absolute = routes.iter().any(|route| route.absolute);
    let mut names: Vec<String> = Vec::new();
    while let Some(name) = common_first(routes) {
        routes.iter_mut().for_each(|route| drop(route.segments.remove(0)));
        names.push(name);
    }
    format!("{}{}", if absolute { "/" } else { "" }, names.join("/"))
}

fn common_first(routes: &[Route]) -> Option<String> {
    let first = |route: &Route| match route.segments.as_slice() {
        // The last segment is what is looked for, unless it leads up or home.
        [only] if !matches!(literal(only).as_deref(), Some(".." | "~")) => None,
        [first, ..] => literal(first),
        [] => None,
    };
    let name = first(routes.first()?)?;
    routes.iter().all(|route| first(route).as_deref() == Some(&name)).then_some(name)
}

/// The steps of a route; the outer `None` if its braces stand for too much.
fn steps(route: &Route, written: Option<&[String]>) -> Option<Result<Vec<Step>, PatternError>> {
    let mut steps = Vec::with_capacity(route.segments.len());
    for (index, nodes) in route.segments.iter().enumerate() {
        let last = index + 1 == route.segments.len();
        let kind = match is_recursive(nodes) {
            true => Kind::Recursive,
            false => {
                let alternatives = tokens(nodes)?;
                let raw = written.and_then(|raw| raw.get(index).cloned()).or_else(|| spelled(nodes));
                if raw.as_deref() == Some("..") {
                    let reason = "`..` can only stand at the beginning, before any wildcard";
                    return Some(Err(PatternError { position: 1, reason: reason.to_owned() }));
                }
                match Segment::new(&alternatives, raw.as_deref()) {
                    Ok(segment) => Kind::Name(segment),
                    Err(error) => {
                        let reason = format!("`{}`: {}", raw.unwrap_or_default(), error.kind());
                        return Some(Err(PatternError { position: 1, reason }));
                    }
                }
            }
        };
        steps.push(Step { kind, last, directory: last && route.directory });
    }
    Some(Ok(steps))
}

/// How a segment is written; with braces, it is not known any more.
fn spelled(nodes: &[Node]) -> Option<String> {
    nodes
        .iter()
        .map(|node| match node {
            Node::Token(Token::Character(character)) => Some(character.to_string()),
            Node::Token(Token::One) => Some("?".to_owned()),
            Node::Token(Token::Many) => Some("*".to_owned()),
            Node::Token(Token::Class(class)) => Some(class.clone()),
            Node::Separator | Node::Braces(_) => None,
        })
        .collect()
}

/// Every alternative of a segment.
fn tokens(nodes: &[Node]) -> Option<Vec<Vec<Token>>> {
    let mut all: Vec<Vec<Token>> = vec![Vec::new()];
    for node in nodes {
        match node {
            Node::Token(token) => all.iter_mut().for_each(|tokens| tokens.push(token.clone())),
            Node::Braces(alternatives) => {
                let mut inner = Vec::new();
                for alternative in alternatives {
                    inner.extend(tokens(alternative)?);
                }
                all = product(&all, &inner)?;
            }
            Node::Separator => {}
        }
    }
    Some(all)
}

/// What is easily misread in a pattern.
fn notes(characters: &[char], nodes: &[Spanned]) -> Vec<String> {
    let mut notes = Vec::new();
    for segment in raw_segments(characters, nodes) {
        if segment.contains("**") && segment != "**" && !segment.contains(['{', '[', '\\']) {
            let rest = segment.replacen("**", "*", 1);
            notes.push(format!(
                "`**` goes through directories only as a whole segment; in `{segment}` it is a `*`. For all directories write `**/{rest}`"
            ));
        }
    }
    notes
}
