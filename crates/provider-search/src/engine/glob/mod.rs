//! Glob patterns over paths, one name at a time.
//!
//! The grammar is that of `globset` with a literal separator, read by this module so that errors have a position and
//! so that a walk can ask about one name at a time:
//!
//! | written | matches |
//! |---|---|
//! | `?`, `*` | one character, any number of characters of a name |
//! | `**` as a whole segment | any number of directories; at the end everything beneath |
//! | `{a,b}` | either; may hold separators and may nest |
//! | `[ab]`, `[a-z]`, `[!a]` | one character (not) in the set |
//! | `\` | the next character as it is |
//! | `/` at the end | directories only |
//!
//! Two additions make a pattern say what its writer sees. A name that is spelled exactly like a segment always matches
//! it, whatever characters it has (`app/[id]/page.tsx`). And a segment that is spelled out, or begins with a dot, is
//! *explicit*: it reaches hidden and ignored names that a wildcard does not.

pub(crate) mod judge;
mod parse;
mod positions;
mod segment;
pub(crate) mod start;
pub(crate) mod walk;

pub use parse::PatternError;
pub(crate) use positions::Positions;
use segment::Segment;

/// A pattern, ready to be matched.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The directory that every match lies beneath, as it is written; empty if that is where matching starts.
    prefix: String,
    /// The alternatives one after another; a position is an index in here.
    steps: Vec<Step>,
    start: Positions,
    notes: Vec<String>,
}

/// One segment of one alternative.
#[derive(Debug, Clone)]
struct Step {
    kind: Kind,
    /// A match of this segment is a match of the pattern.
    last: bool,
    /// That match must be a directory.
    directory: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    /// `**`.
    Recursive,
    Name(Segment),
}

/// Which alternatives a name agrees with, and where they go on in the directory of that name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stride {
    /// The pattern matches, if it is `Some`: any entry, or directories only.
    pub(crate) hit: Option<Only>,
    /// Where matching goes on beneath.
    pub(crate) beneath: Positions,
}

/// What a match may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    Anything,
    Directories,
}

/// [`Stride`]s by how the name was reached.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Strides {
    /// Through a wildcard.
    pub(crate) wild: Stride,
    /// Through a segment that is spelled out or begins with a dot.
    pub(crate) explicit: Stride,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// [`PatternError`] with the position, counted in characters from 1.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        parse::parse(text)
    }

    /// Everything beneath the start, at any depth.
    pub fn everything() -> Self {
        let step = Step { kind: Kind::Recursive, last: true, directory: false };
        let mut pattern = Self::empty();
        pattern.push(vec![step]);
        pattern
    }

    fn empty() -> Self {
        Self { prefix: String::new(), steps: Vec::new(), start: Positions::default(), notes: Vec::new() }
    }

    fn push(&mut self, alternative: Vec<Step>) {
        let first = self.steps.len();
        self.steps.extend(alternative);
        self.start = self.start.union(self.closure(first));
    }

    /// The directory, as it is written, that every match lies beneath. It may be absolute, begin with `~` or lead up
    /// through `..`; empty if matching starts where the caller stands.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the pattern goes through any number of directories.
    pub fn is_recursive(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.kind, Kind::Recursive))
    }

    /// What a reader should know about how the pattern was understood.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where matching starts, in the directory of the prefix.
    pub(crate) fn start(&self) -> Positions {
        self.start
    }

    /// The position and, where that is a `**`, which may stand for no directory at all, those after it.
    fn closure(&self, position: usize) -> Positions {
        let mut all = Positions::default();
        let mut next = position;
        while let Some(step) = self.steps.get(next) {
            all.insert(next);
            if !matches!(step.kind, Kind::Recursive) || step.last {
                break;
            }
            next += 1;
        }
        all
    }

    /// What `name` is to the pattern in a directory where it stands at `positions`.
    pub(crate) fn stride(&self, positions: Positions, name: &[u8]) -> Strides {
        let mut strides = Strides::default();
        for position in positions.iter() {
            let Some(step) = self.steps.get(position) else { continue };
            match &step.kind {
                Kind::Recursive => {
                    strides.wild.beneath = strides.wild.beneath.union(self.closure(position));
                    if step.last {
                        strides.wild.add_hit(step.directory);
                    }
                }
                Kind::Name(segment) => {
                    let stride = match segment.matches(name) {
                        None => continue,
                        Some(segment::Reach::Wild) => &mut strides.wild,
                        Some(segment::Reach::Explicit) => &mut strides.explicit,
                    };
                    if step.last {
                        stride.add_hit(step.directory);
                    } else {
                        stride.beneath = stride.beneath.union(self.closure(position + 1));
                    }
                }
            }
        }
        strides
    }

    /// Whether the pattern matches a whole path, relative to where matching starts. Every name counts as visible.
    pub fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        let mut positions = self.start;
        let mut names = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let strides = self.stride(positions, name);
            if names.peek().is_none() {
                let hits = [strides.wild.hit, strides.explicit.hit];
                return hits.into_iter().flatten().any(|only| is_directory || only == Only::Anything);
            }
            positions = strides.wild.beneath.union(strides.explicit.beneath);
        }
        false
    }
}

impl Stride {
    /// Neither matches nor goes on.
    pub(crate) fn is_nothing(&self) -> bool {
        self.hit.is_none() && self.beneath.is_empty()
    }

    /// Either way.
    pub(crate) fn union(self, other: Self) -> Self {
        let hit = match (self.hit, other.hit) {
            (Some(Only::Anything), _) | (_, Some(Only::Anything)) => Some(Only::Anything),
            (one, other) => one.or(other),
        };
        Self { hit, beneath: self.beneath.union(other.beneath) }
    }

    fn add_hit(&mut self, directory: bool) {
        let hit = Some(if directory { Only::Directories } else { Only::Anything });
        *self = self.union(Self { hit, beneath: Positions::default() });
    }
}

#[cfg(test)]
mod tests;
