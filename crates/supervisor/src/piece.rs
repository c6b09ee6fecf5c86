//! What is read of a program.

/// Which of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard output, or the terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it was written to.
    pub source: Source,
    /// What was written; never empty. Pieces may split characters.
    pub bytes: Vec<u8>,
}
