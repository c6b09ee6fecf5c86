//! What a read and an edit mean, as pure functions on bytes.
//!
//! Nothing here opens a file, knows the wire or keeps state: the tools hand in bytes (or a [`Read`](std::io::Read)
//! and [`Seek`](std::io::Seek)) and get values back. That is what makes the promise testable that an edit changes
//! its own span and not one byte more.
//!
//! - [`encoding`]: what a file is in, and from bytes to characters and back
//! - [`text`]: a file's bytes as text, and pieces of it exchanged
//! - [`window`]: a page of a file of any size, in bounded memory
//! - [`find`]: where a piece of text occurs
//! - [`edit`]: replacing it by splicing the original bytes
//! - [`stream`]: the same for one place in a file that is not held in memory
//! - [`patch`]: unified diffs and the Begin/End Patch envelope
//! - [`explain`]: why it does not occur, or which of its occurrences to name
//! - [`notebook`]: cells of a notebook
//! - [`diff`]: what changed, as hunks and as a unified diff
//! - [`patience`]: giving up long work from inside its loops

pub mod diff;
pub mod edit;
pub mod encoding;
pub mod explain;
pub mod find;
pub mod notebook;
pub mod patch;
pub mod patience;
pub mod stream;
pub mod text;
pub mod window;

#[cfg(test)]
mod properties;
