//! Bodies as text: what kind of content it is, its characters, its words, and the part of them that is wanted.
