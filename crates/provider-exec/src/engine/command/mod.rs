//! A shell command as it reads: which programs it runs, and which parts deserve a look.
//!
//! This is for a person who is asked whether a command may run. It is no gate: what a command does is decided by
//! the shell, and can be hidden from any reader. So it never fails, reads everything once, and says when it does not
//! follow.

mod marks;
mod scan;
mod words;

pub use marks::{Kind, Mark};
pub use scan::{Context, Redirection, Simple, Word};

/// A command that has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The simple commands, in the order in which they stand.
    pub simple: Vec<Simple>,
    /// The parts that deserve a look, in the same order.
    pub marks: Vec<Mark>,
    /// What could not be followed.
    pub unclear: Option<&'static str>,
}

impl Command {
    /// Reads a command in the language of bash.
    pub fn read(text: &str) -> Self {
        let scan::Scanned { simple, functions, unclear } = scan::scan(text);
        let marks = marks::marks(text, &simple, &functions);
        Self { simple, marks, unclear }
    }
}
