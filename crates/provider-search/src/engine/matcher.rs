//! What is looked for: a pattern made ready, in the engine that can do it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::ErrorKind as Syntax;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::engine::look_around;
use crate::engine::stop::Stop;

/// Steps that the second engine may take on one line.
const STEPS: usize = 1_000_000;

/// How upper and lower case are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// They are the same, unless the pattern has an upper-case letter.
    #[default]
    Smart,
    /// They are different.
    Sensitive,
    /// They are the same.
    Insensitive,
}

/// How a pattern is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Every character stands for itself.
    pub fixed_strings: bool,
    /// Upper and lower case.
    pub case: Case,
    /// Hits begin and end at the edge of a word.
    pub word: bool,
    /// Hits may go over line ends.
    pub multiline: bool,
}

/// Why a pattern cannot be searched for. The message stands alone.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// Not a regular expression.
    #[error("pattern: {message} at character {position} of `{pattern}`{marked}; {hint}")]
    Syntax {
        /// The pattern, shortened where it is long.
        pattern: String,
        /// What is wrong.
        message: String,
        /// Where, in characters from 1.
        position: usize,
        /// What the pattern has there.
        marked: String,
        /// What to do.
        hint: &'static str,
    },
    /// It needs too much memory.
    #[error("pattern: {0}; use smaller repetition counts, or search for a part of it")]
    TooBig(String),
}

const HINT: &str = "to search for the text as it is, pass fixed_strings: true; in a regular expression write \\ before \
     ( ) [ ] { } . * + ? | ^ $ \\";

/// A pattern ready to be searched for, by many threads.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The engine.
    pub engine: Engine,
    /// Whether hits may go over line ends.
    pub multiline: bool,
    /// Whether it names characters beyond ASCII, which other encodings write in other bytes.
    pub beyond_ascii: bool,
    /// What the caller should know about how it was read.
    pub notes: Vec<String>,
}

/// The engines.
#[derive(Clone, Debug)]
pub enum Engine {
    /// Linear in the text, whatever the pattern.
    Linear(RegexMatcher),
    /// With look-around and back-references, which backtrack.
    Backtracking(Backtracking),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, where, and what to do.
    pub fn new(pattern: &str, options: Options) -> Result<Self, PatternError> {
        if options.fixed_strings {
            let multiline = options.multiline || pattern.contains('\n');
            return Self::linear(pattern, Options { multiline, ..options }, !pattern.is_ascii());
        }
        let mut parser = regex_syntax::ParserBuilder::new().utf8(false).multi_line(true).build();
        match parser.parse(pattern) {
            Ok(hir) => {
                let multiline = options.multiline || crosses_lines(&hir);
                Self::linear(pattern, Options { multiline, ..options }, names_beyond_ascii(&hir))
            }
            Err(regex_syntax::Error::Parse(error)) => match error.kind() {
                Syntax::UnsupportedLookAround | Syntax::UnsupportedBackreference => {
                    Self::backtracking(pattern, options)
                }
                // What the first engine does not know, the second may; if neither does, the first explains it better.
                kind => Self::backtracking(pattern, options)
                    .ok()
                    .filter(|_| look_around::is_likely(pattern))
                    .ok_or_else(|| {
                        syntax(pattern, kind.to_string(), error.span().start.offset, error.span().end.offset)
                    }),
            },
            Err(regex_syntax::Error::Translate(error)) => {
                let (start, end) = (error.span().start.offset, error.span().end.offset);
                Err(syntax(pattern, error.kind().to_string(), start, end))
            }
            Err(other) => Err(PatternError::TooBig(other.to_string())),
        }
    }

    fn linear(pattern: &str, options: Options, beyond_ascii: bool) -> Result<Self, PatternError> {
        let too_big = |error: grep_regex::Error| PatternError::TooBig(error.to_string());
        let (matcher, multiline) = match build(pattern, options) {
            Ok(matcher) => (matcher, options.multiline),
            // The last word about line ends.
            Err(error) if matches!(error.kind(), grep_regex::ErrorKind::NotAllowed(_)) => {
                (build(pattern, Options { multiline: true, ..options }).map_err(too_big)?, true)
            }
            Err(error) => return Err(too_big(error)),
        };
        Ok(Self { engine: Engine::Linear(matcher), multiline, beyond_ascii, notes: Vec::new() })
    }

    fn backtracking(pattern: &str, options: Options) -> Result<Self, PatternError> {
        let multiline = options.multiline || look_around::crosses_lines(pattern);
        let engine = Backtracking::new(pattern, Options { multiline, ..options })?;
        let note = "the pattern has look-around or back-references and was searched for with a second, slower engine";
        let beyond_ascii = !pattern.is_ascii();
        Ok(Self {
            engine: Engine::Backtracking(engine),
            multiline,
            beyond_ascii,
            notes: vec![note.to_owned()],
        })
    }

    /// Lines that were given up because the steps allowed did not suffice.
    pub fn given_up(&self) -> u64 {
        match &self.engine {
            Engine::Linear(_) => 0,
            Engine::Backtracking(engine) => engine.given_up.load(Ordering::Relaxed),
        }
    }
}

fn build(pattern: &str, options: Options) -> Result<RegexMatcher, grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .unicode(true)
        .fixed_strings(options.fixed_strings)
        .word(options.word)
        .case_smart(options.case == Case::Smart)
        .case_insensitive(options.case == Case::Insensitive);
    if !options.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(pattern)
}

