//! Documents that are no text, in words: the text of a PDF, what kind and size an image is.
//!
//! The documents are other people's, and so are most of the parsers: [`contained`] runs one where neither a panic nor
//! an endless loop does harm.

mod contained;
pub mod image;
pub mod pdf;

pub use contained::{Broken, Stop, contained};