/// Whether an expression means to go over a line end: it has one as a literal, a class of nothing but line ends, or
/// one of every character. Classes that merely include it, such as `\s` or `[^"]`, stay within a line.
fn crosses_lines(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(class) => is_line_ends(class) || is_everything(class),
        HirKind::Repetition(repetition) => crosses_lines(&repetition.sub),
        HirKind::Capture(capture) => crosses_lines(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(crosses_lines),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

fn is_line_ends(class: &Class) -> bool {
    let ranges: Vec<(u32, u32)> = ranges(class);
    let is_end = |code: u32| code == u32::from(b'\n') || code == u32::from(b'\r');
    ranges.iter().any(|(start, end)| (*start..=*end).contains(&u32::from(b'\n')))
        && ranges.iter().all(|(start, end)| is_end(*start) && is_end(*end) && end - start <= 3)
        && ranges.iter().all(|(start, end)| start == end)
}

fn is_everything(class: &Class) -> bool {
    match ranges(class).as_slice() {
        [(0, 0xff)] => matches!(class, Class::Bytes(_)),
        [(0, 0x10_ffff)] => true,
        _ => false,
    }
}

fn ranges(class: &Class) -> Vec<(u32, u32)> {
    match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    }
}

fn names_beyond_ascii(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => !literal.0.is_ascii(),
        // A few letters by name, not a whole script such as `\w`.
        HirKind::Class(class) => {
            let ranges = ranges(class);
            ranges.len() <= 8 && ranges.iter().any(|(start, end)| *start > 0x7f && end - start < 0x100)
        }
        HirKind::Repetition(repetition) => names_beyond_ascii(&repetition.sub),
        HirKind::Capture(capture) => names_beyond_ascii(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(names_beyond_ascii),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

/// Characters of a pattern shown in an error.
const SHOWN: usize = 120;

fn syntax(pattern: &str, message: String, start: usize, end: usize) -> PatternError {
    let position = pattern.get(..start).unwrap_or(pattern).chars().count() + 1;
    let at = pattern.get(start..end).filter(|text| !text.is_empty() && text.len() < pattern.len());
    let mut marked = String::new();
    if let Some(text) = at {
        let _ = write!(marked, " (`{}`)", shortened(text));
    }
    PatternError::Syntax { pattern: shortened(pattern), message, position, marked, hint: HINT }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The engine for look-around and back-references.
#[derive(Clone, Debug)]
pub struct Backtracking {
    regex: Arc<fancy_regex::Regex>,
    /// Finds every line that the regex could match, and others.
    filter: Option<RegexMatcher>,
    within_lines: bool,
    given_up: Arc<AtomicU64>,
}

impl Backtracking {
    fn new(pattern: &str, options: Options) -> Result<Self, PatternError> {
        let whole = if options.word { format!(r"(?<!\w)(?:{pattern})(?!\w)") } else { pattern.to_owned() };
        let insensitive = match options.case {
            Case::Insensitive => true,
            Case::Sensitive => false,
            Case::Smart => !look_around::has_upper_case(pattern),
        };
        let regex = fancy_regex::RegexBuilder::new(&whole)
            .multi_line(true)
            .case_insensitive(insensitive)
            .bytes_mode(fancy_regex::BytesMode::UnicodeBytes)
            .backtrack_limit(STEPS)
            .build()
            .map_err(|error| backtracking_error(pattern, &error))?;
        let case = if insensitive { Case::Insensitive } else { Case::Sensitive };
        let filter = look_around::relaxed(pattern)
            .and_then(|relaxed| build(&relaxed, Options { case, word: false, ..options }).ok());
        let given_up = Arc::default();
        Ok(Self { regex: Arc::new(regex), filter, within_lines: !options.multiline, given_up })
    }
}

fn backtracking_error(pattern: &str, error: &fancy_regex::Error) -> PatternError {
    match error {
        fancy_regex::Error::ParseError(at, reason) => {
            let start = (0..=(*at).min(pattern.len())).rev().find(|at| pattern.is_char_boundary(*at));
            let start = start.unwrap_or_default();
            syntax(pattern, reason.to_string().to_lowercase(), start, start)
        }
        other => PatternError::TooBig(other.to_string()),
    }
}

impl Backtracking {
    /// The engine for one search, which it ends within a line when `stop` says so.
    pub fn until<'a>(&'a self, stop: &'a Stop) -> Bounded<'a> {
        Bounded { engine: self, stop }
    }
}

/// A [`Backtracking`] engine that knows when to stop: one line can take it as long as a whole file takes the other.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<'a> {
    engine: &'a Backtracking,
    stop: &'a Stop,
}

impl Matcher for Bounded<'_> {
    type Captures = NoCaptures;
    type Error = grep_matcher::NoError;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Self::Error> {
        use fancy_regex::RegexInput;
        if self.stop.reached() {
            return Ok(None);
        }
        match self.engine.regex.find_input(RegexInput::new(haystack).from_pos(at)) {
            Ok(found) => Ok(found.map(|found| Match::new(found.start(), found.end()))),
            Err(_) => {
                self.engine.given_up.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            }
        }
    }

    fn new_captures(&self) -> Result<NoCaptures, Self::Error> {
        Ok(NoCaptures::new())
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        // The searcher then gives it one line at a time, as `find_candidate_line` finds them.
        self.engine.within_lines.then(|| LineTerminator::byte(b'\n'))
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Self::Error> {
        if self.stop.reached() {
            return Ok(None);
        }
        let candidate = match &self.engine.filter {
            Some(filter) => filter.find_candidate_line(haystack)?,
            None => (!haystack.is_empty()).then_some(LineMatchKind::Candidate(0)),
        };
        Ok(candidate.map(|found| match found {
            LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at) => LineMatchKind::Candidate(at),
        }))
    }
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
